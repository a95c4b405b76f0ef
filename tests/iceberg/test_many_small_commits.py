"""Another session commits one small snapshot after the other while statements are rewritten and run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from pipeline_server import PipelineServer
from support.executed_texts import has_keys, texts_after
from support.profile import DEEP

from demo.hive import connect, run, same_answer
from demo.proxy_process import ProxyProcess

DATABASE = "ice.many_commits"
COMMITS = 120 if DEEP else 12
CLIENTS = 2
# Each commit to the fact has a key of its own and two rows, whose values add up to nothing.
TABLES = (
    f"CREATE DATABASE {DATABASE}",
    f"CREATE TABLE {DATABASE}.f (x INT, v INT) USING iceberg PARTITIONED BY (bucket(4, x))",
    f"CREATE TABLE {DATABASE}.d (x INT, g INT) USING iceberg",
    f"INSERT INTO {DATABASE}.f SELECT id, IF(id % 2 = 0, 1, -1) FROM range(1000, 2000)",
    f"INSERT INTO {DATABASE}.d VALUES (-1, 2)",
)
ASKED = "SELECT count(*), sum(f.v), count(DISTINCT f.x) FROM f JOIN d ON f.x = d.x WHERE d.g = 1"


@dataclass
class Writer:
    """Commits to the fact, then to the small side, so that a key of the small side has its rows at any moment."""

    server: PipelineServer
    # Keys that are in both tables.
    committed: int = 0
    is_done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        try:
            with closing(connect(self.server.endpoint, user="writer")) as session:
                for key in range(COMMITS):
                    run(session, f"INSERT INTO {DATABASE}.f VALUES ({key}, {key + 1}), ({key}, -{key + 1})")
                    run(session, f"INSERT INTO {DATABASE}.d VALUES ({key}, 1)")
                    self.committed = key + 1
        finally:
            self.is_done.set()


@pytest.fixture
def tables(iceberg_server: PipelineServer) -> Iterator[None]:
    with closing(connect(iceberg_server.endpoint)) as connection:
        for statement in TABLES:
            run(connection, statement)
        yield
        for name in ("f", "d"):
            run(connection, f"DROP TABLE {DATABASE}.{name} PURGE")
        run(connection, f"DROP DATABASE {DATABASE}")


def wrong_answers(writer: Writer, proxy: ProxyProcess, number: int) -> list[str]:
    """What is wrong with answers while the writer commits: rows of keys from before must be in each."""
    wrong = []
    with closing(connect(proxy.endpoint, user=f"reader_{number}")) as session:
        # Else Iceberg shows a session what others commit half a minute late, also where no proxy is.
        run(session, "SET `spark.sql.catalog.ice.cache-enabled`=false")
        run(session, f"USE {DATABASE}")
        while not writer.is_done.is_set():
            before = writer.committed
            ((rows, total, keys),) = run(session, ASKED)
            # A commit may be between the two reads: of its key both rows are in the answer, or none.
            if rows < 2 * before or rows != 2 * keys or keys > COMMITS or (total or 0) != 0:
                wrong.append(f"after {before} commits: {rows} rows of {keys} keys, in all {total}")
    return wrong


@pytest.mark.usefixtures("tables")
def test_each_answer_has_all_rows_that_were_committed_before_it(
    iceberg_server: PipelineServer, iceberg_proxy: ProxyProcess
) -> None:
    first = iceberg_server.ui.last_execution()
    writer, found = Writer(iceberg_server), list[list[str]]()
    threads = [threading.Thread(target=writer.run)]
    threads += [
        threading.Thread(target=lambda number=number: found.append(wrong_answers(writer, iceberg_proxy, number)))
        for number in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.committed == COMMITS
    assert found == [[]] * CLIENTS
    assert any(map(has_keys, texts_after(iceberg_server.ui, first)))
    with (
        closing(connect(iceberg_server.endpoint)) as direct,
        closing(connect(iceberg_proxy.endpoint)) as proxied,
    ):
        for session in (direct, proxied):
            run(session, "SET `spark.sql.catalog.ice.cache-enabled`=false")
            run(session, f"USE {DATABASE}")
        assert same_answer(run(direct, ASKED), run(proxied, ASKED))
        assert run(proxied, ASKED) == [(2 * COMMITS, 0, COMMITS)]
