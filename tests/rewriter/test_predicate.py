"""Predicates within the limits of the metastore."""

from rewriter import KeySet
from rewriter.predicate import render

DAYS = [f"2026-{month:02}-{day:02}" for month in range(1, 8) for day in range(1, 29)]


def sql(keys: KeySet, *, metastore_in_max: int = 100) -> str:
    return render("ds", keys, metastore_in_max=metastore_in_max).sql


def test_few_keys_are_points() -> None:
    assert sql(KeySet.of("int", [2, 1])) == "(`ds` IN (1, 2) OR typeof(`ds`) <> 'int')"


def test_no_keys_are_false_whatever_the_type() -> None:
    assert sql(KeySet.of("int", [])) == "FALSE"


def test_more_keys_than_the_metastore_digests_are_one_range_and_an_array_that_it_never_sees() -> None:
    text = sql(KeySet.of("string", DAYS))
    assert text.startswith("((`ds` BETWEEN '2026-01-01' AND '2026-07-28' AND array_contains(array('2026-01-01', ")
    assert text.count("'2026-") == len(DAYS) + 2
    assert " IN (" not in text


def test_strings_that_a_database_could_order_otherwise_are_not_sent_as_a_range() -> None:
    text = sql(KeySet.of("string", ["a-1", "B-1", "c1"]), metastore_in_max=2)
    assert "BETWEEN" not in text
    assert "array_contains(array('B-1', 'a-1', 'c1'), `ds`)" in text


def test_integers_keep_their_range() -> None:
    assert "`ds` BETWEEN -5 AND 30" in sql(KeySet.of("int", [-5, 7, 30]), metastore_in_max=2)


def test_a_backtick_in_a_column_name_is_doubled() -> None:
    assert render("a`b", KeySet.of("int", [1]), metastore_in_max=9).sql.startswith("(`a``b` IN (1)")
