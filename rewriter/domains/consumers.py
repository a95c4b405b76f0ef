"""Consumers of filters: how large a filter each accepts before it does worse than without one."""

from __future__ import annotations

from dataclasses import replace

from rewriter.domains.widen import Consumer

# Databases behind a Hive metastore. Measured on Spark 4.3 with up to 10,000 partitions, as tests/metastores does
# again (decision 3 has the table):
#
# * Derby fails ("Statement too complex") beyond some comparisons with int or date columns: a point is one, a range
#   two, and a pair of two columns two. The client's own comparisons come on top; those of other columns do not
#   count. An int took 140 points or 69 ranges in Hive 2.3, 118 or 57 in 3.1, and 101 or 57 in 4.0.
# * PostgreSQL and MariaDB took all that was tried. From 1,000 values on, Hive turns an IN into min and max. A
#   database that is not listed is treated as Derby. Derby took about 0.2 ms for each partition that it returned of
#   a table with 1,800, and 10 ms for each range; PostgreSQL took 0.2 ms and 2 ms.
_SERVER = Consumer(points_max=900, ranges_max=200, range_partitions=10)
METASTORES = {
    "derby": Consumer(points_max=80, ranges_max=40, range_partitions=40),
    "postgresql": _SERVER,
    "mysql": _SERVER,
}

# Parquet's row group filter takes an IN of more than 10 (parquet.pushdown.inFilterThreshold) for its min and max;
# it uses ORed lists and ranges unchanged. But Spark evaluates them for every row too, in one method that the JVM
# does not compile beyond 50 ranges of a bigint: 7 s for two million rows in place of 0.3. Lists are methods of
# their own, but a hundred strings in them still take a second, and twenty a tenth of one.
PARQUET = Consumer(points_max=50, ranges_max=20)
PARQUET_LIST_MAX = 10

# Iceberg reads an IN of more than 200 as no filter at all (InclusiveMetricsEvaluator.IN_PREDICATE_LIMIT), but any
# number of shorter ones: 25 lists took 0.4 s for a thousand files. Spark evaluates each list for every row too,
# and the JVM does not compile a method beyond some hundred comparisons: six million rows took 1 s with 40 ranges
# or 50 pairs, and 25 s with 60 pairs. Spark looks up integers and days in code as long as their list (of up to
# spark.sql.optimizer.inSetSwitchThreshold); the JVM compiles four such lists. Other values are in a hash set.
ICEBERG = Consumer(points_max=0, ranges_max=30)
ICEBERG_LIST_MAX = 200
ICEBERG_POINTS_MAX = 2_000
ICEBERG_SWITCHED = frozenset({"tinyint", "smallint", "int", "date"})
ICEBERG_SWITCHED_POINTS_MAX = 600
ICEBERG_PAIRED_POINTS_MAX = 60

# Delta compares the bounds of each file with each comparison of a condition, and takes an IN for its min and max
# unless the column is one of the partitions. Planning over 2,000 files took 0.1 s more with 30 comparisons, 2 s
# with 100, 14 s with 1,000, and nothing more with an IN of 2,000 values of a partition column (Delta 4.1).
DELTA = Consumer(points_max=30, ranges_max=30)
DELTA_PARTITION_POINTS_MAX = 2_000

# In a MERGE, Delta evaluates the conditions of all clauses for each row of the files that it writes anew, in one
# method that the JVM does not compile beyond some comparisons: 6 million rows took 48 s of processor time with 30
# ranges in the check, 30 s with ten of them, and 28 s without a check (Delta 4.1, Spark 4.1).
DELTA_MERGE = Consumer(points_max=10, ranges_max=10)

# For keys that no metastore filter can hold, and for a table whose halved limits the metastore refused too.
ACCEPTS_NOTHING = Consumer(points_max=0, ranges_max=0)


def left_beside(consumer: Consumer, comparisons: int) -> Consumer:
    """The consumer with what it still accepts if it is sent that many comparisons anyway."""
    points = max(0, consumer.points_max - comparisons)
    ranges = max(0, consumer.ranges_max - (comparisons + 1) // 2)
    return replace(consumer, points_max=points, ranges_max=ranges)


def halved(consumer: Consumer) -> Consumer:
    """The consumer with half of its limits, after it has failed."""
    return replace(consumer, points_max=consumer.points_max // 2, ranges_max=consumer.ranges_max // 2)
