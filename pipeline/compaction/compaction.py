"""Compaction of a table: many small files of a partition become few, and readers see the same rows throughout."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from pipeline.compaction.index_update import KnownSkew, Merged, update_index
from pipeline.compaction.merge_files import Group, Merger
from pipeline.compaction.plan import Limits, PartitionPlan, batches, statements
from pipeline.compaction.small_files import SmallFiles, sorted_by
from pipeline.spark.errors import SPARK_ERRORS, PipelineError, said
from pipeline.spark.java import forget_listings
from pipeline.spark.session import Progress
from pipeline.swap.record import PartitionExchange
from pipeline.swap.swap import switch_to_temporary
from pipeline.swap.workspace import Workspace, at_work
from pipeline.tables.partitions import CatalogLocations
from pipeline.tables.storage import Storage
from pipeline.tables.table import Table, find_table

# The pause between two rounds over the running exchanges, as a multiple of the time that a round took.
_PAUSE_PER_ROUND = 5

_NESTED = re.compile("struct|array|map|variant")

# Other options, such as pathGlobFilter and ignoreCorruptFiles, change what is read of a file.
_KNOWN_OPTIONS = frozenset({"path", "serialization.format", "compression", "parquet.compression", "orc.compress"})


@dataclass(frozen=True, slots=True)
class Compaction:
    """The request for a compaction."""

    table: str
    index: str | None = None
    # A condition on partition columns that chooses partitions.
    where: str | None = None
    sort_by: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    # The time for which a statement that listed the old files may read them.
    grace_s: float = 600.0
    # The time for which a statement that began in between may read or append at the temporary location.
    keep_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class Compacted:
    """The numbers of partitions and files that a compaction reports."""

    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    rewritten_bytes: int = 0
    # Partitions that other writers replaced meanwhile.
    changed: int = 0
    indexed: str = ""


def plan_compaction(spark: SparkSession, request: Compaction, progress: Progress) -> list[PartitionPlan]:
    """The partitions that would be compacted now. Raises PipelineError."""
    table = table_to_compact(spark, request.table)
    storage = Storage(spark, table.location)
    locations = CatalogLocations(spark, storage, table)
    locations.refresh()
    skew = KnownSkew.read(spark, request.index, table)
    order = sorted_by(spark, table, request.sort_by)
    return SmallFiles(spark, storage, table, locations, skew, progress).plans(request.where, order, request.limits)


def compact(spark: SparkSession, request: Compaction, progress: Progress) -> Compacted:
    """Compacts where it pays. Raises PipelineError, after which each partition is unchanged or compacted."""
    table = table_to_compact(spark, request.table)
    with at_work(spark, table, progress) as workspace:
        return _Compacting(spark, request, table, workspace, progress).run()


def table_to_compact(spark: SparkSession, name: str) -> Table:
    """The table, if its partitions can be given other locations. Raises PipelineError."""
    forget_listings(spark)
    table = find_table(spark, name, takes_buckets=True)
    if table is None:
        raise PipelineError(f"{name}: there is no such table")
    if nested := [column for column, type_name in table.columns.items() if _NESTED.match(type_name)]:
        raise PipelineError(
            f"{name}: {nested[0]} is of type {table.columns[nested[0]]}. Files may have fields in it that the "
            f"table does not have, and these would be lost, so tables with such columns are not compacted"
        )
    if unknown := sorted(option for option in table.options if option.lower() not in _KNOWN_OPTIONS):
        raise PipelineError(
            f"{name}: the table has the option {unknown[0]}, with which readers may not see all of its files or "
            f"rows, so it is not compacted. Expected none but {', '.join(sorted(_KNOWN_OPTIONS))}"
        )
    if table.partition_columns and not table.tracks_partitions:
        raise PipelineError(
            f"{name}: the catalog does not list its partitions, so that none can be switched in one step. "
            f"Run MSCK REPAIR TABLE {name} first"
        )
    return table


@dataclass(frozen=True)
class _Compacting:
    spark: SparkSession
    request: Compaction
    table: Table
    workspace: Workspace
    progress: Progress

    def run(self) -> Compacted:
        spark, storage, table = self.spark, self.workspace.storage, self.table
        skew = KnownSkew.read(spark, self.request.index, table)
        order = sorted_by(spark, table, self.request.sort_by)
        locations = CatalogLocations(spark, storage, table)
        locations.refresh()
        plans = SmallFiles(spark, storage, table, locations, skew, self.progress).plans(
            self.request.where, order, self.request.limits
        )
        work = _Batches(self, Merger.of(spark, storage, table, order), skew, locations)
        recovery = self.workspace.recovery(self.progress)
        merged: list[Merged] = []
        switched: list[PartitionPlan] = []
        next_round = 0.0
        for first, batch in batches(plans):
            self.progress(f"Compacting partitions {first + 1} to {first + len(batch)} of {len(plans)}")
            for plan, files in work.run(first, batch):
                switched.append(plan)
                merged += files
            # The next batch may take long, and so may a round over thousands of exchanges.
            if (started := time.monotonic()) >= next_round:
                recovery.advance_all()
                next_round = started + _PAUSE_PER_ROUND * (time.monotonic() - started)
        recovery.finish_all()
        self.spark.catalog.refreshTable(self.table.sql_name)
        return Compacted(
            len(switched),
            sum(plan.files for plan in switched),
            sum(plan.files for plan in switched) - sum(len(plan.merged) for plan in switched) + len(merged),
            sum(plan.rewritten_bytes for plan in switched),
            len(plans) - len(switched),
            self._index(merged),
        )

    def _index(self, merged: Sequence[Merged]) -> str:
        if self.request.index is None:
            return ""
        self.progress(f"Indexing in {self.request.index}")
        try:
            return str(update_index(self.spark, self.table, self.request.index, merged, self.progress))
        except SPARK_ERRORS as error:
            raise PipelineError(
                f"{self.table.index_name} was compacted, but its new files could not be indexed: run `starpruner "
                f"pipeline index`. Spark said: {said(error)}"
            ) from error


@dataclass(frozen=True)
class _Batches:
    """Compacts several partitions at once, so that Spark writes many of their files in one statement."""

    work: _Compacting
    merger: Merger
    skew: KnownSkew
    locations: CatalogLocations

    def run(self, first: int, plans: Sequence[PartitionPlan]) -> Iterator[tuple[PartitionPlan, list[Merged]]]:
        """The partitions that were switched to their temporary locations, each with its new files."""
        storage = self.work.workspace.storage
        self._check_space(plans)
        made = self._merge(plans, first)
        self.locations.refresh()
        for number, plan in enumerate(plans, first):
            files = made[plan.directory]
            prepared = self.work.workspace.scratch(f"prepared-{number}")
            if not (files or plan.kept) or self.locations.location_of(plan.directory) != plan.directory:
                continue
            for file in plan.kept:
                storage.copy(f"{plan.directory}/{file.name}".removeprefix("/"), f"{prepared}/place/{file.name}")
            for one in files:
                storage.copy(f"{prepared}/place/{one.name}", f"{prepared}/ready/{one.name}")
            exchange = self._exchange(plan, files, number)
            if switch_to_temporary(storage, self.locations, prepared, exchange, time.time):
                yield plan, files

    def _check_space(self, plans: Sequence[PartitionPlan]) -> None:
        needed_bytes = sum(plan.needed_bytes for plan in plans)
        free_bytes = self.work.workspace.storage.free_bytes()
        if free_bytes is not None and free_bytes < needed_bytes:
            raise PipelineError(
                f"{self.work.workspace.storage.root}: {len(plans)} partitions are compacted at once, which takes "
                f"{needed_bytes >> 20} MB, and {free_bytes >> 20} MB are left. Nothing of them was written: free "
                f"some, or choose fewer partitions with --where"
            )

    def _merge(self, plans: Sequence[PartitionPlan], first: int) -> dict[str, list[Merged]]:
        """Writes the merged files of all the partitions, by codec; moves each to its partition's preparation."""
        made: dict[str, list[Merged]] = {plan.directory: [] for plan in plans}
        for count, (codec, groups) in enumerate(statements(plans, first)):
            written = self.merger.merge(
                [group for _, _, group in groups],
                codec,
                self.work.workspace.scratch(f"written-{first}-{count}"),
            )
            for (number, directory, group), path in zip(groups, written, strict=True):
                if path is not None:
                    made[directory].append(self._prepared(number, group, path))
        return made

    def _prepared(self, number: int, group: Group, path: str) -> Merged:
        name = self.merger.name_for(group, path)
        storage = self.work.workspace.storage
        storage.move(path, f"{self.work.workspace.scratch(f'prepared-{number}')}/place/{name}")
        replaced = tuple(storage.uri(one) for one in group.paths)
        return Merged(name, replaced, self.skew.lacks(group.identities))

    def _exchange(self, plan: PartitionPlan, files: Sequence[Merged], number: int) -> PartitionExchange:
        request = self.work.request
        return PartitionExchange(
            f"{self.work.workspace.id[:12]}-{number}",
            plan.directory,
            plan.merged,
            plan.kept,
            tuple(file.name for file in files),
            request.grace_s,
            request.keep_s,
            self.locations.born_ms(plan.directory) or 0,
        )
