"""Merging: each group of files is written as one file, and its rows are compared with those that were read."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from pipeline.spark.errors import SPARK_ERRORS, PipelineError, first_line
from pipeline.tables.row_hash import hashable
from pipeline.tables.storage import Storage
from pipeline.tables.table import Table
from rewriter.vocabulary.identifiers import quoted

# The number of files that one statement writes: its plan has a scan for each.
GROUPS_PER_STATEMENT = 64

_PART = re.compile(r"part-(\d+)-")
# Spark's file names end in `-c000.snappy.parquet`, in bucket 3 in `_00003.c000.snappy.parquet`.
_CODEC = re.compile(r"^part-.*[-.]c\d+(?:\.(\w+))?\.(?:parquet|orc)$")
_CODECS = {"gz": "gzip", "lz4raw": "lz4_raw", None: "none"}
_COUNTER = re.compile(r"-(c\d+\.)")
# Characters that are special in a pattern of paths.
_PATTERN = re.compile(r"([{}\[\]*?\\])")

_SETTINGS = {
    # One task writes a group, and reads each of its files from beginning to end.
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.maxRecordsPerFile": "0",
    # Spark 4.1 would combine the single tasks of a union where it can.
    "spark.sql.unionOutputPartitioning": "false",
    # A file that cannot be read is an error.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Spark's own files tell the calendar of their old dates. For files of other writers a setting of the reader
    # decides, and a merged file would fix one answer for all readers.
    "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
    "spark.sql.parquet.int96RebaseModeInRead": "EXCEPTION",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
# Spark's error class for a date before 1582, or a timestamp before 1900, in a file whose writer is not known.
_ANCIENT = "READ_ANCIENT_DATETIME"
# Spark looks up each named path in a task of its own, unless this setting allows fewer tasks.
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTING_TASKS_PER_SLOT = 4


@dataclass(frozen=True, slots=True)
class Group:
    """Files that become one; paths are relative to the table's directory."""

    paths: tuple[str, ...]
    # The same files by their identities in the file index.
    identities: tuple[str, ...] = ()
    bucket: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file: the number of its rows, and a sum that does not depend on their order."""

    rows: int
    checksum: int

    def __add__(self, other: Content) -> Content:
        return Content(self.rows + other.rows, self.checksum + other.checksum)


NOTHING = Content(0, 0)


def codec_of(name: str) -> str | None:
    """The compression in Spark's name of a file; None for files of other writers.

    >>> codec_of("part-00000-5e2a-c000.zstd.parquet"), codec_of("part-00000-5e2a_00003.c000.gz.parquet")
    ('zstd', 'gzip')
    >>> codec_of("part-00000-5e2a-c000.orc"), codec_of("000000_0")
    ('none', None)
    """
    found = _CODEC.match(name)
    return _CODECS.get(found[1], found[1]) if found else None


@dataclass(frozen=True)
class Merger:
    """Reader and writer of one table's files, in a Spark session of its own."""

    session: SparkSession
    storage: Storage
    table: Table
    schema: StructType
    sort_by: tuple[str, ...]

    @classmethod
    def of(cls, spark: SparkSession, storage: Storage, table: Table, sort_by: tuple[str, ...]) -> Merger:
        """A merger in a new session, whose settings nobody else changes."""
        session = spark.newSession()
        for name, setting in _SETTINGS.items():
            session.conf.set(name, setting)
        slots = spark.sparkContext.defaultParallelism
        session.conf.set(_LISTING_TASKS, str(_LISTING_TASKS_PER_SLOT * slots))
        fields = spark.table(table.sql_name).schema.fields
        data = [field for field in fields if field.name not in table.partition_columns]
        return cls(session, storage, table, StructType(data), sort_by)

    def merge(self, groups: Sequence[Group], codec: str | None, directory: str) -> list[str | None]:
        """Writes each group to one file below `directory`; returns the paths, None for groups without rows."""
        options = dict(self.table.file_options)
        if codec is not None:
            options["compression"] = codec
        frames = [self._frame(group) for group in groups]
        union = functools.reduce(DataFrame.union, frames)
        try:
            union.write.format(self.table.provider).options(**options).save(self.storage.absolute(directory))
        except SPARK_ERRORS as error:
            if _ANCIENT not in str(error):
                raise
            raise self._unclear_calendar(error) from error
        written = self._by_number(directory)
        made = [written.get(number) for number in range(len(groups))]
        self._check(groups, made)
        return made

    def name_for(self, group: Group, path: str) -> str:
        """The name of a merged file in the table, with the bucket that Spark reads from it."""
        name = path.rpartition("/")[2]
        if group.bucket is None:
            return name
        return _COUNTER.sub(rf"_{group.bucket:05d}.\1", name)

    def foreign_columns(self, paths: Iterable[str]) -> list[str]:
        """Columns of the files that the table lacks, or has with another type; they would be lost."""
        known = {field.name.lower(): field.dataType for field in self.schema.fields}
        reader = self.session.read.format(self.table.provider).option("mergeSchema", "true")
        found = reader.load([self._plain(path) for path in paths]).schema
        return [field.name for field in found.fields if known.get(field.name.lower()) != field.dataType]

    def _unclear_calendar(self, error: Exception) -> PipelineError:
        return PipelineError(
            f"{self.table.index_name} has dates before 1582 or timestamps before 1900 in files that do not tell "
            f"which calendar they are of: spark.sql.parquet.datetimeRebaseModeInRead and int96RebaseModeInRead "
            f"decide what a reader sees, and merged files would fix one reading for good. Write these rows again "
            f"with Spark, or leave their partitions out with --where. Spark said: {first_line(error)}"
        )

    def _frame(self, group: Group) -> DataFrame:
        frame = self._read(group.paths).coalesce(1)
        return frame.sortWithinPartitions(*map(quoted, self.sort_by)) if self.sort_by else frame

    def _read(self, paths: Iterable[str]) -> DataFrame:
        reader = self.session.read.schema(self.schema).format(self.table.provider)
        return reader.options(**self.table.file_options).load([self._plain(path) for path in paths])

    def _plain(self, path: str) -> str:
        return _PATTERN.sub(r"\\\1", self.storage.absolute(path))

    def _by_number(self, directory: str) -> dict[int, str]:
        """The written files, by the number of their task, which is that of their group."""
        found: dict[int, str] = {}
        for path in self.storage.files(directory):
            match = _PART.match(path.rpartition("/")[2])
            if match is None or found.setdefault(int(match[1]), path) != path:
                raise PipelineError(_defect(f"a group was written as several files, such as {path}"))
        return found

    def _check(self, groups: Sequence[Group], made: Sequence[str | None]) -> None:
        """Reads both sides back, and raises PipelineError if a merged file holds other rows than its group."""
        before = self._contents([path for group in groups for path in group.paths])
        after = self._contents([path for path in made if path is not None])
        for group, path in zip(groups, made, strict=True):
            expected = sum((before.get(self.storage.uri(one), NOTHING) for one in group.paths), NOTHING)
            found = NOTHING if path is None else after.get(self.storage.uri(path), NOTHING)
            if expected != found:
                said = f"{len(group.paths)} files of {expected.rows} rows became {found.rows} rows, or other ones"
                raise PipelineError(_defect(f"{said}, beginning with {group.paths[0]}"))

    def _contents(self, paths: Sequence[str]) -> Mapping[str, Content]:
        if not paths:
            return {}
        # Spark hashes a null as nothing at all, so the hash does not tell which of two columns is null.
        nulls = [f.col(quoted(field.name)).isNull() for field in self.schema.fields]
        hashed = [*hashable(self.schema), *nulls]
        checksum = f.xxhash64(*hashed) if hashed else f.lit(0)
        rows = (
            self._read(paths)
            .groupBy(f.col("_metadata.file_path").alias("path"))
            .agg(f.count("*").alias("rows"), f.sum(checksum.cast("decimal(20,0)")).alias("checksum"))
        )
        found = {str(row.path): _content(row) for row in rows.collect()}
        if unknown := found.keys() - {self.storage.uri(path) for path in paths}:
            raise PipelineError(_defect(f"Spark calls a file {min(unknown)}, and its file system otherwise"))
        return found


def _content(row: Row) -> Content:
    return Content(row.rows, int(row.checksum))


def _defect(said: str) -> str:
    return f"{said}. Nothing of this was published; this is a defect of the compaction, please report it"
