"""Search for the partitions of a table whose small files are worth merging."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pipeline.compaction.index_update import KnownSkew
from pipeline.compaction.merge_files import Merger, codec_of
from pipeline.compaction.plan import SMALL_SHARE, Candidate, FileKind, Limits, PartitionPlan, plan_partition
from pipeline.spark.errors import SPARK_ERRORS, PipelineError, first_line
from pipeline.spark.local_rows import local_frame
from pipeline.spark.session import Progress
from pipeline.tables.partitions import CatalogLocations, partition_values
from pipeline.tables.storage import Storage, StoredFile
from pipeline.tables.table import Table
from rewriter.files.file_facts import file_identity
from rewriter.vocabulary.identifiers import quoted

# The bucket as Spark reads it from a file's name: the digits behind the last underscore, up to the next dot.
_BUCKET = re.compile(r".*_(\d+)(?:\..*)?$")

# The number of partitions whose files' columns one statement checks.
PARTITIONS_PER_CHECK = 100


def sorted_by(spark: SparkSession, table: Table, wanted: Sequence[str]) -> tuple[str, ...]:
    """The columns by which the rows of merged files are sorted: the wanted ones, or those of SORTED BY."""
    names = {name.lower(): name for name in table.columns if name not in table.partition_columns}
    if unknown := [name for name in wanted if name.lower() not in names]:
        raise PipelineError(f"--sort-by {', '.join(unknown)}: {table.index_name} has {', '.join(names.values())}")
    promised = _rows(spark, table, "Sort Columns")
    if promised and wanted and [name.lower() for name in wanted] != [name.lower() for name in promised]:
        raise PipelineError(
            f"--sort-by {', '.join(wanted)}: {table.index_name} is SORTED BY {', '.join(promised)}; leave it out"
        )
    return tuple(names[name.lower()] for name in (promised or wanted))


@dataclass(frozen=True)
class SmallFiles:
    """The small files of one table, as the file system lists them."""

    spark: SparkSession
    storage: Storage
    table: Table
    locations: CatalogLocations
    skew: KnownSkew
    progress: Progress

    def plans(self, where: str | None, order: tuple[str, ...], limits: Limits) -> list[PartitionPlan]:
        """The plans that pay, those that save most files for each byte first."""
        self.progress(f"{self.table.index_name}: listing files")
        directories = self._chosen(where)
        ranks = self._ranks(where, order, limits) if order else {}
        is_bucketed = bool(_rows(self.spark, self.table, "Bucket Columns"))
        plans = [
            plan_partition(directory, candidates, limits.target_bytes)
            for directory in directories
            if (candidates := self._candidates(directory, ranks, is_bucketed=is_bucketed))
        ]
        paying = [plan for plan in plans if plan.pays(limits)]
        return sorted(self._with_known_columns(paying), key=lambda plan: plan.rewritten_bytes / max(1, plan.saved))

    def _chosen(self, where: str | None) -> list[str]:
        """The partitions that the condition names, without those that have a LOCATION of their own."""
        directories = self._matching(self.locations.directories(), where)
        chosen = [directory for directory in directories if self.locations.location_of(directory) == directory]
        if len(chosen) < len(directories):
            self.progress(
                f"{self.table.index_name}: {len(directories) - len(chosen)} partitions are left alone: they have "
                f"a LOCATION of their own"
            )
        return chosen

    def _matching(self, directories: Sequence[str], where: str | None) -> list[str]:
        if where is None or not directories:
            return list(directories)
        if not self.table.partition_columns:
            raise PipelineError(f"--where: {self.table.index_name} has no partitions to choose")
        names = ("directory", *(f"value{number}" for number in range(len(self.table.partition_columns))))
        texts = (dict(zip(names, (one, *self._values(one)), strict=True)) for one in directories)
        schema = ", ".join(f"{name} STRING" for name in names)
        # No condition can name this column by accident.
        typed = [f.col("directory").alias("__starpruner_directory")]
        typed += [
            f.col(f"value{number}").cast(self.table.columns[name]).alias(name)
            for number, name in enumerate(self.table.partition_columns)
        ]
        try:
            rows = local_frame(self.spark, texts, schema).select(*typed).where(where).collect()
        except AnalysisException as error:
            raise PipelineError(
                f"--where {where!r}: expected a condition on {', '.join(self.table.partition_columns)} "
                f"({first_line(error)})"
            ) from error
        return sorted(row[0] for row in rows)

    def _values(self, directory: str) -> list[str | None]:
        by_name = {name.lower(): value for name, value in partition_values(self.spark, directory)}
        return [by_name[name.lower()] for name in self.table.partition_columns]

    def _ranks(self, where: str | None, order: Sequence[str], limits: Limits) -> Mapping[str, int]:
        """Ranks of the chosen partitions' small files, by least and greatest value of the leading column.

        Neighbours in this order become one file. Files that did not overlap do not overlap afterwards, and each
        value lies between the bounds of one further file at most.
        """
        column = f.col(quoted(order[0]))
        rows = (
            self.spark.table(self.table.sql_name)
            .where(where or "true")
            .where(f.col("_metadata.file_size") < int(limits.target_bytes * SMALL_SHARE))
            .groupBy(f.col("_metadata.file_path").alias("path"))
            .agg(f.min(column).alias("low"), f.max(column).alias("high"))
            .orderBy("low", "high", "path")
        )
        return {row.path: rank for rank, row in enumerate(rows.select("path").collect())}

    def _candidates(self, directory: str, ranks: Mapping[str, int], *, is_bucketed: bool) -> list[Candidate]:
        found = [self._candidate(directory, file, ranks) for file in self.storage.stored(directory)]
        if not is_bucketed:
            return [replace(one, kind=replace(one.kind, bucket=None)) for one in found]
        if any(one.kind.bucket is None for one in found):
            self.progress(f"{directory or self.table.index_name} is left alone: a file's name tells no bucket")
            return []
        return found

    def _candidate(self, directory: str, file: StoredFile, ranks: Mapping[str, int]) -> Candidate:
        uri = self.storage.uri(f"{directory}/{file.name}".removeprefix("/"))
        identity = file_identity(uri, file.size_bytes, file.modified_ms)
        bucket = _BUCKET.match(file.name)
        kind = FileKind(int(bucket[1]) if bucket else None, codec_of(file.name), self.skew.kind(identity))
        return Candidate(file, kind, ranks.get(uri, len(ranks)), identity)

    def _with_known_columns(self, plans: Sequence[PartitionPlan]) -> list[PartitionPlan]:
        """The plans without partitions whose files have columns that the table lacks: they would be lost."""
        merger = Merger.of(self.spark, self.storage, self.table, ())
        found: list[PartitionPlan] = []
        for start in range(0, len(plans), PARTITIONS_PER_CHECK):
            some = plans[start : start + PARTITIONS_PER_CHECK]
            if self._foreign(merger, some) is None:
                found += some
            else:
                found += [plan for plan in some if self._is_known(merger, plan)]
        return found

    def _is_known(self, merger: Merger, plan: PartitionPlan) -> bool:
        if reason := self._foreign(merger, [plan]):
            self.progress(f"{plan.directory or self.table.index_name} is left alone: {reason}")
        return reason is None

    def _foreign(self, merger: Merger, plans: Sequence[PartitionPlan]) -> str | None:
        paths = [f"{plan.directory}/{file.name}".removeprefix("/") for plan in plans for file in plan.merged]
        try:
            columns = merger.foreign_columns(paths)
        except SPARK_ERRORS as error:
            return f"the columns of its files do not go together ({first_line(error)})"
        return f"its files have columns that the table does not: {', '.join(columns)}" if columns else None


def _rows(spark: SparkSession, table: Table, name: str) -> list[str]:
    """The columns in a line of DESCRIBE TABLE EXTENDED such as `Bucket Columns`, [`a`, `b`]."""
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {table.sql_name}").where(f.col("col_name") == name).collect()
    return re.findall(r"`((?:[^`]|``)+)`", described[-1].data_type) if described else []
