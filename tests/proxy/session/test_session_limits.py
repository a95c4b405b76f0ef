"""Sessions that judge their statements by limits: what they ask, and what they refuse."""

from typing import Any

import pytest
from support import delta_answers
from support.iceberg_answers import described
from support.played_sessions import KEY_QUERY, LISTED, SQL, D, F, Script, failed, played, rows
from support.text_session import Stage, TextSession

from proxy.config.limits import LimitingSection, LimitSection
from proxy.config.rewriting import FilesSection
from proxy.operations.dispatch import Dispatch
from proxy.operations.query import FailureKind, Rows
from proxy.session.layout.iceberg_files import summary_query
from rewriter import TableName

PLAIN = "SELECT id FROM f"
DESCRIBE_F = ("DESCRIBE TABLE EXTENDED `f`", F)
DESCRIBE_BOTH = [("DESCRIBE TABLE EXTENDED `d`", D), DESCRIBE_F]
SCAN = "FileScan parquet f[id#1] Location: InMemoryFileIndex({} paths)[x], PartitionFilters: [a]"
PLAN = f"== Physical Plan ==\n{SCAN}"
KEYS = (KEY_QUERY, rows(("2026-01-01", "string"), ("2026-01-02", "string")))


def session(*limits: LimitSection, dry_run: bool = False, user: str = "ann") -> TextSession:
    return Stage(limits=limits, limiting=LimitingSection(dry_run=dry_run)).session(user)


def limit(name: str = "few", **keys: Any) -> LimitSection:
    return LimitSection(name=name, **{"partitions_max": 3, **keys})


def refusal_of(dispatch: Dispatch) -> str | None:
    return None if dispatch.refusal is None else dispatch.refusal.message


@pytest.mark.parametrize("sql", [PLAIN, "SELECT 1", "SELECT id FROM f WHERE ds = '2026-01-01'", "SHOW TABLES"])
def test_without_a_limit_for_the_user_nothing_more_is_asked_or_done(sql: str) -> None:
    asked = [DESCRIBE_F] if "FROM f" in sql else []
    bare, other = session(), session(limit(users=("bob",)), limit("exempt", partitions_max=0))
    for one in (bare, other):
        assert played(one.rewrite(sql), asked).text == sql
        # With the name known as a table's, the event loop decides.
        assert one.is_quick(sql)
    assert session(limit()).is_quick(sql) is ("FROM" not in sql and sql.startswith("SHOW"))


def test_a_plain_statement_is_judged_by_the_partition_list() -> None:
    one = session(limit())
    said = refusal_of(played(one.rewrite(PLAIN), [DESCRIBE_F, LISTED]))
    assert said is not None
    assert "would read 31 of 31 partitions" in said
    assert "Add a filter on ds, such as ds >= '2026-01-29'" in said
    # All is known by now.
    within = "SELECT id FROM f WHERE ds >= '2026-01-29'"
    assert refusal_of(played(one.rewrite(within), [])) is None


def test_a_star_join_counts_as_it_is_narrowed_whatever_the_cost_gate_says() -> None:
    script: Script = [*DESCRIBE_BOTH, LISTED, KEYS]
    dispatch = played(session(limit()).rewrite(SQL), script)
    assert refusal_of(dispatch) is None
    assert "'2026-01-01', '2026-01-02'" in dispatch.text
    said = refusal_of(played(session(limit(partitions_max=1)).rewrite(SQL), script))
    assert "would read 2 of 31 partitions" in str(said)


def test_the_original_of_a_narrowed_statement_is_refused_where_it_would_be_over_the_limit() -> None:
    script: Script = [*DESCRIBE_BOTH, LISTED, KEYS]
    over, within = (played(session(limit(partitions_max=most)).rewrite(SQL), script) for most in (3, 31))
    assert over.original_refusal is not None
    assert "would read 31 of 31 partitions" in over.original_refusal.message
    assert (over.refusal, within.refusal, within.original_refusal) == (None, None, None)
    warned = played(session(limit(action="warn")).rewrite(SQL), script)
    assert (warned.text != SQL, warned.original_refusal) == (True, None)


@pytest.mark.parametrize(("paths", "is_refused"), [(3, False), (4, True)])
def test_where_filters_do_not_tell_the_plan_of_spark_does(paths: int, *, is_refused: bool) -> None:
    sql = f"{PLAIN} WHERE ds > current_date()"
    script: Script = [DESCRIBE_F, LISTED, (f"EXPLAIN COST {sql}", rows((PLAN.format(paths),)))]
    one = session(limit())
    assert (refusal_of(played(one.rewrite(sql), script)) is not None) is is_refused
    # The plan counts for a while.
    assert (refusal_of(played(one.rewrite(sql), [])) is not None) is is_refused


