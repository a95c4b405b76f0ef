"""Bounds by Spark's own reading, for files whose footers do not suffice or take longer than the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.index.file_listing import only, profiles
from pipeline.index.indexed_table import SourceTable
from pipeline.index.rows import ColumnBounds, IndexedFile
from pipeline.spark.errors import PipelineError


@dataclass(frozen=True)
class Reader:
    """Reads one table's files in a session of its own, whose settings nobody else changes."""

    table: SourceTable
    session: SparkSession

    @classmethod
    def of(cls, spark: SparkSession, table: SourceTable) -> Reader:
        """A reader to which `X` of a file is not the table's `x`, as it is to the strictest session."""
        session = spark.newSession()
        session.conf.set("spark.sql.caseSensitive", "true")
        # What is left out here because it could not be read is there for whoever can read it.
        session.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
        session.conf.set("spark.sql.files.ignoreMissingFiles", "false")
        return cls(table, session)

    def listed(self, condition: str, files_max: int) -> list[IndexedFile]:
        """The files in which a condition on files holds, with their rows and their partition's values."""
        listed = self._profiles(self.table.partition_columns, condition, files_max)
        # No literal denotes a path whose bytes are not known.
        return [file for file in listed if "\ufffd" not in file.path]

    def read(self, files: Collection[IndexedFile], columns: Mapping[str, str]) -> list[IndexedFile]:
        """The files with the bounds of those of the columns that are in them; without files that changed.

        Where a file has no value, or the default of a column that was added, it may not have the column at all, or
        in other letters. Sessions read that in different ways, and a table made anew over the files does too.
        """
        if not files or not columns:
            return list(files)
        found = {file.identity: file for file in self._profiles(columns, only(files), len(files))}
        return [
            replace(file, columns={**file.columns, **self._certain(found[file.identity])})
            for file in files
            if file.identity in found
        ]

    def _certain(self, read: IndexedFile) -> Mapping[str, ColumnBounds]:
        return {
            name: known
            for name, known in read.columns.items()
            if name not in self.table.defaulted and known.nulls != read.rows
        }

    def _profiles(self, columns: Mapping[str, str], condition: str, files_max: int) -> list[IndexedFile]:
        try:
            return profiles(self.session, self.table, columns, condition, files_max)
        except PySparkException as error:
            said = str(error).splitlines()[0]
            raise PipelineError(
                f"{self.table.full_name}: Spark could not read its files ({said}). "
                f"If it is about one column, name the others with --columns"
            ) from error
