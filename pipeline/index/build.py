"""Builds and refreshes the file index of a table: only files that are new or have changed are looked at.

Each batch of files is written as it is done, so the next run goes on from where a killed one stopped. A gap in the
index costs pruning alone: a file that it does not have is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from pipeline.index.file_listing import all_but_files
from pipeline.index.footers import FooterReader
from pipeline.index.index_table import create_if_needed, replace_rows
from pipeline.index.indexed_table import IndexedTable, find_indexed_table
from pipeline.index.known_files import KnownFiles, known_files
from pipeline.index.rows import FileColumnBounds, IndexedFile, as_frame
from pipeline.index.scan_bounds import ScanReader
from pipeline.spark.errors import PipelineError, first_line
from pipeline.spark.java import forget_listings
from pipeline.spark.session import Progress

# Files of one table, more than the proxy takes (`rewriter.files.file_index`). Their names make a statement of some
# 40 MB.
FILES_MAX = 200_000

# Files written to the index at once. A killed run loses one batch; each batch rewrites the table's rows of the
# index.
BATCH_FILES = 5_000

# A footer takes the driver some ten calls through py4j for each column, of 0.1 to 0.4 ms, whatever the file's
# size. Reading a file of up to this size is no more work, and is spread over the executors.
READ_WHOLE_BYTES_MAX = 1 << 20

# Some stores keep times in whole seconds, and a file can be written twice within one.
_COARSE_MS = 1_000
_SETTLED_MS = 2_000


@dataclass(frozen=True)
class IndexReport:
    """The numbers of files that a run dealt with."""

    table: str
    # In the index already, and unchanged.
    known: int
    from_footers: int = 0
    read: int = 0
    # Changed while they were looked at, or too young to tell.
    unsettled: int = 0
    gone: int = 0
    # True if there are more files than the index takes.
    is_full: bool = False

    def __str__(self) -> str:
        said = (
            f"{self.table}: {self.known} files known, {self.from_footers + self.read} new or changed "
            f"({self.from_footers} by their footers, {self.read} read), {self.gone} gone"
        )
        if self.unsettled:
            said += f", {self.unsettled} changing and left to the next run"
        return said + (f", the rest left out: an index holds {FILES_MAX} files" if self.is_full else "")


def index_files(
    spark: SparkSession, name: str, index: str, columns: Sequence[str], progress: Progress
) -> IndexReport:
    """Brings the index of one table up to date. Raises PipelineError."""
    forget_listings(spark)
    table = find_indexed_table(spark, name, columns)
    try:
        create_if_needed(spark, index)
    except AnalysisException as error:
        raise PipelineError(f"{index}: the index cannot be made ({first_line(error)})") from error
    if "lacks" not in spark.table(index).columns:
        raise PipelineError(f"{index} is a table of another kind: name one for the index that is not there yet")
    spark.catalog.refreshTable(table.sql)
    return _Run(spark, table, index, progress).refresh()


def complete_bounds(
    spark: SparkSession, name: str, index: str, files: Sequence[IndexedFile], progress: Progress
) -> None:
    """Completes the index's rows of files that were just written, so that `index_files` knows them.

    They get bounds of all columns that can be indexed, and their runs of row groups. The bounds of their partition
    columns, as Spark reads them, are given. Other files of the table are not looked at. Raises PipelineError.
    """
    _Run(spark, find_indexed_table(spark, name), index, progress).complete(files)


@dataclass(frozen=True)
class _Run:
    spark: SparkSession
    table: IndexedTable
    index: str
    progress: Progress

    def refresh(self) -> IndexReport:
        self.progress(f"{self.table.full_name}: listing files")
        known = known_files(self.spark, self.index, self.table)
        reader = ScanReader.of(self.spark, self.table)
        listed = reader.listed(all_but_files(known.complete), max(0, FILES_MAX - len(known.complete)))
        settled = [file for file in listed if _is_settled(file)]
        changed = {file.path for file in listed}
        if known.gone:
            self._write(known.gone, [], known)
        report = IndexReport(
            self.table.full_name,
            known=sum(path not in changed for path in known.complete.values()),
            unsettled=len(listed) - len(settled),
            gone=len(known.gone),
            is_full=len(known.complete) + len(listed) >= FILES_MAX,
        )
        return self._batches(reader, known, settled, report)

    def complete(self, files: Sequence[IndexedFile]) -> None:
        known = KnownFiles({}, {file.identity: file for file in files}, ())
        # No literal can denote a path with unknown bytes.
        named = (file for file in files if "\ufffd" not in file.path)
        of_partitions = [self._with_partition_columns_alone(file) for file in named]
        report = IndexReport(self.table.full_name, known=0)
        self._batches(ScanReader.of(self.spark, self.table), known, of_partitions, report)

    def _with_partition_columns_alone(self, file: IndexedFile) -> IndexedFile:
        """The file as `ScanReader.listed` would give it, in the table's spelling of the names."""
        names = {name: name.lower() for name in self.table.partition_columns}
        return replace(file, columns={name: file.columns[known] for name, known in names.items()})

    def _batches(
        self, reader: ScanReader, known: KnownFiles, files: Sequence[IndexedFile], report: IndexReport
    ) -> IndexReport:
        for start in range(0, len(files), BATCH_FILES):
            self.progress(f"{self.table.full_name}: {start} of {len(files)} files done")
            report = self._batch(reader, known, files[start : start + BATCH_FILES], report)
        return report

    def _batch(
        self, reader: ScanReader, known: KnownFiles, files: Sequence[IndexedFile], report: IndexReport
    ) -> IndexReport:
        by_footer, read = _profiled(FooterReader(self.spark, self.table), reader, files)
        self._write((), [*by_footer, *read], known)
        return replace(
            report,
            from_footers=report.from_footers + len(by_footer),
            read=report.read + len(read),
            unsettled=report.unsettled + len(files) - len(by_footer) - len(read),
        )

    def _write(self, gone: Sequence[str], files: Sequence[IndexedFile], known: KnownFiles) -> None:
        added = as_frame(self.spark, [_merged(file, known.partial.get(file.identity)) for file in files])
        replace_rows(self.spark, self.index, self.table.full_name, gone, added)