@pytest.mark.parametrize("unknown", ["allow", "reject"])
@pytest.mark.parametrize("kind", [FailureKind.DEADLINE, FailureKind.REJECTED])
def test_what_is_not_known_follows_the_limit(kind: FailureKind, unknown: str) -> None:
    script = "BEGIN SELECT id FROM f; END"
    one = session(limit(unknown=unknown))
    refused = refusal_of(played(one.rewrite(script), [(f"EXPLAIN COST {script}", failed(kind))]))
    assert (refused is not None) is (unknown == "reject")
    assert (refusal_of(one.forward_unchanged(PLAIN)) is not None) is (unknown == "reject")


def test_a_statement_that_spark_refuses_to_plan_is_left_to_spark() -> None:
    sql = "SELECT nothing FROM f WHERE ds > current_date()"
    script: Script = [DESCRIBE_F, LISTED, (f"EXPLAIN COST {sql}", failed(FailureKind.REJECTED))]
    assert refusal_of(played(session(limit(unknown="reject")).rewrite(sql), script)) is None


def test_comments_in_front_do_not_hide_a_statement_from_its_plan() -> None:
    sql = f"/* a */ /* b */ {PLAIN} WHERE ds > current_date()"
    script: Script = [DESCRIBE_F, LISTED, (f"EXPLAIN COST {sql}", rows((PLAN.format(4),)))]
    assert refusal_of(played(session(limit()).rewrite(sql), script))


def test_text_that_is_executed_by_its_explanation_is_not_explained() -> None:
    assert refusal_of(played(session(limit(unknown="reject")).rewrite("EXECUTE IMMEDIATE 'SELECT 1'"), []))


@pytest.mark.parametrize(("keys", "dry_run"), [({"action": "warn"}, False), ({}, True)])
def test_a_warning_lets_the_statement_run(keys: dict[str, str], *, dry_run: bool) -> None:
    dispatch = played(session(limit(**keys), dry_run=dry_run).rewrite(PLAIN), [DESCRIBE_F, LISTED])
    assert (dispatch.refusal, dispatch.text) == (None, PLAIN)


@pytest.mark.parametrize(
    ("keys", "filters", "said"),
    [
        ({"bytes_max": 99}, "", "would read 100 bytes of db.f"),
        ({"bytes_max": 100}, "", None),
        ({"files_max": 6}, "", "would read 7 files"),
        # Fewer are left, of which the plan does not tell how many.
        ({"bytes_max": 99}, "id > 1", "It is not known"),
        ({"partition_filter": True}, "", "no filter on a partition column"),
        ({"partition_filter": True}, "id > 1", "no filter on a partition column"),
    ],
)
def test_an_iceberg_table_has_the_size_of_its_snapshot(
    keys: dict[str, Any], filters: str, said: str | None
) -> None:
    sql = f"{PLAIN} WHERE id > 1" if filters else PLAIN
    columns, partitioning = (("id", "int"), ("at", "timestamp")), (("# Partitioning", ""), ("Part 0", "days(at)"))
    line = (
        "BatchScan f[id#1] IcebergScan(table=ice.db.f, schemaId=0, snapshotId=5, branch=null,"
        f" filters={filters}, groupedBy=)"
    )
    script: Script = [
        ("DESCRIBE TABLE EXTENDED `f`", described("ice.db.f", *columns, partitioning=partitioning)),
        (f"EXPLAIN COST {sql}", rows((f"== Physical Plan ==\n{line}",))),
    ]
    if "partition_filter" not in keys:
        script += [(summary_query(TableName(("ice", "db", "f")), 5, FilesSection()).sql, rows((7, 100)))]
    one = session(limit(partitions_max=0, unknown="reject", **keys))
    found = refusal_of(played(one.rewrite(sql), script))
    assert found is None if said is None else said in str(found)
    # All is known by now.
    assert refusal_of(played(one.rewrite(sql), [])) == found


def test_a_file_that_is_read_by_its_path_is_not_known() -> None:
    sql = "SELECT id FROM parquet.`/x`"
    script: Script = [
        ("DESCRIBE TABLE EXTENDED `parquet`.`/x`", failed(FailureKind.REJECTED)),
        (f"EXPLAIN COST {sql}", rows((PLAN.format(4).replace("f[", "["),))),
    ]
    assert refusal_of(played(session(limit(unknown="reject")).rewrite(sql), script))


COLUMNS = ("id", "int"), ("ds", "string")


def plan_of(*lines: str) -> Rows:
    return rows(("\n".join(("== Physical Plan ==", *lines)),))


BY_PATH = (
    "FileScan parquet [id#1] Location: PreparedDeltaFileIndex(1 paths)[x], PartitionFilters: [], PushedFilters: []"
)


