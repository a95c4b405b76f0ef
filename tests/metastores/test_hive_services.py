"""Many keys in front of Hive metastores that are services, of the versions that operators have.

Hive 4.0 every time: it takes the shortest filters. All of them, with more partitions, with STARPRUNER_DEEP=1.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from debian import PackageMissingError, downloads
from hive_service import hive_service
from mariadb import mariadb
from partitioned_tables import KeyShape, fact_tables
from star_joins import Sessions, answer, sessions_on, star_join
from support.cheap_spark import QUICK_JAVA
from support.maven import ClientMissingError, is_required
from support.metrics_of_proxy import recovered_count
from support.profile import DEEP

from demo.hive import run, same_answer
from demo.java import Java
from demo.thrift_server import ServerOptions, thrift_server
from rewriter.domains.consumers import METASTORES

# The version, and the database behind it.
SERVICES = ("4.0.1 derby", "2.3 derby", "3.1.3 derby", "3.1.3 mariadb") if DEEP else ("4.0.1 derby",)
FACTS = {
    fact.name: fact for fact in fact_tables(1_500 if DEEP else 300) if DEEP or fact.name in {"by_int", "by_date"}
}
FILTERS_BESIDE = 15
# What the proxy sends as points, and what it makes ranges of.
SHAPES = (KeyShape(20, clustered=False), KeyShape(80, clustered=False), KeyShape(200, clustered=True))


@pytest.fixture(scope="module", params=SERVICES)
def sessions(
    request: pytest.FixtureRequest, java: Java, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sessions]:
    version, database_name = request.param.split()
    directory = tmp_path_factory.mktemp("hive")
    with ExitStack() as running:
        try:
            kept = downloads(request.config)
            database = running.enter_context(mariadb(kept)) if database_name == "mariadb" else None
            conf = running.enter_context(hive_service(java, directory, version, database))
        except (PackageMissingError, ClientMissingError) as error:
            if is_required():
                raise
            pytest.skip(str(error))
        settings = ServerOptions(directory / "spark", cores=2, java_options=QUICK_JAVA, conf=conf)
        server = running.enter_context(thrift_server(settings, java, progress=lambda _: None))
        yield running.enter_context(sessions_on(server, list(FACTS.values()), SHAPES, directory))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FACTS)
def test_the_service_takes_what_the_proxy_sends_of_many_keys(
    sessions: Sessions, name: str, shape: KeyShape
) -> None:
    fact, refused = FACTS[name], recovered_count(sessions.proxy)
    rows, scans = sessions.scanned(sessions.proxied, fact, star_join(fact, shape))
    assert same_answer(rows, shape.rows(fact))
    assert scans.files_listed == len(rows)
    assert recovered_count(sessions.proxy) == refused


def test_a_day_that_the_service_reads_in_another_way_than_spark_loses_no_row(
    sessions: Sessions, tmp_path: Path
) -> None:
    # MariaDB takes 2026 for null, and Derby refuses it.
    try:
        for sql in (
            f"CREATE TABLE years (v INT, day DATE) USING parquet PARTITIONED BY (day) LOCATION '{tmp_path}'",
            "INSERT INTO years VALUES (1, DATE'2026-01-02')",
            f"INSERT OVERWRITE DIRECTORY '{tmp_path}/day=2026' USING parquet SELECT 2 AS v",
            "MSCK REPAIR TABLE years",
            "CREATE TABLE first_days USING parquet AS SELECT DATE'2026-01-01' AS day, true AS chosen",
        ):
            run(sessions.direct, sql)
        joined = "SELECT f.v FROM years f JOIN first_days d ON f.day = d.day WHERE d.chosen"
        assert run(sessions.proxied, joined) == run(sessions.direct, joined) == [(2,)]
    finally:
        run(sessions.direct, "DROP TABLE IF EXISTS years")


@pytest.mark.parametrize("form", ["points", "ranges"])
@pytest.mark.parametrize("name", ["by_int", "by_date"])
def test_the_service_takes_the_limits_with_filters_of_the_statement_beside_them(
    sessions: Sessions, name: str, form: str
) -> None:
    fact, limits = FACTS[name], METASTORES["derby"]
    count = limits.points_max if form == "points" else limits.ranges_max
    points = f"p IN ({', '.join(fact.literals_at(2 * index) for index in range(count))})"
    ends = [(fact.literals_at(4 * index), fact.literals_at(4 * index + 1)) for index in range(count)]
    ranges = " OR ".join(f"p BETWEEN {low} AND {high}" for low, high in ends)
    # Of other columns than the join's, the proxy does not count them.
    beside = " AND ".join(f"p <> {fact.literals_at(2 * number + 1)}" for number in range(FILTERS_BESIDE))
    sql = f"SELECT p FROM {name} WHERE ({points if form == 'points' else ranges}) AND {beside}"
    assert len(answer(sessions.direct, sql)) == count
