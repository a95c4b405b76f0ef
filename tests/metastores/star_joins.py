"""Star joins over facts of very many partitions, on a server and through a proxy in front of it."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from partitioned_tables import FactTable, KeyShape, make_tables
from pyhive import hive
from support.proxies import patient

from demo.hive import Row, connect, run
from demo.metrics import ScanMetrics, SparkUi
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

DATABASE = "metastores"


@dataclass(frozen=True)
class Sessions:
    """A session on a server and one through a proxy in front of it."""

    direct: hive.Connection
    proxied: hive.Connection
    proxy: ProxyProcess
    spark_ui: SparkUi

    def scanned(self, session: hive.Connection, fact: FactTable, sql: str) -> tuple[Sequence[Row], ScanMetrics]:
        """The answer with nothing cached, and what Spark listed and read of the fact."""
        run(session, f"REFRESH TABLE {fact.name}")
        before = self.spark_ui.last_execution()
        rows = answer(session, sql)
        return rows, self.spark_ui.scans_of(fact.name, after=before)


@contextmanager
def sessions_on(
    server: ThriftServer, facts: Sequence[FactTable], shapes: Sequence[KeyShape], directory: Path
) -> Iterator[Sessions]:
    """Makes the tables, and opens the sessions."""
    with closing(connect(server.endpoint)) as connection:
        run(connection, f"CREATE DATABASE {DATABASE}")
        run(connection, f"USE {DATABASE}")
        make_tables(connection, facts, shapes, directory / "facts")
    with (
        proxy_process(server.endpoint, directory / "proxy", options=patient()) as proxy,
        closing(connect(server.endpoint, database=DATABASE)) as direct,
        closing(connect(proxy.endpoint, database=DATABASE)) as proxied,
    ):
        yield Sessions(direct, proxied, proxy, SparkUi(server.ui_url))


def answer(session: hive.Connection, sql: str) -> Sequence[Row]:
    """The rows; an error fails with what the server says, without its stack."""
    try:
        return run(session, sql)
    except hive.Error as error:
        pytest.fail(f"{sql}\n{error.args[0].status.errorMessage}", pytrace=False)


def star_join(fact: FactTable, shape: KeyShape) -> str:
    columns = ", ".join(f"f.{name}" for name in fact.names)
    equal = " AND ".join(f"f.{name} = k.{name}" for name in fact.names)
    return f"SELECT {columns} FROM {fact.name} f JOIN {fact.name}_keys k ON {equal} WHERE k.shape = '{shape}'"
