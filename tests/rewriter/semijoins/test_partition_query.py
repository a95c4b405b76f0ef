"""Queries for the partitions of a list that match: the values they ask for, and the reading of their answers."""

from dataclasses import replace

import pytest
from support import golden_sets

from rewriter import PartitionMatches, PartitionsQuery, RewriteLimits, SkipReason
from rewriter.domains.literals import UnreadableKeyError
from rewriter.semijoins.partition_query import PartitionList, partitions_query

LISTED = PartitionList("f", (("ds", "string"),), frozenset({("a",), ("b",)}))
NULL, A, B = (None, "string"), ("a", "string"), ("b", "string")


def query(*, may_be_padding: bool = False) -> PartitionsQuery:
    listed = LISTED.with_padding() if may_be_padding else LISTED
    return partitions_query(
        listed,
        source=listed.source(),
        outline=listed.outline(),
        keys=listed.keys,
        filters=["f.ds > 'a'"],
        tables=frozenset(),
        may_be_padding=may_be_padding,
        may_fail=False,
    )


def test_the_partitions_are_asked_about_by_the_condition_itself() -> None:
    assert query().sql == (
        "SELECT DISTINCT f.`ds` AS key, typeof(f.`ds`) AS type"
        " FROM (VALUES ('a'), ('b')) AS f(`ds`) WHERE 'starpruner' IS NOT NULL AND (f.ds > 'a') LIMIT 3"
    )
    assert query().sql_with_repeats == query().sql.replace("SELECT DISTINCT", "SELECT")
    assert query().outline == query().sql_with_repeats.replace("VALUES ('a'), ('b')", "partitions")


def test_null_is_asked_about_where_a_row_may_be_padded_or_the_list_has_it() -> None:
    assert "FROM (VALUES (CAST(NULL AS string)), ('a'), ('b')) AS f" in query(may_be_padding=True).sql
    assert replace(LISTED, values=frozenset({(None,), ("a",)})).source().startswith("(VALUES (CAST(NULL AS")


def test_null_that_was_not_asked_about_stays_in() -> None:
    """A function of null may be an error where no partition has it: `to_date(concat_ws('-', f.y, f.m))`."""
    found = query().read([B])
    assert isinstance(found, PartitionMatches)
    assert found.cover(["ds"]).holds({"ds": None})
    assert not found.cover(["ds"]).holds({"ds": "a"})


def test_all_that_was_asked_about_and_is_not_in_the_answer_misses() -> None:
    found = query(may_be_padding=True).read([B])
    assert isinstance(found, PartitionMatches)
    assert found.misses == {(None,), ("a",)}


@pytest.mark.parametrize("rows", [[A, B], [B, A]])
def test_where_every_partition_matches_nothing_can_be_left_out(rows: list[tuple[object, ...]]) -> None:
    assert query().read(rows) is SkipReason.NOTHING_TO_SKIP


def test_where_null_matches_padded_rows_would_match_too() -> None:
    assert query().read([NULL]) is SkipReason.UNREADABLE_KEY
    assert query(may_be_padding=True).read([NULL]) is SkipReason.NULL_SAFE_OVER_NULLS
    assert isinstance(query(may_be_padding=True).read([A]), PartitionMatches)


def test_an_answer_of_another_type_or_with_values_that_nobody_asked_about_is_not_used() -> None:
    assert query().read([("a", "int")]) is SkipReason.KEY_TYPE_CHANGED
    assert query().read([("c", "string")]) is SkipReason.UNREADABLE_KEY


def test_a_value_without_a_certain_literal_is_not_sent() -> None:
    with pytest.raises(UnreadableKeyError):
        _ = PartitionList("f", (("d", "date"),), frozenset({("1582-10-10",)})).source()


SQL = "SELECT s.id FROM sales s JOIN calendar c ON to_date(s.ds) = c.d WHERE c.holiday"


def test_more_partitions_than_are_allowed_are_not_asked_about() -> None:
    assert reasons(SQL, RewriteLimits(partition_list_max=3)) == {SkipReason.TOO_MANY_PARTITIONS}
    few = f"{SQL} AND s.ds <= '2026-01-02' AND s.ds >= '2026-01-02'"
    assert reasons(few, RewriteLimits(partition_list_max=3)) == {None}


def test_with_strict_consistency_nothing_is_asked_about() -> None:
    assert reasons(SQL, RewriteLimits(strict=True)) == {SkipReason.STRICT_PARTITIONS}


def reasons(sql: str, limits: RewriteLimits) -> set[SkipReason | None]:
    return {
        scan.skip for scan in replace(golden_sets.LISTED, limits=limits).planned(sql).scans if scan.alias == "s"
    }


LAST = "least(p.last, CAST(s.amount AS STRING))"
CASE = "CASE WHEN s.ds BETWEEN 'a' AND 'b' THEN 'c' END"


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        (f"s.ds BETWEEN p.first AND {LAST}", {"s.ds >= p.first"}),
        (f"({LAST} BETWEEN s.amount AND s.ds)", set()),
        (f"(p.first /* BETWEEN */ BETWEEN {LAST} AND -- AND\n s.ds)", {"p.first <= s.ds"}),
        (f"{CASE} BETWEEN p.first AND {LAST}", {f"{CASE} >= p.first"}),
        ("s.ds BETWEEN p.first AND c.ds", {"s.ds >= p.first", "s.ds <= c.ds"}),
        ("s.ds BETWEEN p.first AND p.last", {"s.ds BETWEEN p.first AND p.last"}),
        (f"s.ds NOT BETWEEN p.first AND {LAST}", set()),
        (f"NOT (s.ds BETWEEN p.first AND {LAST})", set()),
        (f"(s.ds BETWEEN p.first AND {LAST} OR s.id = 1)", set()),
        ("s.ds BETWEEN p.first AND concat(c.ds, uuid())", set()),
        (f"(s.ds BETWEEN p.first AND {LAST}) IS NULL", set()),
    ],
)
def test_of_a_between_that_reads_more_each_end_counts_for_itself(condition: str, asked: set[str]) -> None:
    sql = f"SELECT s.id FROM sales s, promotions p, calendar c WHERE {condition} AND p.g = 1 AND c.holiday"
    assert {r.join for scan in golden_sets.LISTED.planned(sql).scans for r in scan.reducers} == asked


