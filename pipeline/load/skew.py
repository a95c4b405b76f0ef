"""Skewed values, given by the user or found in each partition, and the rows that have one of them.

A frame of skewed values has the partition columns and the skewed columns, one row per tuple. Null is skewed in a
single skewed column where that is asked for; else a row with a null in any skewed column counts among the others.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from pipeline.spark.errors import PipelineError
from pipeline.tables.table import Table
from rewriter.domains.key_texts import key_of_text
from rewriter.domains.literals import UnreadableKeyError, literal
from rewriter.vocabulary.identifiers import quoted

# With more rows than this the values are counted in a sample of this size: large enough that a value of one row in
# a thousand is seen fifty thousand times, small enough to be counted in minutes.
ROWS_COUNTED_EXACTLY = 50_000_000
# Gives the same rows each time Spark computes the sample.
SAMPLE_SEED = 7

GROUP = "__starpruner_group"  # the columns added to rows begin with this
IS_SKEWED = f"{GROUP}_skewed"


@dataclass(frozen=True, slots=True)
class Skew:
    """The options of the skew; the skewed values are found where no `values` are given.

    Without columns they are those that the table's properties keep (`pipeline.load.kept_skew`).
    """

    columns: tuple[str, ...]
    values: tuple[str, ...]
    # None is no limit, and 0 finds none.
    top: int | None
    share_min: float
    values_max: int
    # True if rows with a null have files of their own too.
    nulls: bool = False


def skewed_values(spark: SparkSession, source: DataFrame, table: Table, skew: Skew) -> DataFrame:
    """The skewed tuples of each partition of the source."""
    if skew.values:
        skewed = _in_each_partition(source, table, _given_values(spark, table, skew))
    else:
        skewed = _found_values(source, table, skew)
    if not skew.nulls:
        return skewed
    (column,) = skew.columns
    null = spark.sql(f"SELECT CAST(NULL AS {table.columns[column]}) AS {quoted(column)}")
    return skewed.unionByName(_in_each_partition(source, table, null))


def check_given(table: Table, skew: Skew) -> None:
    """Raises PipelineError for given tuples that are too many, or not of the columns' types."""
    if skew.nulls and len(skew.columns) > 1:
        raise PipelineError(
            f"nulls can have files of their own where one column is skewed, and not a tuple "
            f"({', '.join(skew.columns)}): leave --skewed-nulls out"
        )
    if (count := len(_given_literals(table, skew))) > skew.values_max:
        raise PipelineError(too_many(count, "skewed values are given", skew.values_max))


def too_many(count: int, what: str, values_max: int) -> str:
    """The message that there are too many skewed values: the reason of the limit, and what to do."""
    return (
        f"{count} {what}, and at most {values_max} are allowed: each gets a file of its own in every partition, "
        f"and the index lists them all for each file of other rows, which every proxy keeps in memory. Give "
        f"fewer, raise --min-share, or set --skewed-values-max"
    )


def labelled(
    source: DataFrame, skewed: DataFrame, partition_columns: Sequence[str], columns: Sequence[str]
) -> DataFrame:
    """The rows, each with its group: the tuple of skewed columns if that is skewed, else nulls."""
    renamed = skewed.select(
        *(f.col(quoted(name)).alias(f"{GROUP}_in_{name}") for name in (*partition_columns, *columns)),
        f.lit(True).alias(IS_SKEWED),  # noqa: FBT003 - a value in a column
    )
    same = [_equal_or_null(source, renamed, name) for name in partition_columns]
    # Null is equal to null, so a null is skewed where the frame has one.
    same += [_equal_or_null(source, renamed, name) for name in columns]
    joined = source.join(f.broadcast(renamed), functools.reduce(Column.__and__, same), "left")
    groups = [f.col(quoted(f"{GROUP}_in_{name}")).alias(f"{GROUP}_{name}") for name in columns]
    is_skewed = f.coalesce(f.col(IS_SKEWED), f.lit(False)).alias(IS_SKEWED)  # noqa: FBT003 - a value in a column
    return joined.select(*(source[quoted(name)] for name in source.columns), *groups, is_skewed)


