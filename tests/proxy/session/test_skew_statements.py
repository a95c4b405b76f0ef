"""Statements in Hive's words about skewed values, as a session decides about them."""

from collections.abc import Mapping, Sequence

import pytest
from support.text_session import TextSession

from proxy.config.config import Config
from proxy.config.rewriting import RewriteSection
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.session_port import SessionOpening
from proxy.session.shared_state import SharedState
from rewriter import TableName

CREATE = "CREATE TABLE f (x INT) USING parquet SKEWED BY (x) ON (30) STORED AS DIRECTORIES"
ALTER = "ALTER TABLE f SKEWED BY (x) ON (30)"


def opened(config: Config | None = None, own: Mapping[str, str] | None = None) -> TextSession:
    shared = SharedState.of(config or Config(), lambda: 0.0)
    settings = {f"starpruner.{name}": value for name, value in (own or {}).items()}
    return TextSession(shared, SessionOpening(settings))


def ruled(session: TextSession, sql: str) -> Dispatch:
    """The dispatch of a statement for which nothing is asked, once it has run."""
    with pytest.raises(StopIteration) as end:
        next(session.rewrite(sql))
    dispatch = end.value.value
    assert isinstance(dispatch, Dispatch)
    return dispatch


def test_the_text_with_properties_is_dispatched_and_never_run_a_second_time() -> None:
    dispatch = ruled(opened(), CREATE)
    assert dispatch.text.startswith("CREATE TABLE f (x INT) USING parquet TBLPROPERTIES ('starpruner.skewed.by'")
    assert not dispatch.may_fall_back
    dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 0.1))
    assert ruled(opened(), ALTER).text.startswith("ALTER TABLE f SET TBLPROPERTIES ('starpruner.skewed.by'")


@pytest.mark.parametrize("sql", [CREATE, ALTER, "ALTER TABLE f NOT SKEWED"])
def test_it_counts_as_a_write_to_its_table_alone(sql: str) -> None:
    shared = SharedState.of(Config(), lambda: 0.0)
    names = [TableName(("f",)), TableName(("other",))]
    fence = shared.writes.open()
    dispatch = ruled(TextSession(shared), sql)
    assert fence.written(names) == {TableName(("f",))}
    dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 0.1))
    assert fence.changed_columns(names) == set()


def test_a_refused_statement_is_no_write() -> None:
    shared = SharedState.of(Config(), lambda: 0.0)
    fence = shared.writes.open()
    ruled(TextSession(shared), "ALTER TABLE f SET SKEWED LOCATION (30 = '/x')")
    assert fence.written([TableName(("f",))]) == set()


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


@pytest.mark.parametrize("own", [{"skewed_by": "false"}, {"enabled": "false"}, {"mode": "shadow"}])
def test_a_session_switches_it_off_for_itself(own: dict[str, str]) -> None:
    assert ruled(opened(own=own), CREATE).text == CREATE


def test_a_session_switches_it_off_and_on_by_a_statement() -> None:
    session = opened()
    ruled(session, "SET starpruner.skewed_by=false")
    assert ruled(session, CREATE).text == CREATE
    ruled(session, "SET starpruner.skewed_by=true")
    assert ruled(session, CREATE).text != CREATE


def test_a_statement_that_is_only_forwarded_goes_on_as_it_is() -> None:
    assert opened().forward_unchanged(CREATE).text == CREATE


UNTOUCHED: Sequence[str] = [
    "CREATE TABLE t (skewed INT) USING parquet",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (1e5)",
    "ALTER TABLE directories SET TBLPROPERTIES ('skewed' = 'by')",
]


@pytest.mark.parametrize("sql", UNTOUCHED)
def test_other_statements_go_on_byte_for_byte(sql: str) -> None:
    assert ruled(opened(), sql).text == sql
