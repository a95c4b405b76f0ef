"""All that is inserted into one statement stays within totals, and what saves most for its length goes first."""

import json
import re
import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest

from rewriter import (
    Column,
    KeyQuery,
    KeySet,
    PartitionMatches,
    PartitionsQuery,
    Rewrite,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)
from rewriter.domains.gap_costs import PartitionCosts
from rewriter.files.file_index import FileIndex
from rewriter.partitions.index import PartitionIndex
from rewriter.plan import KeyAnswer
from rewriter.predicates.inserted_total import Insertions, values_in, within_totals

pytestmark = pytest.mark.costly

ID, DS, K = Column("id", "int"), Column("ds", "string"), Column("k", "int")
GIB = 1024**3
FACT = TableFacts((ID, DS), ("ds",), size_bytes=900 * GIB)
VIEW = TableFacts(
    (ID, DS),
    provider="",
    kind=TableKind.VIEW,
    view=ViewText("SELECT id, ds FROM f", ("spark_catalog", "default"), ("id", "ds")),
)
TABLES = {
    "f": FACT,
    "small": replace(FACT, size_bytes=GIB),
    "filed": TableFacts((ID, K), indexed_columns=("k",), size_bytes=900 * GIB),
    "d": TableFacts((DS, K, Column("g", "int")), size_bytes=1_000_000),
    "v": VIEW,
}
NAMES = {name: TableName((name,)) for name in TABLES}
CATALOG = {NAMES[name]: facts for name, facts in TABLES.items()} | {
    TableName(("spark_catalog", "default", "f")): FACT
}
LIMITS = RewriteLimits(has_file_index=True)
DAYS = [f"2026-{number:06}" for number in range(5_000)]
LISTED = {NAMES["f"]: PartitionIndex.of(("ds",), ("string",), [f"ds={day}" for day in DAYS])}
FILES = {
    NAMES["filed"]: FileIndex.of_rows(
        [
            (f"file:/warehouse/filed/part-{n:06}.parquet", 10**6, n, 10, json.dumps({"k": bounds}), "[]")
            for n in range(3_000)
            for bounds in [{"type": "int", "low": str(10 * n), "high": str(10 * n + 9), "nulls": 0}]
        ],
        {"id": "int", "k": "int"},
    )
}

BY_KEYS = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = #"
BY_LIST = "SELECT f.id FROM f JOIN d ON f.ds >= d.ds WHERE d.g = #"
BY_FILES = "SELECT filed.id FROM filed JOIN d ON filed.k = d.k WHERE d.g = #"
BY_VIEW = "SELECT v.id FROM v JOIN d ON v.ds = d.ds WHERE d.g = #"


def statement_of(part: str, count: int, *, filters: int = 8) -> str:
    """Joins with some different filters: no more key queries are asked."""
    return " UNION ALL ".join(part.replace("#", str(number % filters)) for number in range(count))


def answer(query: KeyQuery, keys: int) -> KeyAnswer:
    if isinstance(query, PartitionsQuery):
        asked = frozenset((day,) for day in DAYS)
        return PartitionMatches(("string",), asked, frozenset((day,) for day in DAYS[::2]))
    # Each filter has days of its own.
    (number,) = re.findall(r"d\.g = (\d+)", query.sql)
    days = DAYS[int(number) :][: keys * 2 : 2]
    values = [(day,) if query.columns[0].type_name == "string" else (int(day[5:]) * 7,) for day in days]
    return KeySet.of((query.columns[0].type_name,), values)


def rewritten(sql: str, limits: RewriteLimits, keys: int = 2_500) -> Rewrite:
    statement = parse(sql, chars_max=262_144)
    assert not isinstance(statement, SkipReason)
    found = plan(statement, CATALOG, limits, LISTED)
    assert not found.missing
    assert found.key_queries
    costs = {NAMES["f"]: {"ds": PartitionCosts.of("string", DAYS)}}
    return apply(found, {query: answer(query, keys) for query in found.key_queries}, limits, costs, FILES)


