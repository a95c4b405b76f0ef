"""Files that the file index knows to miss are skipped on a real server, and any other file is read."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from urllib.parse import unquote, urlparse
from urllib.request import urlopen
from uuid import uuid4

import pytest
from pyhive import hive
from support.explain_requests import explanation_of
from support.proxies import patient
from support.server_statements import StatementPage

from demo.hive import connect, run, same_answer
from demo.metrics import SparkUi
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

# Four files with a hundred values each, and three keys that lie in two of them.
TABLES = """
DROP DATABASE IF EXISTS indexed CASCADE;
CREATE DATABASE indexed;
CREATE TABLE indexed.clustered USING parquet AS
  SELECT int(id) AS x, concat('v', id) AS v FROM range(0, 400, 1, 4);
CREATE TABLE indexed.wanted USING parquet AS SELECT * FROM VALUES (7, 1), (9, 1), (242, 1), (342, 2) AS t(x, g);
CREATE TABLE indexed.file_index (path STRING, size_bytes BIGINT, modified_ms BIGINT, rows BIGINT,
  columns MAP<STRING, STRUCT<type: STRING, low: STRING, high: STRING, nulls: BIGINT>>,
  lacks ARRAY<STRUCT<columns: ARRAY<STRING>, tuples: ARRAY<ARRAY<STRING>>>>,
  indexed_at TIMESTAMP, table_name STRING) USING parquet PARTITIONED BY (table_name);
INSERT INTO indexed.file_index PARTITION (table_name = 'spark_catalog.indexed.clustered')
  SELECT path, size_bytes, modified_ms, count(*),
    map('x', struct('int' AS type, string(min(x)) AS low, string(max(x)) AS high, count(*) - count(x) AS nulls)),
    NULL, current_timestamp()
  FROM (SELECT x, _metadata.file_path AS path, _metadata.file_size AS size_bytes,
    unix_millis(_metadata.file_modification_time) AS modified_ms FROM indexed.clustered)
  GROUP BY path, size_bytes, modified_ms
