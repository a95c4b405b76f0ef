"""List-bucketed load: in each partition every skewed value gets files of its own, and all other rows other files.

Spark's catalog does not know which values are skewed: table properties may keep them, which the proxy writes for
`SKEWED BY`. Only the file index tells which file holds which values. A load without an index writes the same
files; `starpruner pipeline index` can find their bounds later.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as f

from pipeline.index.build import complete_bounds
from pipeline.index.index_table import create_if_needed, replace_rows
from pipeline.index.rows import IndexedFile, as_frame
from pipeline.load.bucketing import count_groups, lay_out, spread
from pipeline.load.kept_skew import completed
from pipeline.load.skew import Skew, check_found, check_given, labelled, skewed_values
from pipeline.load.source import Source, check_fits, create_table, fitted, read, skewed_columns
from pipeline.load.staged_files import StagedFile, inspect, rows_of
from pipeline.spark.errors import SPARK_ERRORS, PipelineError, said
from pipeline.spark.java import forget_listings
from pipeline.spark.session import Progress
from pipeline.swap.workspace import Workspace, at_work
from pipeline.tables.publish import Publication
from pipeline.tables.storage import Storage
from pipeline.tables.table import Table, find_table

# Rows that are written once to measure the bytes of a row in the table's format and compression.
PROBE_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Load:
    """The request for a load."""

    table: str
    source: Source
    skew: Skew
    index: str | None = None
    overwrite: bool = False
    file_bytes: int = 128 << 20
    # Format and partition columns of a table that is created because there is none of that name.
    table_format: str = "parquet"
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The numbers that a load reports."""

    rows: int
    files: int
    skewed_files: int
    replaced_files: int
    indexed_files: int


def load(spark: SparkSession, request: Load, progress: Progress) -> Loaded:
    """Loads, publishes and indexes. Raises PipelineError; the table is unchanged unless that says otherwise."""
    forget_listings(spark)
    progress(f"Reading the source of {request.table}")
    found = find_table(spark, request.table)
    request = replace(request, skew=completed(request.skew, found, request.table))
    rows = read(spark, request.source, found)
    with _made_if_needed(spark, request, rows, found) as table:
        check_fits(spark, rows, table)
        skew = replace(request.skew, columns=skewed_columns(table, request.skew.columns))
        check_given(table, skew)
        if request.index is not None:
            create_if_needed(spark, request.index)
        with at_work(spark, table, progress) as workspace:
            return _Loading(spark, request, table, skew, workspace, progress).run(fitted(rows, table))


@contextmanager
def _made_if_needed(spark: SparkSession, request: Load, rows: DataFrame, found: Table | None) -> Iterator[Table]:
    """The table, created if there is none, and dropped again if the load fails."""
    if found is not None:
        _check_partitioning(request, found)
        yield found
        return
    table = create_table(spark, request.table, request.table_format, rows, request.partition_by)
    try:
        yield table
    except BaseException:
        # If only the index failed, the rows are in the table already.
        if not Storage(spark, table.location).files_below(""):
            spark.sql(f"DROP TABLE IF EXISTS {table.sql_name}")
        raise


def _check_partitioning(request: Load, table: Table) -> None:
    wanted = tuple(name.lower() for name in request.partition_by)
    actual = tuple(name.lower() for name in table.partition_columns)
    if wanted and wanted != actual:
        partitioned = f"partitioned by {', '.join(actual)}" if actual else "not partitioned"
        raise PipelineError(
            f"--partition-by {', '.join(wanted)}: {table.index_name} exists and is {partitioned}; "
            f"leave the option out"
        )


