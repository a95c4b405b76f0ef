"""Many keys on tables of many partitions, in front of a metastore in Derby and one in PostgreSQL.

A thousand partitions in Derby every time; ten thousand, in both, with STARPRUNER_DEEP=1.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from partitioned_tables import FactTable, KeyShape, fact_tables, make_tables
from postgresql import PostgresqlMissingError, postgresql
from pyhive import hive

from demo.hive import connect, run, same_answer
from demo.java import Java
from demo.metrics import SparkUi
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ServerSettings, ThriftServer, thrift_server

DEEP = bool(os.environ.get("STARPRUNER_DEEP"))
DATABASE = "metastores"

METASTORES = ("derby", "postgresql") if DEEP else ("derby",)
PARTITIONS = 10_000 if DEEP else 1_000
FACTS = fact_tables(PARTITIONS)
# The middle one is past what Derby takes in one filter, the last past what the proxy asks for as keys.
KEY_COUNTS = (20, 500, 5_000) if DEEP else (20, 200)
SHAPES = tuple(KeyShape(size, clustered) for size in KEY_COUNTS for clustered in (False, True))


@dataclass(frozen=True)
class Metastore:
    """A server on one kind of metastore, the proxy in front of it, and a session on each."""

    spark_ui: SparkUi
    direct: hive.Connection
    proxied: hive.Connection

    def partitions_listed(self, fact: FactTable, sql: str) -> tuple[list[tuple[object, ...]], int]:
        """The answer through the proxy with nothing cached, and how many of the fact's partitions Spark listed."""
        run(self.proxied, f"REFRESH TABLE {fact.name}")
        before = self.spark_ui.last_execution()
        rows = run(self.proxied, sql)
        return rows, self.spark_ui.scans_of(fact.name, after=before).files_listed


@pytest.fixture(scope="session", params=METASTORES)
def server(request: pytest.FixtureRequest, java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThriftServer]:
    if request.param == "derby":
        yield request.getfixturevalue("spark")
        return
    downloads = request.config.cache.mkdir("debian-packages")
    try:
        with postgresql(downloads) as database:
            settings = ServerSettings(tmp_path_factory.mktemp("postgresql"), cores=2, conf=database.spark_conf)
            with thrift_server(settings, java, progress=lambda _: None) as server:
                _make_the_metastores_own_tables(server)
                yield server
    except PostgresqlMissingError as error:
        pytest.skip(str(error))
