"""Which narrowed scans ask for fewer splits, and which are left to Spark."""

import json
from dataclasses import replace

import pytest

from rewriter import (
    Column,
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
from rewriter.files.splits import Grouping, Packing, SplitHints
from rewriter.predicates.splice import Narrowing, rewritten_text

FILES = 96
T, NAME = TableFacts((Column("x", "int"), Column("v", "string")), indexed_columns=("x",)), TableName(("t",))
PACKING = Packing(slots=2, split_bytes_max=1 << 20, open_cost_bytes=1 << 20)
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
    statement = parse(sql, chars_max=1_000, has_file_index=True)
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
    assert rewritten_text(statement, [Narrowing(start, start + 1, None, "(x < 80)", splits=8)]) is not None

    class Forged(Narrowing):
        @property
        def before(self) -> str:
            return f"(SELECT /*+ {hint} */ * FROM "

    assert rewritten_text(statement, [Forged(start, start + 1, None, "(x < 80)", splits=8)]) is None
