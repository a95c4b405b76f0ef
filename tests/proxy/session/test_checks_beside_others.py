"""Checks of remembered keys, which run while other statements of their session and of its state go on."""

from collections.abc import Mapping

import pytest
from support.played_sessions import (
    DESCRIBE,
    DETAILS,
    KEY_QUERY,
    KEYS,
    NARROWED,
    SETTINGS,
    SQL,
    Asking,
    T,
    played,
    rows,
)
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.rewriting import CatalogSection, RewriteSection
from proxy.operations.key_check import CheckVerdict, KeyCheck, KeyTerms
from proxy.operations.query import QueryResult

CHECKED = KeyTerms(may_be_checked=True)
LATER_S = CatalogSection().facts_ttl_s + 1.0
ANSWERS: dict[str, QueryResult] = dict([KEYS, *DESCRIBE, SETTINGS])
KEYS_OF_ANOTHER_DATABASE = (KEY_QUERY, rows(("z", "string")))
D_OF_ANOTHER_DATABASE = (DESCRIBE[0][0], rows(("ds", "string", ""), ("id", "int", ""), ("g", "int", ""), *DETAILS))


@pytest.fixture
def stage() -> Stage:
    return Stage(rewrite=RewriteSection(cost_gate=False))


def check_of(session: TextSession, terms: KeyTerms = CHECKED) -> KeyCheck:
    """The check of the statement's remembered keys."""
    check = played(session.rewrite(SQL, terms), []).check
    assert check is not None
    return check


def test_keys_that_a_check_was_told_in_another_state_are_not_those_of_sessions_of_the_former_state(
    stage: Stage,
) -> None:
    one, other = stage.session(), stage.session()
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = 30.0
    check, check_of_other = check_of(one), check_of(other)
    # Something past the proxy has written d.
    found_b = (KEY_QUERY, rows(("b", "string")))
    assert played(check_of_other.work(), [found_b]) is CheckVerdict.CHANGED
    # On another connection the first session goes on, and its check reads the d of the other database.
    played(one.rewrite("USE elsewhere"), []).on_outcome(FINISHED)
    assert played(check.work(), [KEYS_OF_ANOTHER_DATABASE]) is CheckVerdict.CHANGED
    again = other.rewrite(SQL, KeyTerms(asked_since=check_of_other.began_at))
    assert answered(again, ANSWERS | dict([found_b])).text == NARROWED.replace("'a'", "'b'")


def test_keys_of_another_state_are_not_used_by_who_allows_old_keys() -> None:
    stage = Stage(rewrite=RewriteSection(cost_gate=False, key_staleness_s=20))
    one, other = stage.session(), stage.session()
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = 30.0
    check = check_of(one)
    played(one.rewrite("USE elsewhere"), []).on_outcome(FINISHED)
    played(check.work(), [KEYS_OF_ANOTHER_DATABASE])
    assert answered(other.rewrite(SQL), ANSWERS).text == NARROWED


def test_keys_that_a_check_was_told_after_another_process_had_the_session_are_not_remembered(stage: Stage) -> None:
    one, other, is_here = stage.session(), stage.session(), [True]
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = 30.0
    terms = KeyTerms(may_be_checked=True, is_session_here=lambda: is_here[0])
    check = check_of(one, terms)
    is_here[0] = False
    played(check.work(), [KEYS_OF_ANOTHER_DATABASE])
    assert answered(other.rewrite(SQL, KeyTerms(asked_since=30.0)), ANSWERS).text == NARROWED


def test_descriptions_that_a_check_was_told_in_another_state_are_not_those_of_the_former_state(
    stage: Stage,
) -> None:
    one, other = stage.session(), stage.session()
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = LATER_S
    check = check_of(one)
    played(one.rewrite("USE elsewhere"), []).on_outcome(FINISHED)
    assert answered(check.work(), ANSWERS | dict([D_OF_ANOTHER_DATABASE])) is CheckVerdict.CHANGED
    # Another session of the state asks for itself.
    asked: list[str] = []
    answered(other.rewrite(SQL), ANSWERS, asked)
    assert DESCRIBE[0][0] in asked


@pytest.mark.parametrize("key_staleness_s", [0.0, 600.0])
def test_no_statement_rests_on_an_expired_description_that_nobody_checks(key_staleness_s: float) -> None:
    stage = Stage(rewrite=RewriteSection(cost_gate=False, key_staleness_s=key_staleness_s))
    one = stage.session()
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = LATER_S
    asked: list[str] = []
    dispatch = answered(one.rewrite(SQL, CHECKED), ANSWERS, asked)
    if dispatch.check is not None:
        answered(dispatch.check.work(), ANSWERS, asked)
    assert {DESCRIBE[0][0], DESCRIBE[1][0]} <= set(asked)


def answered(queries: Asking[T], answers: Mapping[str, QueryResult], asked: list[str] | None = None) -> T:
    """Answer the queries in whichever order they come."""
    answer: QueryResult | None = None
    while True:
        try:
            query = queries.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        if asked is not None:
            asked.append(query.sql)
        answer = answers[query.sql]
