"""Advice on TPC-DS without Spark: every scan that docs/tpcds.md shows as NOT_A_PARTITION_COLUMN is dealt with."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from known_benchmarks import benchmark
from narrowing import LIMITS, answer, planned, statement_of
from narrowing_table import recorded
from star_benchmark import StarBenchmark

from proxy.advice.forecast import TableForecasts, table_forecasts
from proxy.advice.layouts import LayoutKind
from proxy.advice.needed_rows import (
    LeftScan,
    NeededRows,
    key_columns,
    needed_rows,
    plan_with_all_columns,
    wanted_tables,
)
from proxy.advice.recorded import RecordedStatement
from proxy.advice.table_sample import TableSample
from rewriter import Column, KeyQuery, Keys, Plan, SkipReason, TableName
from rewriter.domains.literals import Key
from rewriter.files.file_index import Bounds, FileFacts

# The tables are of some megabytes in 190 files: a layout has files of some hundred rows.
FILE_BYTES = 16 * 1024
ROW_BYTES = 50
ROWS = 5_000
HINT_CHARS_MAX = 512 * 1024
# Scans that docs/tpcds.md shows as NOT_A_PARTITION_COLUMN, by query and table.
REFUSED = Counter(
    {
        (query, table): int(count or 1)
        for query, row in re.findall(r"^\| (q\d+) \|[^|]*\|([^|]*)\|$", recorded("tpcds"), re.MULTILINE)
        for count, table in re.findall(r"(?:(\d+) x )?(\w+): NOT_A_PARTITION_COLUMN", row)
    }
)
QUERIES = tuple(dict.fromkeys(query for query, _ in REFUSED))
# Scans that would read less, with their number: by dates of shipping that go along with dates of sale, by keys
# that are none at this scale, and by filters of their own.
HELPED = {
    ("q16", "catalog_sales"): 1,
    ("q24", "store_sales"): 1,
    ("q37", "catalog_sales"): 1,
    ("q49", "store_returns"): 1,
    ("q49", "web_returns"): 1,
    ("q49", "catalog_returns"): 1,
    ("q62", "web_sales"): 1,
    ("q82", "store_sales"): 1,
    ("q88", "store_sales"): 8,
    ("q90", "web_sales"): 2,
    ("q93", "store_returns"): 1,
    ("q94", "web_sales"): 1,
    ("q95", "web_sales"): 1,
    ("q96", "store_sales"): 1,
    ("q99", "catalog_sales"): 1,
}
# Scans whose keys lie in all files, and whose partitions are too small to be cut.
SPARED_NOTHING = Counter({("q84", "store_returns"): 1, ("q85", "web_returns"): 1})
# The scans for which no layout helps, because their keys would have to come from another large table.
WITHOUT_KEYS = {SkipReason.REDUCER_PARTITIONED, SkipReason.REDUCER_UNFILTERED}


@cache
def scans_of(query: str) -> list[NeededRows | LeftScan]:
    """The rows that each scan of a fact needs, or the reason why that cannot be said."""
    made = benchmark("tpcds")
    statement = RecordedStatement(query, "tpcds", made.queries[query], runs=1, seconds=1.0, last_id=query)
    today = planned(made, statement_of(statement.text))
    named = {
        name: facts and replace(facts, full_name=TableName(("tpcds", name.parts[-1].lower())))
        for name, facts in today.catalog.items()
    }
    today = replace(today, catalog=named)
    found: list[NeededRows | LeftScan] = []
    keys: dict[KeyQuery, Keys | SkipReason] = {}
    for name in wanted_tables(today):
        if name.parts[-1].lower() not in made.partitions:
            continue
        possible = plan_with_all_columns(today, name, LIMITS)
        for each in (today, possible):
            _ask(made, each, keys)
        found += needed_rows(statement, today, possible, name, keys)
    return found


def _ask(made: StarBenchmark, found: Plan, keys: dict[KeyQuery, Keys | SkipReason]) -> None:
    while pending := found.pending(keys):
        keys |= {asked: answer(made, asked) for asked in pending}


def table_of(one: NeededRows | LeftScan) -> str:
    return str(one.table).removeprefix("tpcds.")


def by_table() -> dict[str, list[NeededRows]]:
    found = defaultdict(list)
    for query in QUERIES:
        for one in scans_of(query):
            if isinstance(one, NeededRows):
                found[table_of(one)].append(one)
    return found


@cache
def forecasts() -> dict[str, TableForecasts]:
    return {
        table: table_forecasts(
            sample_of(table, needed), needed, file_bytes=FILE_BYTES, hint_chars_max=HINT_CHARS_MAX
        )
        for table, needed in by_table().items()
    }


def sample_of(table: str, needed: list[NeededRows]) -> TableSample:
    """The table as one file for each partition, looked at as a whole, with a sample of its rows."""
    made = benchmark("tpcds")
    facts = replace(made.tables[table], full_name=TableName(("tpcds", table)))
    (partition,) = facts.partition_columns
    told = frozenset[str]().union(*(one.columns for one in needed)) & set(key_columns(facts)) - {partition}
    types = {column.name: column.type_name for column in facts.columns}
    columns = tuple(Column(name, types[name]) for name in (partition, *sorted(told)))
    files = tuple(_files(made, table, columns))
    shown = ", ".join(column.name for column in columns)
    sampled = f"SELECT {shown} FROM {table} USING SAMPLE reservoir({ROWS} ROWS) REPEATABLE (24)"
    rows = tuple(tuple(map(_key, row)) for row in made.connection.execute(sampled).fetchall())
    counted = sum(facts.rows or 0 for facts in files)
    return TableSample(facts, len(files), len(files), counted * ROW_BYTES, counted, columns, files, rows)


def _files(made: StarBenchmark, table: str, columns: Sequence[Column]) -> Iterator[FileFacts]:
    partition = columns[0].name
    shown = ", ".join(f"min({one.name}), max({one.name}), count(*) - count({one.name})" for one in columns)
    found = made.connection.execute(f"SELECT {partition}, count(*), {shown} FROM {table} GROUP BY {partition}")
    for value, rows, *told in found.fetchall():
        lows, highs, nulls = (told[start::3] for start in range(3))
        bounds = {
            column.name: Bounds(_key(low), _key(high), count)
            for column, low, high, count in zip(columns, lows, highs, nulls, strict=True)
        }
        path = f"file:/{table}/{partition}={value}/part-0.parquet"
        yield FileFacts(path, rows * ROW_BYTES, 0, rows, bounds, ())


def _key(value: object) -> Key | None:
    """The value as Spark would send it: a decimal as text."""
    return value if value is None or isinstance(value, int | str) else str(value)


def test_every_scan_by_no_partition_column_is_forecast_or_has_a_reason() -> None:
    helped, measured, left = Counter[tuple[str, str]](), Counter[tuple[str, str]](), Counter[SkipReason]()
    for query in QUERIES:
        for one in scans_of(query):
            where = query, table_of(one)
            if isinstance(one, LeftScan):
                left[one.reason] += 1
            elif one.skip is SkipReason.NOT_A_PARTITION_COLUMN:
                best = forecasts()[table_of(one)].best
                found = next(scan for scan in best.scans if scan.needed is one)
                (helped if found.spared_share > 0 else measured)[where] += 1
    assert sum((helped + measured).values()) + left.total() == sum(REFUSED.values())
    assert not (helped + measured) - REFUSED
    assert dict(helped) == HELPED
    assert measured == SPARED_NOTHING
    assert left.keys() == WITHOUT_KEYS


def test_an_index_of_the_files_as_they_lie_is_proposed_for_the_dates_of_shipping() -> None:
    for table, column in (("web_sales", "ws_ship_date_sk"), ("catalog_sales", "cs_ship_date_sk")):
        found = forecasts()[table]
        assert found.best.layout.kind is LayoutKind.AS_IT_LIES
        assert found.best.is_worth_it
        by_column = dict(found.by_column)
        assert by_column[column].is_worth_it
