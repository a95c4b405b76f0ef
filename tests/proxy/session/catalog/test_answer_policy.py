"""The answer policies of a decision: the age that each allows, and whom it asks."""

from proxy.operations.query import Query, QueryResult, ask_driver
from proxy.session.catalog.answer_policy import AnswerPolicy
from proxy.session.consistency.asking import ask_nobody

FULL = AnswerPolicy(ask_driver, grace_s=3_600.0, is_session_unchanged=lambda: False)


async def anew(_query: Query) -> QueryResult:
    raise AssertionError


def test_what_decides_about_splits_may_be_due_while_nobody_is_asked_and_descriptions_may_not() -> None:
    policy = FULL.at_hand(300.0)
    assert (policy.ask, policy.grace_s, policy.splits_grace_s) == (ask_nobody, 0.0, 300.0)


def test_a_check_uses_nothing_that_has_expired_and_keeps_nothing_of_a_changed_session() -> None:
    policy = FULL.at_hand(300.0).current(anew)
    assert (policy.ask, policy.grace_s, policy.splits_grace_s) == (anew, 0.0, 0.0)
    assert not policy.is_session_unchanged()
    assert FULL.current().ask is ask_driver
