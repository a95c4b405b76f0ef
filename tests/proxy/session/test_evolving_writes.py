"""Writes that may add columns to their tables by a setting: statements are planned by new descriptions then."""

from dataclasses import replace

import pytest
from support.played_sessions import DESCRIBE, KEYS, NARROWED, SETTINGS, SQL, Script, played, rows, sent
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.rewriting import RewriteSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.key_check import ASK_FIRST
from proxy.operations.query import FailureKind, QueryFailed, QueryResult
from proxy.operations.session_port import SessionOpening
from proxy.session.catalog.answers import Answer
from proxy.session.catalog.evolving_backends import EvolvingBackends
from proxy.session.consistency.write_fence import CLOSING_S, LOST_S

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
WRITE = "INSERT INTO d VALUES ('b', 1, 'new')"
EVOLVING = (SETTINGS[0], rows((AUTO_MERGE, "true")))


@pytest.fixture
def stage() -> Stage:
    return Stage(rewrite=RewriteSection(cost_gate=False))


def written(session: TextSession) -> None:
    played(session.rewrite(WRITE), []).on_outcome(FINISHED)


@pytest.mark.parametrize(
    "setting",
    [
        f"SET {AUTO_MERGE}=true",
        "set `spark.sql.iceberg.MERGE-SCHEMA` = true",
        "SET spark.sql.iceberg.mergeSchema=true",
        "SET ${some} = true",
    ],
)
def test_a_write_behind_such_a_setting_has_its_table_described_again(stage: Stage, setting: str) -> None:
    reader, writer = stage.session(), stage.session("bob")
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    written(writer)
    assert sent(reader.rewrite(SQL), [KEYS]) == NARROWED, "a plain write leaves the columns as they are"
    played(writer.rewrite(setting), []).on_outcome(FINISHED)
    written(writer)
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


def test_a_session_may_be_opened_with_the_setting(stage: Stage) -> None:
    reader = stage.session()
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    opening = SessionOpening(
        owner="bob", login="bob", user="bob", configuration={f"set:hiveconf:{AUTO_MERGE}": "true"}
    )
    written(TextSession(stage.shared, opening))
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


def test_a_write_asks_a_server_of_which_nothing_is_known(stage: Stage) -> None:
    stage.shared.evolving = EvolvingBackends(lambda: stage.now)
    reader = stage.session()
    running = played(stage.session("bob").rewrite(WRITE), [EVOLVING])
    assert sent(reader.rewrite(SQL), []) == SQL
    running.on_outcome(FINISHED)
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def test_a_server_that_does_not_tell_may_have_the_setting(stage: Stage) -> None:
    reader = stage.session()
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    stage.shared.evolving = EvolvingBackends(lambda: stage.now)
    played(
        stage.session("bob").rewrite(WRITE), [(SETTINGS[0], QueryFailed(FailureKind.REJECTED, "no", 0.1))]
    ).on_outcome(FINISHED)
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


def test_a_server_may_have_the_setting(stage: Stage) -> None:
    reader, writer = stage.session(), stage.session("bob")
    assert sent(reader.rewrite(SQL), [EVOLVING, *DESCRIBE, KEYS]) == NARROWED
    written(writer)
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


def test_a_setting_of_one_session_says_nothing_of_the_writes_of_others(stage: Stage) -> None:
    reader, writer, other = stage.session(), stage.session("bob"), stage.session("eve")
    played(other.rewrite(f"SET {AUTO_MERGE}=true"), []).on_outcome(FINISHED)
    assert sent(other.rewrite(SQL), [EVOLVING, *DESCRIBE, KEYS]) == NARROWED
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    written(writer)
    assert sent(reader.rewrite(SQL), [KEYS]) == NARROWED


@pytest.mark.parametrize(("settings", "described"), [(EVOLVING, DESCRIBE[:1]), (SETTINGS, [])])
def test_what_one_backend_says_of_its_settings_says_nothing_of_others(
    stage: Stage, settings: tuple[str, QueryResult], described: Script
) -> None:
    reader = stage.session()
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    other = TextSession(stage.shared, SessionOpening(owner="bob", login="bob", user="bob", backend="other:10000"))
    played(other.rewrite(WRITE), [settings]).on_outcome(FINISHED)
    assert sent(reader.rewrite(SQL), [*described, KEYS]) == NARROWED


def test_of_a_session_whose_opening_was_not_seen_nobody_knows_what_it_has_set(stage: Stage) -> None:
    reader = stage.session()
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    written(TextSession(stage.shared, SessionOpening(is_seen=False)))
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


