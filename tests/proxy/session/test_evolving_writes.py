"""Writes that may add columns to their tables by a setting: statements are planned by new descriptions then."""

import pytest
from support.played_sessions import DESCRIBE, KEYS, NARROWED, SETTINGS, SQL, played, rows, sent
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.rewriting import RewriteSection
from proxy.operations.session_port import SessionOpening
from proxy.session.consistency.evolving_backends import EvolvingBackends

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
WRITE = "INSERT INTO d VALUES ('b', 1, 'new')"


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


def test_a_server_of_which_nothing_is_known_may_have_the_setting(stage: Stage) -> None:
    stage.shared.evolving = EvolvingBackends(lambda: stage.now)
    writer = stage.session("bob")
    running = played(writer.rewrite(WRITE), [])
    assert sent(stage.session().rewrite(SQL), []) == SQL
    running.on_outcome(FINISHED)
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    written(writer)
    assert sent(stage.session().rewrite(SQL), [KEYS]) == NARROWED, "by now it was asked"


def test_a_server_may_have_the_setting(stage: Stage) -> None:
    reader, writer = stage.session(), stage.session("bob")
    settings = (SETTINGS[0], rows((AUTO_MERGE, "true")))
    assert sent(reader.rewrite(SQL), [settings, *DESCRIBE, KEYS]) == NARROWED
    written(writer)
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


def test_a_setting_of_one_session_says_nothing_of_the_writes_of_others(stage: Stage) -> None:
    reader, writer, other = stage.session(), stage.session("bob"), stage.session("eve")
    played(other.rewrite(f"SET {AUTO_MERGE}=true"), []).on_outcome(FINISHED)
    assert sent(other.rewrite(SQL), [(SETTINGS[0], rows((AUTO_MERGE, "true"))), *DESCRIBE, KEYS]) == NARROWED
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    written(writer)
    assert sent(reader.rewrite(SQL), [KEYS]) == NARROWED


def test_what_one_backend_says_of_its_settings_says_nothing_of_others(stage: Stage) -> None:
    reader = stage.session()
    assert sent(reader.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    written(TextSession(stage.shared, SessionOpening(owner="bob", login="bob", user="bob", backend="other:10000")))
    assert sent(reader.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


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


def test_an_earlier_answer_and_that_of_a_clients_session_do_not_say_that_no_write_evolves() -> None:
    now = [0.0]
    evolving = EvolvingBackends(lambda: now[0])
    assert evolving.may_evolve("one")
    evolving.told("one", evolves=True, until=20.0)
    evolving.told("one", evolves=False, until=10.0)
    assert evolving.may_evolve("one")
    evolving.told("one", evolves=False, until=30.0)
    assert not evolving.may_evolve("one")
    now[0] = 30.0
    assert evolving.may_evolve("one"), "nothing was told for a while"


def test_what_a_clients_own_session_says_of_settings_lets_no_other_write_count_as_plain(stage: Stage) -> None:
    stage.shared.evolving = EvolvingBackends(lambda: stage.now)
    settings = (SETTINGS[0], rows((AUTO_MERGE, "true")))
    assert sent(stage.session().rewrite(SQL), [settings, *DESCRIBE, KEYS]) == NARROWED
    assert sent(stage.stranger().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    written(stage.session("bob"))
    assert sent(stage.session().rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED
