"""Compaction: many small files of a partition become few, without a moment in which a reader sees other rows."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.compaction_index import KnownSkew, Merged, update_index
from pipeline.compaction_plan import Limits, PartitionPlan
from pipeline.errors import PipelineError
from pipeline.exchange import go_away
from pipeline.exchange_record import Exchange
from pipeline.merging import GROUPS_PER_STATEMENT, Group, Merger
from pipeline.partitions import Locations
from pipeline.small_files import SmallFiles, sorted_by
from pipeline.spark import Progress
from pipeline.storage import Storage
from pipeline.tables import Table, find_table
from pipeline.workspace import Workspace, at_work

_NESTED = re.compile("struct|array|map|variant")

# Others change what is read of a file, such as pathGlobFilter and ignoreCorruptFiles.
_KNOWN_OPTIONS = frozenset({"path", "serialization.format", "compression", "parquet.compression", "orc.compress"})

# Written before any of it is shown, and lost when the command is killed as it writes.
BATCH_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class Compaction:
    """What is asked for."""

    table: str
    index: str | None = None
    # Of the partitions, a condition on their columns.
    where: str | None = None
    sort_by: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    # A statement that listed the old files may read them so long.
    grace_s: float = 600.0
    # A statement that began in between may read, or append, at the second place so long.
    keep_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was done: numbers of partitions and of files."""

    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    rewritten_bytes: int = 0
    # Replaced by other writers meanwhile.
    changed: int = 0
    indexed: str = ""


def plan_compaction(spark: SparkSession, request: Compaction, progress: Progress) -> list[PartitionPlan]:
    """The partitions that would be compacted now. Raises PipelineError."""
    table = table_to_compact(spark, request.table)
    storage = Storage(spark, table.location)
    locations = Locations(spark, storage, table)
    locations.refresh()
    skew = KnownSkew.read(spark, request.index, table)
    order = sorted_by(spark, table, request.sort_by)
    return SmallFiles(spark, storage, table, locations, skew, progress).plans(request.where, order, request.limits)


def compact(spark: SparkSession, request: Compaction, progress: Progress) -> Compacted:
    """Compacts what is worth it. Raises PipelineError; every partition is then as it was, or is compacted."""
    table = table_to_compact(spark, request.table)
    with at_work(spark, table, progress) as workspace:
        return _Compacting(spark, request, table, workspace, progress).run()


def table_to_compact(spark: SparkSession, name: str) -> Table:
    """The table, if its partitions can be given other places."""
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
        locations = Locations(spark, storage, table)
        locations.refresh()
        plans = SmallFiles(spark, storage, table, locations, skew, self.progress).plans(
            self.request.where, order, self.request.limits
        )
        work = _Batches(self, Merger.of(spark, storage, table, order), skew, locations)
        merged: list[Merged] = []
        gone: list[PartitionPlan] = []
        for first, batch in _batches(plans):
            self.progress(f"Compacting partitions {first + 1} to {first + len(batch)} of {len(plans)}")
            for plan, files in work.run(first, batch):
                gone.append(plan)
                merged += files
        self.workspace.journeys(self.progress).settle()
        self.spark.catalog.refreshTable(self.table.sql_name)
        return Compacted(
            len(gone),
            sum(plan.files for plan in gone),
            sum(plan.files for plan in gone) - sum(len(plan.merged) for plan in gone) + len(merged),
            sum(plan.rewritten_bytes for plan in gone),
            len(plans) - len(gone),
            self._index(merged),
        )

    def _index(self, merged: Sequence[Merged]) -> str:
        if self.request.index is None:
            return ""
        self.progress(f"Indexing in {self.request.index}")
        try:
            return str(update_index(self.spark, self.table, self.request.index, merged, self.progress))
        except PySparkException as error:
            raise PipelineError(
                f"{self.table.index_name} was compacted, but its new files could not be indexed: run `starpruner "
                f"pipeline index`. Spark said: {error}"
            ) from error


@dataclass(frozen=True)
class _Batches:
    """Works on some partitions at once, so that Spark writes many of their files together."""

    work: _Compacting
    merger: Merger
    skew: KnownSkew
    locations: Locations

    def run(self, first: int, plans: Sequence[PartitionPlan]) -> Iterator[tuple[PartitionPlan, list[Merged]]]:
        """The partitions that went away, each with its new files."""
        storage = self.work.workspace.storage
        made = self._merge(plans, first)
        self.locations.refresh()
        for number, plan in enumerate(plans, first):
            files = made[plan.directory]
            prepared = self.work.workspace.scratch(f"prepared-{number}")
            if not (files or plan.kept) or self.locations.place(plan.directory) != plan.directory:
                continue
            for file in plan.kept:
                storage.copy(f"{plan.directory}/{file.name}".removeprefix("/"), f"{prepared}/place/{file.name}")
            for one in files:
                storage.copy(f"{prepared}/place/{one.name}", f"{prepared}/ready/{one.name}")
            if self._go_away(prepared, self._exchange(plan, files, number)):
                yield plan, files

    def _merge(self, plans: Sequence[PartitionPlan], first: int) -> dict[str, list[Merged]]:
        """Writes the merged files of all the partitions, by codec, and puts each where it is prepared."""
        made: dict[str, list[Merged]] = {plan.directory: [] for plan in plans}
        for count, (codec, groups) in enumerate(_statements(plans, first)):
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

    def _exchange(self, plan: PartitionPlan, files: Sequence[Merged], number: int) -> Exchange:
        request = self.work.request
        return Exchange(
            f"{self.work.workspace.id[:12]}-{number}",
            plan.directory,
            plan.merged,
            plan.kept,
            tuple(file.name for file in files),
            request.grace_s,
            request.keep_s,
        )

    def _go_away(self, prepared: str, exchange: Exchange) -> bool:
        steps = go_away(self.work.workspace.storage, self.locations, prepared, exchange, time.time())
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return bool(done.value)


def _batches(plans: Sequence[PartitionPlan]) -> Iterator[tuple[int, list[PartitionPlan]]]:
    """Batches of the plans, each with the number of its first one."""
    first = groups = size_bytes = 0
    for end, plan in enumerate(plans, 1):
        groups += len(plan.groups)
        size_bytes += plan.rewritten_bytes
        if groups >= GROUPS_PER_STATEMENT or size_bytes >= BATCH_BYTES or end == len(plans):
            yield first, list(plans[first:end])
            first, groups, size_bytes = end, 0, 0


def _statements(
    plans: Sequence[PartitionPlan], first: int
) -> Iterator[tuple[str | None, list[tuple[int, str, Group]]]]:
    """The groups of the partitions, by codec, so many at a time as one statement writes."""
    by_codec: dict[str | None, list[tuple[int, str, Group]]] = {}
    for number, plan in enumerate(plans, first):
        for candidates in plan.groups:
            kind = candidates[0].kind
            paths = tuple(f"{plan.directory}/{one.file.name}".removeprefix("/") for one in candidates)
            group = Group(paths, tuple(one.identity for one in candidates), kind.bucket)
            by_codec.setdefault(kind.codec, []).append((number, plan.directory, group))
    for codec, groups in by_codec.items():
        for start in range(0, len(groups), GROUPS_PER_STATEMENT):
            yield codec, groups[start : start + GROUPS_PER_STATEMENT]
