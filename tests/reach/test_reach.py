"""The corpus without a server: it is well formed, decisions keep their reach, and the page shows it."""

from collections import Counter
from dataclasses import replace

import pytest
from reach_catalog import recorded_catalog
from reach_corpus import DATABASE, KINDS, ReachStatement, statements
from reach_expectations import expectations
from spark_plans import pruned_scans
from support.goldens import planned_with

from rewriter import Catalog, Plan, RewriteLimits, SkipReason, TableName
from rewriter.partitions.index import PartitionIndex
from tools import reach_table

ALL = [pytest.param(statement, id=str(statement)) for statement in statements()]


def test_every_statement_has_a_name_of_its_own_and_known_kinds() -> None:
    names = Counter(map(str, statements()))
    assert [name for name, count in names.items() if count > 1] == []
    assert {kind for statement in statements() for kind in statement.kinds} == KINDS == reach_table.KINDS.keys()
    assert {statement.tool for statement in statements()} == reach_table.TOOLS.keys()


def test_the_corpus_has_every_tool_and_a_mix_of_kinds() -> None:
    stars = sum(statement.kinds[0] == "star" for statement in statements())
    assert len(statements()) >= 150
    assert 0.35 <= stars / len(statements()) <= 0.6


def test_the_expectations_are_those_of_the_corpus() -> None:
    known = {name: (one.kinds, one.narrowable) for name, one in expectations().items()}
    assert known == {str(one): (one.kinds, one.narrowable) for one in statements()}, (
        "pytest tests/reach --update-reach"
    )


def test_each_scan_that_could_be_narrowed_is_narrowed_or_has_a_reason() -> None:
    reasons = {reason.name for reason in SkipReason}
    for name, one in expectations().items():
        assert one.narrowed + len(one.left) == one.narrowable, name
        assert reasons.issuperset(one.left), name
        assert one.pruned_by_spark <= one.narrowable, name


def planned(sql: str) -> Plan:
    """The plan once the last partitions of small sides are known, and the sizes of those that are chosen."""
    found = planned_with(sql, recorded_catalog, RewriteLimits())
    lists = {name: PartitionIndex.of(["dt"], ["string"], ["dt=2024-12-21"]) for name in found.unlisted}
    if lists:
        found = planned_with(sql, recorded_catalog, RewriteLimits(), partitions=lists)
    sizes = tuple((part.text, 1_000) for part in found.unsized_parts)

    def sized(names: frozenset[TableName]) -> Catalog:
        known = recorded_catalog(names)
        return {name: facts and replace(facts, part_sizes=sizes) for name, facts in known.items()}

    return planned_with(sql, sized, RewriteLimits(), partitions=lists) if sizes else found


@pytest.mark.parametrize("statement", ALL)
def test_a_plan_narrows_as_many_scans_as_are_recorded(statement: ReachStatement) -> None:
    plan = planned(statement.sql(f"{DATABASE}.target"))
    # With the lists of partitions at hand the proxy plans once more.
    found = [scan for scan in plan.scans if scan.skip is None or scan.wants_list]
    left = {scan.alias: scan.skip.name for scan in plan.scans if scan.skip is not None}
    assert len(found) >= expectations()[str(statement)].narrowed, left


def test_the_page_shows_the_expectations() -> None:
    now = reach_table.PAGE.read_text(encoding="utf-8")
    assert now == reach_table.page(now), f"make it anew: {reach_table.COMMAND}"


PLAN = """
*(2) BroadcastHashJoin [ds#1], [ds#2], Inner, BuildRight, false
:- FileScan parquet spark_catalog.reach.sales[amount#3,ds#1] PartitionFilters: [{filters}], PushedFilters: []
:     +- SubqueryBroadcast dynamicpruning#9, [0], [ds#2], [id=#20]
:        +- ReusedExchange [ds#2], BroadcastExchange HashedRelationBroadcastMode, [plan_id=30]
+- BroadcastExchange HashedRelationBroadcastMode, [plan_id=30]
   +- FileScan parquet spark_catalog.reach.calendar[ds#2] PartitionFilters: [], PushedFilters: []"""


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ("isnotnull(ds#1), dynamicpruningexpression(ds#1 IN dynamicpruning#9)", 1),
        ("isnotnull(ds#1), (ds#1 = Subquery subquery#7, [id=#8])", 1),
        ("isnotnull(ds#1), dynamicpruningexpression(true)", 0),
        ("isnotnull(ds#1), (ds#1 >= 2024-01-01)", 0),
    ],
)
def test_a_scan_counts_as_pruned_by_spark_if_its_plan_has_a_pruning_expression(filters: str, count: int) -> None:
    assert pruned_scans(PLAN.format(filters=filters)) == count


REUSED_PLAN = """
Union
:- Exchange hashpartitioning(ds#1, 1), [plan_id=40]
:  +- FileScan parquet reach.sales[ds#1] PartitionFilters: [(ds#1 = Subquery subquery#7)], PushedFilters: []
+- ReusedExchange [ds#4], Exchange hashpartitioning(ds#1, 1), [plan_id=40]"""


def test_a_reused_exchange_counts_as_what_it_reuses() -> None:
    assert pruned_scans(REUSED_PLAN) == 2
