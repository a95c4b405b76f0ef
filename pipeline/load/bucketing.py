"""Assignment of rows to files: each group of a partition has files of its own, one writing task for each file.

A group is one skewed tuple, or all other rows, of one partition. Its files have consecutive numbers; a hash of the
row chooses among them, so that a task that runs again writes the same rows. Spark sends rows to tasks by
`pmod(hash(column), n)`, so each file number gets an int that hashes to it, and the rows are sent by that int.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from pipeline.load.skew import GROUP, group_columns
from pipeline.spark.errors import PipelineError
from pipeline.tables.row_hash import hashable
from rewriter.vocabulary.identifiers import quoted

# Each file is a task, whose state Spark's driver keeps, and a row of two broadcast tables.
FILES_MAX = 50_000
# Hashing fills files unevenly: with this share of the target size as the mean, the fullest still stays within it.
FILL = 0.8
# With so many more ints than file numbers, a number is left without an int in one of a thousand million runs.
_SPARE = 20

_FIRST = f"{GROUP}_first"
_FILES = f"{GROUP}_files"
_NUMBER = f"{GROUP}_number"
_TASK = f"{GROUP}_task"


@dataclass(frozen=True, slots=True)
class NumberedGroups:
    """The groups with their file numbers, and how many rows and files there are."""

    groups: DataFrame
    partition_columns: tuple[str, ...]
    skewed_columns: tuple[str, ...]
    rows: int
    files: int
    rows_per_file: int


def count_groups(rows: DataFrame, partition_columns: Sequence[str], skewed_columns: Sequence[str]) -> DataFrame:
    """The groups of the labelled rows, each with the number of its rows."""
    return rows.groupBy(*_keys(partition_columns, skewed_columns)).agg(f.count("*").alias("rows"))


def _keys(partition_columns: Sequence[str], skewed_columns: Sequence[str]) -> list[Column]:
    return [f.col(quoted(name)) for name in (*partition_columns, *group_columns(skewed_columns))]


def lay_out(
    counted: DataFrame, partition_columns: Sequence[str], skewed_columns: Sequence[str], rows_per_file: int
) -> NumberedGroups:
    """Numbers the files that the counted groups need."""
    wanted = f.ceil(f.col("rows") / f.lit(max(1, math.floor(rows_per_file * FILL)))).cast("int")
    files = counted.withColumn(_FILES, wanted)
    total = files.agg(f.coalesce(f.sum("rows"), f.lit(0)), f.coalesce(f.sum(_FILES), f.lit(0))).collect()[0]
    if total[1] > FILES_MAX:
        raise PipelineError(
            f"the load would write {total[1]} files, and one load can plan {FILES_MAX} at most: each "
            f"skewed value of each partition has its own. Load fewer partitions at once, name fewer skewed "
            f"values, or raise --file-size"
        )
    # The order is total, so the numbers are the same whenever Spark computes them. One task sorts: groups are few.
    before = Window.orderBy(*_keys(partition_columns, skewed_columns)).rowsBetween(Window.unboundedPreceding, -1)
    first = f.coalesce(f.sum(_FILES).over(before), f.lit(0)).cast("int")
    groups = files.withColumn(_FIRST, first).drop("rows")
    return NumberedGroups(
        groups, tuple(partition_columns), tuple(skewed_columns), total[0], total[1], rows_per_file
    )


def spread(spark: SparkSession, rows: DataFrame, layout: NumberedGroups, columns: Sequence[str]) -> DataFrame:
    """The columns of the labelled rows, distributed to tasks that each hold rows of one group."""
    keys = (*layout.partition_columns, *group_columns(layout.skewed_columns))
    groups = layout.groups.select(
        *(f.col(quoted(name)).alias(f"{GROUP}_of_{name}") for name in keys), _FIRST, _FILES
    )
    same = [rows[quoted(name)].eqNullSafe(groups[quoted(f"{GROUP}_of_{name}")]) for name in keys]
    grouped = rows.join(f.broadcast(groups), functools.reduce(Column.__and__, same))
    numbered = grouped.withColumn(_NUMBER, f.col(_FIRST) + f.pmod(_row_hash(rows, columns), f.col(_FILES)))
    tasks = f.broadcast(_tasks(spark, layout.files))
    sent = numbered.join(tasks, _NUMBER).repartition(layout.files, _TASK)
    return sent.select(*(f.col(quoted(name)) for name in columns))


def _row_hash(rows: DataFrame, columns: Sequence[str]) -> Column:
    """A hash of the row that differs from the one by which Spark sends rows to tasks."""
    return f.xxhash64(*hashable(rows.select(*(f.col(quoted(name)) for name in columns)).schema))


def _tasks(spark: SparkSession, files: int) -> DataFrame:
    """An int for each number below `files` that Spark, with so many tasks, sends to the task of that number."""
    count = math.ceil(files * (math.log(files) + _SPARE))
    ints = spark.range(count).select(f.col("id").cast("int").alias(_TASK))
    number = f.pmod(f.hash(_TASK), f.lit(files)).alias(_NUMBER)
    return ints.groupBy(number).agg(f.min(_TASK).alias(_TASK))
