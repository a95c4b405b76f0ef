"""Predicates within the limits of those who read them."""

from collections.abc import Mapping, Sequence

import pytest

from rewriter import Column, KeyRanges, Keys, KeySet
from rewriter.domains.cover import Box, Cover
from rewriter.domains.cover_sql import cover_sql
from rewriter.domains.domain import Domain
from rewriter.domains.gap_costs import PartitionCosts
from rewriter.domains.literals import Key
from rewriter.domains.widen import Consumer
from rewriter.predicates.partition_predicate import Budget, partition_predicate
from rewriter.predicates.predicate import Predicate, Restriction

DAYS = [f"2026-{month:02}-{day:02}" for month in range(1, 8) for day in range(1, 29)]
BUDGET = Budget(Consumer(100, 20), 100_000)
TIGHT = Budget(Consumer(2, 2), 100_000)
NO_COSTS: Mapping[str, PartitionCosts] = {}


def restriction(keys: Keys, *names: str) -> Restriction:
    pairs = zip(names, keys.type_names, strict=True)
    return Restriction(tuple(Column(name, type_name) for name, type_name in pairs), keys)


def rendered(
    *restrictions: Restriction, budget: Budget = BUDGET, costs: Mapping[str, PartitionCosts] = NO_COSTS
) -> Predicate:
    names = dict.fromkeys(column.name for restriction in restrictions for column in restriction.columns)
    found = partition_predicate(restrictions, list(names), budget, costs)
    assert found is not None
    return found


def one(
    type_name: str, values: Sequence[Key | None], budget: Budget = BUDGET, *, null_safe: bool = False
) -> Predicate:
    keys = KeySet.of((type_name,), [(value,) for value in values], null_safe=(null_safe,))
    return rendered(restriction(keys, "ds"), budget=budget)


def pairs(*rows: tuple[Key | None, ...], null_safe: tuple[bool, bool] = (False, False)) -> KeySet:
    return KeySet.of(("int", "string"), rows, null_safe=null_safe)


def test_few_keys_are_points() -> None:
    assert one("string", ["b", "a"]).sql == "(`ds` IN ('a', 'b') OR typeof(`ds`) <> 'string')"


def test_neighbours_are_a_range() -> None:
    assert one("int", [5, 7, 8, 9]).sql == "((`ds` IN (5) OR `ds` BETWEEN 7 AND 9) OR typeof(`ds`) <> 'int')"
    assert one("date", DAYS[:28]).sql.startswith("(`ds` BETWEEN DATE'2026-01-01' AND DATE'2026-01-28' OR")
    assert one("boolean", [True, False]).sql == "(`ds` IS NOT NULL OR typeof(`ds`) <> 'boolean')"


def test_no_keys_are_false_whatever_the_type() -> None:
    assert one("int", []).sql == "FALSE"


def test_more_keys_than_the_metastore_digests_are_ranges_and_an_array_that_it_never_sees() -> None:
    found = one("int", [*range(0, 100, 5), *range(500, 600, 5)], TIGHT)
    assert found.sql.startswith(
        "(((`ds` BETWEEN 0 AND 95 OR `ds` BETWEEN 500 AND 595) AND array_contains(array(0, 5, "
    )
    assert found.sql.count(", ") == 40
    assert found.exact


def test_where_the_array_is_too_long_the_ranges_remain_and_are_not_exact() -> None:
    short = Budget(Consumer(2, 2), 200)
    found = one("int", range(0, 1000, 5), short)
    assert "array_contains" not in found.sql
    assert not found.exact


def test_gaps_in_which_no_partition_lies_are_closed_and_nothing_is_said_again() -> None:
    keys = KeySet.of(("int",), [(key,) for key in range(0, 1000, 5)])
    costs = {"ds": PartitionCosts.of("int", [*range(0, 1000, 5), 2_000])}
    found = rendered(restriction(keys, "ds"), budget=TIGHT, costs=costs)
    assert found.sql == "(`ds` BETWEEN 0 AND 995 OR typeof(`ds`) <> 'int')"
    assert not found.exact


