"""The file index as a Spark table: created, read, and its rows replaced one indexed table at a time.

Its partitions are the indexed tables, so a command rewrites only the rows of its own table, and the proxy reads
one small directory. Rows are replaced after the files that they describe are in place: a missing row costs pruning
alone, and a row of a deleted file does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import MapType, StructType

from pipeline.index.rows import INDEX_COLUMNS
from pipeline.spark.local_rows import local_frame
from rewriter.domains.literals import literal

# "dynamic" replaces only the partitions that the rows belong to, once all rows are written.
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def create_if_needed(spark: SparkSession, index: str) -> None:
    """Creates the index table if there is none; its database must exist."""
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {index} ({INDEX_COLUMNS}, table_name STRING) "
        f"USING parquet PARTITIONED BY (table_name)"
    )


def known_rows(spark: SparkSession, index: str, table_name: str) -> DataFrame:
    """The rows of one indexed table, named as `spark_catalog.database.table`, in lower case."""
    return spark.table(index).where(f.col("table_name") == table_name).drop("table_name")


def replace_rows(
    spark: SparkSession, index: str, table_name: str, removed: Iterable[str], added: DataFrame
) -> None:
    """Deletes the rows of the removed paths, and adds rows in place of older ones of the same paths.

    `added` has the columns of the index but `table_name`; `rows.as_frame` makes such a frame.
    """
    added = added.withColumn("columns", _as_in_index(spark, index))
    gone = local_frame(spark, ({"path": path} for path in removed), "path STRING").union(added.select("path"))
    kept = known_rows(spark, index, table_name).join(f.broadcast(gone), "path", "left_anti")
    # One file: one query of the proxy reads all of it, and a row is a few hundred bytes.
    rows = kept.unionByName(added).coalesce(1).withColumn("table_name", f.lit(table_name))
    if rows.isEmpty():
        # Dynamic overwriting keeps a partition that gets no rows.
        spark.sql(f"ALTER TABLE {index} DROP IF EXISTS PARTITION (table_name = {literal('string', table_name)})")
        return
    before = spark.conf.get(_OVERWRITE_MODE)
    spark.conf.set(_OVERWRITE_MODE, "dynamic")
    try:
        rows.select(*spark.table(index).columns).write.insertInto(index, overwrite=True)
    finally:
        spark.conf.set(_OVERWRITE_MODE, before or "static")


def _as_in_index(spark: SparkSession, index: str) -> Column:
    """The bounds with the fields that the index has: an index of an earlier version has no row groups."""
    columns = spark.table(index).schema["columns"].dataType
    names = (
        columns.valueType.names
        if isinstance(columns, MapType) and isinstance(columns.valueType, StructType)
        else ()
    )
    return f.transform_values("columns", lambda _, known: f.struct(*(known[name].alias(name) for name in names)))