def reasons(result: Rewrite) -> set[SkipReason | None]:
    """The reasons for the facts: None for one that is narrowed."""
    return {scan.skip for scan in result.scans if scan.scan.reference.name != NAMES["d"]}


@pytest.mark.parametrize("count", [1, 10, 100, 300])
@pytest.mark.parametrize("part", [BY_KEYS, BY_LIST, BY_FILES, BY_VIEW, f"{BY_KEYS} UNION ALL {BY_FILES}"])
def test_what_is_inserted_is_within_the_totals_however_many_scans_there_are(part: str, count: int) -> None:
    sql = statement_of(part, count)
    result = rewritten(sql, LIMITS)

    assert len(result.text) - len(sql) <= LIMITS.inserted_chars_max
    assert values_in(result.text) - values_in(sql) <= LIMITS.inserted_values_max
    if count == 1:
        assert None in reasons(result)


def test_the_texts_that_would_be_too_long_are_not_made_either() -> None:
    sql = statement_of(" UNION ALL ".join(f"{BY_KEYS} AND f.id = {own}" for own in range(10)), 30)
    _ = rewritten(sql, LIMITS, keys=10)
    tracemalloc.start()
    try:
        _ = rewritten(sql, LIMITS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 60 * 1024 * 1024


def test_scans_that_are_alike_are_narrowed_together_or_stay_together() -> None:
    little = replace(LIMITS, inserted_values_max=20_000)
    by_one_query = rewritten(statement_of(BY_KEYS, 100, filters=1), little, keys=200)
    assert reasons(by_one_query) == {SkipReason.INSERTED_TOO_MUCH}
    by_three = rewritten(statement_of(BY_KEYS, 150, filters=3), little, keys=200).scans
    counts = Counter(scan.reducers[0][0].key_query for scan in by_three if scan.predicate is not None)
    assert set(counts.values()) == {50}
    assert len(counts) < 3


def test_ranges_narrow_scans_for_which_lists_would_be_too_long() -> None:
    listed, ranged = (rewritten(statement_of(BY_KEYS, count), LIMITS) for count in (5, 300))

    assert reasons(listed) == reasons(ranged) == {None}
    assert {scan.exact for scan in ranged.scans if scan.predicate is not None} == {False}


def test_what_spares_most_for_its_length_is_inserted_first() -> None:
    sql = "SELECT s.id FROM small s JOIN d ON s.ds = d.ds WHERE d.g = 1 UNION ALL " + BY_KEYS.replace("#", "1")
    both = rewritten(sql, LIMITS, keys=300)
    assert reasons(both) == {None}
    room = max(len(scan.predicate or "") for scan in both.scans) + 100
    one = rewritten(sql, replace(LIMITS, inserted_chars_max=room), keys=300)

    kept = {str(scan.scan.reference.name): scan.skip for scan in one.scans}
    assert kept["f"] is None
    assert kept["small"] is SkipReason.INSERTED_TOO_MUCH
    assert len(one.text) - len(sql) <= room


def test_a_statement_whose_insertions_fit_stays_as_it_would_be_without_totals() -> None:
    sql = statement_of(BY_KEYS, 3)
    unlimited = replace(LIMITS, inserted_chars_max=10**9, inserted_values_max=10**9)

    assert rewritten(sql, LIMITS, keys=300).text == rewritten(sql, unlimited, keys=300).text


def test_a_smaller_insertion_that_fits_is_made_though_a_better_one_does_not() -> None:
    best, second, third = Insertions(100, 1, 900.0), Insertions(50, 1, 100.0), Insertions(40, 60, 50.0)

    assert within_totals([best, second, third], 60, 50) == [False, True, False]
    assert within_totals([best, second, third], 190, 100) == [True, True, True]
    assert within_totals([], 0, 0) == []
