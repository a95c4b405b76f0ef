"""One process's work on a table's files, under the table's lock, with recovery before it and after a failure."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from pipeline.spark.errors import PipelineError
from pipeline.spark.session import Progress
from pipeline.swap.recovery import Recovery
from pipeline.tables import partitions
from pipeline.tables.lock import locked
from pipeline.tables.publish import COMMITTED, Publication, publish, recover, staging
from pipeline.tables.reserved_paths import WORK
from pipeline.tables.storage import Storage
from pipeline.tables.table import Table


@dataclass(frozen=True, slots=True)
class Workspace:
    """A directory in which new files of a table are staged, and their publication into the table."""

    spark: SparkSession
    storage: Storage
    table: Table
    id: str

    @property
    def staging(self) -> str:
        """The directory of staged files, for Spark's writers and readers; it mirrors the table's directory."""
        return self.storage.absolute(staging(self.id))

    def scratch(self, name: str) -> str:
        """A directory beside it, relative to the table, for files that are never published."""
        return f"{WORK}/{self.id}/{name}"

    def recovery(self, progress: Progress) -> Recovery:
        """Exchanges that compaction began: their partitions must be switched back before anything is published."""
        return Recovery(self.storage, partitions.CatalogLocations(self.spark, self.storage, self.table), progress)

    def publish_staged(self, *, replace: bool) -> Publication:
        """Moves the staged files into the table; with `replace`, in place of what their partitions held."""
        adds = self.storage.files_below(staging(self.id))
        directories = {path.rpartition("/")[0] for path in adds}
        if not self.table.partition_columns:
            directories = {""}
        known = partitions.known_directories(self.spark, self.storage, self.table)
        partitions.check_locations(known, directories)
        new = sorted(directories - known.keys() - {""})
        removes: list[str] = []
        if replace:
            removes = [path for directory in sorted(directories) for path in self.storage.files(directory)]
        else:
            self._check_unclaimed(new)
        publication = Publication(self.id, tuple(adds), tuple(removes), tuple(new))
        self._make(publication)
        self.spark.catalog.refreshTable(self.table.sql_name)
        return publication

    def _make(self, publication: Publication) -> None:
        try:
            for _ in publish(self.storage, publication, self._register):
                pass
        except Exception as error:
            if not self.storage.exists(COMMITTED):
                raise
            raise PipelineError(
                f"{self.table.index_name}: all files are in place, but the catalog could not be told of new "
                f"partitions. Do not load again: the next pipeline command on the table completes this. {error}"
            ) from error

    def _check_unclaimed(self, directories: Sequence[str]) -> None:
        """Raises PipelineError if new partitions would show files that the catalog does not know of now."""
        if not self.table.tracks_partitions:
            return
        if claimed := [directory for directory in directories if self.storage.files(directory)]:
            raise PipelineError(
                f"{self.storage.absolute(claimed[0])} holds files, but the catalog has no such partition: a load "
                f"would make them part of the table. Delete them, or add the partition (MSCK REPAIR TABLE) first"
            )

    def _register(self, directories: tuple[str, ...]) -> None:
        partitions.register(self.spark, self.storage, self.table, directories)


@contextmanager
def at_work(spark: SparkSession, table: Table, progress: Progress) -> Iterator[Workspace]:
    """Holds the table's lock; undoes or completes all that an earlier process, or this one, leaves half-way."""
    storage = Storage(spark, table.location)
    workspace = Workspace(spark, storage, table, uuid.uuid4().hex)
    with locked(storage):
        if done := recover(storage, workspace._register):  # noqa: SLF001 - its own, in this module
            progress(f"{table.index_name}: what an earlier command left half-way was {done}")
            spark.catalog.refreshTable(table.sql_name)
        workspace.recovery(progress).finish_all()
        try:
            yield workspace
        finally:
            # After a success only scratch files are left; after a failure the moves are undone.
            recover(storage, workspace._register)  # noqa: SLF001 - the same
