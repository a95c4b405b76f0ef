"""Statements in Hive's words about skewed values, as a session decides about them."""

from collections.abc import Mapping

import pytest
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.config import Config
from proxy.config.rewriting import RewriteSection
from proxy.operations.dispatch import Dispatch
from proxy.operations.session_port import SessionOpening
from proxy.session.shared_state import SharedState
from rewriter import TableName

CREATE = "CREATE TABLE f (x INT) USING parquet SKEWED BY (x) ON (30) STORED AS DIRECTORIES"
ALTER = "ALTER TABLE f SKEWED BY (x) ON (30)"


def opened(config: Config | None = None, own: Mapping[str, str] | None = None) -> TextSession:
    settings = {f"starpruner.{name}": value for name, value in (own or {}).items()}
    return TextSession(SharedState.of(config or Config(), lambda: 0.0), SessionOpening(settings))


def ruled(session: TextSession, sql: str) -> Dispatch:
    """The dispatch of a statement for which nothing is asked, once it has run."""
    with pytest.raises(StopIteration) as end:
        session.rewrite(sql).send(None)
    dispatch: Dispatch = end.value.value
    return dispatch


def test_the_text_with_properties_is_dispatched_and_never_run_a_second_time() -> None:
    dispatch = ruled(opened(), CREATE)
    assert dispatch.text.startswith("CREATE TABLE f (x INT) USING parquet TBLPROPERTIES ('starpruner.skewed.by'")
    assert not dispatch.may_fall_back
    dispatch.on_outcome(FINISHED)
    assert ruled(opened(), ALTER).text.startswith("ALTER TABLE f SET TBLPROPERTIES ('starpruner.skewed.by'")


@pytest.mark.parametrize("sql", [CREATE, ALTER, "ALTER TABLE f NOT SKEWED"])
def test_it_counts_as_a_write_to_its_table_alone_unless_it_is_refused(sql: str) -> None:
    stage = Stage()
    names = [TableName(("f",)), TableName(("other",))]
    fence = stage.shared.writes.open()
    ruled(stage.stranger(), "ALTER TABLE f SET SKEWED LOCATION (30 = '/x')")
    assert fence.written(names) == set()
    dispatch = ruled(stage.stranger(), sql)
    assert fence.written(names) == {TableName(("f",))}
    dispatch.on_outcome(FINISHED)
    assert fence.changed_columns(names) == {TableName(("f",))}


def test_a_refusal_is_an_error_with_its_sentence() -> None:
    dispatch = ruled(opened(), "CREATE TABLE t (x INT) SKEWED BY (y) ON (30)")
    assert dispatch.text.startswith("SELECT raise_error('SKEWED BY (y): the table has no such column; it has x")


@pytest.mark.parametrize(
    "config",
    [
        Config(rewrite=RewriteSection(skewed_by=False)),
        Config(rewrite=RewriteSection(enabled=False)),
        Config(rewrite=RewriteSection(mode="shadow")),
        Config(rewrite=RewriteSection(statement_chars_max=10)),
    ],
    ids=["skewed_by", "enabled", "shadow", "too long"],
)
@pytest.mark.parametrize("sql", [CREATE, ALTER, "ALTER TABLE t SET SKEWED LOCATION (30 = '/x')"])
def test_where_it_is_switched_off_the_text_goes_on_as_it_is(config: Config, sql: str) -> None:
    assert ruled(opened(config), sql).text == sql


@pytest.mark.parametrize(
    ("name", "off", "on"),
    [("skewed_by", "false", "true"), ("enabled", "false", "true"), ("mode", "shadow", "rewrite")],
)
def test_a_session_switches_it_off_for_itself_and_on_again_by_a_statement(name: str, off: str, on: str) -> None:
    session = opened(own={name: off})
    assert ruled(session, CREATE).text == CREATE
    ruled(session, f"SET starpruner.{name}={on}")
    assert ruled(session, CREATE).text != CREATE


def test_a_statement_that_is_only_forwarded_goes_on_as_it_is() -> None:
    assert opened().forward_unchanged(CREATE).text == CREATE


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (skewed INT) USING parquet",
        "CREATE TABLE t (x INT) SKEWED BY (x) ON (1e5)",
        "ALTER TABLE directories SET TBLPROPERTIES ('skewed' = 'by')",
    ],
)
def test_other_statements_go_on_byte_for_byte(sql: str) -> None:
    assert ruled(opened(), sql).text == sql
