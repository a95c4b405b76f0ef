"""What the tests share: a real Spark Thrift Server and a real proxy in front of it, started on first use."""

import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from delta_server import delta_server as delta_server_in
from iceberg_server import iceberg_server as iceberg_server_in
from pipeline_server import FILE_INDEX, PipelineServer, pipeline_server
from pyhive import hive
from pyspark import SparkContext
from pyspark.sql import SparkSession
from support import cheap_spark, not_tested, unhurried_loop
from support.cheap_spark import QUICK_JAVA
from support.container_engine import Built, NoEngineError, are_required, built_images
from support.costs import CostRecorder
from support.groups import GroupedTest, groups_of, longest_first
from support.heavy import is_heavy
from support.maven import ClientMissingError, is_required
from support.passed import OPTION, Passed
from support.profile import DEEP
from support.proxies import patient

from demo.hive import connect, run
from demo.java import SPARK_HOME, Java, find_java
from demo.metrics import SparkUi
from demo.proxy_process import ProxyProcess, proxy_process
from demo.sample import Sample, load
from demo.thrift_server import ServerOptions, ThriftServer, thrift_server

# How long an example takes says nothing where a machine is shared, and no test is about time.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=30)
hypothesis.settings.register_profile("deep", deadline=None, max_examples=300)
hypothesis.settings.load_profile("deep" if DEEP else "quick")

# Two months in four regions: 244 partitions, loaded in a few seconds.
SAMPLE = Sample(days=61)

PASSED = pytest.StashKey[Passed]()

SMALL_STAR = """
DROP DATABASE IF EXISTS small_star CASCADE;
CREATE DATABASE small_star;
CREATE TABLE small_star.days USING parquet AS SELECT * FROM VALUES
  ('d1', 'Sunday'), ('d2', 'Monday'), ('d3', 'Sunday'), ('d4', 'Tuesday') AS t(ds, weekday);
CREATE TABLE small_star.visits USING parquet PARTITIONED BY (ds) AS
  SELECT id, id * 1.5BD AS amount, concat('d', 1 + id % 8) AS ds FROM range(0, 64, 1, 1)"""


def pytest_configure(config: pytest.Config) -> None:
    """A shell lets what it starts in the background ignore Ctrl-C, and so would all that the tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if path := os.environ.get("STARPRUNER_TEST_COSTS"):
        config.pluginmanager.register(CostRecorder(Path(path)), "starpruner-test-costs")
    config.stash[PASSED] = passed = Passed.of(config)
    config.pluginmanager.register(passed, "starpruner-passed")
    config.pluginmanager.register(not_tested, "starpruner-not-tested")
    config.pluginmanager.register(unhurried_loop, "starpruner-unhurried-loop")


@pytest.fixture(scope="session")
def java() -> Java:
    return find_java()


@pytest.fixture(scope="session")
def spark(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThriftServer]:
    """The server for the whole session, reachable at `spark.endpoint`."""
    # Two cores everywhere, so that a plan does not depend on the machine.
    settings = ServerOptions(
        tmp_path_factory.mktemp("spark"),
        cores=2,
        java_options=cheap_spark.shared_java(),
        conf=cheap_spark.conf(),
    )
    with thrift_server(settings, java, progress=lambda _: None) as server:
        yield server


@pytest.fixture(scope="session")
def spark_ui(spark: ThriftServer) -> SparkUi:
    """Tells what Spark's scans listed and read."""
    return SparkUi(spark.ui_url)


@pytest.fixture(scope="session")
def sample(spark: ThriftServer) -> Sample:
    """The demo's star schema in the default database, a short one."""
    with closing(connect(spark.endpoint)) as connection:
        load(connection, spark.directory, SAMPLE, progress=lambda _: None)
    return SAMPLE


@pytest.fixture(scope="session")
def small_star(spark: ThriftServer) -> None:
    """A fact of eight partitions and its days in the database small_star, for clients that have more to show."""
    with closing(connect(spark.endpoint)) as connection:
        for statement in SMALL_STAR.split(";"):
            run(connection, statement)


@pytest.fixture(scope="session")
def proxy(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """`starpruner serve` in front of the server for the whole session."""
    # A busy machine makes a rewrite slow, not absent: what is tested here is what it says, whether it pays or not.
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("proxy"), options=patient()) as process:
        yield process


@pytest.fixture
def direct(spark: ThriftServer) -> Iterator[hive.Connection]:
    """A PyHive session on the server itself; `demo.hive.run(direct, sql)` gives its rows."""
    with closing(connect(spark.endpoint)) as connection:
        yield connection


@pytest.fixture
def proxied(proxy: ProxyProcess) -> Iterator[hive.Connection]:
    """A PyHive session through the proxy."""
    with closing(connect(proxy.endpoint)) as connection:
        yield connection


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="record what the golden cases come to on the server"
    )
    parser.addoption(
        "--update-reach", action="store_true", help="record what is narrowed of the statements in tests/reach"
    )
    parser.addoption(
        OPTION,
        action="store_true",
        help="leave out heavy and costly tests that passed with all that they use as it is",
    )


