"""Planning takes steps in proportion to a statement's length, or ends with a reason; counted, and not timed."""

import sys
from dataclasses import replace
from types import FrameType, MappingProxyType
from typing import Any

import pytest
from support.golden_cases import catalog, takes
from support.hostile_statements import CATALOG, SHAPES, Shape, of_length

from rewriter import PartitionIndexes, Plan, RewriteLimits, SkipReason, TableName, apply, parse, plan
from rewriter.partitions.index import PartitionIndex
from rewriter.scopes.steps import PLAN_STEPS_MAX, Steps
from rewriter.semijoins import partition_query
from rewriter.sql import conditions
from rewriter.sql.statement import Statement

pytestmark = pytest.mark.costly

FEW, MANY, LONGEST = 1_000, 4_000, 262_144
# Levels of nesting, which sqlglot reads some fifty of.
LEVELS = 20
# Each of its 46 levels is looked at from those within, in few steps; little else is left to do for it.
LOOKED_THROUGH = "columns that outer joins show as one, in one another"
LIMITS = RewriteLimits()

# Function calls that one step stands for, and one character beside the steps.
CALLS_PER_STEP, CALLS_PER_CHARACTER = 150, 90


def parsed(text: str) -> Statement | SkipReason:
    return parse(text, chars_max=LONGEST)


def calls_of(statement: Statement, partitions: PartitionIndexes = MappingProxyType({})) -> tuple[int, Plan]:
    """The number of Python functions that planning calls where nothing is remembered, and the plan."""
    conditions.remembered.cache_clear()
    count = 0

    def note(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        found = plan(statement, CATALOG, LIMITS, partitions)
    finally:
        sys.setprofile(None)
    return count, found


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_four_times_the_length_takes_little_more_than_four_times_the_work(shape: Shape) -> None:
    few, many = (parsed(of_length(shape, chars)) for chars in (FEW, MANY))
    growth = 8 if shape is SHAPES[LOOKED_THROUGH] else 7
    if isinstance(many, SkipReason):
        # Nested too deep for sqlglot. What stands innermost is looked at on each level.
        assert many is SkipReason.DOES_NOT_PARSE
        few, many, growth = parsed(shape(LEVELS // 4)), parsed(shape(LEVELS)), 16
    assert isinstance(few, Statement)
    assert isinstance(many, Statement)
    (work_of_few, _), (work_of_many, found) = calls_of(few), calls_of(many)

    assert work_of_many < growth * work_of_few + 10_000
    assert work_of_many < CALLS_PER_STEP * found.steps + CALLS_PER_CHARACTER * len(many.text), "uncounted work"


def test_a_statement_that_takes_too_many_steps_stays_as_it_is() -> None:
    statement = parsed(of_length(SHAPES["the same equality"], MANY))
    assert isinstance(statement, Statement)
    found = plan(statement, CATALOG, LIMITS)
    assert found.skip is None

    spent = plan(statement, CATALOG, replace(LIMITS, plan_steps_max=found.steps - 1))
    rewrite = apply(spent, {}, LIMITS)
    assert (spent.skip, spent.scans, spent.key_queries) == (SkipReason.TOO_INTRICATE, (), ())
    assert (rewrite.text, rewrite.skip) == (statement.text, SkipReason.TOO_INTRICATE)
    assert plan(statement, CATALOG, replace(LIMITS, plan_steps_max=found.steps)).skip is None


def test_plans_that_share_steps_take_no_more_together_than_one() -> None:
    statement = parsed(of_length(SHAPES["the same equality"], FEW))
    assert isinstance(statement, Statement)
    found = plan(statement, CATALOG, LIMITS)
    shared = Steps(2 * found.steps)
    one, other, third = (plan(statement, CATALOG, LIMITS, steps=shared) for _ in range(3))

    assert (one, other) == (found, found)
    assert third.skip is SkipReason.TOO_INTRICATE


def test_a_list_of_partitions_is_written_once_for_all_that_ask_the_same() -> None:
    days = [f"ds=2026-{number:06}" for number in range(3_000)]
    partitions = {TableName(("f",)): PartitionIndex.of(("ds",), ("string",), days)}
    one, many = (
        parsed(" UNION ALL ".join(["SELECT f.id FROM f JOIN d ON f.ds >= d.ds WHERE d.g = 1"] * count))
        for count in (1, 60)
    )
    assert isinstance(one, Statement)
    assert isinstance(many, Statement)
    (work_of_one, _), (work_of_many, found) = calls_of(one, partitions), calls_of(many, partitions)

    assert len(found.key_queries) == 1
    assert {scan.reducers[0].key_query for scan in found.scans if scan.reducers} == set(found.key_queries)
    assert work_of_many < 60 * work_of_one / 8


def test_lists_that_are_too_many_to_be_written_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    days = [f"ds=2026-{number:06}" for number in range(100)]
    partitions = {TableName(("f",)): PartitionIndex.of(("ds",), ("string",), days)}
    asked = " UNION ALL ".join(
        f"SELECT f{n}.id FROM f f{n} JOIN d ON f{n}.ds >= d.ds WHERE d.g = 1" for n in "123"
    )
    statement = parsed(asked)
    assert isinstance(statement, Statement)
    monkeypatch.setattr(partition_query, "PARTITIONS_ASKED_MAX", 250)
    found = plan(statement, CATALOG, LIMITS, partitions)

    reasons = [scan.skip for scan in found.scans if scan.reference.name == TableName(("f",))]
    assert reasons == [None, None, SkipReason.TOO_MANY_PARTITIONS]


def test_no_step_is_taken_beyond_the_limit() -> None:
    statement = parsed(of_length(SHAPES["facts that tell of one another"], 32_000))
    assert isinstance(statement, Statement)
    found = plan(statement, CATALOG, replace(LIMITS, plan_steps_max=1_000))

    assert found.skip is SkipReason.TOO_INTRICATE
    # The last text that is read is counted whole.
    assert found.steps < 1_000 + len(statement.tokens)


def test_the_golden_statements_are_far_below_the_limit() -> None:
    facts = {TableName((name,)): known for name, known in catalog().items()}
    for case in takes():
        statement = parsed(case.sql)
        assert isinstance(statement, Statement)
        assert plan(statement, facts, LIMITS).steps * 10 < PLAN_STEPS_MAX