@pytest.mark.parametrize(
    ("query", "is_asked"),
    [
        ("SELECT date_sub(max(r.ds), 30) FROM returns r", True),
        ("SELECT coalesce(min(r.ds), '2026', max(r.ds)) FROM returns r WHERE r.ds > 'a'", True),
        ("SELECT ds FROM returns ORDER BY ds DESC LIMIT 1 OFFSET 1", True),
        ("SELECT date_sub(r.ds, 30) FROM returns r", False),
        ("SELECT concat(max(r.ds), count(*)) FROM returns r", False),
        ("SELECT concat(max(r.ds) OVER (), '') FROM returns r", False),
        ("SELECT concat(max(r.ds), max(r.id)) FROM returns r", False),
        ("SELECT concat(max(r.ds), uuid()) FROM returns r", False),
        ("SELECT concat(max(r.ds), s.region) FROM returns r", False),
        ("SELECT ds FROM returns LIMIT 1", False),
        ("SELECT ds FROM returns ORDER BY id LIMIT 1", False),
        ("SELECT ds FROM returns WHERE id > 0 ORDER BY ds LIMIT 1", False),
        ("SELECT r.ds FROM returns r, returns q ORDER BY r.ds LIMIT 1", False),
    ],
)
def test_of_another_partitioned_table_extremes_and_first_values_are_asked(query: str, *, is_asked: bool) -> None:
    skip = None if is_asked else SkipReason.NO_EQUALITY
    assert reasons(f"SELECT s.id FROM sales s WHERE s.ds >= ({query})", RewriteLimits()) == {skip}


LAST_OF_EACH = "SELECT amount, max(ds) AS last FROM sales x WHERE {} GROUP BY amount"


@pytest.mark.parametrize(
    ("item", "condition", "asked"),
    [
        (
            LAST_OF_EACH.format("ds >= 'a' AND id < 5 AND x.ds < 'b'"),
            "s.ds = l.last",
            "((ds >= 'a') AND (x.ds < 'b'))",
        ),
        (
            "SELECT min(ds) AS last FROM sales x WHERE ds > 'a' HAVING count(*) > 1",
            "l.last = s.ds",
            "((ds > 'a'))",
        ),
        (LAST_OF_EACH.format("(ds >= 'a' AND id < 5) OR ds > 'b'"), "s.ds = l.last", None),
        (LAST_OF_EACH.format("ds >= 'a' AND region = ds"), "s.ds = l.last", "((ds >= 'a'))"),
        (LAST_OF_EACH.format("ds IN (SELECT ds FROM loads)"), "s.ds = l.last", None),
        (LAST_OF_EACH.format("ds > uuid()"), "s.ds = l.last", None),
        (LAST_OF_EACH.format("ds >= 'a'"), "s.ds <=> l.last", None),
        (LAST_OF_EACH.format("ds >= 'a'"), "s.ds = upper(l.last)", None),
        (LAST_OF_EACH.format("ds >= 'a'"), "NOT s.ds = l.last", None),
        (LAST_OF_EACH.format("ds >= 'a'"), "s.region = l.last", "((ds >= 'a'))"),
        ("SELECT max(ds) OVER () AS last, id FROM sales x WHERE ds > 'a'", "s.ds = l.last", None),
        ("SELECT max(upper(ds)) AS last, sum(id) AS n FROM sales x WHERE ds > 'a'", "s.ds = l.last", None),
        ("SELECT x.ds AS last, sum(id) AS n FROM sales x WHERE ds > 'a' GROUP BY x.ds", "s.ds = l.last", None),
        ("SELECT max(day) AS last, sum(id) AS n FROM by_day x WHERE day > '2026-01-02'", "s.ds = l.last", None),
        (
            "SELECT max(x.ds) AS last, max(x.id) AS n FROM calendar c LEFT JOIN sales x ON x.ds > 'a'",
            "s.ds = l.last",
            "((x.ds > 'a'))",
        ),
        (
            "SELECT max(x.ds) AS last, max(x.id) AS n FROM sales x LEFT JOIN calendar c ON x.ds > 'a'",
            "s.ds = l.last",
            None,
        ),
    ],
)
def test_an_extreme_has_passed_the_filters_on_its_column(item: str, condition: str, asked: str | None) -> None:
    planned = golden_sets.LISTED.planned(f"SELECT s.id FROM sales s JOIN ({item}) l ON {condition}")
    queries = [r.key_query for scan in planned.scans if scan.alias == "s" for r in scan.reducers]
    texts = [query.outline for query in queries if isinstance(query, PartitionsQuery)]
    assert [text[text.index("AND (") + 4 : text.index(" LIMIT")] for text in texts] == ([asked] if asked else [])