@pytest.fixture(scope="session")
def updating(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are recorded anew."""
    return bool(request.config.getoption("--update-goldens"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks heavy tests, so that `-m 'not heavy'` stays quick, leaves out what has passed, and groups the others.

    Where several processes share the tests (`-n 3 --dist loadgroup`), a group stays in one of them. Groups begin
    in the order of the tests (`--no-loadscope-reorder`), the longest first.
    """
    for item in items:
        if is_heavy(item):
            item.add_marker(pytest.mark.heavy)
    config.stash[PASSED].select(config, items)
    tests = [GroupedTest.of(item) for item in items]
    groups = dict(zip(items, groups_of(tests), strict=True))
    for item, test in zip(items, tests, strict=True):
        if test.chosen is None:
            item.add_marker(pytest.mark.xdist_group(groups[item]))
    items[:] = longest_first(items, groups)


@pytest.fixture(scope="session")
def local_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark in this process, on one core, with a catalog in memory: quick to start, and it leaves nothing."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    warehouse = tmp_path_factory.mktemp("warehouse")
    quick: dict[str, bool | float | int | str | None] = {
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        **cheap_spark.INTERPRETED,
    }
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.sql.catalogImplementation", "in-memory")
        .config(map=quick)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Drops PySpark's connection to the JVM: the next call would get the answer of one that a limit ended."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    if gateway is not None and "local_spark" in getattr(node, "fixturenames", ()):
        connection = gateway._gateway_client.get_thread_connection()  # noqa: SLF001 - nor for that
        if connection is not None:
            connection.close()


@pytest.fixture(scope="session")
def pipeline_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipelineServer]:
    """A server for the whole session in which the pipeline runs too, with a database for the file index."""
    directory = tmp_path_factory.mktemp("pipeline_spark")
    chosen = os.environ.get(SPARK_HOME)
    pyspark = Path(chosen).parent if chosen else None
    conf = cheap_spark.interpreted()
    with pipeline_server(directory, java_options=QUICK_JAVA, conf=conf, pyspark=pyspark) as running:
        with closing(connect(running.endpoint)) as connection:
            run(connection, f"CREATE DATABASE {FILE_INDEX.partition('.')[0]}")
        yield running


@pytest.fixture(scope="session")
def indexed_proxy(
    pipeline_spark: PipelineServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    """A proxy that knows of the file index. What that has is asked once for each user, and again for another."""
    options = patient(f"files.index={FILE_INDEX}", files=True)
    directory = tmp_path_factory.mktemp("indexed_proxy")
    with proxy_process(pipeline_spark.endpoint, directory, options=options) as process:
        yield process


@contextmanager
def _or_skipped(starting: AbstractContextManager[PipelineServer]) -> Iterator[PipelineServer]:
    """The server, or a skipped test where it cannot be had and need not be there."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(starting)
        except ClientMissingError as error:
            if is_required():
                raise
            pytest.skip(str(error))
        yield server


@pytest.fixture(scope="session")
def iceberg_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipelineServer]:
    """Spark with Iceberg for the whole session: tables in the catalog `ice`, and in the session's own."""
    directory, conf = tmp_path_factory.mktemp("iceberg"), cheap_spark.interpreted()
    with _or_skipped(iceberg_server_in(directory, java_options=QUICK_JAVA, conf=conf)) as server:
        yield server


@pytest.fixture(scope="session")
def iceberg_proxy(
    iceberg_server: PipelineServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    """`starpruner serve` in front of the server with Iceberg."""
    options = patient("rewrite.key_snapshot_s=300", files=True)
    directory = tmp_path_factory.mktemp("iceberg_proxy")
    with proxy_process(iceberg_server.endpoint, directory, options=options) as process:
        yield process


@pytest.fixture(scope="session")
def delta_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipelineServer]:
    """Spark with Delta for the whole session, in its own catalog."""
    directory, conf = tmp_path_factory.mktemp("delta"), cheap_spark.interpreted()
    with _or_skipped(delta_server_in(directory, java_options=QUICK_JAVA, conf=conf)) as server:
        yield server


@pytest.fixture(scope="session")
def delta_proxy(delta_server: PipelineServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """`starpruner serve` in front of the server with Delta."""
    directory = tmp_path_factory.mktemp("delta_proxy")
    with proxy_process(delta_server.endpoint, directory, options=patient()) as process:
        yield process


@pytest.fixture(scope="session")
def built() -> Iterator[Built]:
    """The image of the proxy, built once; required where STARPRUNER_CONTAINERS_REQUIRED is set."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(built_images())
        except NoEngineError as error:
            if are_required():
                raise
            pytest.skip(str(error))
        yield found