@dataclass(frozen=True, slots=True)
class _Loading:
    """A running load, with all that its steps need."""

    spark: SparkSession
    request: Load
    table: Table
    skew: Skew
    workspace: Workspace
    progress: Progress

    def run(self, source: DataFrame) -> Loaded:
        rows = self._read_once(source)
        self.progress("Looking for skewed values")
        skewed = skewed_values(self.spark, rows, self.table, self.skew).persist()
        try:
            # The values are computed here rather than in a broadcast, which has a time limit.
            skewed.count()
            check_found(skewed, self.table, self.skew)
            written = self._write(rows, skewed)
            files = self._staged_files(skewed, written)
        finally:
            skewed.unpersist()
        self.progress(f"Publishing {len(files)} files")
        publication = self.workspace.publish_staged(replace=self.request.overwrite)
        indexed = self._index(files, publication)
        skewed_files = sum(file.is_skewed for file in files)
        return Loaded(written, len(files), skewed_files, len(publication.removes), indexed)

    def _read_once(self, source: DataFrame) -> DataFrame:
        """The source's rows; those of a query as files, since it may be slow, and return other rows each time."""
        if self.request.source.query is None:
            return source
        self.progress("Running the query")
        place = self.workspace.storage.absolute(self.workspace.scratch("source"))
        source.write.parquet(place)
        return self.spark.read.schema(source.schema).parquet(place)

    def _write(self, rows: DataFrame, skewed: DataFrame) -> int:
        """Stages the files and returns the number of rows that they must hold."""
        partition_columns = self.table.partition_columns
        grouped = labelled(rows, skewed, partition_columns, self.skew.columns)
        self.progress("Counting the rows of each group")
        counted = count_groups(grouped, partition_columns, self.skew.columns).persist()
        try:
            layout = lay_out(counted, partition_columns, self.skew.columns, self._rows_per_file(rows))
            if (count := rows.count()) != layout.rows:
                raise PipelineError(_changed(count, layout.rows))
            if layout.files:
                self.progress(f"Writing {layout.rows} rows to {layout.files} files")
                spread_rows = spread(self.spark, grouped, layout, list(self.table.columns))
                self._writer(spread_rows, layout.rows_per_file).save(self.workspace.staging)
        finally:
            counted.unpersist()
        return layout.rows

    def _rows_per_file(self, rows: DataFrame) -> int:
        probe = self.workspace.scratch("probe")
        sample = rows.limit(PROBE_ROWS).persist()
        try:
            count = sample.count()
            sample.write.format(self.table.provider).options(**self.table.file_options).save(
                self.workspace.storage.absolute(probe)
            )
        finally:
            sample.unpersist()
        size = self.workspace.storage.size_bytes(probe)
        return max(1, self.request.file_bytes * max(1, count) // max(1, size))

    def _writer(self, rows: DataFrame, rows_per_file: int) -> DataFrameWriter:
        # Hashing cannot split a group of equal rows; there Spark begins a new file in the same task.
        return (
            rows.write.format(self.table.provider)
            .options(**self.table.file_options)
            .option("maxRecordsPerFile", rows_per_file)
            .partitionBy(*self.table.partition_columns)
        )

    def _staged_files(self, skewed: DataFrame, written: int) -> list[StagedFile]:
        if not written:
            return []
        self.progress("Checking what was written")
        schema = self.spark.table(self.table.sql_name).schema
        staged = self.spark.read.schema(schema).format(self.table.provider).load(self.workspace.staging)
        files = inspect(self.spark, staged, self.table, skewed, self.skew.columns)
        if rows_of(files) != written:
            raise PipelineError(_changed(written, rows_of(files)))
        return files

    def _index(self, files: Sequence[StagedFile], publication: Publication) -> int:
        """Adds the published files to the index, and deletes those that they replaced.

        It writes their skewed values first: only the load knows them, and it may be killed while it reads footers.
        """
        if self.request.index is None:
            return 0
        self.progress(f"Indexing in {self.request.index}")
        removed = [self.workspace.storage.uri(path) for path in publication.removes]
        try:
            rows = published(self.spark, self.table, files)
            added = as_frame(self.spark, rows)
            replace_rows(self.spark, self.request.index, self.table.index_name, removed, added)
            complete_bounds(self.spark, self.table.sql_name, self.request.index, rows, self.progress)
        except (PipelineError, *SPARK_ERRORS) as error:
            raise PipelineError(
                f"{self.table.index_name} was loaded, but its new files could not be indexed. Do not load again: "
                f"run `starpruner pipeline index`. The reason: {said(error)}"
            ) from error
        return len(rows)


def _changed(before: int, after: int) -> str:
    return (
        f"the source had {before} rows, and then {after}: it changed while it was read. Nothing was published; "
        f"run the load again"
    )


def published(spark: SparkSession, table: Table, files: Sequence[StagedFile]) -> list[IndexedFile]:
    """The files after publication: paths, sizes and times from Spark's own `_metadata`."""
    staged = {file.path: file for file in files}
    # part-00000-<the write's own id>.c000.snappy.parquet
    ids = {path.rpartition("/")[2].split("-", 2)[-1].partition(".")[0] for path in staged}
    if not ids:
        return []
    name = f.col("_metadata.file_name")
    ours = functools.reduce(Column.__or__, (f.contains(name, f.lit(written)) for written in sorted(ids)))
    found = (
        spark.table(table.sql_name)
        .where(ours)
        .select(
            f.col("_metadata.file_path").alias("path"),
            f.col("_metadata.file_size").alias("size_bytes"),
            f.unix_millis("_metadata.file_modification_time").alias("modified_ms"),
        )
        .distinct()
    )
    depth = len(table.partition_columns) + 1
    placed = [(row, staged.get("/".join(row.path.split("/")[-depth:]))) for row in found.collect()]
    return [
        IndexedFile(row.path, row.size_bytes, row.modified_ms, file.rows, file.columns, file.lacks)
        for row, file in placed
        if file is not None
    ]
