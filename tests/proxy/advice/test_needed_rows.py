"""Rows that statements need of a table, by the rewriter's own rules for a table with all columns indexed."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from proxy.advice.advisor import Found
from proxy.advice.needed_rows import (
    LeftScan,
    NeededRows,
    as_laid_out,
    ask_keys,
    left_as_they_are,
    needed_rows,
    plan_with_all_columns,
    wanted_tables,
)
from proxy.advice.recorded import RecordedStatement
from proxy.operations.query import Rows, Value
from rewriter import (
    Column,
    KeyQuery,
    Keys,
    RewriteLimits,
    SkipReason,
    Statement,
    TableFacts,
    TableName,
    parse,
    plan,
)
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.domains.cover import Cover
from rewriter.domains.domain import Domain

SALES, DATES, STORES = (TableName((name,)) for name in ("sales", "dates", "stores"))
LIMITS = RewriteLimits()


def facts(name: str, *columns: str, partitioned_by: tuple[str, ...] = (), provider: str = "parquet") -> TableFacts:
    found = tuple(Column(column, "int") for column in columns)
    made = TableFacts(found, partitioned_by, provider, full_name=TableName(("spark_catalog", "d", name)))
    if provider != "delta":
        return made
    return replace(made, partition_columns=(), indexed_columns=columns, delta=DeltaFacts(partitioned_by))


def needed(
    condition: str, *keys: Sequence[Value], provider: str = "parquet", tables: str = "dates d"
) -> list[NeededRows | LeftScan]:
    """The rows of sales that a join needs, by these answers of its key queries."""
    catalog = {
        SALES: facts("sales", "ds", "ship", "store", "amount", partitioned_by=("ds",), provider=provider),
        DATES: facts("dates", "k", "y"),
        STORES: facts("stores", "s", "name"),
    }
    text = f"SELECT sum(s.amount) FROM sales s, {tables} WHERE {condition}"
    statement = parse(text, chars_max=10_000)
    assert isinstance(statement, Statement)
    made = RecordedStatement("f", "d", text, 1, 1.0, "id")
    today = plan(statement, catalog, LIMITS)
    if SALES not in wanted_tables(today):
        return list(left_as_they_are(made, today))
    possible = plan_with_all_columns(today, SALES, LIMITS)
    answers: dict[KeyQuery, Keys | SkipReason] = {}
    given = iter(keys)
    for each in (today, possible):
        asking = ask_keys(each, answers, bytes_max=1_000, deadline_s=1)
        with suppress(StopIteration):
            asking.send(None)
            while True:
                asking.send(Rows((), tuple((key, "int") for key in next(given)), 0.0))
    return list(needed_rows(made, today, possible, SALES, answers))


def test_a_join_on_a_column_that_nothing_tells_apart_needs_the_rows_of_its_keys() -> None:
    (one,) = needed("s.ship = d.k AND d.y = 2026", [5, 7])
    assert isinstance(one, NeededRows)
    assert one.skip is SkipReason.NOT_A_PARTITION_COLUMN
    assert one.table == TableName(("spark_catalog", "d", "sales"))
    assert one.columns == {"ship"}
    assert one.cover_today({"ds"}).is_all
    assert one.cover_by({"ds", "ship"}) == Cover.of_domain("ship", Domain.of("int", [5, 7]))
    assert one.cover_by({"ds", "store"}).is_all


def test_partitions_that_are_pruned_today_are_not_gained() -> None:
    (one,) = needed("s.ship = d.k AND d.y = 2026 AND s.ds = 9", [5])
    assert isinstance(one, NeededRows)
    assert one.cover_today({"ds"}) == Cover.of_domain("ds", Domain.of("int", [9]))


def test_keys_of_a_partition_column_narrow_today_as_well() -> None:
    condition = "s.ds = d.k AND d.y = 2026 AND s.store = t.s AND t.name = 1"
    (one,) = needed(condition, [9], [3], tables="dates d, stores t")
    assert isinstance(one, NeededRows)
    assert one.skip is None
    assert one.cover_today({"ds"}) == Cover.of_domain("ds", Domain.of("int", [9]))
    assert {"ds", "store"} == one.columns


def test_filters_of_the_statement_itself_count_too() -> None:
    (one,) = needed("s.ship = d.k AND s.amount > 7 AND d.y = 2026", [5])
    assert isinstance(one, NeededRows)
    assert one.columns == {"ship", "amount"}


def test_a_join_without_a_filter_has_no_keys() -> None:
    (one,) = needed("s.ship = d.k")
    assert isinstance(one, LeftScan)
    assert one.reason is SkipReason.REDUCER_UNFILTERED


def test_the_rows_of_a_delta_table_are_those_of_the_ranges_that_it_is_sent() -> None:
    few, many = ([key * key for key in range(count)] for count in (20, 200))
    (exact,), (wide,) = (needed("s.ship = d.k AND d.y = 2026", keys, provider="delta") for keys in (few, many))
    assert isinstance(exact, NeededRows)
    assert isinstance(wide, NeededRows)
    assert exact.cover_today({"ship"}) == Cover.of_domain("ship", Domain.of("int", few))
    ((_, domain),) = wide.cover_today({"ship"}).boxes[0].domains
    assert len(domain.cuts) // 2 == 30
    assert as_laid_out(facts("sales", "ds", partitioned_by=("ds",), provider="delta")).partition_columns == ("ds",)


def test_filters_on_a_delta_table_skip_files_today() -> None:
    (one,) = needed("s.ship = d.k AND s.amount = 7 AND s.ds = 9 AND d.y = 2026", [5], provider="delta")
    assert isinstance(one, NeededRows)
    assert {name for name, _ in one.cover_today({"ds", "ship", "amount"}).boxes[0].domains} == {
        "ds",
        "ship",
        "amount",
    }


def test_a_delta_table_whose_bounds_never_tell_may_be_helped_by_clustering() -> None:
    (one,) = needed("s.ship = d.k AND d.y = 2026", [5], provider="delta")
    assert isinstance(one, NeededRows)
    delta = as_laid_out(facts("sales", "ds", "ship", partitioned_by=("ds",), provider="delta"))
    by_it = as_laid_out(facts("sales", "ds", "ship", partitioned_by=("ship",), provider="delta"))
    for told, expected in ((delta, [one.table]), (by_it, [])):
        assert Found({one.table: [one]}, {one.table: told}).tables() == expected


@pytest.mark.parametrize("provider", ["csv", "hive"])
def test_other_formats_are_left_with_their_reason(provider: str) -> None:
    (one,) = needed("s.ship = d.k AND d.y = 2026", provider=provider)
    assert isinstance(one, LeftScan)
    assert one.reason is SkipReason.NOT_A_PARTITION_COLUMN
