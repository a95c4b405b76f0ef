"""What is said of partitions, buckets, row groups and files, each by itself, and what is not worth saying."""

import json
from dataclasses import replace

import pytest

from rewriter import (
    Column,
    KeyQuery,
    KeyRanges,
    Keys,
    KeySet,
    Plan,
    Rewrite,
    RewriteLimits,
    Rule,
    ScanOutcome,
    SkipReason,
    Statement,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)
from rewriter.domains.cover import Cover
from rewriter.files.file_index import FileIndex
from rewriter.plan import KeyAnswer

K, X, P = Column("k", "int"), Column("X", "int"), Column("p", "string")
PARTED = TableFacts((Column("id", "int"), X, P), ("p",), indexed_columns=("x", "p"))
PLAIN = TableFacts((Column("id", "int"), X), indexed_columns=("x",))
BUCKETED = TableFacts((Column("id", "int"), K), bucket_columns=("K",), bucket_count=10)
SMALL = TableFacts((K, Column("s", "string"), Column("g", "int")))
TABLES = {"parted": PARTED, "plain": PLAIN, "bucketed": BUCKETED, "small": SMALL}
LIMITS = RewriteLimits(has_file_index=True)

# Ten files of 100 bytes, each with ten values of x: 0 to 9 in the first, which lies in a as every other one does.
ROWS = [
    (f"file:/f/{n}", 100, n, 10, json.dumps({"x": bounds, "p": {"type": "string", "low": p, "high": p}}), "[]")
    for n in range(10)
    for p in "ab"[n % 2]
    for bounds in [{"type": "int", "low": str(10 * n), "high": str(10 * n + 9), "nulls": 0}]
]
JOINED = "SELECT f.id FROM {} f JOIN small s ON f.x = s.k WHERE s.g = 1"
PAIRED = "SELECT f.id FROM parted f JOIN small s ON f.x = s.k AND f.p = s.s WHERE s.g = 1"
BY_BUCKET = "SELECT f.id FROM bucketed f JOIN small s ON f.k = s.k WHERE s.g = 1"


def planned(sql: str, limits: RewriteLimits = LIMITS, tables: dict[str, TableFacts] = TABLES) -> Plan:
    statement = parse(sql, chars_max=10_000, has_file_index=True)
    assert isinstance(statement, Statement)
    return plan(statement, {TableName((name,)): facts for name, facts in tables.items()}, limits)


def rewritten(
    sql: str,
    *keys: tuple[int | str, ...] | Keys,
    limits: RewriteLimits = LIMITS,
    tables: dict[str, TableFacts] = TABLES,
    has_index: bool = True,
) -> Rewrite:
    found = planned(sql, limits, tables)
    answers: dict[KeyQuery, KeyAnswer] = {}
    for query in found.key_queries:
        types = tuple(column.type_name for column in query.columns)
        given = [key for key in keys if isinstance(key, KeyRanges)]
        answers[query] = given[0] if given else KeySet.of(types, [k for k in keys if isinstance(k, tuple)])
    files = {
        name: FileIndex.of_rows(
            ROWS, {column.name.lower(): column.type_name for column in tables[str(name)].columns}
        )
        for name in found.wants_files(answers)
    }
    return apply(found, answers, limits, files=files if has_index else None)


def outcome(result: Rewrite) -> ScanOutcome:
    (found,) = [scan for scan in result.scans if scan.scan.alias in {"f", "plain", "parted"}]
    return found


def parts(result: Rewrite) -> list[str]:
    """The conditions of the narrowed scan, each by itself."""
    return (outcome(result).predicate or "").split(") AND (")


def test_keys_say_which_files_to_skip_and_which_ranges_to_read() -> None:
    result = rewritten(JOINED.format("plain"), (5,), (42,))
    ranges, files = parts(result)
    assert ranges == "(`X` IN (5, 42) OR typeof(`X`) <> 'int'"
    assert "file:/f/4|" not in files
    assert files.count("file:/f/") == 8
    assert files.endswith("OR typeof(`X`) <> 'int')")
    assert outcome(result).rules == {Rule.INNER_JOIN, Rule.FILE_HINTS, Rule.RANGE_IN}
    assert (outcome(result).exact, outcome(result).cover) == (False, None)


def test_what_is_left_is_counted() -> None:
    selection = outcome(rewritten(JOINED.format("plain"), (5,), (42,))).files
    assert selection is not None
    assert (selection.kept, selection.total, selection.kept_bytes, selection.total_bytes) == (2, 10, 200, 1000)


def test_of_pairs_partitions_and_files_are_told_apart() -> None:
    result = rewritten(PAIRED, (5, "a"), (15, "b"), (35, "b"))
    partitions, ranges, files = parts(result)
    assert partitions == "(`p` IN ('a', 'b') OR typeof(`p`) <> 'string'"
    assert ranges == "`X` IN (5, 15, 35) OR typeof(`X`) <> 'int'"
    assert [n for n in range(10) if f"file:/f/{n}|" not in files] == [0, 1, 3]