def test_strings_that_a_database_could_order_otherwise_are_not_sent_as_a_range() -> None:
    text = one("string", ["a-1", "B-1", "c1"], TIGHT).sql
    assert text == "(array_contains(array('B-1', 'a-1', 'c1'), `ds`) OR typeof(`ds`) <> 'string')"


def test_strings_that_differ_in_digits_alone_are() -> None:
    text = one("string", DAYS, Budget(Consumer(1, 1), 100_000)).sql
    assert text.startswith("((`ds` BETWEEN '2026-01-01' AND '2026-07-28' AND array_contains(array('2026-01-01', ")


def test_a_backtick_in_a_column_name_is_doubled() -> None:
    keys = KeySet.of(("int",), [(1,)])
    assert rendered(restriction(keys, "a`b")).sql.startswith("(`a``b` IN (1)")


def test_a_null_key_keeps_the_null_partition() -> None:
    assert one("int", [None, 1], null_safe=True).sql == "((`ds` IN (1) OR `ds` IS NULL) OR typeof(`ds`) <> 'int')"
    assert one("int", [None], null_safe=True).sql == "(`ds` IS NULL OR typeof(`ds`) <> 'int')"


def test_keys_of_two_columns_stay_in_pairs() -> None:
    found = rendered(restriction(pairs((1, "a"), (3, "b")), "k", "l"))
    assert found.sql == (
        "(((`k` IN (1) AND `l` IN ('a')) OR (`k` IN (3) AND `l` IN ('b')))"
        " OR typeof(`k`) <> 'int' OR typeof(`l`) <> 'string')"
    )
    assert found.exact


def test_pairs_that_are_every_combination_are_one_box() -> None:
    found = rendered(restriction(pairs((1, "a"), (1, "b"), (3, "a"), (3, "b")), "k", "l"))
    assert found.sql.startswith("((`k` IN (1, 3) AND `l` IN ('a', 'b')) OR typeof")
    assert found.exact


def test_more_pairs_than_the_metastore_digests_are_said_again_as_tuples() -> None:
    found = rendered(restriction(pairs(*((n * 3, f"x{n}") for n in range(9))), "k", "l"), budget=TIGHT)
    assert "AND (`k`, `l`) IN ((0, 'x0'), (3, 'x1'), " in found.sql
    assert found.exact


def test_tuples_never_match_a_null_so_a_pair_with_one_is_not_said_as_one() -> None:
    many = pairs((None, "y"), *((n * 3, f"x{n}") for n in range(9)), null_safe=(True, False))
    found = rendered(restriction(many, "k", "l"), budget=TIGHT)
    assert "`k` IS NULL" in found.sql
    assert "(`k`, `l`)" not in found.sql
    assert not found.exact


def test_restrictions_of_one_column_meet_in_the_keys_that_both_have() -> None:
    one_, other = (KeySet.of(("int",), [(key,) for key in keys]) for keys in ((1, 3, 5), (3, 5, 7)))
    assert (
        rendered(restriction(one_, "k"), restriction(other, "k")).sql == "(`k` IN (3, 5) OR typeof(`k`) <> 'int')"
    )
    assert rendered(restriction(one_, "k"), restriction(KeySet(("int",), ()), "k")).sql == "FALSE"


