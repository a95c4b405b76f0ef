"""A session's decisions by remembered keys, and the checks of these keys."""

from typing import Literal

import pytest
from support.played_sessions import (
    DESCRIBE,
    DETAILS,
    KEY_QUERY,
    KEYS,
    NARROWED,
    SETTINGS,
    SQL,
    failed,
    played,
    rows,
    sent,
)
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection, RewriteSection
from proxy.operations.dispatch import Dispatch
from proxy.operations.key_check import CheckVerdict, KeyCheck, KeyTerms
from proxy.operations.query import FailureKind, QueryResult
from proxy.session.decision import DecisionTerms
from proxy.session.session_settings import SessionSettings

CHECKED = KeyTerms(may_be_checked=True)
AN_HOUR_S = RewriteSection().keys_remembered_s
OTHER_KEYS = (KEY_QUERY, rows(("b", "string")))
NARROWED_TO_B = NARROWED.replace("'a'", "'b'")


@pytest.fixture
def stage() -> Stage:
    return Stage(rewrite=RewriteSection(cost_gate=False))


def asked_first(one: TextSession, answer: tuple[str, QueryResult] = KEYS) -> None:
    """Run the statement with keys that are asked for."""
    dispatch = played(one.rewrite(SQL, CHECKED), [*DESCRIBE, answer])
    assert dispatch.check is None
    dispatch.on_outcome(FINISHED)


def remembered(one: TextSession, script: list[tuple[str, QueryResult]] | None = None) -> tuple[Dispatch, KeyCheck]:
    """Run the statement with remembered keys: nothing is asked for them before it goes."""
    dispatch = played(one.rewrite(SQL, CHECKED), script or [])
    assert dispatch.check is not None
    assert dispatch.may_fall_back
    return dispatch, dispatch.check


def test_remembered_keys_are_used_for_an_hour_and_asked_for_again_meanwhile(stage: Stage) -> None:
    one = stage.session()
    asked_first(one)
    stage.now = 30.0
    dispatch, check = remembered(one)
    assert dispatch.text == NARROWED
    assert check.began_at == 30.0
    assert played(check.work(), [KEYS]) is CheckVerdict.HELD
    for now, other in ((30.0, stage.session("bob")), (stage.now + AN_HOUR_S + 1.0, one)):
        stage.now = now
        assert played(other.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]).check is None


def test_fewer_keys_are_as_good(stage: Stage) -> None:
    one = stage.session()
    asked_first(one, (KEY_QUERY, rows(("a", "string"), ("b", "string"))))
    _, check = remembered(one)
    assert played(check.work(), [KEYS]) is CheckVerdict.HELD


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (rows(("a", "string"), ("b", "string")), CheckVerdict.CHANGED),
        # Keys of another type than the column have no literals.
        (rows(("2024-01-01", "date")), CheckVerdict.UNANSWERED),
        (failed(FailureKind.DEADLINE), CheckVerdict.UNANSWERED),
        (failed(FailureKind.REJECTED), CheckVerdict.UNANSWERED),
    ],
)
def test_a_check_says_what_came_of_it(stage: Stage, answer: QueryResult, verdict: CheckVerdict) -> None:
    one = stage.session()
    asked_first(one)
    _, check = remembered(one)
    assert played(check.work(), [(KEY_QUERY, answer)]) is verdict


def test_the_keys_of_a_check_serve_the_decision_that_follows_it_and_older_ones_do_not(stage: Stage) -> None:
    one = stage.session()
    asked_first(one)
    stage.now = 30.0
    _, check = remembered(one)
    assert sent(one.rewrite(SQL, KeyTerms(asked_since=check.began_at)), [KEYS]) == NARROWED
    _, check = remembered(one)
    stage.now = 31.0
    assert played(check.work(), [OTHER_KEYS]) is CheckVerdict.CHANGED
    again = played(one.rewrite(SQL, KeyTerms(asked_since=check.began_at)), [])
    assert (again.text, again.check) == (NARROWED_TO_B, None)


def test_a_session_may_have_its_keys_asked_for_first(stage: Stage) -> None:
    one = stage.session()
    played(one.rewrite("SET starpruner.keys_remembered_s=0"), []).on_outcome(FINISHED)
    for script in ([*DESCRIBE, KEYS], [KEYS]):
        dispatch = played(one.rewrite(SQL, CHECKED), script)
        assert dispatch.check is None
        dispatch.on_outcome(FINISHED)


@pytest.mark.parametrize(("consistency", "is_used"), [("window", True), ("strict", False)])
def test_with_strict_consistency_nothing_that_is_due_is_used_before_it_is_checked(
    consistency: Literal["window", "strict"], *, is_used: bool
) -> None:
    section = RewriteSection(consistency=consistency, keys_remembered_s=60.0)
    settings = SessionSettings.configured(Config(rewrite=section), {})
    terms = DecisionTerms(settings, "scope", "owner", "asker", b"state", keys=CHECKED)
    usable = terms.usable_keys(only_reads=True)
    assert usable is not None
    assert (terms.grace_s > 0, usable.checked_s > 0) == (is_used, is_used)


def test_a_statement_that_writes_has_its_keys_asked_for_first(stage: Stage) -> None:
    one = stage.session()
    asked_first(one)
    dispatch = played(one.rewrite(f"INSERT INTO w {SQL}", CHECKED), [KEYS])
    assert dispatch.check is None
    assert dispatch.text != f"INSERT INTO w {SQL}"