@pytest.mark.parametrize("filters", ["", " WHERE ds = 'd3'"])
@pytest.mark.parametrize("unknown", ["allow", "reject"])
def test_a_delta_table_that_is_read_by_its_path_is_not_known(unknown: str, filters: str) -> None:
    sql = f"SELECT id FROM delta.`/lake/f`{filters}"
    script: Script = [
        ("DESCRIBE TABLE EXTENDED `delta`.`/lake/f`", delta_answers.described("delta.`file:/lake/f`", *COLUMNS)),
        (f"EXPLAIN COST {sql}", plan_of(BY_PATH)),
    ]
    one = session(limit(tables=("shop.sales",), partition_filter=True, unknown=unknown))
    assert (refusal_of(played(one.rewrite(sql), script)) is not None) is (unknown == "reject")


def test_a_version_of_a_delta_table_is_judged_by_the_plan_of_spark() -> None:
    sql = "SELECT id FROM shop.sales VERSION AS OF 1"
    scan = BY_PATH.replace("parquet ", "parquet spark_catalog.shop.sales")
    table = delta_answers.described("spark_catalog.shop.sales", *COLUMNS)
    script: Script = [
        ("DESCRIBE TABLE EXTENDED `shop`.`sales`", table),
        (
            "DESCRIBE QUERY SELECT * FROM `shop`.`sales` VERSION AS OF 1",
            rows(*((*column, "") for column in COLUMNS)),
        ),
        (f"EXPLAIN COST {sql}", plan_of(scan)),
        ("DESCRIBE TABLE EXTENDED `spark_catalog`.`shop`.`sales`", table),
    ]
    one = session(limit(tables=("shop.sales",), partitions_max=0, partition_filter=True))
    assert "no filter on a partition column" in str(refusal_of(played(one.rewrite(sql), script)))


@pytest.mark.parametrize(
    ("sql", "lines"),
    [
        ("SET VAR x = (FROM f |> AGGREGATE count(*))", ()),
        ("/* a */ SET /* b */ VARIABLE x = EXISTS(TABLE f)", ()),
        ("DECLARE x INT DEFAULT (FROM f |> AGGREGATE count(*))", ()),
        ("SELECT * FROM table_changes('f', 0)", ("Scan DeltaCDFRelation(SnapshotWithSchemaMode(x)) [id#1]",)),
        ("CREATE TABLE x USING delta AS TABLE f", ("AtomicCreateTableAsSelect [x]",)),
        ("REPLACE TABLE x USING iceberg AS SELECT * FROM f", ("ReplaceTableAsSelect [x]",)),
    ],
)
def test_what_a_plan_hides_is_not_known(sql: str, lines: tuple[str, ...]) -> None:
    script: Script = [(f"EXPLAIN COST {sql}", plan_of(*lines) if lines else failed(FailureKind.DEADLINE))]
    assert refusal_of(played(session(limit(unknown="reject")).rewrite(sql), script))


@pytest.mark.parametrize("sql", ["SET spark.a.table = from", "SET x = VAR FROM", "DECLARE tables INT DEFAULT 1"])
def test_a_setting_reads_nothing(sql: str) -> None:
    assert refusal_of(played(session(limit(unknown="reject")).rewrite(sql), [])) is None


def test_a_finding_hides_nothing_of_what_is_not_known() -> None:
    sql = "SELECT id FROM parquet.`/x` UNION ALL SELECT id FROM f"
    described = ("DESCRIBE TABLE EXTENDED `parquet`.`/x`", failed(FailureKind.REJECTED))
    scan = SCAN.format(9)
    plan = plan_of(scan, scan.replace(" f[", " ["))
    script: Script = [DESCRIBE_F, described, LISTED, (f"EXPLAIN COST {sql}", plan)]
    one = session(limit("warns", tables=("f",), action="warn"), limit("rejects", unknown="reject"))
    assert "The limit for rejects" in str(refusal_of(played(one.rewrite(sql), script)))


def test_a_narrowed_text_that_cannot_be_sent_tells_of_the_limit_of_its_original(
    caplog: pytest.LogCaptureFixture,
) -> None:
    dispatch = played(session(limit()).rewrite(SQL), [*DESCRIBE_BOTH, LISTED, KEYS])
    assert not caplog.messages
    refused = dispatch.refused_as_original()
    assert (dispatch.refusal, refused.refusal, refused.beside) == (None, dispatch.original_refusal, None)
    assert refused.refused_as_original() is refused
    assert len(caplog.messages) == 1
    assert "of ann met the limit few on f.f: rejected" in caplog.text


def test_explain_tells_the_limits() -> None:
    one = session(limit())
    decision = played(one.explain(PLAIN, run_key_queries=True), [DESCRIBE_F, LISTED])
    assert [found.limit for found in decision.limits] == ["few"]
