"""Limits judge scans, and are read from the configuration, without a server."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.cli import main
from proxy.config.config import Config, load
from proxy.config.errors import ConfigError
from proxy.config.limits import LimitingSection, LimitSection
from proxy.limits.by_name import limits_by_name
from proxy.limits.limits import Finding, Result, ScanRead, judge, limit_of, limits_for, limits_of, unknown
from rewriter import TableName

SALES = TableName(("spark_catalog", "shop", "sales"))
R, W, U, D = Result.REJECTED, Result.WARNED, Result.UNKNOWN, Result.WOULD_REJECT


def limit(name: str = "analysts", **keys: object) -> LimitSection:
    return LimitSection(name=name, **keys)  # type: ignore[arg-type]  # keys of the section


def scan(partitions: int | None = 8, **known: object) -> ScanRead:
    return ScanRead(SALES, ("ds",), partitions, 8, **known)  # type: ignore[arg-type]  # numbers of the scan


def findings(section: LimitSection, read: ScanRead, *, dry_run: bool = False) -> list[Finding]:
    return list(judge(limits_of([section], LimitingSection(dry_run=dry_run)), [read]))


@pytest.mark.parametrize(
    ("section", "read", "result"),
    [
        (limit(partitions_max=8), scan(), None),
        (limit(partitions_max=7), scan(), R),
        (limit(partitions_max=7, action="warn"), scan(), W),
        (limit(partitions_max=7), scan(is_at_most=True), U),
        (limit(partitions_max=7, unknown="reject"), scan(is_at_most=True), R),
        (limit(partitions_max=7, unknown="reject", action="warn"), scan(is_at_most=True), U),
        (limit(partitions_max=8), scan(is_at_most=True), None),
        (limit(partitions_max=8), scan(None), U),
        (limit(partitions_max=8), ScanRead(SALES, ()), None),
        (limit(partition_filter=True), scan(is_filtered=False), R),
        (limit(partition_filter=True), scan(is_filtered=True), None),
        (limit(partition_filter=True), scan(is_filtered=None), U),
        (limit(partition_filter=True), ScanRead(SALES, ()), None),
        (limit(partition_filter=True), scan(is_filtered=False, may_read_none=True), U),
        (limit(partitions_max=8, bytes_max=10), scan(None, size_bytes=11), R),
        (limit(partitions_max=8, bytes_max=10), scan(None, size_bytes=10), U),
        (limit(bytes_max=10), scan(size_bytes=11), R),
        (limit(bytes_max=10), scan(size_bytes=10), None),
        (limit(bytes_max=10), scan(), U),
        (limit(files_max=10), scan(files=11), R),
        (limit(files_max=10), scan(files=10), None),
        (limit(), scan(), None),
    ],
)
def test_a_limit_judges_what_a_scan_reads(section: LimitSection, read: ScanRead, result: Result | None) -> None:
    assert [one.result for one in findings(section, read)] == ([] if result is None else [result])


def test_nothing_is_rejected_in_a_dry_run() -> None:
    assert [one.result for one in findings(limit(partitions_max=1), scan(), dry_run=True)] == [D]
    (one,) = findings(limit(partitions_max=1, unknown="reject"), scan(None), dry_run=True)
    assert one.result is D
    (one,) = findings(limit(partitions_max=1, action="warn"), scan(), dry_run=True)
    assert one.result is W


def test_a_refusal_has_the_form_of_an_error_of_spark() -> None:
    (one,) = findings(limit(partitions_max=4), scan(2924, size_bytes=8_100_000_000_000))
    assert one.error == (
        "[STARPRUNER_LIMIT] This statement would read 2,924 of 8 partitions of shop.sales (8.1 TB). The limit for"
        " analysts is 4. SQLSTATE: 42ZSL"
    )


@pytest.mark.parametrize(
    ("pattern", "table", "is_named"),
    [
        ("*", "nowhere.t", True),
        ("sales", "spark_catalog.shop.SALES", True),
        ("shop.sales", "spark_catalog.shop.sales", True),
        ("shop.sales", "spark_catalog.other.sales", False),
        ("shop.*", "spark_catalog.shop.x", True),
        ("shop.*", "spark_catalog.other.x", False),
        ("ice.shop.*", "spark_catalog.shop.x", False),
    ],
)
def test_tables_are_named_by_their_full_names(pattern: str, table: str, *, is_named: bool) -> None:
    (one,) = limits_of([limit(tables=(pattern,), partitions_max=1)], LimitingSection())
    assert one.names(ScanRead(TableName(tuple(table.split("."))), ("ds",))) is is_named


def test_a_name_that_is_not_known_may_be_of_any_database() -> None:
    (one,) = limits_of([limit(tables=("shop.sales",), partitions_max=1)], LimitingSection())
    assert one.names(ScanRead(TableName(("sales",)), None))
    assert one.names(ScanRead(TableName(("sales",)), ("ds",), has_full_name=False))
    assert not one.names(ScanRead(TableName(("sales",)), ("ds",)))
    assert not one.names(ScanRead(TableName(("other", "sales")), None))


@pytest.mark.parametrize("table", [("delta", "/lake/sales"), ("spark_catalog", "delta", "s3://lake/x")])
def test_a_table_that_is_read_by_its_path_may_be_any(table: tuple[str, ...]) -> None:
    (one,) = limits_of([limit(tables=("shop.sales",), partitions_max=1)], LimitingSection())
    assert one.names(ScanRead(TableName(table), ("ds",), has_full_name=False))
    assert one.names(ScanRead(TableName(table), None))
    # A database may have such a name.
    assert not one.names(ScanRead(TableName(table), ("ds",)))


@pytest.mark.parametrize("table", [("delta", "/lake/sales"), ("sales",)])
def test_a_limit_without_a_bound_exempts_no_table_that_it_only_may_name(table: tuple[str, ...]) -> None:
    exempt, bound = limits_of(
        [limit("exempt", tables=("shop.sales",)), limit("all", partitions_max=1)], LimitingSection()
    )
    assert limit_of([exempt, bound], ScanRead(TableName(table), None)) is bound
    assert limit_of([exempt, bound], ScanRead(TableName(("shop", "sales")), None)) is None


def test_the_first_limit_that_names_the_table_counts_and_one_without_a_bound_exempts() -> None:
    sections = [limit("exempt", users=("root",)), limit("all", users=("@people",), partitions_max=1)]
    terms = LimitingSection(groups={"people": ("an*", "root")})
    found = limits_of(sections, terms)
    assert [one.section.name for one in limits_for(found, "anna")] == ["all"]
    assert limits_for(found, "ANNA") == limits_for(found, "root") == ()
    assert [one.section.name for one in limits_for(found, None)] == ["exempt", "all"]
    some = limits_of([limit("exempt", tables=("shop.sales",)), *sections[1:]], terms)
    assert not list(judge(limits_for(some, "root"), [scan()]))
    assert list(judge(limits_for(some, "root"), [ScanRead(TableName(("shop", "other")), ("ds",), 8)]))


def test_a_statement_of_which_nothing_is_known_meets_the_strictest_limit() -> None:
    found = limits_of(
        [limit("a", partitions_max=1), limit("b", partitions_max=1, unknown="reject")], LimitingSection()
    )
    assert unknown(found, "it was not looked at").limit == "b"
    assert unknown(found[:1], "it was not looked at").result is U


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[limits]]\nname = "a"\nusers = ["@b"]', "there is no group b"),
        ('[[limits]]\nname = "a"\n[[limits]]\nname = "a"', "two limits have this name"),
        ("[[limits]]\npartitions_max = 1", "missing required field `name`"),
        ('[[limits]]\nname = "a b"', "letters, digits"),
    ],
)
def test_a_wrong_limit_is_named(text: str, said: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("limits") / "starpruner.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load(path)


def test_the_check_tells_limits_by_the_names_in_a_statement() -> None:
    config = Config(limits=(limit(users=("an*",), tables=("shop.sales",), partitions_max=1),))
    sql = "WITH c AS (SELECT * FROM sales) SELECT * FROM c JOIN other.sales USING (ds)"
    assert sorted(limits_by_name(config, "anna", sql)) == [
        "other.sales: no limit counts for anna",
        "sales: limit analysts may count for anna",
    ]
    assert list(limits_by_name(config, "anna", "SELEC")) == [
        "the tables of the statement are not certain: 1 limits may count for anna"
    ]


def test_serve_check_takes_a_user_and_a_statement(tmp_path: Path) -> None:
    path = tmp_path / "starpruner.toml"
    path.write_text('[[limits]]\nname = "few"\nusers = ["an*"]\npartitions_max = 1\n')
    options = ["serve", "--check", "--config", str(path), "--user", "anna", "--statement", "-"]
    told = CliRunner().invoke(main, options, input="SELECT * FROM shop.sales").output.splitlines()
    assert told[-1] == "shop.sales: limit few may count for anna"
