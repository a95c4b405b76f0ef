"""Checks of remembered keys, which run while other statements of their session and of its state go on."""

from collections.abc import Mapping

import pytest
from support.played_sessions import DESCRIBE, DETAILS, KEY_QUERY, KEYS, NARROWED, SETTINGS, SQL, played, rows
from support.session_stage import FINISHED, Stage

from proxy.config.rewriting import CatalogSection, RewriteSection
from proxy.operations.dispatch import Dispatch
from proxy.operations.key_check import CheckVerdict, KeyTerms
from proxy.operations.query import QueryResult
from proxy.session.session_catalog import Queries, T

CHECKED = KeyTerms(may_be_checked=True)
LATER_S = CatalogSection().facts_ttl_s + 1.0
KEYS_OF_ANOTHER_DATABASE = (KEY_QUERY, rows(("z", "string")))
D_OF_ANOTHER_DATABASE = (DESCRIBE[0][0], rows(("ds", "string", ""), ("id", "int", ""), ("g", "int", ""), *DETAILS))


@pytest.fixture
def stage() -> Stage:
    return Stage(rewrite=RewriteSection(cost_gate=False))


def test_keys_that_a_check_was_told_in_another_state_are_not_those_of_sessions_of_the_former_state(
    stage: Stage,
) -> None:
    one, other = stage.session(), stage.session()
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = 30.0
    check, check_of_other = (played(session.rewrite(SQL, CHECKED), []).check for session in (one, other))
    assert check is not None
    assert check_of_other is not None
    # Something past the proxy has written d.
    found_b = (KEY_QUERY, rows(("b", "string")))
    assert played(check_of_other.queries, [found_b]) is CheckVerdict.CHANGED
    # On another connection the first session goes on, and its check reads the d of the other database.
    played(one.rewrite("USE elsewhere"), []).on_outcome(FINISHED)
    assert played(check.queries, [KEYS_OF_ANOTHER_DATABASE]) is CheckVerdict.CHANGED
    again = other.rewrite(SQL, KeyTerms(asked_since=check_of_other.began_at))
    text = played_with(again, {KEY_QUERY: found_b[1], **dict(DESCRIBE)})
    assert text == NARROWED.replace("'a'", "'b'")


def test_keys_of_another_state_are_not_used_by_who_allows_old_keys() -> None:
    stage = Stage(rewrite=RewriteSection(cost_gate=False, key_staleness_s=20))
    one, other = stage.session(), stage.session()
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = 30.0
    check = played(one.rewrite(SQL, CHECKED), []).check
    assert check is not None
    played(one.rewrite("USE elsewhere"), []).on_outcome(FINISHED)
    played(check.queries, [KEYS_OF_ANOTHER_DATABASE])
    text = played_with(other.rewrite(SQL), {KEY_QUERY: KEYS[1], **dict(DESCRIBE)})
    assert text == NARROWED


def test_keys_that_a_check_was_told_after_another_process_had_the_session_are_not_remembered(
    stage: Stage,
) -> None:
    one, other, is_here = stage.session(), stage.session(), [True]
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = 30.0
    terms = KeyTerms(may_be_checked=True, is_session_here=lambda: is_here[0])
    check = played(one.rewrite(SQL, terms), []).check
    assert check is not None
    is_here[0] = False
    played(check.queries, [KEYS_OF_ANOTHER_DATABASE])
    assert played_with(other.rewrite(SQL, KeyTerms(asked_since=30.0)), dict([KEYS, *DESCRIBE])) == NARROWED


def test_descriptions_that_a_check_was_told_in_another_state_are_not_those_of_the_former_state(
    stage: Stage,
) -> None:
    one, other = stage.session(), stage.session()
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = LATER_S
    check = played(one.rewrite(SQL, CHECKED), []).check
    assert check is not None
    played(one.rewrite("USE elsewhere"), []).on_outcome(FINISHED)
    elsewhere = dict([KEYS, D_OF_ANOTHER_DATABASE, DESCRIBE[1]])
    assert answered(check.queries, elsewhere, []) is CheckVerdict.CHANGED
    # Another session of the state asks for itself.
    asked: list[str] = []
    queries = other.rewrite(SQL)
    answers = {KEY_QUERY: KEYS[1], **dict(DESCRIBE), SETTINGS[0]: SETTINGS[1]}
    played_with(queries, answers, asked)
    assert DESCRIBE[0][0] in asked


@pytest.mark.parametrize("key_staleness_s", [0.0, 600.0])
def test_no_statement_rests_on_an_expired_description_that_nobody_checks(key_staleness_s: float) -> None:
    stage = Stage(rewrite=RewriteSection(cost_gate=False, key_staleness_s=key_staleness_s))
    one = stage.session()
    played(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    stage.now = LATER_S
    asked: list[str] = []
    queries = one.rewrite(SQL, CHECKED)
    answers = {KEY_QUERY: KEYS[1], **dict(DESCRIBE), SETTINGS[0]: SETTINGS[1]}
    dispatch = answered(queries, answers, asked)
    if dispatch.check is not None:
        answered(dispatch.check.queries, answers, asked)
    assert {DESCRIBE[0][0], DESCRIBE[1][0]} <= set(asked)


def answered(queries: Queries[T], answers: Mapping[str, QueryResult], asked: list[str]) -> T:
    """Answer the queries in whichever order they come."""
    answer: QueryResult | None = None
    while True:
        try:
            query = queries.send(answer) if answer is not None else next(queries)
        except StopIteration as done:
            result: T = done.value
            return result
        asked.append(query.sql)
        answer = SETTINGS[1] if query.sql == SETTINGS[0] else answers[query.sql]


def played_with(
    queries: Queries[Dispatch], answers: Mapping[str, QueryResult], asked: list[str] | None = None
) -> str:
    return answered(queries, answers, [] if asked is None else asked).text
