"""Which scans ask for fewer splits, narrowed or not, and which are left to Spark."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from rewriter import (
    Column,
    IcebergFacts,
    KeySet,
    Rewrite,
    RewriteLimits,
    Rule,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)
from rewriter.files.file_index import FileIndex
from rewriter.predicates.splice import Narrowing, rewritten_text
from rewriter.splits.packing import Grouping, Packing, SplitHints

FILES = 96
COLUMNS = Column("x", "int"), Column("v", "string")
T, NAME = TableFacts(COLUMNS, indexed_columns=("x",), size_bytes=1_000 * FILES), TableName(("t",))
PACKING = Packing(slots=2, split_bytes_max=1 << 20, open_cost_bytes=1 << 20, has_fixed_slots=True)
LIMITS = RewriteLimits(has_file_index=True)
SQL = "SELECT v FROM t WHERE x < 80"


def a_view(text: str | None) -> TableFacts:
    view = ViewText(text, ("spark_catalog", "default"), ("v",)) if text is not None else None
    return TableFacts((Column("v", "string"),), kind=TableKind.VIEW, view=view)


OTHERS = {
    TableName(("w",)): T,
    TableName(("spark_catalog", "default", "w")): T,
    TableName(("dark",)): a_view(None),
    TableName(("firsts",)): a_view("SELECT first(v) AS v FROM w"),
    TableName(("plain",)): a_view("SELECT v FROM w WHERE x > 7"),
}


def a_file(number: int) -> tuple[str, int, int, int, str, None]:
    bounds = {"type": "int", "low": str(number), "high": str(number), "nulls": 0}
    return f"file:/t/{number}", 1_000, 7, 1, json.dumps({"x": bounds}), None


INDEX = FileIndex.of_rows(map(a_file, range(FILES)), {"x": "int", "v": "string"})


def rewritten(
    sql: str = SQL, facts: TableFacts = T, limits: RewriteLimits = LIMITS, packing: Packing | None = PACKING
) -> Rewrite:
    statement = parse(sql, chars_max=1_000, has_file_index=True, has_small_files=True)
    assert not isinstance(statement, SkipReason)
    found = plan(statement, {NAME: facts, **OTHERS}, limits)
    hints = SplitHints({NAME: packing}) if packing is not None else None
    return apply(found, {}, limits, files={NAME: INDEX}, split_hints=hints)


def test_what_is_left_of_many_small_files_is_read_in_fewer_splits() -> None:
    result = rewritten()
    assert result.text.startswith("SELECT v FROM (SELECT /*+ COALESCE(8) */ * FROM t WHERE ((_metadata.")
    assert [outcome.splits for outcome in result.scans] == [Grouping(before=80, after=8)]
    assert Rule.SPLITS in result.scans[0].rules


@pytest.mark.parametrize(
    "sql",
    [
        # It has few files left.
        "SELECT v FROM t WHERE x < 10",
        # What it writes has as many files as there are splits.
        "INSERT INTO w SELECT x, v FROM t WHERE x < 80",
        # These take what comes first.
        "SELECT first(v) FROM t WHERE x < 80",
        "SELECT `Collect_List` (v) FROM t WHERE x < 80",
        "SELECT x, row_number() OVER (ORDER BY v) FROM t WHERE x < 80",
        "SELECT v FROM t WHERE x < 80 LIMIT 3",
        "SELECT a.v FROM (SELECT v FROM t WHERE x < 80 OFFSET 3) a ORDER BY a.v LIMIT 3",
        "SELECT v FROM t TABLESAMPLE (3 ROWS) UNION ALL SELECT v FROM t WHERE x < 80",
        # Nobody knows what it remembers.
        "SELECT reflect('org.acme.Counter', 'next') FROM t WHERE x < 80",
        # What it calls is a view, of whatever it may be.
        "SELECT t.v FROM t WHERE x < 80 UNION ALL SELECT v FROM dark",
        "SELECT t.v FROM t WHERE x < 80 UNION ALL SELECT v FROM firsts",
    ],
)
def test_a_statement_may_be_narrowed_and_keep_its_splits(sql: str) -> None:
    result = rewritten(sql)
    assert "(SELECT * FROM t WHERE ((_metadata." in result.text
    assert "COALESCE" not in result.text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(x), max(v) FROM t WHERE x < 80 GROUP BY v ORDER BY 1 LIMIT 3",
        "SELECT first, row_number FROM (SELECT x AS first, v AS row_number FROM t WHERE x < 80) a",
        "SELECT t.v FROM t WHERE x < 80 UNION ALL SELECT v FROM plain",
    ],
)
def test_what_shows_no_order_is_read_in_fewer_splits(sql: str) -> None:
    assert "COALESCE" in rewritten(sql).text


def test_a_bucketed_table_keeps_its_splits() -> None:
    assert "COALESCE" not in rewritten(facts=replace(T, bucket_columns=("v",), bucket_count=8)).text


PLAIN = replace(LIMITS, has_small_files=True)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT v FROM t", "SELECT v FROM (SELECT /*+ COALESCE(10) */ * FROM t) AS t"),
        ("SELECT a.v FROM t a", "SELECT a.v FROM (SELECT /*+ COALESCE(10) */ * FROM t) a"),
        ("FROM t SELECT v", "FROM (SELECT /*+ COALESCE(10) */ * FROM t) AS t SELECT v"),
        # The filter is on no indexed column.
        (
            "SELECT sum(x) FROM t WHERE v = 'a' GROUP BY v",
            "SELECT sum(x) FROM (SELECT /*+ COALESCE(10) */ * FROM t) AS t WHERE v = 'a' GROUP BY v",
        ),
        # Nothing says which keys of w there are.
        (
            "SELECT max(w.v) FROM t JOIN w ON t.x = w.x",
            "SELECT max(w.v) FROM (SELECT /*+ COALESCE(10) */ * FROM t) AS t JOIN w ON t.x = w.x",
        ),
        (
            "SELECT v FROM w WHERE x = (SELECT max(x) FROM t)",
            "SELECT v FROM w WHERE x = (SELECT max(x) FROM (SELECT /*+ COALESCE(10) */ * FROM t) AS t)",
        ),
    ],
)
def test_a_scan_that_nothing_narrows_is_read_in_fewer_splits(sql: str, text: str) -> None:
    result = rewritten(sql, limits=PLAIN)
    assert result.text == text
    assert result.rules == {Rule.SPLITS}
    assert not result.is_narrowed
    (outcome,) = (outcome for outcome in result.scans if outcome.is_grouped)
    assert outcome.splits == Grouping(before=96, after=10)
    assert outcome.skip is not None


@pytest.mark.parametrize(
    "sql",
    [
        # What it shows depends on splits, or on the order of rows.
        "SELECT first(v) FROM t",
        "SELECT v FROM t LIMIT 3",
        "SELECT rand(3), v FROM t",
        "SELECT spark_partition_id(), v FROM t",
        "SELECT input_file_name() FROM t",
        "INSERT INTO w SELECT x, v FROM t",
        "SELECT t.v FROM t UNION ALL SELECT v FROM firsts",
        "SELECT t.v FROM t UNION ALL SELECT v FROM dark",
        # It says how many tasks it wants.
        "SELECT /*+ REPARTITION(3) */ v FROM t",
        "SELECT v FROM (SELECT /*+ coalesce(90), BROADCAST(t) */ * FROM t) a",
        "SELECT /*+ REBALANCE */ v FROM t",
        # It sorts the rows of each task.
        "SELECT v FROM t SORT BY v",
        # A user's function may count the rows of its task.
        "SELECT my_sequence(x) FROM t",
        "SELECT d.sum(x) FROM t",
        "SELECT by(x) FROM t",
        "SELECT t.v FROM t, LATERAL upper(t.v) u",
    ],
)
def test_a_statement_that_shows_or_chooses_its_tasks_keeps_them(sql: str) -> None:
    assert rewritten(sql, limits=PLAIN).text == sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v, _metadata.file_path FROM t",
        "SELECT v FROM t TABLESAMPLE (3 PERCENT)",
        "SELECT q.a FROM t AS q (a, b)",
        "WITH t AS (SELECT * FROM w) SELECT v FROM t",
        "SELECT v FROM plain",
    ],
)
def test_a_scan_that_cannot_stand_in_a_select_of_its_own_keeps_its_splits(sql: str) -> None:
    assert rewritten(sql, limits=PLAIN).text == sql


def test_columns_that_are_named_by_database_stay_in_view() -> None:
    name, sql = TableName(("d", "t")), "SELECT d.t.v FROM d.t"
    statement = parse(sql, chars_max=1_000, has_small_files=True)
    assert not isinstance(statement, SkipReason)
    hints = SplitHints({name: PACKING})
    assert apply(plan(statement, {name: T}, PLAIN), {}, PLAIN, files={name: INDEX}, split_hints=hints).text == sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.v FROM t a JOIN t b ON a.x = b.x",
        "SELECT * FROM (SELECT sum(x) AS s FROM t) a JOIN (SELECT max(x) AS m FROM t) b",
        "WITH a AS (SELECT x FROM t) SELECT * FROM (SELECT sum(x) FROM a) b JOIN (SELECT max(x) FROM a) c",
        "SELECT t.v FROM t JOIN plain ON t.v = plain.v",
    ],
)
def test_a_table_that_is_read_twice_keeps_its_splits(sql: str) -> None:
    assert rewritten(sql, limits=PLAIN).text == sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(x / 3) FROM t",
        "SELECT avg(x) FROM t GROUP BY v",
        "SELECT max(n) FROM (SELECT stddev(x) AS n FROM t GROUP BY v) a",
    ],
)
def test_sums_that_depend_on_the_order_of_rows_keep_the_splits_of_a_scan_that_nothing_narrows(sql: str) -> None:
    assert rewritten(sql, limits=PLAIN).text == sql


@pytest.mark.parametrize(
    ("sql", "is_grouped"),
    [
        ("SELECT sum(x), sum(t.x), avg(n) FROM t WHERE v = 'a'", True),
        ("SELECT sum(a.x) FROM t a JOIN w ON a.x = w.x", True),
        ("SELECT v FROM t WHERE x > (SELECT sum(w.x) FROM w WHERE w.v = t.v)", True),
        # A column of a query has any type.
        ("SELECT sum(x) FROM (SELECT x FROM w UNION ALL SELECT f FROM t) q", False),
        ("SELECT sum(x) FROM (SELECT s.x FROM t)", False),
        ("SELECT sum(x) FROM (SELECT s.* FROM t)", False),
        ("SELECT sum(s.x) FROM (SELECT named_struct('x', f) AS s FROM t)", False),
        ("WITH c AS (SELECT m.x FROM t) SELECT sum(x) FROM c", False),
        # Fields of structs, and values of maps.
        ("SELECT sum(s.x) FROM t", False),
        ("SELECT sum(s.inner.x) FROM t", False),
        ("SELECT sum(t.s.inner.x) FROM t", False),
        ("SELECT sum(m.x) FROM t", False),
        ("SELECT sum(w.x) FROM t, (VALUES (1.5D)) w (x)", False),
        ("SELECT sum(q.col1) FROM t, (VALUES (1.5D)) q", False),
        ("SELECT sum(col1) FROM t, (VALUES (1.5D)) q", False),
        ("SELECT sum(e.x) FROM t LATERAL VIEW explode(array(s)) e", False),
        ("SELECT sum(x) FROM t LATERAL VIEW explode(array(s)) e AS y", False),
        ("SELECT * FROM t PIVOT (sum(x) FOR v IN ('a'))", False),
        ("SELECT sum(x) FROM t JOIN w USING (x)", False),
        ("SELECT sum(x) FROM t JOIN unknown ON t.v = unknown.v", False),
    ],
)
def test_sums_of_columns_that_a_table_is_known_to_have_are_exact(sql: str, *, is_grouped: bool) -> None:
    further = ("col1", "int"), ("f", "double"), ("n", "decimal(10,2)"), ("m", "map<string,double>")
    struct = ("s", "struct<x:double,inner:struct<x:double>>")
    facts = replace(T, columns=(*T.columns, *(Column(*one) for one in (*further, struct))))
    assert ("COALESCE(10)" in rewritten(sql, facts, PLAIN).text) is is_grouped


@pytest.mark.parametrize("sql", ["SELECT DISTINCT v FROM t", "SELECT min(w.v) FROM t JOIN w ON t.x = w.x"])
def test_texts_that_are_equal_by_their_collation_keep_the_splits(sql: str) -> None:
    collated = replace(T, columns=(*T.columns, Column("c", "string collate UTF8_LCASE")))
    assert "COALESCE" in rewritten(sql, limits=PLAIN).text
    assert rewritten(sql, collated, PLAIN).text == sql
    with_words = sql.replace("v FROM t", "v COLLATE UTF8_LCASE FROM t").replace("w.v", "w.v COLLATE UTF8_LCASE")
    assert rewritten(with_words, limits=PLAIN).text == with_words


@pytest.mark.parametrize(
    "window",
    [
        "OVER (ORDER BY v ROWS UNBOUNDED PRECEDING)",
        "OVER (PARTITION BY x ORDER BY v rows BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "OVER w FROM t WHERE x < 80 WINDOW w AS (ORDER BY v ROWS 1 PRECEDING)",
        "OVER (w ROWS UNBOUNDED PRECEDING) FROM t WHERE x < 80 WINDOW w AS (ORDER BY v)",
        "OVER (ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
    ],
)
def test_windows_that_end_at_a_row_keep_the_splits_of_narrowed_scans_too(window: str) -> None:
    sql = f"SELECT count(*) {window}" + ("" if "FROM" in window else " FROM t WHERE x < 80")
    assert "x < 80" in sql
    for limits in (LIMITS, PLAIN):
        assert "COALESCE" not in rewritten(sql, limits=limits).text


@pytest.mark.parametrize(
    "window", ["ORDER BY v", "PARTITION BY v", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"]
)
def test_windows_that_take_all_rows_of_equal_order_are_read_in_fewer_splits(window: str) -> None:
    assert "COALESCE" in rewritten(f"SELECT count(*) OVER ({window}) FROM t WHERE x < 80").text


def test_of_several_tables_only_the_largest_is_read_in_fewer_splits() -> None:
    sql = "SELECT max(w.v) FROM t JOIN w ON t.x = w.x"
    assert rewritten(sql, limits=PLAIN).is_changed
    assert not rewritten(sql, replace(T, size_bytes=900 * FILES), PLAIN).is_changed


def test_where_executors_may_be_added_a_scan_that_nothing_narrows_keeps_its_splits() -> None:
    growing = replace(PACKING, has_fixed_slots=False)
    assert rewritten("SELECT v FROM t", limits=PLAIN, packing=growing).text == "SELECT v FROM t"


def test_a_hint_that_names_its_table_by_database_finds_it() -> None:
    name, sql = TableName(("d", "t")), "SELECT /*+ BROADCAST(d.t) */ v FROM d.t WHERE x < 80"
    statement = parse(sql, chars_max=1_000, has_file_index=True)
    assert not isinstance(statement, SkipReason)
    hints = SplitHints({name: PACKING})
    text = apply(plan(statement, {name: T}, PLAIN), {}, PLAIN, files={name: INDEX}, split_hints=hints).text
    assert "(SELECT" not in text


def test_scalar_subqueries_that_spark_would_answer_by_one_scan_keep_their_splits() -> None:
    sql = "SELECT (SELECT max(x) FROM t), (SELECT min(v) FROM t)"
    assert rewritten(sql, limits=PLAIN).text == sql


@pytest.mark.parametrize(
    "facts",
    [
        replace(T, bucket_columns=("v",), bucket_count=8),
        replace(T, provider="hive"),
        replace(T, provider="csv"),
        replace(T, iceberg=IcebergFacts(7), provider="iceberg", bucket_columns=("v",), bucket_count=8),
        replace(T, is_off=True),
        replace(T, columns=(*T.columns, Column("V", "string"))),
        # It has been written since it was indexed.
        replace(T, size_bytes=1_000 * FILES + (1 << 20) + 1),
        replace(T, size_bytes=None),
        replace(T, columns=(*T.columns, Column("j", "struct<a:variant>"))),
    ],
    ids=[
        "in buckets",
        "of Hive",
        "without an index",
        "of Iceberg, in buckets",
        "off",
        "alike by case",
        "outgrown",
        "of unknown size",
        "variants",
    ],
)
def test_a_table_whose_splits_are_not_those_of_its_indexed_files_keeps_them(facts: TableFacts) -> None:
    assert rewritten("SELECT v FROM t", facts, PLAIN).text == "SELECT v FROM t"


ICEBERG = replace(T, iceberg=IcebergFacts(7), provider="iceberg", size_bytes=None)


@pytest.mark.parametrize("sql", ["SELECT v FROM t", "SELECT v, count(*) FROM t WHERE x > 3 GROUP BY v"])
def test_an_iceberg_table_is_read_in_fewer_splits_by_the_files_of_its_snapshot(sql: str) -> None:
    assert "(SELECT /*+ COALESCE(10) */ * FROM t) AS t" in rewritten(sql, ICEBERG, PLAIN).text


@pytest.mark.parametrize(
    "sql",
    [
        # Iceberg answers these from its metadata.
        "SELECT count(*) FROM t",
        "SELECT max(x) AS most FROM t WHERE x > 3",
        "SELECT v FROM t VERSION AS OF 7",
        # A column that is hidden behind *.
        "SELECT v, _file FROM t",
        "SELECT t.v FROM t JOIN w ON t.x = w.x",
    ],
)
def test_an_iceberg_table_keeps_its_splits_where_iceberg_would_do_less_or_other_work(sql: str) -> None:
    assert rewritten(sql, ICEBERG, PLAIN).text == sql


def test_a_table_that_is_about_as_large_as_its_index_says_is_read_in_fewer_splits() -> None:
    assert "COALESCE" in rewritten("SELECT v FROM t", replace(T, size_bytes=1_100 * FILES), PLAIN).text


def test_the_partitions_of_the_statements_own_filter_are_counted_alone() -> None:
    facts = replace(T, partition_columns=("x",))
    outcome = rewritten("SELECT v FROM t WHERE x < 70", facts, PLAIN).scans[0]
    assert outcome.splits == Grouping(before=70, after=8)
    assert outcome.is_grouped
    assert rewritten("SELECT v FROM t WHERE x < 10", facts, PLAIN).text == "SELECT v FROM t WHERE x < 10"


def test_a_statement_that_names_no_table_of_small_files_is_not_planned_for_its_splits() -> None:
    assert rewritten("SELECT v FROM t").text == "SELECT v FROM t"


def test_a_scan_that_nothing_narrows_keeps_its_splits_without_the_rule() -> None:
    off = replace(PLAIN, rules_off=frozenset({Rule.SPLITS}))
    assert rewritten("SELECT v FROM t", limits=off).text == "SELECT v FROM t"
    assert rewritten("SELECT v FROM t", limits=PLAIN, packing=None).text == "SELECT v FROM t"


@dataclass(frozen=True)
class CountedPacking(Packing):
    """A packing that counts how often files are packed by it."""

    times: list[int] = field(default_factory=list, compare=False)

    def bytes_max(self, sizes: Sequence[int]) -> int:
        self.times.append(len(sizes))
        return super().bytes_max(sizes)


def test_files_of_a_scan_that_nothing_narrows_are_packed_once() -> None:
    packing = CountedPacking(slots=2, split_bytes_max=1 << 20, open_cost_bytes=1 << 20, has_fixed_slots=True)
    assert "COALESCE(10)" in rewritten("SELECT v FROM t", limits=PLAIN, packing=packing).text
    assert packing.times
    packing.times.clear()
    assert "COALESCE(10)" in rewritten("SELECT t.v FROM t", limits=PLAIN, packing=packing).text
    assert packing.times == []
    # The table has grown meanwhile.
    grown = replace(T, size_bytes=1_000 * FILES + (1 << 20) + 1)
    assert rewritten("SELECT v FROM t", grown, PLAIN, packing).text == "SELECT v FROM t"


def test_files_of_narrowed_scans_that_are_alike_are_looked_at_once() -> None:
    packing = CountedPacking(slots=2, split_bytes_max=1 << 20, open_cost_bytes=1 << 20)
    assert rewritten(packing=packing).is_changed
    packing.times.clear()
    result = rewritten(" UNION ALL ".join([SQL] * 12), packing=packing)
    assert result.text.count("COALESCE(8)") == 12
    assert packing.times == [80]


def test_a_scan_with_too_many_keys_to_look_at_gets_no_hint_either(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT t.v FROM t JOIN w ON t.x = w.x WHERE w.v = 'a'"
    statement = parse(sql, chars_max=1_000, has_small_files=True)
    assert not isinstance(statement, SkipReason)
    found = plan(statement, {NAME: replace(T, partition_columns=("x",)), **OTHERS}, PLAIN)
    assert found.key_queries
    answers = dict.fromkeys(found.key_queries, KeySet.of(("int",), [(1,), (2,)]))
    monkeypatch.setattr("rewriter.rewrite.KEYS_WRITTEN_MAX", 1)
    result = apply(found, answers, PLAIN, files={NAME: INDEX}, split_hints=SplitHints({NAME: PACKING}))
    assert result.text == sql
    assert result.scans[0].skip is SkipReason.INSERTED_TOO_MUCH


def test_where_it_is_not_known_how_spark_packs_files_it_is_left_to_spark() -> None:
    result = rewritten(packing=None)
    assert "COALESCE" not in result.text
    assert result.scans[0].splits is None


def test_without_the_rule_the_scan_is_narrowed_all_the_same() -> None:
    result = rewritten(limits=replace(LIMITS, rules_off=frozenset({Rule.SPLITS})))
    assert result.text == rewritten(packing=None).text


@pytest.mark.parametrize(
    "hint", ["COALESCE(9)", "COALESCE(8), BROADCAST(t)", "REPARTITION(8)", "COALESCE(8, x)", ""]
)
def test_a_hint_that_is_not_the_number_of_splits_is_not_taken(hint: str) -> None:
    statement = parse("SELECT v FROM t a WHERE x < 80", chars_max=1_000, has_file_index=True)
    assert not isinstance(statement, SkipReason)
    start = statement.text.index("t a")
    for predicate in ("(x < 80)", None):
        assert rewritten_text(statement, [Narrowing(start, start + 1, None, predicate, splits=8)]) is not None

    class Forged(Narrowing):
        @property
        def before(self) -> str:
            return f"(SELECT /*+ {hint} */ * FROM "

    for predicate in ("(x < 80)", None):
        assert rewritten_text(statement, [Forged(start, start + 1, None, predicate, splits=8)]) is None


def test_a_hint_alone_that_brings_a_filter_is_not_taken() -> None:
    statement = parse("SELECT v FROM t a WHERE x < 80", chars_max=1_000, has_file_index=True)
    assert not isinstance(statement, SkipReason)
    start = statement.text.index("t a")

    class Forged(Narrowing):
        @property
        def after(self) -> str:
            return " WHERE x < 70)"

    assert rewritten_text(statement, [Forged(start, start + 1, None, None, splits=8)]) is None
