"""What a client sets for its own session."""

import time

import pytest
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.config import Config
from proxy.config.rewriting import RewriteSection
from proxy.operations.dispatch import Dispatch
from proxy.operations.session_port import SessionOpening
from proxy.session.session_settings import SessionSettings, setting_statement, settings_of_opening

# Far above the microseconds that a look at a statement takes.
PATIENCE_S = 5.0

SQL = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1"


def ruled(session: TextSession, sql: str) -> Dispatch:
    """The ruling on a statement for which nothing has to be asked, once it has run."""
    with pytest.raises(StopIteration) as end:
        session.rewrite(sql).send(None)
    dispatch: Dispatch = end.value.value
    dispatch.on_outcome(FINISHED)
    return dispatch


def asks(session: TextSession, sql: str) -> bool:
    """Whether a statement makes the session ask for anything."""
    try:
        session.rewrite(sql).send(None)
    except StopIteration:
        return False
    return True


def opened(configuration: dict[str, str] | None = None) -> TextSession:
    return TextSession(Stage().shared, SessionOpening(configuration or {}))


@pytest.mark.parametrize(
    "sql",
    [
        "SET starpruner.enabled=false",
        "set starpruner.enabled = FALSE;",
        " -- off\nSET `starpruner.enabled`='false'",
        "SET starpruner.enabled=\nfalse\n",
        "/* of a tool */ -- and more\rSET starpruner.enabled=false",
        # With names and values in backticks, Spark takes comments anywhere.
        "SET /* a */ `starpruner.enabled` = `false` -- off",
        "SET -- a\n`starpruner.enabled`=`false`; /* off */ ;",
    ],
)
def test_a_session_that_switches_itself_off_asks_nothing_until_it_switches_itself_on(sql: str) -> None:
    session = opened()
    assert asks(session, SQL)
    assert ruled(session, sql).text == sql
    assert not asks(session, SQL)
    assert ruled(session, "SET starpruner.enabled=true").text == "SET starpruner.enabled=true"
    assert asks(session, SQL)


@pytest.mark.parametrize(
    "sql",
    [
        *(f"SET starpruner.enabled{' ' * 50_000}x", f"SET starpruner.enabled ={' ' * 50_000}x{' ' * 50_000}y"),
        *(f"SET starpruner.enabled ={' ;' * 50_000}x", f"RESET{' ' * 50_000}x", f"SET{' ' * 50_000}x"),
        *(f"SET{'/**/ ' * 10_000}x", f"SET starpruner.enabled=`{'`/**/' * 10_000}x"),
        *(f"{'--' + chr(10) + '  ' * 50_000}x", f"{'/**/' * 500}x"),
    ],
)
def test_a_long_statement_that_is_almost_about_a_setting_is_read_in_one_go(sql: str) -> None:
    started = time.process_time()
    found = setting_statement(sql, {"enabled": "false"})
    assert time.process_time() - started < PATIENCE_S
    assert found is None or found.error


@pytest.mark.parametrize(
    "sql", ["RESET", "/* a */ reset;", "RESET starpruner.enabled", "RESET `starpruner.enabled`;"]
)
def test_reset_brings_back_what_is_configured(sql: str) -> None:
    session = opened({"set:hiveconf:starpruner.enabled": "false"})
    assert not asks(session, SQL)
    assert ruled(session, sql).text == sql
    assert asks(session, SQL)


def test_a_setting_that_is_asked_for_is_answered_with_what_holds() -> None:
    session = opened({"starpruner.consistency": "strict"})
    assert ruled(session, "SET starpruner.consistency").text == (
        "SELECT 'starpruner.consistency' AS key, 'strict' AS value"
    )
    assert ruled(session, "SET starpruner.enabled;").text == (
        "SELECT 'starpruner.enabled' AS key, 'true' AS value"
    )


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SET starpruner.enabled=perhaps", "starpruner.enabled cannot be"),
        ("SET starpruner.mode=shadows", "Invalid enum value"),
        ("SET starpruner.key_staleness_s=-1", ">= 0"),
        (f"SET starpruner.label={'a' * 101}", "length <= 100"),
        (
            "SET starpruner.enable=false",
            "starpruner.enable is no setting of a session; these are: starpruner.enabled",
        ),
        ("SET starpruner.enable", "is no setting"),
    ],
)
def test_what_is_not_understood_is_an_error_that_says_why_and_changes_nothing(sql: str, said: str) -> None:
    session = opened({"starpruner.enabled": "false"})
    text = ruled(session, sql).text
    assert text.startswith("SELECT raise_error(")
    shown = bytes.fromhex(text.partition("X'")[2].partition("'")[0]).decode() if "X'" in text else text
    assert said in shown
    assert not asks(session, SQL)


@pytest.mark.parametrize(
    "sql",
    [
        *("SET spark.sql.ansi.enabled=true", "SET", "SELECT 'SET starpruner.enabled=false'"),
        *("SET starprunerx.enabled=false", "RESET spark.sql.ansi.enabled"),
    ],
)
def test_what_is_about_something_else_is_not_looked_at(sql: str) -> None:
    assert setting_statement(sql, {}) is None


def test_what_is_wrong_in_the_url_is_said_in_one_line_and_the_rest_counts() -> None:
    wrong = {"starpruner.x\n2026-01-01 ERROR proxy: not so\x1b[2J": "\n", "set:hiveconf:starpruner.mode": "\n"}
    own, errors = settings_of_opening({"set:hiveconf:starpruner.enabled": "false", **wrong})
    assert own == {"enabled": "false"}
    assert len(errors) == 2
    assert all(error.isprintable() for error in errors)
    assert "starpruner.mode" in errors[1]


def test_a_configuration_that_is_read_anew_counts_for_sessions_that_are_open_and_a_setting_for_its_own() -> None:
    stage = Stage()
    one, other = stage.stranger(), stage.stranger()
    _ = ruled(one, "SET starpruner.enabled=false")
    assert asks(other, SQL)
    assert stage.shared.reload(Config(rewrite=RewriteSection(enabled=False))) == ()
    assert not asks(other, SQL)


def test_every_knob_but_the_label_is_a_key_of_the_configuration() -> None:
    assert SessionSettings.configured(Config(), {}) == SessionSettings(
        enabled=True,
        mode="rewrite",
        consistency="window",
        cost_gate=True,
        key_staleness_s=0.0,
        keys_remembered_s=3600.0,
        skewed_by=True,
        merge_tables=(),
    )
