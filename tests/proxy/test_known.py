"""What is kept of answers that sessions of one state share, and for how long."""

from proxy.config import CatalogSection
from proxy.known import Knowledge, TooLong


def test_a_long_answer_is_remembered_for_ten_minutes() -> None:
    now = [0.0]
    too_long = TooLong(lambda: now[0])
    too_long.add("SELECT k FROM d")
    assert too_long.holds("SELECT k FROM d")
    assert not too_long.holds("SELECT k FROM other")
    now[0] = 600.0
    assert not too_long.holds("SELECT k FROM d")


def test_of_many_long_answers_the_last_ones_are_remembered() -> None:
    too_long = TooLong(lambda: 0.0, queries_max=2)
    for sql in ("a", "b", "a", "c"):
        too_long.add(sql)
    assert [sql for sql in "abc" if too_long.holds(sql)] == ["a", "c"]


def test_of_many_states_those_used_last_are_remembered() -> None:
    knowledge = Knowledge(CatalogSection(), lambda: 0.0, states_max=2)
    first, second = knowledge.of(b"1"), knowledge.of(b"2")
    assert knowledge.of(b"1") is first
    _ = knowledge.of(b"3")
    assert knowledge.of(b"1") is first
    assert knowledge.of(b"2") is not second