def test_restrictions_of_several_columns_share_what_the_metastore_digests() -> None:
    one_, other = (KeySet.of(("int",), [(key,) for key in range(0, 300, step)]) for step in (2, 3))
    found = rendered(restriction(one_, "k"), restriction(other, "l"))
    cover = found.cover
    assert (
        sum(len(domain.cuts) // 2 for box in cover.boxes for _, domain in box.domains)
        <= BUDGET.metastore.ranges_max
    )
    assert found.sql.count("array_contains") == 2
    assert found.exact


def test_ranges_are_said_as_they_are() -> None:
    found = rendered(restriction(KeyRanges("int", ((1, 4), (7, 7))), "k"))
    assert found.sql == "((`k` IN (7) OR `k` BETWEEN 1 AND 4) OR typeof(`k`) <> 'int')"
    assert not found.exact


def test_a_filter_that_rests_on_the_day_holds_for_that_day_only() -> None:
    for rows, holds in (((), "FALSE"), (((1,),), "`k` IN (1) OR typeof(`k`) <> 'int'")):
        keys = KeySet(("int",), rows, (("current_date()", "DATE'2026-11-20'"),))
        assert rendered(restriction(keys, "k")).sql == f"({holds} OR current_date() <> DATE'2026-11-20')"


def test_a_cover_that_lost_a_key_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = KeySet.of(("int",), [(1,), (3,)])
    narrower = Cover.of_rows([Column("k", "int")], [(1,)])
    monkeypatch.setattr("rewriter.predicates.partition_predicate.widen", lambda *_: narrower)
    assert partition_predicate([restriction(keys, "k")], ["k"], BUDGET, {}) is None


def test_a_predicate_that_would_say_nothing_is_none() -> None:
    keys = KeySet.of(("string",), [("a",), ("B",), ("c",)])
    short = Budget(Consumer(1, 1), 60)
    assert partition_predicate([restriction(keys, "k")], ["k"], short, {}) is None


@pytest.mark.parametrize("count", [1, 16, 17, 100, 1_000])
def test_a_long_or_is_balanced(count: int) -> None:
    text = cover_sql(
        Cover.of_rows([Column("k", "int"), Column("l", "int")], [(n * 2, n * 5) for n in range(count)])
    )
    assert text.count("(`k` IN (") == count
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    assert deepest <= 2 + count.bit_length()


@pytest.mark.parametrize("chars_max", range(80, 240))
def test_a_predicate_is_as_exact_as_its_length_allows_and_never_longer(chars_max: int) -> None:
    keys = KeySet.of(("int",), [(key,) for key in range(0, 100, 5)])
    found = partition_predicate([restriction(keys, "k")], ["k"], Budget(Consumer(2, 2), chars_max), {})
    assert found is not None
    assert len(found.sql) <= chars_max
    assert found.exact == ("array_contains" in found.sql)


def test_partitions_that_spare_the_metastore_a_range_are_not_read() -> None:
    costs = {"k": PartitionCosts.of("int", range(100))}
    sparing = Budget(Consumer(100, 20, range_partitions=40), 100_000)
    keys = partition_predicate([restriction(KeySet.of(("int",), [(1,), (30,)]), "k")], ["k"], sparing, costs)
    assert keys is not None
    assert "`k` BETWEEN 1 AND 30" in keys.sql
    assert "array_contains" in keys.sql
    assert keys.exact
    ranges = partition_predicate([restriction(KeyRanges("int", ((1, 4), (30, 40))), "k")], ["k"], sparing, costs)
    assert ranges is not None
    assert "(`k` BETWEEN 1 AND 4 OR `k` BETWEEN 30 AND 40)" in ranges.sql, "nothing else would keep 5 to 29 out"


@pytest.mark.parametrize(
    ("domain", "sql"),
    [
        (Domain.between("int", 5, None), "`k` >= 5"),
        (Domain.between("string", "b", None), "`k` >= 'b'"),
        (Domain.between("string", None, "b"), "`k` <= 'b'"),
        (Domain.between("string", None, "b").complement(), "(`k` > 'b' OR `k` IS NULL)"),
        (Domain.between("string", "b", None).complement(), "(`k` < 'b' OR `k` IS NULL)"),
        (Domain("string", (b"a", b"b")), "(`k` >= 'a' AND `k` < 'b')"),
        (Domain("string", (b"a\0", b"b\0")), "(`k` > 'a' AND `k` <= 'b')"),
        (Domain("string", (b"a\0", b"b")), "(`k` > 'a' AND `k` < 'b')"),
        (Domain("string", (b"a", b"b\0")), "`k` BETWEEN 'a' AND 'b'"),
    ],
)
def test_an_end_of_a_range_is_said_to_be_in_it_where_it_is_and_nowhere_else(domain: Domain, sql: str) -> None:
    box = Box.of({"k": domain})
    assert box is not None
    assert cover_sql(Cover((box,))) == sql
