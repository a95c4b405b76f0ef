"""Files whose partition is another one since they were indexed: the catalog says so, and their names do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pipeline_server import FILE_INDEX, PipelineServer
from pyhive import hive

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess

TABLES = """
CREATE DATABASE moved;
CREATE TABLE moved.renamed (x INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{place}/renamed';
INSERT INTO moved.renamed VALUES (5, 1), (6, 2);
CREATE TABLE moved.swapped (x INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{place}/swapped';
INSERT INTO moved.swapped VALUES (5, 1), (6, 2);
CREATE TABLE moved.wanted (p INT, x INT, g INT) USING parquet;
INSERT INTO moved.wanted VALUES (3, 5, 1), (4, 6, 1), (1, 6, 2), (2, 5, 2)"""

# Of an external table only the catalog learns of a new name, so the files stay where they are.
RENAMED = "ALTER TABLE moved.renamed PARTITION (p = 1) RENAME TO PARTITION (p = 3)"
SWAPPED = """
ALTER TABLE moved.swapped PARTITION (p = 1) SET LOCATION '{place}/swapped/p=2';
ALTER TABLE moved.swapped PARTITION (p = 2) SET LOCATION '{place}/swapped/p=1'"""
JOINED = "SELECT f.x, f.p FROM moved.{} f JOIN moved.wanted d ON f.p = d.p AND f.x = d.x WHERE d.g = {}"


@pytest.fixture(scope="module")
def place(pipeline_spark: PipelineServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the files of indexed external tables are."""
    place = tmp_path_factory.mktemp("moved")
    with closing(connect(pipeline_spark.endpoint)) as connection:
        for statement in TABLES.format(place=place).split(";"):
            run(connection, statement)
        _ = pipeline_spark.pipeline(
            "index", "--table", "moved.renamed", "--table", "moved.swapped", "--index", FILE_INDEX
        )
        yield place
        run(connection, "DROP DATABASE moved CASCADE")


@pytest.fixture
def proxied(indexed_proxy: ProxyProcess) -> Iterator[hive.Connection]:
    with closing(connect(indexed_proxy.endpoint, user="moved")) as connection:
        yield connection


def files(session: hive.Connection, where: str) -> str:
    """The files of some rows."""
    return " ".join(
        str(path) for (path,) in run(session, f"SELECT DISTINCT _metadata.file_path FROM moved.{where}")
    )


def test_a_partition_that_was_renamed_is_read_by_its_new_name(proxied: hive.Connection, place: Path) -> None:
    assert place.is_dir()
    statements = [JOINED.format("renamed", 1), "SELECT x, p FROM moved.renamed WHERE p = 3 AND x = 5"]
    assert [run(proxied, sql) for sql in statements] == [[], []]
    run(proxied, RENAMED)
    assert "/p=1/" in files(proxied, "renamed WHERE p = 3")
    assert [run(proxied, sql) for sql in statements] == [[(5, 3)], [(5, 3)]]


def test_partitions_that_changed_places_are_read_with_their_new_values(
    proxied: hive.Connection, place: Path
) -> None:
    filtered = "SELECT x, p FROM moved.swapped WHERE (p = 1 AND x = 6) OR (p = 2 AND x = 5)"
    statements = [JOINED.format("swapped", 2), filtered]
    assert [run(proxied, sql) for sql in statements] == [[], []]
    for statement in SWAPPED.format(place=place).split(";"):
        run(proxied, statement)
    assert "/p=1/" in files(proxied, "swapped WHERE p = 2")
    assert [sorted(run(proxied, sql)) for sql in statements] == [[(5, 2), (6, 1)]] * 2
