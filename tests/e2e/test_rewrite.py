"""Star joins through the proxy: the same answer from fewer partitions."""

import pytest
from pyhive import hive

from demo.hive import run, same_answer
from demo.metrics import ScanMetrics, SparkUi
from demo.queries import SAMPLE_QUERIES, SampleQuery
from demo.sample import REGIONS, Sample

pytestmark = pytest.mark.usefixtures("sample")

LEFT_ALONE = SAMPLE_QUERIES[-1]

ONE_WEEK = """
SELECT s.region, sum(s.amount) FROM sales s JOIN dates d ON s.ds = d.ds
WHERE d.month = 12 AND d.weekday = 'Sunday' GROUP BY s.region"""


def _scanned(connection: hive.Connection, spark_ui: SparkUi, sql: str) -> ScanMetrics:
    run(connection, "REFRESH TABLE sales")
    before = spark_ui.last_execution()
    run(connection, sql)
    return spark_ui.scans_of("sales", after=before)


@pytest.mark.parametrize("query", SAMPLE_QUERIES, ids=lambda query: query.name)
def test_a_sample_query_has_the_same_answer_through_the_proxy(
    direct: hive.Connection, proxied: hive.Connection, query: SampleQuery
) -> None:
    rows = run(proxied, query.sql)
    assert rows
    assert same_answer(rows, run(direct, query.sql))


def test_a_star_join_lists_only_the_partitions_that_its_keys_name(
    direct: hive.Connection, proxied: hive.Connection, spark_ui: SparkUi, sample: Sample
) -> None:
    sundays = 5
    through_proxy = _scanned(proxied, spark_ui, ONE_WEEK)
    assert through_proxy.partitions_read == sundays * len(REGIONS)
    assert through_proxy.files_listed == sundays * len(REGIONS)
    assert _scanned(direct, spark_ui, ONE_WEEK).files_listed == sample.days * len(REGIONS)


IN_DECEMBER = "SELECT s.region, s.amount FROM late s JOIN december d ON s.ds = d.ds WHERE d.weekday = 'Sunday'"


def test_temporary_views_of_fact_and_dimension_list_only_the_partitions_of_the_keys(
    direct: hive.Connection, proxied: hive.Connection, spark_ui: SparkUi
) -> None:
    for session in (direct, proxied):
        run(session, "CREATE TEMPORARY VIEW late AS SELECT * FROM sales")
        run(session, "CREATE TEMPORARY VIEW december AS SELECT * FROM dates WHERE month = 12")
    sundays = 5
    assert _scanned(proxied, spark_ui, IN_DECEMBER).files_listed == sundays * len(REGIONS)
    assert same_answer(run(proxied, IN_DECEMBER), run(direct, IN_DECEMBER))


def test_a_temporary_view_that_has_the_name_of_a_table_is_not_taken_for_it(
    direct: hive.Connection, proxied: hive.Connection, spark_ui: SparkUi, sample: Sample
) -> None:
    try:
        run(direct, "CREATE VIEW late AS SELECT * FROM sales")
        run(direct, "CREATE VIEW december AS SELECT * FROM dates WHERE month = 12")
        run(proxied, "CREATE TEMPORARY VIEW dates AS SELECT * FROM default.dates WHERE rand() < 2")
        # The view means the table, whatever the session calls `dates`.
        assert _scanned(proxied, spark_ui, IN_DECEMBER).files_listed == 5 * len(REGIONS)
        assert same_answer(run(proxied, IN_DECEMBER), run(direct, IN_DECEMBER))
        # The statement means the session's view, and that may say something else when it is asked again.
        assert _scanned(proxied, spark_ui, ONE_WEEK).files_listed == sample.days * len(REGIONS)
        run(proxied, "CREATE TEMPORARY VIEW some_dates AS SELECT * FROM dates WHERE month = 12")
        through_both = IN_DECEMBER.replace("december", "some_dates")
        assert _scanned(proxied, spark_ui, through_both).files_listed == sample.days * len(REGIONS)
    finally:
        run(direct, "DROP VIEW IF EXISTS late")
        run(direct, "DROP VIEW IF EXISTS december")


def test_a_left_join_lists_what_it_lists_directly(
    direct: hive.Connection, proxied: hive.Connection, spark_ui: SparkUi
) -> None:
    through_proxy = _scanned(proxied, spark_ui, LEFT_ALONE.sql)
    assert through_proxy == _scanned(direct, spark_ui, LEFT_ALONE.sql)


def test_a_new_partition_is_seen_at_once(direct: hive.Connection, proxied: hive.Connection) -> None:
    sql = "SELECT f.v FROM e2e_fact f JOIN e2e_dim d ON f.p = d.p WHERE d.wanted"
    try:
        run(direct, "CREATE TABLE e2e_fact (v INT, p STRING) USING parquet PARTITIONED BY (p)")
        run(
            direct,
            "CREATE TABLE e2e_dim USING parquet AS SELECT p, true AS wanted FROM VALUES ('a'), ('b') AS t(p)",
        )
        run(proxied, "INSERT INTO e2e_fact VALUES (1, 'a')")
        assert run(proxied, sql) == [(1,)]
        run(proxied, "INSERT INTO e2e_fact VALUES (2, 'b')")
        assert sorted(run(proxied, sql)) == [(1,), (2,)]
    finally:
        run(direct, "DROP TABLE IF EXISTS e2e_fact")
        run(direct, "DROP TABLE IF EXISTS e2e_dim")
