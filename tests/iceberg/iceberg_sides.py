"""A session on the server with Iceberg and one through the proxy, which are asked the same."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Self

from iceberg_scans import IcebergScan, scans_of
from pipeline_server import PipelineServer
from pyhive import hive
from support.executed_texts import texts_after

from demo.hive import Endpoint, Row, connect, run, same_answer

# What only a narrowed scan has in its text.
_NARROWED = "(SELECT * FROM "


@dataclass(frozen=True)
class Compared:
    """One statement on both sides: its rows, and what one table was scanned for."""

    rows: list[Row]
    direct: IcebergScan
    proxied: IcebergScan
    # What the server was sent by the proxy for it, the proxy's own questions included.
    sent: tuple[str, ...]

    @property
    def is_narrowed(self) -> bool:
        """Whether a scan of the statement was."""
        return any(_NARROWED in text for text in self.sent)


@dataclass(frozen=True)
class Sides:
    """Both sessions, in one namespace."""

    server: PipelineServer
    direct: hive.Connection
    proxied: hive.Connection

    @classmethod
    @contextmanager
    def opened(cls, server: PipelineServer, proxy: Endpoint, namespace: str) -> Iterator[Self]:
        """Sessions that the context closes."""
        with closing(connect(server.endpoint)) as direct, closing(connect(proxy)) as proxied:
            sides = cls(server, direct, proxied)
            sides.both(f"USE {namespace}")
            yield sides

    def both(self, statement: str) -> None:
        """A setting, or what else is of the session."""
        run(self.direct, statement)
        run(self.proxied, statement)

    @contextmanager
    def planned_once(self) -> Iterator[None]:
        """No plan changes as it runs. Else Spark 3.5 shows no scan of a join that it found to be empty."""
        self.both("SET spark.sql.adaptive.enabled=false")
        yield
        self.both("RESET spark.sql.adaptive.enabled")

    def compared(self, sql: str, table: str) -> Compared:
        """The scans of the table, where the answers are equal; an assertion fails where they are not."""
        ui = self.server.ui
        first = ui.last_execution()
        direct_rows = run(self.direct, sql)
        direct = scans_of(ui, table, after=first)
        second = ui.last_execution()
        proxied_rows = run(self.proxied, sql)
        proxied = scans_of(ui, table, after=second)
        sent = tuple(texts_after(ui, second))
        assert same_answer(direct_rows, proxied_rows), (sql, sent, direct_rows, proxied_rows)
        return Compared(direct_rows, direct, proxied, sent)


def make_namespace(server: PipelineServer, namespace: str, statements: str) -> None:
    """Make a namespace with its tables, by statements between semicolons."""
    with closing(connect(server.endpoint)) as session:
        for statement in (
            f"CREATE DATABASE IF NOT EXISTS {namespace}",
            f"USE {namespace}",
            *statements.split(";"),
        ):
            run(session, statement)


def drop_namespace(server: PipelineServer, namespace: str) -> None:
    """Drop it with all that is in it: an Iceberg catalog of directories knows no CASCADE."""
    with closing(connect(server.endpoint)) as session:
        for _, table, _ in run(session, f"SHOW TABLES IN {namespace}"):
            run(session, f"DROP TABLE IF EXISTS {namespace}.{table}")
        run(session, f"DROP DATABASE {namespace}")