def _profiled(
    footers: FooterReader, reader: ScanReader, files: Sequence[IndexedFile]
) -> tuple[list[IndexedFile], list[IndexedFile]]:
    """The files with bounds of all columns: first those whose footers sufficed, then those that Spark read."""
    table = reader.table
    small, large = _split(files, lambda file: _is_read_whole(table, file))
    sufficient, lacking = _split(footers.read(large), lambda file: _is_complete(table, file))
    needed = {
        name: type_name
        for name, type_name in table.data_columns.items()
        if any(name not in file.columns for file in lacking)
    }
    read = [*reader.read(small, table.data_columns), *reader.read(lacking, needed)]
    sure, doubtful = _split(read, lambda file: _is_complete(table, file))
    return sufficient, [*sure, *(_completed(table, file) for file in footers.read(doubtful))]


def _split(
    files: Iterable[IndexedFile], is_first: Callable[[IndexedFile], bool]
) -> tuple[list[IndexedFile], list[IndexedFile]]:
    parts: tuple[list[IndexedFile], list[IndexedFile]] = [], []
    for file in files:
        parts[not is_first(file)].append(file)
    return parts


def _is_read_whole(table: IndexedTable, file: IndexedFile) -> bool:
    # An ORC file may have its columns by position, which only its footer tells.
    return table.provider == "parquet" and file.size_bytes <= READ_WHOLE_BYTES_MAX


def _is_complete(table: IndexedTable, file: IndexedFile) -> bool:
    return file.columns.keys() >= table.columns.keys()


def _completed(table: IndexedTable, file: IndexedFile) -> IndexedFile:
    """The file with unknown bounds for the columns that nothing certain is known of."""
    unknown = {name: FileColumnBounds(type_name, None, None, None) for name, type_name in table.columns.items()}
    return replace(file, columns={**unknown, **file.columns})


def _merged(file: IndexedFile, before: IndexedFile | None) -> IndexedFile:
    """The file with its present bounds, and those that a load or an earlier run wrote for the same version."""
    columns = {name.lower(): known for name, known in file.columns.items()}
    if before is None:
        return replace(file, columns=columns)
    together = {**before.columns, **columns}
    # `lacks` holds values of the type that a column had then.
    changed = {name for name, known in before.columns.items() if known.type_name != together[name].type_name}
    lacks = tuple(entry for entry in before.lacks if changed.isdisjoint(entry.columns))
    return replace(file, columns=together, lacks=lacks)


def _is_settled(file: IndexedFile) -> bool:
    """Tells whether a later version of the file would have a later time."""
    is_young = file.modified_ms > time.time() * 1000 - _SETTLED_MS
    return not is_young or file.modified_ms % _COARSE_MS != 0