@pytest.mark.parametrize(
    "sql",
    [PAIRED, "SELECT id FROM parted WHERE (p = 'b' AND x = 5) OR (p = 'a' AND x = 15)"],
    ids=["keys", "filters"],
)
def test_a_file_may_lie_in_another_partition_since_it_was_indexed(sql: str) -> None:
    # Its partition was renamed, or has another place now; path, size and time of the file are what they were.
    files = parts(rewritten(sql, (5, "b"), (15, "a")))[-1]
    assert [n for n in range(10) if f"file:/f/{n}|" not in files] == [0, 1]


def test_files_of_partitions_that_are_not_read_are_not_listed() -> None:
    selection = outcome(rewritten(PAIRED, (5, "a"), (25, "a"))).files
    assert selection is not None
    assert (selection.total, selection.kept) == (5, 2)
    assert {facts.path for facts in selection.misses} == {"file:/f/4", "file:/f/6", "file:/f/8"}


def test_a_filter_of_the_statement_on_partitions_spares_the_hint_their_files_too() -> None:
    selection = outcome(rewritten("SELECT id FROM parted WHERE p = 'a' AND x = 5")).files
    assert selection is not None
    assert (selection.total, selection.kept) == (5, 1)


def test_without_the_index_partitions_are_narrowed_and_nothing_else() -> None:
    result = rewritten(PAIRED, (5, "a"), has_index=False)
    assert parts(result) == ["(`p` IN ('a') OR typeof(`p`) <> 'string')"]
    assert not outcome(result).exact
    for sql in (JOINED.format("plain"), "SELECT id FROM plain WHERE x = 5"):
        alone = rewritten(sql, (5,), has_index=False)
        assert (outcome(alone).skip, alone.text) == (SkipReason.NO_FILE_INDEX, sql)


def test_without_any_key_nothing_is_read_and_no_index_is_wanted() -> None:
    found = planned(JOINED.format("plain"))
    (query,) = found.key_queries
    assert found.wants_files({query: KeySet.of(("int",), [])}) == ()
    assert parts(rewritten(JOINED.format("plain"), has_index=False)) == ["FALSE"]


def test_an_index_is_wanted_where_keys_or_filters_restrict_what_it_knows() -> None:
    found = planned(JOINED.format("plain"))
    (query,) = found.key_queries
    assert found.wants_files({}) == ()
    assert found.wants_files({query: SkipReason.KEY_QUERY_FAILED}) == ()
    assert found.wants_files({query: KeySet.of(("int",), [(1,)])}) == (TableName(("plain",)),)
    assert planned("SELECT id FROM plain WHERE x = 5").wants_files({}) == (TableName(("plain",)),)
    assert planned("SELECT id FROM parted WHERE p = 'a'").wants_files({}) == ()


def test_ranges_around_too_many_keys_choose_files_too() -> None:
    found = planned(JOINED.format("plain"))
    (query,) = found.key_queries
    too_many: dict[KeyQuery, KeyAnswer] = {query: SkipReason.TOO_MANY_KEYS}
    (ranges,) = found.pending(too_many)
    answers = {**too_many, ranges: KeyRanges("int", ((0, 12), (95, 99)))}
    index = FileIndex.of_rows(ROWS, {"x": "int"})
    result = apply(found, answers, LIMITS, files={TableName(("plain",)): index})
    selection = outcome(result).files
    assert selection is not None
    assert selection.kept == 3


def test_a_hint_that_spares_hardly_anything_is_not_said() -> None:
    spread = tuple((10 * n,) for n in range(10))
    assert outcome(rewritten(JOINED.format("plain"), *spread)).skip is None, "row groups may still be skipped"
    assert Rule.FILE_HINTS not in outcome(rewritten(JOINED.format("plain"), *spread)).rules
    sql = "SELECT id FROM plain WHERE x >= 0"
    assert outcome(rewritten(sql)).skip is SkipReason.NOTHING_TO_SKIP


def test_a_hint_that_is_cut_short_counts_the_files_that_it_names() -> None:
    limits = replace(LIMITS, file_hint_chars_max=450)
    selection = outcome(rewritten("SELECT id FROM plain WHERE x = 5", limits=limits)).files
    assert selection is not None
    assert 0 < len(selection.misses) < 9
    assert selection.kept == 10 - len(selection.misses)
    assert selection.kept_bytes == 100 * selection.kept


@pytest.mark.parametrize("rule", [Rule.FILE_HINTS, Rule.RANGE_IN])
def test_either_way_to_leave_out_data_can_be_switched_off(rule: Rule) -> None:
    result = rewritten(JOINED.format("plain"), (5,), limits=replace(LIMITS, rules_off=frozenset({rule})))
    assert outcome(result).rules == {Rule.INNER_JOIN, Rule.FILE_HINTS, Rule.RANGE_IN} - {rule}


def test_with_both_of_them_off_the_column_is_like_any_other() -> None:
    off = replace(LIMITS, rules_off=frozenset({Rule.FILE_HINTS, Rule.RANGE_IN}))
    assert planned(JOINED.format("plain"), off).key_queries == ()