"""
FILES = 4
INDEX_QUERY = "`indexed`.`file_index`"
POINT = "SELECT v FROM indexed.clustered WHERE x = 142"


@pytest.fixture(scope="module")
def indexing(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """A proxy that is told of the index."""
    # What a user was told stays as it is for as long as a test takes.
    ttl = ("catalog.facts_ttl_s=3600", "files.tables_ttl_s=3600")
    options = patient("files.index=indexed.file_index", *ttl, files=True)
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("indexing"), options=options) as process:
        yield process


@pytest.fixture(scope="module")
def tables(spark: ThriftServer) -> None:
    """The tables, and what the index says of them."""
    _create(spark)
    # Once answered, its UI is quick: `files_read` does not wait as long.
    assert StatementPage(spark.ui_url).becomes_idle()


@pytest.fixture
def changing(tables: None, spark: ThriftServer) -> Iterator[None]:
    """The same for a test after which they are not as they were."""
    yield tables
    _create(spark)


def _create(spark: ThriftServer) -> None:
    with closing(connect(spark.endpoint)) as connection:
        for statement in TABLES.split(";"):
            run(connection, statement)


OpenSession = Callable[[], AbstractContextManager[hive.Connection]]


@pytest.fixture
def open_session(tables: None, indexing: ProxyProcess, request: pytest.FixtureRequest) -> OpenSession:
    """Sessions of a user of its own, to whom the proxy has nothing to tell of other tests' tables.

    Each sees the files that a table has as it first reads it: Spark keeps their list by session.
    """
    _ = tables
    return lambda: closing(connect(indexing.endpoint, user=request.node.name))


@pytest.fixture
def hinted(open_session: OpenSession) -> Iterator[hive.Connection]:
    """The first one of them."""
    with open_session() as connection:
        yield connection


@pytest.fixture
def files_read(spark_ui: SparkUi) -> Callable[[hive.Connection, str], int]:
    def read(connection: hive.Connection, sql: str) -> int:
        before = spark_ui.last_execution()
        run(connection, sql)
        return spark_ui.scans_of("clustered", after=before).files_read

    return read


FilesRead = Callable[[hive.Connection, str], int]


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        (POINT, 1),
        ("SELECT v FROM indexed.clustered WHERE x IN (5, 6, 305)", 2),
        ("SELECT count(*) FROM indexed.clustered WHERE x BETWEEN 90 AND 110 AND v <> 'v95'", 2),
        ("SELECT c.v FROM indexed.clustered c JOIN indexed.wanted w ON c.x = w.x WHERE w.g = 1", 2),
        ("SELECT /*+ MERGE(w) */ c.v FROM indexed.clustered c JOIN indexed.wanted w USING (x) WHERE w.g = 2", 1),
        ("SELECT v FROM indexed.clustered WHERE x < 0", 0),
    ],
)
def test_only_files_that_may_hold_what_is_asked_for_are_read(
    hinted: hive.Connection, direct: hive.Connection, files_read: FilesRead, sql: str, files: int
) -> None:
    assert files_read(direct, sql) == FILES
    assert files_read(hinted, sql) == files
    assert same_answer(run(hinted, sql), run(direct, sql))


@pytest.fixture
def index_queries(spark: ThriftServer, direct: hive.Connection) -> Callable[[], int]:
    """How often the index was asked by now."""
    page = StatementPage(spark.ui_url)

    def count() -> int:
        # The page follows the server's events in their order.
        mark = f"SELECT '{uuid4()}'"
        run(direct, mark)
        assert page.become(mark, ["CLOSED"])
        return len(page.states(INDEX_QUERY))

    return count


IndexQueries = Callable[[], int]


def test_the_index_is_read_once_for_all_statements_and_sessions_of_a_user(
    hinted: hive.Connection, open_session: OpenSession, index_queries: IndexQueries
) -> None:
    before = index_queries()
    _ = run(hinted, POINT)
    asked = index_queries()
    assert asked > before
    assert run(hinted, POINT) == [("v142",)]
    with open_session() as other:
        assert run(other, POINT.replace("142", "43")) == [("v43",)]
    assert index_queries() == asked


@pytest.mark.usefixtures("changing")
def test_a_file_that_came_after_the_index_is_read(
    hinted: hive.Connection, direct: hive.Connection, open_session: OpenSession, files_read: FilesRead
) -> None:
    assert files_read(hinted, POINT) == 1
    run(direct, "INSERT INTO indexed.clustered VALUES (142, 'new')")
    with open_session() as later:
        assert files_read(later, POINT) == 2
        assert sorted(run(later, POINT)) == [("new",), ("v142",)]


@pytest.mark.usefixtures("changing")
def test_a_file_that_was_written_again_under_its_name_is_read(
    hinted: hive.Connection, direct: hive.Connection, open_session: OpenSession, files_read: FilesRead
) -> None:
    assert files_read(hinted, POINT) == 1
    run(direct, "CREATE TABLE indexed.donor USING parquet AS SELECT 142 AS x, 'rewritten' AS v FROM range(1)")
    replaced = _file_of(direct, "indexed.clustered", "x = 5")
    shutil.copy(_file_of(direct, "indexed.donor", "true"), replaced)
    (replaced.parent / f".{replaced.name}.crc").unlink(missing_ok=True)
    with open_session() as later:
        assert files_read(later, POINT) == 2
        assert sorted(run(later, POINT)) == [("rewritten",), ("v142",)]


def _file_of(connection: hive.Connection, table: str, condition: str) -> Path:
    [(path,)] = run(connection, f"SELECT DISTINCT _metadata.file_path FROM {table} WHERE {condition}")
    return Path(unquote(urlparse(path).path))


@pytest.mark.usefixtures("changing")
def test_who_cannot_read_the_index_is_given_every_file_and_not_asked_again(
    hinted: hive.Connection, direct: hive.Connection, files_read: FilesRead, index_queries: IndexQueries
) -> None:
    run(direct, "DROP TABLE indexed.file_index")
    assert run(hinted, POINT) == [("v142",)]
    asked = index_queries()
    assert files_read(hinted, POINT) == FILES
    assert index_queries() == asked


@pytest.mark.usefixtures("changing")
def test_a_statement_whose_hint_does_not_resolve_any_more_is_run_as_it_came(
    hinted: hive.Connection,
    direct: hive.Connection,
    open_session: OpenSession,
    files_read: FilesRead,
    indexing: ProxyProcess,
) -> None:
    assert files_read(hinted, POINT) == 1
    # In Hive's own format there is no _metadata, and the proxy has not heard of the change.
    run(direct, "DROP TABLE indexed.clustered")
    run(direct, "CREATE TABLE indexed.clustered (x INT, v STRING) STORED AS parquet")
    run(direct, "INSERT INTO indexed.clustered VALUES (142, 'in Hive format')")
    with open_session() as later:
        assert run(later, POINT) == [("in Hive format",)]
    with urlopen(f"{indexing.admin_url}/metrics", timeout=60) as reply:
        assert (
            'starpruner_statement_seconds_count{outcome="recovered",sent="rewritten"} 1.0' in reply.read().decode()
        )


def test_explain_counts_the_files_and_does_not_list_them_for_a_person(
    hinted: hive.Connection, indexing: ProxyProcess
) -> None:
    [scan] = explanation_of(indexing.admin_url, sql=POINT)["scans"]
    assert scan["files"] == {"total": FILES, "kept": 1}
    assert 0 < scan["bytes"]["kept"] < scan["bytes"]["total"]
    assert "/clustered/part-" in scan["predicate"]
    lines = [line for (line,) in run(hinted, f"EXPLAIN REWRITE {POINT}")]
    assert any("AS STRING)) NOT IN (.. 3 ..)" in line for line in lines)
    assert any(line.startswith("  files        1 of 4 kept") for line in lines)
    assert "/clustered/part-" not in "\n".join(lines)
