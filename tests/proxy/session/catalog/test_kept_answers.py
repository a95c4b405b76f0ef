"""Answers that a state's sessions were given: which may be used, and which are not kept."""

from collections.abc import Callable

import pytest
from support.clock import Clock
from support.played_sessions import Asking

from proxy.operations.dispatch import always
from proxy.operations.query import Query, ask_driver
from proxy.session.catalog.answers import Answers

ASKED = Query("SELECT 1", rows_max=1, bytes_max=9, deadline_s=1.0)


async def ask() -> tuple[str, float]:
    _ = await ask_driver(ASKED)
    return "new", 10.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def answers(clock: Clock) -> Answers[str, str]:
    return Answers(clock, answers_max=2)


@pytest.mark.parametrize(
    ("age_s", "grace_s", "is_used"), [(9.9, 0.0, True), (10.0, 0.0, False), (14.9, 5.0, True), (15.0, 5.0, False)]
)
def test_an_answer_is_current_then_due_then_gone(
    clock: Clock, answers: Answers[str, str], age_s: float, grace_s: float, *, is_used: bool
) -> None:
    answers.keep("q", "old", 10.0)
    clock.now += age_s
    assert (answers.get("q", grace_s) is not None) is is_used
    known = answers.known("q")
    assert known is not None
    assert (known.value, known.until - known.came_at) == ("old", 10.0)


def test_the_answers_kept_last_stay(answers: Answers[str, str]) -> None:
    for question in ("a", "b", "a", "c"):
        answers.keep(question, question, 10.0)
    assert [question for question in "abc" if answers.get(question)] == ["a", "c"]


def kept(
    answers: Answers[str, str], meanwhile: Callable[[], None] = lambda: None, may_keep: Callable[[], bool] = always
) -> str | None:
    """The answer that is kept, once a question was answered, after something had happened meanwhile."""
    asking: Asking[str] = answers.get_or_ask("q", ask, may_keep=may_keep)
    assert asking.send(None) is ASKED
    meanwhile()
    with pytest.raises(StopIteration) as end:
        asking.send(None)
    assert end.value.value == "new", "who has asked uses it"
    found = answers.get("q")
    return None if found is None else found.value


def test_an_answer_is_asked_for_once(answers: Answers[str, str]) -> None:
    assert kept(answers) == "new"
    asking: Asking[str] = answers.get_or_ask("q", ask)
    with pytest.raises(StopIteration) as end:
        asking.send(None)
    assert end.value.value == "new"


def test_an_answer_from_before_all_was_forgotten_is_not_kept(answers: Answers[str, str]) -> None:
    assert kept(answers, answers.forget) is None


def test_an_answer_to_a_session_that_has_changed_is_not_kept(answers: Answers[str, str]) -> None:
    assert kept(answers, may_keep=lambda: False) is None
