"""Predicates within the limits of the metastore."""

from collections.abc import Sequence

from rewriter import KeySet
from rewriter.keys import Key
from rewriter.predicate import Predicate, render

DAYS = [f"2026-{month:02}-{day:02}" for month in range(1, 8) for day in range(1, 29)]


def sql(
    type_name: str, values: Sequence[Key | None], *, metastore_in_max: int = 100, null_safe: bool = False
) -> str:
    keys = KeySet.of((type_name,), [(value,) for value in values], null_safe=(null_safe,))
    return render(["ds"], keys, metastore_in_max=metastore_in_max).sql


def pairs(*rows: tuple[Key | None, ...], null_safe: tuple[bool, bool] = (False, False)) -> Predicate:
    keys = KeySet.of(("int", "string"), rows, null_safe=null_safe)
    return render(["k", "l"], keys, metastore_in_max=100)


def test_few_keys_are_points() -> None:
    assert sql("int", [2, 1]) == "(`ds` IN (1, 2) OR typeof(`ds`) <> 'int')"


def test_no_keys_are_false_whatever_the_type() -> None:
    assert sql("int", []) == "FALSE"


def test_more_keys_than_the_metastore_digests_are_one_range_and_an_array_that_it_never_sees() -> None:
    text = sql("string", DAYS)
    assert text.startswith("((`ds` BETWEEN '2026-01-01' AND '2026-07-28' AND array_contains(array('2026-01-01', ")
    assert text.count("'2026-") == len(DAYS) + 2
    assert " IN (" not in text


def test_strings_that_a_database_could_order_otherwise_are_not_sent_as_a_range() -> None:
    text = sql("string", ["a-1", "B-1", "c1"], metastore_in_max=2)
    assert "BETWEEN" not in text
    assert "array_contains(array('B-1', 'a-1', 'c1'), `ds`)" in text


def test_integers_keep_their_range() -> None:
    assert "`ds` BETWEEN -5 AND 30" in sql("int", [-5, 7, 30], metastore_in_max=2)


def test_a_backtick_in_a_column_name_is_doubled() -> None:
    assert render(["a`b"], KeySet.of(("int",), [(1,)]), metastore_in_max=9).sql.startswith("(`a``b` IN (1)")


def test_a_null_key_keeps_the_null_partition() -> None:
    assert sql("int", [None, 1], null_safe=True) == "((`ds` IN (1) OR `ds` IS NULL) OR typeof(`ds`) <> 'int')"
    assert sql("int", [None], null_safe=True) == "(`ds` IS NULL OR typeof(`ds`) <> 'int')"


def test_keys_of_two_columns_stay_in_pairs() -> None:
    predicate = pairs((1, "a"), (2, "b"))
    assert predicate.sql == (
        "((`k` IN (1, 2) AND `l` IN ('a', 'b') AND (`k`, `l`) IN ((1, 'a'), (2, 'b')))"
        " OR typeof(`k`) <> 'int' OR typeof(`l`) <> 'string')"
    )
    assert predicate.exact


def test_pairs_that_are_every_combination_need_no_tuples() -> None:
    predicate = pairs((1, "a"), (1, "b"), (2, "a"), (2, "b"))
    assert "(`k`, `l`)" not in predicate.sql
    assert predicate.exact


def test_tuples_never_match_a_null_so_a_pair_with_one_is_kept_column_by_column() -> None:
    predicate = pairs((1, "a"), (None, "b"), null_safe=(True, False))
    assert predicate.sql.startswith("(((`k` IN (1) OR `k` IS NULL) AND `l` IN ('a', 'b')) OR typeof")
    assert not predicate.exact


def test_a_filter_that_rests_on_the_day_holds_for_that_day_only() -> None:
    for rows, holds in (((), "FALSE"), (((1,),), "`k` IN (1) OR typeof(`k`) <> 'int'")):
        keys = KeySet(("int",), rows, (("current_date()", "DATE'2026-11-20'"),))
        text = render(["k"], keys, metastore_in_max=100).sql
        assert text == f"({holds} OR current_date() <> DATE'2026-11-20')"