def test_few_keys_of_the_bucket_column_are_said_one_by_one() -> None:
    result = rewritten(BY_BUCKET, (7,), (8,), (9,))
    assert parts(result) == ["(`k` IN (7, 8, 9) OR typeof(`k`) <> 'int')"]
    assert outcome(result).rules == {Rule.INNER_JOIN, Rule.BUCKETS}
    assert planned(BY_BUCKET).wants_files({}) == ()


def test_keys_that_may_hit_most_buckets_are_not_said() -> None:
    assert outcome(rewritten(BY_BUCKET, *((n,) for n in range(16)))).skip is SkipReason.NOTHING_TO_SKIP


def test_no_ranges_are_asked_for_where_there_are_only_buckets() -> None:
    found = planned(BY_BUCKET)
    (query,) = found.key_queries
    assert found.pending({query: SkipReason.TOO_MANY_KEYS}) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"bucket_columns": ("k", "id")},
        {"bucket_count": None},
        {"provider": "hive"},
        {"kind": TableKind.VIEW},
    ],
)
def test_buckets_that_spark_leaves_none_out_of_are_none(changed: dict[str, object]) -> None:
    tables = {**TABLES, "bucketed": replace(BUCKETED, **changed)}  # type: ignore[arg-type]
    assert planned(BY_BUCKET, tables=tables).key_queries == ()
    assert planned(BY_BUCKET, replace(LIMITS, rules_off=frozenset({Rule.BUCKETS}))).key_queries == ()


def test_a_cte_with_several_readers_is_narrowed_by_partitions_alone() -> None:
    sql = (
        "WITH c AS (SELECT id, x, p FROM parted) SELECT f.id FROM c f JOIN small s ON f.p = s.s"
        " JOIN c other ON other.id = f.id WHERE s.g = 1 AND f.x = 5"
    )
    found = rewritten(sql, ("a",))
    assert "_metadata" not in found.text
    assert "`p` IN ('a')" in found.text


def test_a_view_is_narrowed_by_partitions_alone() -> None:
    text = ViewText("SELECT * FROM parted", ("main", "shop"), ("id", "X", "p"))
    view = TableFacts(PARTED.columns, provider="", kind=TableKind.VIEW, view=text)
    tables = {**TABLES, "v": view, "main.shop.parted": PARTED}
    catalog = {TableName(tuple(name.split("."))): facts for name, facts in tables.items()}
    statement = parse(PAIRED.replace("parted", "v"), chars_max=1_000)
    assert isinstance(statement, Statement)
    found = plan(statement, catalog, LIMITS)
    assert [reducer.columns for scan in found.scans for reducer in scan.reducers] == [("p",)]


def test_a_small_side_that_may_be_as_large_is_not_asked() -> None:
    sql = "SELECT f.id FROM plain f JOIN other s ON f.x = s.x WHERE s.id = 1"

    def skip(fact_bytes: int | None, other_bytes: int | None) -> SkipReason | None:
        tables = {
            "plain": replace(PLAIN, size_bytes=fact_bytes),
            "other": replace(PLAIN, indexed_columns=("id",), size_bytes=other_bytes),
        }
        return next(scan.skip for scan in planned(sql, tables=tables).scans if scan.alias == "f")

    assert skip(100, 10) is None
    assert {skip(100, 100), skip(100, None), skip(None, 10)} == {SkipReason.SMALL_SIDE_LARGER}


def test_a_key_query_never_reads_the_fact_itself() -> None:
    sql = "SELECT f.id FROM plain f JOIN small s ON f.x = s.k JOIN plain o ON o.id = s.k WHERE s.g = 1 AND o.x = 3"
    found = planned(sql)
    assert found.key_queries
    assert all("plain" not in query.sql for query in found.key_queries)


def test_without_an_index_a_filter_alone_asks_for_no_known_table() -> None:
    statement = parse("SELECT id FROM plain WHERE x = 5", chars_max=100, has_file_index=True)
    assert isinstance(statement, Statement)
    assert plan(statement, {}, RewriteLimits()).missing == frozenset({TableName(("plain",))})
    limits = RewriteLimits(table_names=frozenset({"plain"}))
    assert plan(statement, {}, limits).missing == frozenset()
    assert plan(statement, {}, LIMITS).missing == {TableName(("plain",))}


def test_strict_consistency_leaves_filters_of_the_statement_as_they_are() -> None:
    alone = outcome(rewritten("SELECT id FROM plain WHERE x = 5", limits=replace(LIMITS, strict=True)))
    assert alone.predicate is not None


@pytest.mark.parametrize(
    ("low", "is_skipped"), [("1582-10-15", True), ("1582-10-04", False), ("0001-01-01", False)]
)
def test_days_that_a_setting_may_count_by_another_calendar_are_not_known(low: str, is_skipped: bool) -> None:  # noqa: FBT001
    bounds = {"d": {"type": "date", "low": low, "high": "1600-01-01", "nulls": 0}}
    index = FileIndex.of_rows([("file:/f/0", 100, 1, 1, json.dumps(bounds), "[]")], {"d": "date"})
    asked = Cover.of_rows([Column("d", "date")], [("1500-01-01",)])
    assert bool(index.misses(asked).misses) is is_skipped
