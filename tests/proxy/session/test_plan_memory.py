"""Statements and plans serve again where the text, the facts and the limits are the same, and nowhere else."""

from dataclasses import replace

import pytest
from support.golden_cases import pure_catalog

from proxy.session import plan_memory
from proxy.session.plan_memory import PlanMemory
from rewriter import Catalog, Column, Plan, RewriteLimits, Rule, SkipReason, Statement, TableFacts, TableName
from rewriter.partitions.index import PartitionIndex
from rewriter.scopes.steps import Steps

SQL = "SELECT s.id FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.dow = 7"
SALES, DATES = TableName(("sales",)), TableName(("dates",))
CATALOG = pure_catalog(frozenset({SALES, DATES}))
LIMITS = RewriteLimits()
ROOM = 8 * len(SQL)


def wide(columns: int) -> TableFacts:
    """The facts of SALES, with so many columns more."""
    sales = CATALOG[SALES]
    assert sales is not None
    return replace(sales, columns=(*sales.columns, *[Column("c", "int")] * columns))


def parsed(memory: PlanMemory, sql: str = SQL, *, has_views: bool = False) -> Statement:
    found = memory.parse(sql, chars_max=10_000, has_file_index=False, has_views=has_views, has_small_files=False)
    assert isinstance(found, Statement)
    return found


def planned(
    memory: PlanMemory, known: Catalog = CATALOG, limits: RewriteLimits = LIMITS, steps: Steps | None = None
) -> Plan:
    return memory.plan(parsed(memory), dict(known), limits, {}, steps)


@pytest.fixture
def memory() -> PlanMemory:
    return PlanMemory(ROOM)


def test_the_same_text_is_parsed_and_planned_once(memory: PlanMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    first, plan = parsed(memory), planned(memory)
    assert plan.key_queries
    for name in ("parse", "plan"):
        monkeypatch.delattr(plan_memory, name)
    assert parsed(memory) is first
    assert planned(memory) is plan
    assert planned(memory, steps=Steps(0)) is plan, "it takes no steps"


def test_another_text_and_another_question_about_it_are_parsed_for_themselves(memory: PlanMemory) -> None:
    first = parsed(memory)
    assert parsed(memory, SQL.replace("7", "6")) is not first
    assert parsed(memory, SQL.lower()) is not first
    assert parsed(memory, has_views=True) is not first
    assert (
        memory.parse(SQL, chars_max=10, has_file_index=False, has_views=False, has_small_files=False)
        is SkipReason.TOO_LARGE
    )


def test_other_facts_or_limits_make_another_plan(memory: PlanMemory) -> None:
    first, sales = planned(memory), CATALOG[SALES]
    assert sales is not None
    other_column = replace(sales, columns=(*sales.columns, Column("dow", "int")))
    without = RewriteLimits(rules_off=frozenset({Rule.INNER_JOIN}))
    others = [
        planned(memory, {**CATALOG, SALES: other_column}),
        planned(memory, {**CATALOG, SALES: None}),
        planned(memory, {SALES: sales}),
        planned(memory, limits=without),
    ]
    assert len({id(plan) for plan in (first, *others)}) == 5
    assert others[2].missing == {DATES}
    assert others[1].key_queries == ()
    assert planned(memory, limits=without) is others[3]
    assert planned(memory) is first


def test_a_table_of_another_database_has_another_plan(memory: PlanMemory) -> None:
    sales = CATALOG[SALES]
    assert sales is not None
    named = [replace(sales, full_name=TableName(("spark_catalog", name, "sales"))) for name in ("web", "finance")]
    plans = [planned(memory, {**CATALOG, SALES: one}) for one in named]
    assert plans[0] is not plans[1]
    assert planned(memory, {**CATALOG, SALES: named[0]}) is plans[0]


def test_no_plan_is_kept_that_says_nothing_of_the_next_one(memory: PlanMemory) -> None:
    assert planned(memory, steps=Steps(1)).skip is SkipReason.TOO_INTRICATE
    assert planned(memory, {}).missing == {SALES, DATES}
    plan = planned(memory)
    assert plan.skip is None
    lists = {SALES: PartitionIndex.of(["ds"], ["string"], [])}
    by_list = memory.plan(parsed(memory), CATALOG, LIMITS, lists, None)
    assert by_list.partitions == lists
    assert planned(memory) is plan


def test_a_few_plans_of_one_text_are_kept_the_newest(memory: PlanMemory) -> None:
    limits = [RewriteLimits(key_rows_max=number) for number in range(1, 6)]
    plans = [planned(memory, limits=one) for one in limits]
    again = [planned(memory, limits=one) is plan for one, plan in zip(limits[1:], plans[1:], strict=True)]
    assert again == [True] * 4
    assert planned(memory, limits=limits[0]) is not plans[0]


def test_texts_are_kept_within_the_room_those_used_last_the_longest(memory: PlanMemory) -> None:
    texts = [SQL.replace("7", str(number)) for number in range(9)]
    kept = [parsed(memory, text) for text in texts[:8]]
    assert parsed(memory, texts[0]) is kept[0]
    _ = parsed(memory, texts[8])
    assert parsed(memory, texts[0]) is kept[0]
    assert parsed(memory, texts[2]) is kept[2]
    assert parsed(memory, texts[1]) is not kept[1]


def test_the_facts_of_its_plans_take_room_too(memory: PlanMemory) -> None:
    first = parsed(memory)
    for number in range(4):
        _ = planned(memory, {**CATALOG, SALES: replace(wide(len(SQL)), size_bytes=number)})
    for number in range(5):
        _ = parsed(memory, SQL.replace("7", str(number)))
    assert parsed(memory) is not first


def test_a_plan_by_facts_that_are_large_for_the_room_is_not_kept(memory: PlanMemory) -> None:
    facts = {**CATALOG, SALES: wide(2 * len(SQL))}
    assert planned(memory, facts) is not planned(memory, facts)


@pytest.mark.parametrize("room", [0, ROOM - 1])
def test_a_text_that_is_long_for_the_room_is_not_kept(room: int) -> None:
    memory = PlanMemory(room)
    statement = parsed(memory)
    assert parsed(memory) is not statement
    plan = memory.plan(statement, CATALOG, LIMITS, {}, None)
    assert memory.plan(statement, CATALOG, LIMITS, {}, None) is not plan


def test_a_merge_is_not_kept(memory: PlanMemory) -> None:
    merge = "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN DELETE"
    assert parsed(memory, merge) is not parsed(memory, merge)


def test_the_names_that_a_plan_wanted_are_those_behind_views_too(memory: PlanMemory) -> None:
    statement = parsed(memory)
    assert memory.names_in(statement) == {SALES, DATES}
    behind = {**CATALOG, TableName(("behind_a_view",)): None}
    _ = planned(memory, behind)
    assert memory.names_in(statement) == behind.keys()