def test_keys_that_are_others_each_time_are_asked_for_first(stage: Stage) -> None:
    one = stage.session()
    asked_first(one)
    for number in range(3):
        _, check = remembered(one)
        key = chr(ord("b") + number)
        assert played(check.work(), [(KEY_QUERY, rows((key, "string")))]) is CheckVerdict.CHANGED
    # The same answer twice: they may be remembered again.
    for _ in range(2):
        dispatch = played(one.rewrite(SQL, CHECKED), [(KEY_QUERY, rows(("x", "string")))])
        assert dispatch.check is None
        dispatch.on_outcome(FINISHED)
    assert remembered(one)[0].text == NARROWED.replace("'a'", "'x'")


def test_a_write_through_the_proxy_ends_what_is_remembered(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    asked_first(one)
    played(other.rewrite("INSERT INTO d VALUES ('b', 1)"), []).on_outcome(FINISHED)
    assert played(one.rewrite(SQL, CHECKED), [KEYS]).check is None


def test_a_write_while_they_are_checked_overtakes_the_answer(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    asked_first(one)
    dispatch, check = remembered(one)
    assert dispatch.premises.are_tables_unchanged()
    played(other.rewrite("INSERT INTO d VALUES ('b', 1)"), []).on_outcome(FINISHED)
    assert played(check.work(), [KEYS]) is CheckVerdict.HELD
    assert not dispatch.premises.are_tables_unchanged()


def test_keys_that_a_user_allows_to_be_old_are_not_checked() -> None:
    one = Stage(rewrite=RewriteSection(cost_gate=False, key_staleness_s=60)).session()
    asked_first(one)
    assert played(one.rewrite(SQL, CHECKED), []).check is None


def test_explain_asks_for_the_keys_of_now(stage: Stage) -> None:
    one = stage.session()
    asked_first(one)
    explained = played(one.explain(SQL, run_key_queries=True), [OTHER_KEYS, ("SHOW PARTITIONS `f`", rows())])
    assert explained.rewrite is not None
    assert explained.rewrite.text == NARROWED_TO_B


# --- descriptions and settings that have expired

LATER_S = CatalogSection().facts_ttl_s + 1.0
D_WITH_ANOTHER_COLUMN = (DESCRIBE[0][0], rows(("ds", "string", ""), ("g", "int", ""), ("h", "int", ""), *DETAILS))


def test_expired_descriptions_are_used_and_asked_for_again_meanwhile(stage: Stage) -> None:
    one = stage.session()
    asked_first(one)
    stage.now = LATER_S
    dispatch, check = remembered(one)
    assert dispatch.text == NARROWED
    assert played(check.work(), [KEYS, *DESCRIBE, SETTINGS]) is CheckVerdict.HELD
    # They are current again.
    _, check = remembered(one)
    assert played(check.work(), [KEYS]) is CheckVerdict.HELD


@pytest.mark.parametrize(
    "script",
    [
        [D_WITH_ANOTHER_COLUMN, DESCRIBE[1]],
        [(DESCRIBE[0][0], failed(FailureKind.REJECTED)), DESCRIBE[1]],
        [(DESCRIBE[0][0], failed(FailureKind.DEADLINE))],
        [*DESCRIBE, ("SET", rows(("spark.sql.extensions", "org.example.Rows")))],
    ],
)
def test_a_description_that_is_another_one_by_now_is_a_change(
    stage: Stage, script: list[tuple[str, QueryResult]]
) -> None:
    one = stage.session()
    asked_first(one)
    stage.now = LATER_S
    _, check = remembered(one)
    assert played(check.work(), [KEYS, *script]) is CheckVerdict.CHANGED


def test_a_description_that_another_session_found_changed_meanwhile_is_a_change(stage: Stage) -> None:
    one, other = stage.session(), stage.session()
    asked_first(one)
    stage.now = LATER_S
    _, check = remembered(one)
    played(other.rewrite(SQL), [D_WITH_ANOTHER_COLUMN, DESCRIBE[1], KEYS])
    assert played(check.work(), [KEYS]) is CheckVerdict.CHANGED


def test_expired_descriptions_are_asked_for_first_where_no_key_is_checked() -> None:
    stage = Stage(rewrite=RewriteSection(cost_gate=False, key_staleness_s=3_000))
    one = stage.session()
    asked_first(one)
    stage.now = LATER_S
    assert played(one.rewrite(SQL, CHECKED), DESCRIBE).check is None
    stage.now = 2 * LATER_S
    dispatch = played(one.rewrite(SQL, CHECKED), [D_WITH_ANOTHER_COLUMN, DESCRIBE[1]])
    assert (dispatch.text, dispatch.check) == (SQL, None)


def test_settings_that_were_not_told_are_soon_asked_for_again(stage: Stage) -> None:
    one = stage.session()
    late = ("SET", failed(FailureKind.DEADLINE))
    played(one.rewrite(SQL, CHECKED), [late]).on_outcome(FINISHED)
    stage.now = LATER_S
    assert sent(one.rewrite(SQL, CHECKED), [*DESCRIBE, KEYS]) == NARROWED


def test_expired_descriptions_are_asked_for_first_where_keys_are(stage: Stage) -> None:
    one = stage.session()
    asked_first(one)
    stage.now = LATER_S
    other_keys = SQL.replace("d.g = 1", "d.g = 2")
    question = KEY_QUERY.replace("d.g = 1", "d.g = 2")
    assert played(one.rewrite(other_keys, CHECKED), [*DESCRIBE, (question, KEYS[1])]).check is None
