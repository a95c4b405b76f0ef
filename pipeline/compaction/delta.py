"""Compaction of Delta tables by Delta's own OPTIMIZE, which commits a version: one step for readers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as f

from pipeline.compaction.compaction import Compaction
from pipeline.compaction.own_procedure import Candidates, dry_run_report, named, sentences_for
from pipeline.compaction.plan import SMALL_SHARE, Candidate, FileKind, plan_partition
from pipeline.spark.errors import PipelineError
from pipeline.spark.session import Progress
from pipeline.tables.storage import StoredFile
from rewriter.vocabulary.identifiers import quoted

_WHERE_EXPECTED = "For --where it takes a condition on partition columns; of a clustered table, none"
# Files below the least size are candidates. Groups of them, each up to the most, become one file each.
_LEAST, _MOST = (f"spark.databricks.delta.optimize.{which}FileSize" for which in ("min", "max"))
# No condition can name these columns by accident.
_PATH, _SIZE = "__starpruner_path", "__starpruner_size"


@dataclass(frozen=True)
class DeltaCompaction:
    """The compaction of one Delta table."""

    spark: SparkSession
    request: Compaction

    def plan(self) -> str:
        """The report of a dry run: the files that Delta would choose, judged by their sizes alone."""
        table = self.request.table
        with sentences_for(self._why):
            condition = self._condition()
            [detail] = self.spark.sql(f"DESCRIBE DETAIL {table}").collect()
            if detail.clusteringColumns:
                return self._plan_of_clustered(detail)
            files = self._files(detail.partitionColumns, condition)
        found = []
        for partition, candidates in files.items():
            # OPTIMIZE fills one group after the other with the files, smallest first, and so does our own plan.
            merged = plan_partition(partition, candidates, self.request.limits.target_bytes).merged
            if merged:
                found.append(Candidates(partition, len(merged), sum(file.size_bytes for file in merged)))
        return dry_run_report(table, "Delta", sorted(found, key=lambda one: -one.files))

    def run(self, progress: Progress) -> str:
        """Runs the statement, and returns a report of what it did."""
        table, where = self.request.table, self.request.where
        statement = f"OPTIMIZE {table}" + ("" if where is None else f" WHERE {where}")
        with sentences_for(self._why):
            _ = self._condition()
            progress(statement)
            [done] = self._session().sql(statement).select("metrics.*").collect()
        return (
            f"{table}: {done.numFilesRemoved} files became {done.numFilesAdded}, "
            f"{done.filesRemoved.totalSize} bytes rewritten as {done.filesAdded.totalSize}"
        )

    def _condition(self) -> Column:
        """The condition, parsed alone, so that a clause behind it, such as ZORDER BY, is an error."""
        return f.expr(self.request.where or "true")

    def _plan_of_clustered(self, detail: Row) -> str:
        table = self.request.table
        columns = ", ".join(detail.clusteringColumns)
        if self.request.where is not None:
            raise PipelineError(
                f"--where: {table} is clustered by {columns}, and OPTIMIZE takes all of it or nothing"
            )
        size = f"{detail.numFiles} files, {detail.sizeInBytes} bytes"
        return f"{table}: Delta would cluster by {columns}, at most {size}; it does not tell which beforehand"

    def _files(self, partition_columns: list[str], condition: Column) -> dict[str, list[Candidate]]:
        """The files of each partition that the condition names."""
        partition = [f.col(quoted(name)) for name in partition_columns]
        file = f.col("_metadata.file_path").alias(_PATH), f.col("_metadata.file_size").alias(_SIZE)
        # Without an alias Spark would look for a condition's columns in the table too, and OPTIMIZE does not.
        listed = self.spark.table(self.request.table).select(*partition, *file).distinct().alias("files")
        found = defaultdict[str, list[Candidate]](list)
        for row in listed.where(condition).collect():
            values = row.asDict()
            stored = StoredFile(values.pop(_PATH), values.pop(_SIZE), modified_ms=0)
            found[named(values)].append(Candidate(stored, FileKind(), rank=stored.size_bytes))
        return found

    def _session(self) -> SparkSession:
        """A session with the sizes: OPTIMIZE has no options for them, and takes the session's settings."""
        session, target_bytes = self.spark.newSession(), self.request.limits.target_bytes
        session.catalog.setCurrentCatalog(self.spark.catalog.currentCatalog())
        session.catalog.setCurrentDatabase(self.spark.catalog.currentDatabase())
        session.conf.set(_LEAST, str(int(target_bytes * SMALL_SHARE)))
        session.conf.set(_MOST, str(target_bytes))
        return session

    def _why(self, first: str) -> str:
        expected = "" if self.request.where is None else f". {_WHERE_EXPECTED}"
        return f"{self.request.table}: {first}{expected}"
