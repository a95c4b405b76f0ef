"""MERGE into Delta tables through the proxy: narrowed, and run as it is where a key was not asked for."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from pyhive import hive
from support.executed_texts import texts_after
from support.narrowed_merges import MERGES, SOURCES, TARGETS, in_table, made, rows_of, session_in
from TCLIService.ttypes import TOperationState

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess

DATABASE = "merged_through"
USING = "USING delta PARTITIONED BY (ds)"
MERGE = MERGES["update and insert"]
CHECKED = "WHEN NOT MATCHED AND (CASE"
RUNNING = {TOperationState.INITIALIZED_STATE, TOperationState.PENDING_STATE, TOperationState.RUNNING_STATE}


@pytest.fixture(scope="module")
def direct(delta_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(delta_server.endpoint)) as found:
        yield session_in(DATABASE, found)


@pytest.fixture
def proxied(delta_proxy: ProxyProcess, direct: hive.Connection) -> Iterator[hive.Connection]:
    for table in ("of_direct", "of_proxied"):
        made(direct, table, USING, TARGETS["a hundred rows"])
    made(direct, "src", USING, f"SELECT * FROM VALUES {SOURCES['one day']} AS rows(id, v, ds)")
    with closing(connect(delta_proxy.endpoint, database=DATABASE)) as found:
        run(found, "SET starpruner.merge_tables=other, *")
        # Also a statement that runs for no longer than it takes to ask for its keys.
        run(found, "SET starpruner.cost_gate=false")
        yield found


def checked(server: PipelineServer, before: int) -> set[bool]:
    """Spark ran these MERGEs of the proxy since: True stands for narrowed ones, False for others."""
    texts = texts_after(server.ui, before)
    return {CHECKED in text for text in texts if text.startswith("MERGE INTO of_proxied ")}


def test_a_merge_is_narrowed(
    direct: hive.Connection, proxied: hive.Connection, delta_server: PipelineServer
) -> None:
    run(direct, in_table(MERGE, "of_direct"))
    before = delta_server.ui.last_execution()
    run(proxied, in_table(MERGE, "of_proxied"))
    assert rows_of(direct, "of_proxied") == rows_of(direct, "of_direct")
    assert checked(delta_server, before) == {True}


@pytest.mark.parametrize(
    ("merge", "run_async"),
    [(MERGES["a condition on both"], False), (MERGES["a query"], True)],
    ids=["within its call", "in the background"],
)
def test_a_merge_with_a_key_that_was_not_asked_for_is_run_as_it_is(
    direct: hive.Connection, proxied: hive.Connection, delta_server: PipelineServer, merge: str, *, run_async: bool
) -> None:
    # Keys may be as old as that: so the second MERGE is narrowed by those of the first one.
    run(proxied, "SET starpruner.key_staleness_s=600")
    found = []
    for added in ("(997, 1, 'd7')", "(11, 4711, 'd1'), (996, 1, 'd96')", "(21, 4712, 'd2')"):
        # Past the proxy.
        run(direct, f"INSERT INTO src VALUES {added}")
        run(direct, in_table(merge, "of_direct"))
        before = delta_server.ui.last_execution()
        with closing(proxied.cursor()) as cursor:
            cursor.execute(in_table(merge, "of_proxied"), async_=run_async)
            while run_async and cursor.poll().operationState in RUNNING:
                time.sleep(0.05)
        assert rows_of(direct, "of_proxied") == rows_of(direct, "of_direct"), added
        found.append(checked(delta_server, before))
    # The first one with its own keys; the second one in vain, and then as it is; the last one is left alone.
    assert found == [{True}, {True, False}, {False}]
