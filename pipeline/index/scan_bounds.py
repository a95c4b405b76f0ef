"""Bounds from a query of Spark, for files whose footers do not suffice or take longer than the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from pipeline.index.file_listing import file_profiles, only_files
from pipeline.index.indexed_table import IndexedTable
from pipeline.index.rows import FileColumnBounds, IndexedFile
from pipeline.spark.errors import SPARK_ERRORS, PipelineError, first_line
from rewriter.domains.literals import TIMES


@dataclass(frozen=True)
class ScanReader:
    """Reads one table's files in a Spark session of its own, whose settings nobody else changes."""

    table: IndexedTable
    session: SparkSession

    @classmethod
    def of(cls, spark: SparkSession, table: IndexedTable) -> ScanReader:
        """A reader that does not take a file's column `X` for the table's `x`, as in the strictest session."""
        session = spark.newSession()
        session.conf.set("spark.sql.caseSensitive", "true")
        # A file that is skipped here because it cannot be read would be there for a session that can read it.
        session.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
        session.conf.set("spark.sql.files.ignoreMissingFiles", "false")
        return cls(table, session)

    def listed(self, condition: str, files_max: int) -> list[IndexedFile]:
        """The files for which a condition holds, with their rows and their partition's values."""
        listed = self._profiles(self.table.partition_columns, condition, files_max)
        # No literal can denote a path with unknown bytes.
        return [file for file in listed if "\ufffd" not in file.path]

    def read(self, files: Collection[IndexedFile], columns: Mapping[str, str]) -> list[IndexedFile]:
        """The files with the bounds of the columns that they have; without files that changed.

        A column with nulls alone, or with the default of an added column, may be missing in the file or be there
        in other letters. Sessions read that in different ways, and so does a table that is created anew over the
        files. Timestamps are left to the footers: settings decide how an INT96 is read, or an ORC timestamp, and a
        scan does not tell what is in the file.
        """
        columns = {name: type_name for name, type_name in columns.items() if type_name not in TIMES}
        if not files or not columns:
            return list(files)
        found = {file.identity: file for file in self._profiles(columns, only_files(files), len(files))}
        return [
            replace(file, columns={**file.columns, **self._certain(found[file.identity])})
            for file in files
            if file.identity in found
        ]

    def _certain(self, read: IndexedFile) -> Mapping[str, FileColumnBounds]:
        return {
            name: known
            for name, known in read.columns.items()
            if name not in self.table.defaulted and known.nulls != read.rows
        }

    def _profiles(self, columns: Mapping[str, str], condition: str, files_max: int) -> list[IndexedFile]:
        try:
            return file_profiles(self.session, self.table, columns, condition, files_max)
        except SPARK_ERRORS as error:
            raise PipelineError(
                f"{self.table.full_name}: Spark could not read its files ({first_line(error)}). "
                f"If it is about one column, name the others with --columns"
            ) from error
