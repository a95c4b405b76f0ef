"""A comparison as a dialogue: what it asks, what it is answered, and how it ends."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.iceberg_answers import DAYS_SNAPSHOT, NEXT_SNAPSHOT, scan

from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, Rows, Value
from proxy.operations.spark_versions import FILTER_REFUSED
from proxy.session.catalog.iceberg_snapshots import SnapshotRead
from proxy.session.shadow.compare import Comparison, Pair, ShadowLimits, ShadowVerdict, compare
from proxy.session.shadow.differences import DifferenceLog, watch
from rewriter import KeySet, TableName
from rewriter.semijoins.key_query import KeyColumn, KeySetQuery

ORIGINAL = "SELECT a FROM f JOIN d LIMIT 5;"
REWRITTEN = "SELECT a FROM (SELECT * FROM f WHERE k IN (1)) AS f JOIN d LIMIT 5;"
KEYS = KeySetQuery("SELECT DISTINCT k, typeof(k) FROM d", (KeyColumn("int"),), 10)
PAIR = Pair(ORIGINAL, REWRITTEN, {KEYS: KeySet.of(("int",), [(1,)])})

LIMITS = ShadowLimits(statement_s=10.0, total_s=100.0)


def rows(*values: tuple[Value, ...]) -> Rows:
    return Rows((), values, 0.0)


def failed(kind: FailureKind = FailureKind.REJECTED) -> QueryFailed:
    return QueryFailed(kind, "a message with 'values' in it", 0.0)


REFUSED = QueryFailed(FailureKind.REJECTED, f"[{FILTER_REFUSED[-1]}] k IN ('values')", 0.0)
INTEGER = rows(("a", "int", None))
FIVE, FOUR, SIX = rows((5, "55")), rows((4, "44")), rows((6, "66"))
SAME_KEYS = rows((1, "int"))
PLAN = rows(("Project [a#1]",))

TWICE = [INTEGER, FIVE, FOUR, FIVE, FOUR]

DIALOGUES: dict[str, tuple[list[QueryResult], ShadowVerdict]] = {
    "equal": ([INTEGER, FIVE, FIVE], ShadowVerdict.EQUAL),
    "different each time": ([*TWICE, SAME_KEYS, PLAN], ShadowVerdict.DIFFERENT),
    "fails each time": ([INTEGER, FIVE, failed(), FIVE, failed(), SAME_KEYS], ShadowVerdict.FAILED),
    "the original changes": ([INTEGER, FIVE, FOUR, SIX], ShadowVerdict.UNSTABLE),
    "the rewritten changes": ([INTEGER, FIVE, FOUR, FIVE, FIVE], ShadowVerdict.UNSTABLE),
    "fails only once": ([INTEGER, FIVE, failed(), FIVE, FIVE], ShadowVerdict.UNSTABLE),
    "fails only the second time": ([INTEGER, FIVE, FOUR, FIVE, failed()], ShadowVerdict.UNSTABLE),
    "the keys change": ([*TWICE, rows((1, "int"), (2, "int"))], ShadowVerdict.UNSTABLE),
    "the type of the keys changes": ([*TWICE, rows((1, "string"))], ShadowVerdict.UNSTABLE),
    "the plan chooses rows": ([*TWICE, SAME_KEYS, rows(("GlobalLimit 5",))], ShadowVerdict.UNSTABLE),
    "the metastore refuses the filter": ([INTEGER, FIVE, REFUSED], ShadowVerdict.REFUSED),
    "a group shows one of equal texts": (
        [*TWICE, SAME_KEYS, rows(("ReadSchema: struct<s:string collate UTF8_LCASE>",))],
        ShadowVerdict.UNSTABLE,
    ),
    "no columns": ([failed()], ShadowVerdict.UNCOMPARABLE),
    "no answer": ([INTEGER, failed()], ShadowVerdict.UNCOMPARABLE),
    "no rewritten answer in time": ([INTEGER, FIVE, failed(FailureKind.DEADLINE)], ShadowVerdict.UNCOMPARABLE),
    "no second answer": ([INTEGER, FIVE, FOUR, failed()], ShadowVerdict.UNCOMPARABLE),
    "no keys": ([*TWICE, failed()], ShadowVerdict.UNCOMPARABLE),
    "no plan": ([*TWICE, SAME_KEYS, failed()], ShadowVerdict.UNCOMPARABLE),
    "something else than a checksum": ([INTEGER, rows((5,))], ShadowVerdict.UNCOMPARABLE),
}


def played(
    pair: Pair, answers: Sequence[QueryResult], seconds_each: float = 0.0
) -> tuple[Comparison, list[Query]]:
    """The comparison that these answers lead to, each after so many seconds, and what it asked."""
    passed = 0.0
    asked: list[Query] = []
    comparing = compare(pair, LIMITS, lambda: passed)
    given: list[QueryResult | None] = [None, *answers]
    for number, answer in enumerate(given):
        passed += seconds_each * bool(number)
        try:
            asked.append(comparing.send(answer))
        except StopIteration as end:
            comparison: Comparison = end.value
            assert number == len(answers), "it ends before the last answer"
            return comparison, asked
    pytest.fail(f"it goes on to ask {asked[-1].sql}")


@pytest.mark.parametrize(("answers", "verdict"), DIALOGUES.values(), ids=DIALOGUES)
def test_a_comparison_ends(answers: list[QueryResult], verdict: ShadowVerdict) -> None:
    comparison, asked = played(PAIR, answers)
    assert comparison.verdict is verdict, comparison
    assert len(asked) == len(answers)
    assert "values" not in comparison.why


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (scan("ice.db.d"), ShadowVerdict.DIFFERENT),
        (scan("ice.db.d", snapshot=NEXT_SNAPSHOT), ShadowVerdict.UNSTABLE),
        (scan("ice.db.d", schema=1), ShadowVerdict.UNSTABLE),
    ],
)
def test_a_snapshot_is_blamed_only_while_it_is_what_the_original_reads(now: Rows, verdict: ShadowVerdict) -> None:
    named = Pair(ORIGINAL, REWRITTEN, PAIR.keys, {TableName(("d",)): SnapshotRead("ice.db.d", 0, DAYS_SNAPSHOT)})
    left = [PLAN] if verdict is ShadowVerdict.DIFFERENT else []
    comparison, asked = played(named, [*TWICE, SAME_KEYS, now, *left])
    assert comparison.verdict is verdict
    assert "EXPLAIN SELECT 1 FROM `d`" in [query.sql for query in asked]


def test_it_asks_for_checksums_of_both_texts_without_their_limits() -> None:
    _, asked = played(PAIR, [INTEGER, FIVE, FIVE])
    assert asked[0].sql == "DESCRIBE QUERY SELECT a FROM f JOIN d "
    assert "\nSELECT a FROM f JOIN d \n)" in asked[1].sql
    assert "\nSELECT a FROM (SELECT * FROM f WHERE k IN (1)) AS f JOIN d \n)" in asked[2].sql


def test_the_times_are_those_of_the_first_runs() -> None:
    answers = [replace(one, seconds=number) for number, one in enumerate([*TWICE, SAME_KEYS, PLAN])]
    comparison, _ = played(PAIR, answers)
    assert (comparison.original_s, comparison.rewritten_s) == (1, 2)
    comparison, _ = played(PAIR, [INTEGER, FIVE, failed(FailureKind.DEADLINE)])
    assert (comparison.original_s, comparison.rewritten_s) == (0.0, None)
    comparison, _ = played(PAIR, [failed()])
    assert comparison.original_s is None


def test_texts_that_do_not_end_alike_are_not_compared() -> None:
    comparison, asked = played(Pair(ORIGINAL, "SELECT a FROM f LIMIT 6;"), [])
    assert comparison.verdict is ShadowVerdict.UNCOMPARABLE
    assert not asked


def test_no_query_may_take_longer_than_what_is_left() -> None:
    _, asked = played(PAIR, [INTEGER, FIVE, FIVE], seconds_each=48.0)
    assert [query.deadline_s for query in asked] == [10.0, 10.0, 4.0]


def test_a_comparison_ends_with_its_time() -> None:
    comparison, asked = played(PAIR, [INTEGER, FIVE], seconds_each=50.0)
    assert comparison.verdict is ShadowVerdict.UNCOMPARABLE
    assert len(asked) == 2
    assert comparison.seconds == 100.0


DECIDED_BY_FLOATS = {
    "a step of a rounding": ("round(a#1, 2)", 100.5, ShadowVerdict.UNSTABLE),
    "more than a rounding": ("round(a#1, 2)", 120.0, ShadowVerdict.DIFFERENT),
    "no rounding in sight": ("sum(a#1)", 100.5, ShadowVerdict.DIFFERENT),
}


@pytest.mark.parametrize(("plan", "other", "verdict"), DECIDED_BY_FLOATS.values(), ids=DECIDED_BY_FLOATS)
def test_a_rounding_is_blamed_on_nobody(plan: str, other: float, verdict: ShadowVerdict) -> None:
    one, two = rows((1, "7", 100.0, 50.0, 100.0)), rows((1, "7", other, 50.0, other))
    answers = [rows(("a", "double", None)), one, two, one, two, SAME_KEYS, rows((plan,))]
    assert played(PAIR, answers)[0].verdict is verdict


@pytest.mark.parametrize(
    ("schema", "verdict"),
    [("struct<a:int>", ShadowVerdict.DIFFERENT), ("struct<a:double>", ShadowVerdict.UNSTABLE)],
)
def test_a_value_that_may_be_made_of_doubles_is_blamed_only_where_rows_are_missing(
    schema: str, verdict: ShadowVerdict
) -> None:
    plan, other = rows((f"ReadSchema: {schema}",)), rows((5, "54"))
    assert played(PAIR, [INTEGER, FIVE, other, FIVE, other, SAME_KEYS, plan])[0].verdict is verdict
    assert played(PAIR, [*TWICE, SAME_KEYS, plan])[0].verdict is ShadowVerdict.DIFFERENT


def test_what_blames_us_is_kept_and_told_and_the_rest_only_told() -> None:
    told: list[Comparison] = []
    differences = DifferenceLog(None, 0)
    for answers, _ in DIALOGUES.values():
        watching = watch(PAIR, LIMITS, lambda: 0.0, differences, told.append)
        watching.send(None)
        for answer in answers[:-1]:
            watching.send(answer)
        with pytest.raises(StopIteration):
            watching.send(answers[-1])
    assert [comparison.verdict for comparison in told] == [verdict for _, verdict in DIALOGUES.values()]
    assert len(differences.newest()) == sum(comparison.blames_us for comparison in told) == 2
