"""Statistics of the metastore in Derby behind a server of many tests."""

from pyhive import hive

from demo.hive import run

# Spark opens the metastore's own database, since Derby runs in the server's process.
_VIEW = """
    CREATE OR REPLACE TEMPORARY VIEW derby_statistics USING jdbc OPTIONS (
      url 'jdbc:derby:;databaseName=metastore_db', driver 'org.apache.derby.jdbc.EmbeddedDriver',
      query 'SELECT 1 AS one FROM SYSIBM.SYSDUMMY1',
      sessionInitStatement 'CALL SYSCS_UTIL.SYSCS_UPDATE_STATISTICS(''APP'', ''PARTITIONS'', NULL)')"""


def let_derby_filter(session: hive.Connection, filtered: str) -> None:
    """Updates Derby's statistics of partitions if it refuses a statement that filters by them.

    Derby guesses how many partitions a table has from the number of all partitions, which is old where tables come
    and go. By some guesses it reads the values of all tables before it looks whose they are, and fails at a text:
    "Invalid character string format for type DECIMAL". Hive's guard against that (DERBY-6358) does not compare the
    tables' numbers. Without need nothing is updated: on a young database Derby then refuses each session's first
    filter ("ResultSet not open").
    """
    try:
        run(session, filtered)
    except hive.Error:
        run(session, _VIEW)
        run(session, "SELECT * FROM derby_statistics")
        run(session, "DROP VIEW derby_statistics")