def group_columns(columns: Sequence[str]) -> list[str]:
    """The columns that `labelled` adds, which together name a row's group within its partition."""
    return [*(f"{GROUP}_{name}" for name in columns), IS_SKEWED]


def _in_each_partition(source: DataFrame, table: Table, values: DataFrame) -> DataFrame:
    """The same skewed values for each partition of the source."""
    if not table.partition_columns:
        return values
    return source.select(*_named(table.partition_columns)).distinct().crossJoin(f.broadcast(values))


def _given_literals(table: Table, skew: Skew) -> set[str]:
    types = [table.columns[column] for column in skew.columns]
    return {_tuple_literals(text, skew.columns, types) for text in skew.values}


def _given_values(spark: SparkSession, table: Table, skew: Skew) -> DataFrame:
    rows = sorted(_given_literals(table, skew))
    names = ", ".join(map(quoted, skew.columns))
    # DISTINCT, since 1.5 and 1.50 are one decimal, and a tuple given twice would double its rows.
    return spark.sql(f"SELECT DISTINCT * FROM VALUES {', '.join(f'({row})' for row in rows)} AS given({names})")


def _found_values(source: DataFrame, table: Table, skew: Skew) -> DataFrame:
    counted = (
        _sample(source).groupBy(*_named((*table.partition_columns, *skew.columns))).agg(f.count("*").alias("rows"))
    )
    partition = Window.partitionBy(*_named(table.partition_columns))
    # The values themselves break ties, so that the list is the same when it is computed again.
    ordered = partition.orderBy(f.desc("rows"), *_named(skew.columns))
    shares = counted.withColumn("share", f.col("rows") / f.sum("rows").over(partition))
    known = [f.col(quoted(name)).isNotNull() for name in skew.columns]
    frequent = shares.where(functools.reduce(Column.__and__, known) & (f.col("share") >= skew.share_min))
    if skew.top is not None:
        frequent = frequent.withColumn("rank", f.row_number().over(ordered)).where(f.col("rank") <= skew.top)
    return frequent.select(*_named((*table.partition_columns, *skew.columns)))


def check_found(skewed: DataFrame, table: Table, skew: Skew) -> None:
    """Raises PipelineError if a partition has too many skewed values, besides null."""
    known = [f.col(quoted(name)).isNotNull() for name in skew.columns]
    counts = (
        skewed.where(functools.reduce(Column.__and__, known)).groupBy(*_named(table.partition_columns)).count()
    )
    most = counts.agg(f.max("count")).first()
    if most is not None and (most[0] or 0) > skew.values_max:
        raise PipelineError(too_many(most[0], "skewed values are found in one partition", skew.values_max))


def _sample(source: DataFrame) -> DataFrame:
    rows = source.count()
    return source if rows <= ROWS_COUNTED_EXACTLY else source.sample(ROWS_COUNTED_EXACTLY / rows, SAMPLE_SEED)


def _tuple_literals(text: str, columns: Sequence[str], types: Sequence[str]) -> str:
    # With one column the text is the value; a tuple is a line of CSV, so that a string may hold a comma.
    texts = [text] if len(columns) == 1 else next(csv.reader([text], skipinitialspace=True), [])
    if len(texts) != len(columns):
        raise PipelineError(
            f"skewed value {text!r} has {len(texts)} values; expected one of each: {', '.join(columns)}"
        )
    try:
        return ", ".join(
            literal(type_name, key_of_text(type_name, part)) for type_name, part in zip(types, texts, strict=True)
        )
    except UnreadableKeyError as error:
        expected = ", ".join(f"{name} {type_name}" for name, type_name in zip(columns, types, strict=True))
        raise PipelineError(f"skewed value {text!r} cannot be read as ({expected})") from error


def _equal_or_null(left: DataFrame, right: DataFrame, name: str) -> Column:
    return left[quoted(name)].eqNullSafe(right[quoted(f"{GROUP}_in_{name}")])


def _named(columns: Sequence[str]) -> list[Column]:
    return [f.col(quoted(name)) for name in columns]
