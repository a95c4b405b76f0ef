"""The file index in a compaction: its facts of the files to merge, and its update with the merged ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pipeline.index.build import IndexReport, index_files
from pipeline.index.index_table import known_rows, replace_rows
from pipeline.index.indexed_table import find_indexed_table
from pipeline.index.known_files import indexed_file
from pipeline.index.rows import IndexedFile, LacksEntry, as_frame
from pipeline.spark.session import Progress
from pipeline.tables.table import Table

# The number of files that one statement names.
NAMES_PER_STATEMENT = 1_000


@dataclass(frozen=True)
class KnownSkew:
    """The skewed values that have files of their own; none where no load with skewed values wrote the table."""

    files: Mapping[str, IndexedFile]
    # The skewed columns, or tuples of columns.
    columns: frozenset[tuple[str, ...]]

    @classmethod
    def read(cls, spark: SparkSession, index: str | None, table: Table) -> KnownSkew:
        """Reads them from the index, if there is one."""
        if index is None or not spark.catalog.tableExists(index):
            return cls({}, frozenset())
        rows = known_rows(spark, index, table.index_name)
        listed = rows.select(f.explode("lacks.columns").alias("columns")).distinct().collect()
        columns = frozenset(tuple(row["columns"]) for row in listed)
        files = [indexed_file(row) for row in rows.collect()] if columns else []
        return cls({file.identity: file for file in files}, columns)

    def kind(self, identity: str) -> Hashable:
        """The kind of a file; files of one value, of other rows, and unknown ones are of different kinds."""
        file = self.files.get(identity)
        if file is None:
            return None
        if file.lacks:
            return frozenset(entry.columns for entry in file.lacks)
        return tuple((names, values) for names in sorted(self.columns) if (values := _only(file, names)))

    def lacks(self, identities: Iterable[str]) -> tuple[LacksEntry, ...]:
        """The tuples that no row of any of the files has."""
        known = [self.files[identity].lacks if identity in self.files else () for identity in identities]
        sets = [{entry.columns: set(entry.tuples) for entry in lacks} for lacks in known]
        common = set.intersection(*(set(one) for one in sets))
        entries = {columns: set.intersection(*(one[columns] for one in sets)) for columns in sorted(common)}
        return tuple(LacksEntry(columns, tuple(sorted(tuples))) for columns, tuples in entries.items() if tuples)


@dataclass(frozen=True, slots=True)
class Merged:
    """One new file of the table."""

    name: str
    # The URIs of the files merged into it, and the tuples that none of them had.
    replaced: tuple[str, ...]
    lacks: tuple[LacksEntry, ...]


def update_index(
    spark: SparkSession, table: Table, index: str, merged: Sequence[Merged], progress: Progress
) -> IndexReport:
    """Adds the new files with the tuples that their old files lacked, and then indexes them as any others."""
    columns = _indexed_columns(spark, table, index)
    gone = [uri for file in merged for uri in file.replaced]
    if gone:
        known = _as_spark_names_them(spark, table, {file.name: file.lacks for file in merged if file.lacks})
        replace_rows(spark, index, table.index_name, gone, as_frame(spark, known))
    return index_files(spark, table.sql_name, index, columns, progress)


def _only(file: IndexedFile, names: Sequence[str]) -> tuple[str | None, ...]:
    """The only value of each column, None for null; () if any column has several, or it is not known."""
    known = [one for name in names if (one := file.columns.get(name)) is not None and one.low == one.high]
    # A file of an unknown number of rows may hold values beside its nulls.
    values = tuple(one.low for one in known if file.rows and one.nulls == (file.rows if one.low is None else 0))
    return values if len(values) == len(names) else ()


def _indexed_columns(spark: SparkSession, table: Table, index: str) -> list[str]:
    """The columns that were indexed until now; none means all that can be indexed."""
    if not spark.catalog.tableExists(index):
        return []
    names = known_rows(spark, index, table.index_name).select(f.explode(f.map_keys("columns")).alias("name"))
    before = {row.name for row in names.distinct().collect()}
    return [column for column in find_indexed_table(spark, table.sql_name).columns if column.lower() in before]


def _as_spark_names_them(
    spark: SparkSession, table: Table, lacks: Mapping[str, tuple[LacksEntry, ...]]
) -> list[IndexedFile]:
    """The named files with the tuples they lack and nothing else, for the index to complete."""
    names = sorted(lacks)
    found: list[IndexedFile] = []
    for start in range(0, len(names), NAMES_PER_STATEMENT):
        rows = (
            spark.table(table.sql_name)
            .where(f.col("_metadata.file_name").isin(names[start : start + NAMES_PER_STATEMENT]))
            .select(
                f.col("_metadata.file_path").alias("path"),
                f.col("_metadata.file_name").alias("name"),
                f.col("_metadata.file_size").alias("size_bytes"),
                f.unix_millis("_metadata.file_modification_time").alias("modified_ms"),
            )
            .distinct()
        )
        found += [
            IndexedFile(row.path, row.size_bytes, row.modified_ms, None, {}, lacks[row.name])
            for row in rows.collect()
        ]
    return found
