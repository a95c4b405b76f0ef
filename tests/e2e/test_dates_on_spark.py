"""Dates as keys on a real server, under settings that write or compare them by the calendar used before 1582.

Spark itself counts days by one calendar. With these settings it writes 1582-10-10 into an answer as 1582-10-15,
and looks for that day in files or in the metastore.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
from pyhive import hive

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer
from rewriter import KeyRanges, KeySet
from rewriter.semijoins.key_query import KeyColumn, key_set_query
from rewriter.semijoins.range_query import key_ranges_query

pytestmark = pytest.mark.usefixtures("tables")

SETTINGS = ("spark.sql.datetime.java8API.enabled=false", "spark.sql.legacy.timeParserPolicy=LEGACY")
# Days that both calendars have, and those of the switch from one to the other.
OLD = (
    "0001-01-01",
    "0004-03-01",
    "1000-02-28",
    "1500-03-01",
    "1582-10-04",
    "1582-10-25",
    "2026-01-01",
    "9999-12-31",
)
SWITCH = ("1582-10-05", "1582-10-10", "1582-10-14", "1582-10-15")
# One range each, whose ends are days of both calendars. Derby takes 1582-10-14 for 1582-10-24.
TO_16, TO_26 = (tuple(f"1582-10-{day:02d}" for day in range(4, last + 1)) for last in (16, 26))
DATABASE = "old_days"

# The fact is f, the small side d. Group 1 has days of both calendars, 2 those of the switch, 3 and 4 a range each.
GROUPS = {1: OLD, 2: SWITCH, 3: TO_16, 4: TO_26}
FORMS = {
    "=": "SELECT f.id FROM f JOIN d ON f.k = d.k WHERE d.g = {g}",
    "<=>": "SELECT f.id FROM f JOIN d ON f.k <=> d.k WHERE d.g = {g}",
    "IN": "SELECT f.id FROM f WHERE f.k IN (SELECT d.k FROM d WHERE d.g = {g})",
    "scalar max": "SELECT f.id FROM f WHERE f.k = (SELECT max(d.k) FROM d WHERE d.g = {g} AND d.id < 2)",
    "LEFT JOIN": "SELECT d.k, f.id FROM d LEFT JOIN f ON f.k = d.k WHERE d.g = {g}",
}


@pytest.fixture(scope="module")
def tables(spark: ThriftServer) -> None:
    facts = ", ".join(f"({n}, DATE'{day}')" for n, day in enumerate(sorted({*OLD, *TO_26})))
    dimension = ", ".join(f"({n}, DATE'{day}', {g})" for g, days in GROUPS.items() for n, day in enumerate(days))
    with closing(connect(spark.endpoint)) as connection:
        for sql in (
            # Spark 3 writes no days of before 1900 unless it is told in which calendar.
            "SET spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED",
            f"CREATE DATABASE {DATABASE}",
            f"USE {DATABASE}",
            "CREATE TABLE f (id INT, k DATE) USING parquet PARTITIONED BY (k)",
            f"INSERT INTO f VALUES {facts}, (99, NULL)",
            "CREATE TABLE d (id INT, k DATE, g INT) USING parquet",
            f"INSERT INTO d VALUES {dimension}, (98, NULL, 1), (99, NULL, 2)",
        ):
            run(connection, sql)


@pytest.fixture(params=SETTINGS)
def sessions(
    request: pytest.FixtureRequest, spark: ThriftServer, proxy: ProxyProcess
) -> Iterator[tuple[hive.Connection, hive.Connection]]:
    """A direct and a proxied session with one of the settings."""
    with (
        closing(connect(spark.endpoint, database=DATABASE)) as direct,
        closing(connect(proxy.endpoint, database=DATABASE)) as proxied,
    ):
        for session in (direct, proxied):
            run(session, f"SET {request.param}")
        yield direct, proxied


def test_days_arrive_as_they_are_under_every_setting(sessions: tuple[hive.Connection, hive.Connection]) -> None:
    direct, _ = sessions
    asked = key_set_query(source="d", keys=["d.k"], columns=[KeyColumn("date")], filters=["d.g < 3"], rows_max=99)
    for sql in (asked.sql, asked.sql_with_repeats):
        expected = KeySet.of(("date",), [(day,) for day in (*OLD, *SWITCH)])
        assert asked.read(run(direct, sql)) == expected
    ranges = key_ranges_query(
        source="d",
        key="d.k",
        column=KeyColumn("date"),
        filters=["d.g < 3 AND d.k BETWEEN DATE'1500-01-01' AND DATE'1582-10-14'"],
        ranges_max=2,
    )
    found = ranges.read(run(direct, ranges.sql))
    assert found == KeyRanges("date", (("1500-03-01", "1500-03-01"), ("1582-10-04", "1582-10-14")))


@pytest.mark.parametrize("g", [1, 2])
def test_statements_answer_as_they_do_directly(g: int, sessions: tuple[hive.Connection, hive.Connection]) -> None:
    for name, form in FORMS.items():
        direct, proxied = (Counter(map(repr, run(session, form.format(g=g)))) for session in sessions)
        assert direct, name
        assert proxied == direct, name


def test_old_days_narrow_a_statement_and_days_of_the_switch_do_not(
    sessions: tuple[hive.Connection, hive.Connection],
) -> None:
    _, proxied = sessions
    told = {
        g: "\n".join(str(line) for (line,) in run(proxied, f"EXPLAIN REWRITE {FORMS['='].format(g=g)}"))
        for g in (1, 2)
    }
    assert "DATE'1500-03-01'" in told[1]
    assert "A key could not be written as a literal with certainty." in told[2]


@pytest.mark.parametrize("g", [3, 4])
def test_a_range_over_the_switch_loses_no_day_under_any_setting(
    g: int, direct: hive.Connection, proxied: hive.Connection
) -> None:
    for session in (direct, proxied):
        run(session, f"USE {DATABASE}")
    # The metastore has the last word only where the partitions are not listed yet.
    run(proxied, "REFRESH TABLE f")
    sql = FORMS["="].format(g=g)
    assert Counter(run(proxied, sql)) == Counter(run(direct, sql))
    told = "\n".join(str(line) for (line,) in run(proxied, f"EXPLAIN REWRITE {sql}"))
    assert ("BETWEEN DATE'1582-10-04' AND DATE'1582-10-26'" in told) == (g == 4)
