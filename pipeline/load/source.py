"""The source of a load, fitted to the columns of the table that is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.spark.errors import SPARK_ERRORS, PipelineError, said
from pipeline.tables.table import Table, find_table
from rewriter.domains.literals import is_key_type
from rewriter.vocabulary.identifiers import quoted

PATH_FORMATS = ("parquet", "orc", "csv", "json")
# Formats without types: files are read with the table's types, and a field that does not parse is an error.
_UNTYPED = {"csv", "json"}
_PADDED = re.compile(r"\b(var)?char\(")


@dataclass(frozen=True, slots=True)
class Source:
    """The source of the rows: a query, a table, or a path with its format; just one of the three."""

    query: str | None = None
    table: str | None = None
    path: str | None = None
    format: str = "parquet"


def read(spark: SparkSession, source: Source, table: Table | None) -> DataFrame:
    """The rows of the source. Raises PipelineError with Spark's own message if they cannot be read."""
    try:
        if source.query is not None:
            return spark.sql(source.query)
        if source.table is not None:
            return spark.table(source.table)
        return _read_path(spark, source, table)
    except SPARK_ERRORS as error:
        raise PipelineError(f"the source cannot be read: {said(error)}") from error


def create_table(
    spark: SparkSession, name: str, table_format: str, rows: DataFrame, partition_columns: Sequence[str]
) -> Table:
    """Creates an empty table for the rows."""
    names = {field.name.lower(): field.name for field in rows.schema.fields}
    if unknown := [column for column in partition_columns if column.lower() not in names]:
        raise PipelineError(
            f"--partition-by {', '.join(unknown)}: the source has no such column; {_listing(rows)}"
        )
    columns = ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in rows.schema.fields)
    partitioned = ", ".join(quoted(names[column.lower()]) for column in partition_columns)
    try:
        spark.sql(
            f"CREATE TABLE {name} ({columns}) USING {table_format}"
            + (f" PARTITIONED BY ({partitioned})" if partitioned else "")
        )
    except SPARK_ERRORS as error:
        raise PipelineError(f"{name} cannot be created: {said(error)}") from error
    made = find_table(spark, name)
    assert made is not None  # noqa: S101 - made a moment ago
    return made


def check_fits(spark: SparkSession, rows: DataFrame, table: Table) -> None:
    """Raises PipelineError unless the source has exactly the table's columns, with their types, in any order."""
    if padded := [f"{name} {kind}" for name, kind in table.columns.items() if _PADDED.search(kind)]:
        raise PipelineError(
            f"{table.index_name} has columns that Spark pads or checks while it inserts ({', '.join(padded)}), "
            f"and a load writes files without INSERT. Make them STRING"
        )
    theirs = {field.name.lower(): field.dataType.simpleString() for field in rows.schema.fields}
    ours = {
        field.name.lower(): field.dataType.simpleString() for field in spark.table(table.sql_name).schema.fields
    }
    if len(theirs) < len(rows.schema.fields):
        raise PipelineError(f"the source has two columns of one name; {_listing(rows)}")
    wrong = [f"{name} is missing" for name in ours.keys() - theirs.keys()]
    wrong += [f"{name} is not in the table" for name in theirs.keys() - ours.keys()]
    wrong += [
        f"{name} is {theirs[name]} where the table has {ours[name]}"
        for name in ours.keys() & theirs.keys()
        if ours[name] != theirs[name]
    ]
    if wrong:
        raise PipelineError(
            f"the source does not match {table.index_name}: {'; '.join(sorted(wrong))}. "
            f"Select the table's columns, cast to their types, with --query"
        )


def fitted(rows: DataFrame, table: Table) -> DataFrame:
    """The rows with the table's names and order of columns."""
    return rows.select(*(_column(name, kind, table).alias(name) for name, kind in table.columns.items()))


def skewed_columns(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """The skewed columns in the table's spelling. Raises PipelineError for columns that cannot be skewed."""
    spelled = {name.lower(): name for name in table.columns}
    if unknown := [name for name in names if name.lower() not in spelled]:
        raise PipelineError(
            f"--skewed-by {', '.join(unknown)}: {table.index_name} has no such column; "
            f"it has {', '.join(table.columns)}"
        )
    columns = tuple(spelled[name.lower()] for name in names)
    if repeated := [name for name, count in Counter(columns).items() if count > 1]:
        raise PipelineError(f"--skewed-by {','.join(names)}: {repeated[0]} is named more than once")
    for name in columns:
        if name in table.partition_columns:
            raise PipelineError(
                f"--skewed-by {name}: a partition column has one value in each file already; name another column"
            )
        if not is_key_type(table.columns[name]):
            raise PipelineError(
                f"--skewed-by {name}: its type, {table.columns[name]}, has no equality that can skip files "
                f"with certainty; these have: tinyint to bigint, string of the default collation, date, boolean, "
                f"decimal"
            )
    return columns


def _read_path(spark: SparkSession, source: Source, table: Table | None) -> DataFrame:
    reader = spark.read.format(source.format)
    if source.format == "csv":
        reader = reader.option("header", "true").option("enforceSchema", "false")
    if source.format in _UNTYPED and table is not None:
        reader = reader.option("mode", "FAILFAST").schema(spark.table(table.sql_name).schema)
    elif source.format == "csv":
        reader = reader.option("inferSchema", "true")
    return reader.load(source.path)


def _column(name: str, kind: str, table: Table) -> Column:
    column = f.col(quoted(name))
    # Spark writes an empty partition value as null, so both must be in one group.
    return f.nullif(column, f.lit("")) if name in table.partition_columns and kind == "string" else column


def _listing(rows: DataFrame) -> str:
    return f"it has {', '.join(rows.columns)}"
