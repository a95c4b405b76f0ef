"""The table whose files are indexed, with the columns that are indexed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pyspark.sql import SparkSession

from pipeline.spark.errors import PipelineError
from pipeline.spark.java import jvm_session
from pipeline.tables.storage import Storage
from pipeline.tables.table import ORC_BY_POSITION, Table, find_table
from rewriter.catalog.skewed_by import SkewPropertyError, skewed_by
from rewriter.domains.literals import is_data_key_type, is_key_type
from rewriter.vocabulary.identifiers import quoted

# Characters by which Hadoop finds several paths.
_GLOB = re.compile(r"[\[\]{}*?\\]")


@dataclass(frozen=True)
class IndexedTable:
    """A table of files. Its column names have the table's spelling, their types that of DESCRIBE."""

    # The name in SQL, each part quoted; and the name in the index.
    sql: str
    full_name: str
    provider: str
    # The columns that are indexed.
    data_columns: Mapping[str, str]
    partition_columns: Mapping[str, str]
    # Columns that were added with a default, which files from before do not hold.
    defaulted: frozenset[str] = frozenset()

    @property
    def columns(self) -> dict[str, str]:
        """All columns that are indexed."""
        return {**self.data_columns, **self.partition_columns}


def find_indexed_table(spark: SparkSession, name: str, wanted: Sequence[str] = ()) -> IndexedTable:
    """The table of that name with the columns to index: the wanted and the skewed ones, or all that can be."""
    table = find_table(spark, name, takes_buckets=True, takes_hive=True)
    if table is None:
        raise PipelineError(f"{name}: there is no such table")
    if table.provider == "orc" and (table.is_read_by_position or _reads_by_position(spark)):
        raise PipelineError(f"{name}: {ORC_BY_POSITION} finds columns by their place in a file, the index by name")
    metadata = {field.name: field.metadata for field in spark.table(table.sql_name).schema.fields}
    refusals = {column: _refusal(column, table, metadata[column]) for column in table.columns}
    chosen = _chosen(name, refusals, wanted) | _skewed(refusals, table.properties)
    types = {column: type_name for column, type_name in table.columns.items() if column in chosen}
    return IndexedTable(
        _files_of_hive(spark, table) if table.is_hive else table.sql_name,
        table.index_name,
        table.provider,
        {column: type_name for column, type_name in types.items() if column not in table.partition_columns},
        {column: type_name for column, type_name in types.items() if column in table.partition_columns},
        frozenset(column for column in types if "EXISTS_DEFAULT" in metadata[column]),
    )


def _reads_by_position(spark: SparkSession) -> bool:
    value = jvm_session(spark).sessionState().newHadoopConf().get(ORC_BY_POSITION)
    return str(value or "false").lower() != "false"


def _files_of_hive(spark: SparkSession, table: Table) -> str:
    """The name of a view of the files below a Hive table's location, with the `_metadata` that the table lacks.

    Files of partitions at other locations are not among them. They are not known then, which costs pruning alone.
    """
    root = _GLOB.sub(r"\\\g<0>", Storage(spark, table.location).root)
    rows = spark.read.schema(spark.table(table.sql_name).schema).format(table.provider).load(root)
    name = f"starpruner_{sha256(table.index_name.encode()).hexdigest()[:16]}"
    # The view ends with the application, which is this one run.
    rows.select("*", "_metadata").createOrReplaceGlobalTempView(name)
    return f"{quoted(spark.conf.get('spark.sql.globalTempDatabase') or 'global_temp')}.{quoted(name)}"


def _refusal(name: str, table: Table, metadata: Mapping[str, Any]) -> str | None:
    """The reason for which a column cannot be indexed; None if it can."""
    if sum(other.lower() == name.lower() for other in table.columns) > 1:
        return "another column has its name in other letters"
    if "parquet.field.id" in metadata:
        return "each session decides by a setting whether it is found in a file by name or by number"
    is_comparable = is_key_type if name in table.partition_columns else is_data_key_type
    if not is_comparable(table.columns[name]):
        return f"values of {table.columns[name]} are not compared with certainty"
    return None


def _skewed(refusals: Mapping[str, str | None], properties: Mapping[str, str]) -> set[str]:
    """The skewed columns that the table's properties keep, as far as they can be indexed."""
    try:
        kept = skewed_by(properties)
    except SkewPropertyError:
        return set()
    skewed = {name.lower() for name in kept.columns} if kept is not None else set()
    return {column for column, refusal in refusals.items() if refusal is None and column.lower() in skewed}


def _chosen(name: str, refusals: Mapping[str, str | None], wanted: Sequence[str]) -> set[str]:
    if "_metadata" in {column.lower() for column in refusals}:
        raise PipelineError(f"{name}: its column `_metadata` hides the file of a row; rename the column")
    if not wanted:
        return {column for column, refusal in refusals.items() if refusal is None}
    by_name = {column.lower(): column for column in refusals}
    for column in wanted:
        if column.lower() not in by_name:
            raise PipelineError(f"{name} has no column {column}; it has {', '.join(refusals)}")
        refusal = refusals[by_name[column.lower()]]
        if refusal is not None:
            raise PipelineError(f"{name}: column {column} cannot be indexed: {refusal}")
    return {by_name[column.lower()] for column in wanted}
