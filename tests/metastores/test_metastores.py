"""Many keys on tables of many partitions, in front of a metastore in Derby and one in PostgreSQL.

Three hundred partitions in Derby every time; ten thousand, in both, with STARPRUNER_DEEP=1.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from debian import PackageMissingError, downloads
from partitioned_tables import KeyShape, fact_tables
from postgresql import postgresql
from star_joins import Sessions, answer, sessions_on, star_join
from support.cheap_spark import QUICK_JAVA
from support.profile import DEEP

from demo.hive import same_answer
from demo.java import Java
from demo.thrift_server import ServerOptions, ThriftServer, thrift_server

METASTORES = ("derby", "postgresql") if DEEP else ("derby",)
FACTS = {fact.name: fact for fact in fact_tables(10_000 if DEEP else 300)}
# Derby takes 80 keys as an IN and fails at 150; 5,000 are more than the proxy asks for.
KEY_COUNTS = (20, 100, 500, 5_000) if DEEP else (20, 100, 200)
SHAPES = tuple(KeyShape(size, clustered) for size in KEY_COUNTS for clustered in (False, True))
# One on either side of what Derby takes.
JOINED = SHAPES if DEEP else (KeyShape(100, clustered=False), KeyShape(200, clustered=True))


@pytest.fixture(scope="session", params=METASTORES)
def metastore(request: pytest.FixtureRequest) -> str:
    """The database behind the metastore."""
    return str(request.param)


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, metastore: str, java: Java, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ThriftServer]:
    """A Spark Thrift Server on each kind of metastore, without tables of other tests.

    Derby refuses filters by what it guesses of the number of a table's partitions, from that of all of them.
    """
    conf: Mapping[str, str] = {}
    with ExitStack() as running:
        if metastore != "derby":
            try:
                conf = running.enter_context(postgresql(downloads(request.config))).spark_conf
            except PackageMissingError as error:
                pytest.skip(str(error))
        directory = tmp_path_factory.mktemp(metastore)
        settings = ServerOptions(directory, cores=2, java_options=QUICK_JAVA, conf=conf)
        yield running.enter_context(thrift_server(settings, java, progress=lambda _: None))


@pytest.fixture(scope="module")
def sessions(server: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    with sessions_on(server, list(FACTS.values()), SHAPES, tmp_path_factory.mktemp("sessions")) as made:
        yield made


@pytest.mark.parametrize("shape", JOINED, ids=str)
@pytest.mark.parametrize("name", FACTS)
def test_a_join_answers_as_without_the_proxy_and_lists_the_partitions_of_its_keys(
    sessions: Sessions, name: str, shape: KeyShape
) -> None:
    fact = FACTS[name]
    sql = star_join(fact, shape)
    rows, scans = sessions.scanned(sessions.proxied, fact, sql)
    assert same_answer(rows, shape.rows(fact))
    assert same_answer(rows, answer(sessions.direct, sql))
    assert scans.files_listed == scans.partitions_read == len(rows)


def test_paired_keys_read_their_pairs_where_spark_alone_reads_every_combination(sessions: Sessions) -> None:
    fact, shape = FACTS["by_pair"], KeyShape(20, clustered=False)
    sql = star_join(fact, shape)
    _, alone = sessions.scanned(sessions.direct, fact, sql)
    rows, through_proxy = sessions.scanned(sessions.proxied, fact, sql)
    assert through_proxy.partitions_read == len(rows) < alone.partitions_read


def test_keys_beside_a_long_list_of_the_statements_own_fit_the_metastore_together(sessions: Sessions) -> None:
    # Derby takes a hundred values of one column, and not two lists of a hundred that it must match both.
    fact, shape = FACTS["by_int"], KeyShape(100, clustered=False)
    asked = sorted(shape.rows(fact))[::2]
    others = [fact.row_at(2 * index) for index in range(100 - len(asked))]
    own_list = ", ".join(str(p) for (p,) in asked + others)
    sql = f"{star_join(fact, shape)} AND f.p IN ({own_list})"
    expected = answer(sessions.direct, sql)
    rows, scans = sessions.scanned(sessions.proxied, fact, sql)
    assert same_answer(rows, expected)
    assert scans.files_listed == len(rows) >= len(asked)


def test_keys_of_two_small_sides_for_one_column_fit_the_metastore_together(sessions: Sessions) -> None:
    sql = """
        SELECT f.p FROM by_int f JOIN by_int_keys k ON f.p = k.p JOIN by_int_keys j ON f.p = j.p
        WHERE k.shape = '100 scattered keys' AND j.shape = '100 clustered keys'"""
    expected = answer(sessions.direct, sql)
    rows, _ = sessions.scanned(sessions.proxied, FACTS["by_int"], sql)
    assert same_answer(rows, expected)
