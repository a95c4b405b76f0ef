"""What the tests with Iceberg tables run on, and what happens where it cannot be had."""

from contextlib import closing
from pathlib import Path

import pytest
from iceberg_server import iceberg_runtime, runtime_jar, spark_for_formats
from pipeline_server import PipelineServer
from support.maven import ClientMissingError

from demo.hive import connect, run
from demo.java import SPARK_HOME


def test_without_spark_for_formats_it_is_missing_and_says_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SPARK_HOME, raising=False)
    with pytest.raises(ClientMissingError, match="`make iceberg` brings it"):
        spark_for_formats(tmp_path)


def test_without_maven_the_runtime_is_missing_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        iceberg_runtime()
    except ClientMissingError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ClientMissingError, match="there is no mvn on PATH"):
        runtime_jar(tmp_path)


def test_iceberg_tables_of_both_catalogs_stand_beside_plain_ones(iceberg_server: PipelineServer) -> None:
    with closing(connect(iceberg_server.endpoint)) as session:
        for statement in (
            "CREATE DATABASE ice.beside",
            "CREATE DATABASE beside",
            "CREATE TABLE ice.beside.keys USING iceberg AS SELECT 1 AS k, 'of its own catalog' AS n",
            "CREATE TABLE beside.keys USING iceberg AS SELECT 1 AS k, 'of the session' AS n",
            "CREATE TABLE beside.plain USING parquet AS SELECT 1 AS k, 'not of Iceberg' AS n",
        ):
            run(session, statement)
        found = run(
            session,
            "SELECT a.n, b.n, c.n FROM ice.beside.keys a JOIN beside.keys b USING (k) "
            "JOIN beside.plain c USING (k)",
        )
        assert found == [("of its own catalog", "of the session", "not of Iceberg")]
        run(session, "DROP TABLE ice.beside.keys PURGE")
        run(session, "DROP TABLE beside.keys PURGE")
        run(session, "DROP DATABASE ice.beside")
        run(session, "DROP DATABASE beside CASCADE")