def test_a_setting_counts_for_a_write_that_is_running(stage: Stage) -> None:
    reader, writer = stage.session(), stage.session("bob")
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    running = played(writer.rewrite(WRITE), [])
    setting = played(writer.rewrite(f"SET {AUTO_MERGE}=true"), [])
    assert sent(reader.rewrite(SQL), []) == SQL, "its columns may be other ones at any moment"
    running.on_outcome(FINISHED)
    setting.on_outcome(FINISHED)
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED
    assert sent(reader.rewrite(SQL), [KEYS]) == NARROWED, "none is left running"


def test_of_a_session_that_another_process_has_used_nobody_knows_what_it_has_set(stage: Stage) -> None:
    reader, writer = stage.session(), stage.session("bob")
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    running = played(writer.rewrite(WRITE), [])
    writer.inner.used_elsewhere()
    assert sent(reader.rewrite(SQL), []) == SQL
    running.on_outcome(FINISHED)
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED
    written(writer)
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


def test_a_write_whose_end_will_not_be_seen_counts_by_a_later_setting_too(stage: Stage) -> None:
    reader, writer = stage.session(), stage.session("bob")
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    for _ in range(20):
        played(writer.rewrite("INSERT INTO f VALUES (1, 'a')"), []).on_outcome(Outcome(OutcomeKind.LOST, 1.0))
    played(writer.rewrite(f"SET {AUTO_MERGE}=true"), []).on_outcome(FINISHED)
    assert sent(reader.rewrite(SQL), []) == SQL
    stage.now = LOST_S
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def test_the_writes_of_a_session_that_is_forgotten_and_goes_on_count_as_running(stage: Stage) -> None:
    reader, writer = stage.session(), stage.session("bob")
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    played(writer.rewrite(WRITE), [])
    writer.closed(is_forgotten=True)
    stage.now = CLOSING_S + 1
    assert sent(reader.rewrite(SQL), DESCRIBE) == SQL
    stage.now = LOST_S
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def answer(came_at: float, *, evolves: bool) -> Answer[bool]:
    return Answer(evolves, came_at, came_at + 60.0)


def test_an_answer_counts_for_sessions_that_were_open_as_it_came_and_for_others_while_it_is_current() -> None:
    now = [0.0]
    evolving = EvolvingBackends(lambda: now[0])
    assert evolving.evolves("one", 0.0) is None
    evolving.told("one", answer(20.0, evolves=True))
    evolving.told("one", answer(10.0, evolves=False))
    assert evolving.evolves("one", 0.0), "the later answer is another one"
    evolving.told("one", answer(30.0, evolves=False))
    now[0] = 89.0
    assert evolving.evolves("one", 80.0) is False
    now[0] = 90.0
    assert evolving.evolves("one", 80.0) is None, "the server may have been started anew"
    assert evolving.evolves("one", 30.0) is False
    assert evolving.evolves("other", 30.0) is None


def test_a_write_that_may_be_running_stays_what_it_was_as_time_passes(stage: Stage) -> None:
    stage.shared.evolving = EvolvingBackends(lambda: stage.now)
    pool = stage.session("bob")
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    played(pool.rewrite("INSERT INTO f VALUES (1, 'a')"), []).on_outcome(Outcome(OutcomeKind.UNKNOWN, 1.0))
    stage.now = 8_000.0
    played(pool.rewrite("SELECT 1"), []).on_outcome(FINISHED)
    assert sent(stage.session().rewrite(SQL), [SETTINGS, *DESCRIBE, KEYS]) == NARROWED


def test_a_clients_own_session_tells_of_its_server_unless_it_has_set_something(stage: Stage) -> None:
    stage.shared.evolving = EvolvingBackends(lambda: stage.now)
    stranger, other = stage.stranger(), stage.stranger()
    played(other.rewrite(f"SET {AUTO_MERGE}=false"), []).on_outcome(FINISHED)
    assert sent(other.rewrite(SQL), [SETTINGS, *DESCRIBE, KEYS]) == NARROWED
    assert stage.shared.evolving.evolves("", 0.0) is not False
    assert sent(stranger.rewrite(SQL), [SETTINGS, *DESCRIBE, KEYS]) == NARROWED
    assert stage.shared.evolving.evolves("", 0.0) is False
    assert sent(stage.stranger().rewrite(SQL), [EVOLVING, *DESCRIBE, KEYS]) == NARROWED
    assert stage.shared.evolving.evolves("", 0.0) is not False


def test_a_session_that_another_process_uses_meanwhile_tells_nothing(stage: Stage) -> None:
    stage.shared.evolving = EvolvingBackends(lambda: stage.now)
    keys = replace(ASK_FIRST, is_session_here=lambda: False)
    assert sent(stage.stranger().rewrite(SQL, keys), [SETTINGS, DESCRIBE[0]]) == SQL
    assert stage.shared.evolving.evolves("", 0.0) is not False
