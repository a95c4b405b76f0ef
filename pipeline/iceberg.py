"""Compaction of Iceberg's tables by Iceberg's own procedure, which commits a snapshot: one step for readers."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from pipeline.compaction import Compaction
from pipeline.compaction_plan import SMALL_SHARE
from pipeline.errors import PipelineError
from pipeline.spark import Progress
from rewriter.catalog import quoted
from rewriter.keys import literal

# A catalog, at least one namespace and the table.
_NAME_PARTS_MIN = 3
# A dry run shows the partitions with most small files.
PARTITIONS_SHOWN_MAX = 100


def iceberg_catalog(spark: SparkSession, name: str) -> tuple[str, ...] | None:
    """The full name of an Iceberg table, its catalog first; None for anything else."""
    try:
        described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        # No table, or no name of one: who looks for a table of files says which.
        return None
    details = {row.col_name: str(row.data_type) for row in described}
    if details.get("Provider", "").lower() != "iceberg":
        return None
    parts = tuple(details.get("Name", "").split("."))
    if len(parts) < _NAME_PARTS_MIN or not all(parts):
        raise PipelineError(
            f"{name}: Iceberg describes it as {details.get('Name')!r}; expected catalog.database.table"
        )
    return parts


@dataclass(frozen=True)
class IcebergCompaction:
    """One run on one table."""

    spark: SparkSession
    names: tuple[str, ...]
    request: Compaction

    def plan(self) -> str:
        """What candidates there are, as Iceberg's metadata says it."""
        files = self._small_files()
        is_partitioned = "partition" in files.columns
        keys = ["spec_id", "partition"] if is_partitioned else ["spec_id"]
        counted = files.groupBy(*keys).agg(f.count("*").alias("files"), f.sum("file_size_in_bytes").alias("bytes"))
        rows = counted.where(f.col("files") >= self.request.limits.files_min).orderBy(f.desc("files")).collect()
        shown = [
            (_partition(row) if is_partitioned else self.request.table, row) for row in rows[:PARTITIONS_SHOWN_MAX]
        ]
        lines = [f"{name}: {row.files} small files, {row.bytes} bytes" for name, row in shown]
        total = sum(row.files for row in rows)
        # Which of them the condition means is Iceberg's to say.
        said = f"{self.request.table}: {total} files of {len(rows)} partitions are candidates"
        return "\n".join([*lines, said + (" before --where" if self.request.where else "")])

    def run(self, progress: Progress) -> str:
        """Calls the procedure, and says what it did."""
        progress(f"{self.request.table}: {quoted(self.names[0])}.system.rewrite_data_files")
        try:
            [done] = self.spark.sql(self._call()).collect()
        except PySparkException as error:
            raise PipelineError(self._why(str(error))) from error
        return (
            f"{self.request.table}: {done.rewritten_data_files_count} files became {done.added_data_files_count}, "
            f"{done.rewritten_bytes_count} bytes rewritten"
        )

    def _small_files(self) -> DataFrame:
        files = self.spark.table(".".join(map(quoted, (*self.names, "files"))))
        # 0 is data; the others say what of it is deleted.
        return files.where(f.col("content") == 0).where(
            f.col("file_size_in_bytes") < int(self.request.limits.target_bytes * SMALL_SHARE)
        )

    def _call(self) -> str:
        arguments = {"table": _text(".".join(map(quoted, self.names[1:]))), "options": self._options()}
        if self.request.sort_by:
            order = ", ".join(f"{quoted(name)} ASC NULLS FIRST" for name in self.request.sort_by)
            arguments |= {"strategy": _text("sort"), "sort_order": _text(order)}
        if self.request.where is not None:
            arguments["where"] = _text(self.request.where)
        said = ", ".join(f"{name} => {value}" for name, value in arguments.items())
        return f"CALL {quoted(self.names[0])}.system.rewrite_data_files({said})"

    def _options(self) -> str:
        limits = self.request.limits
        options = {
            "target-file-size-bytes": limits.target_bytes,
            "min-file-size-bytes": int(limits.target_bytes * SMALL_SHARE),
            "max-file-size-bytes": limits.target_bytes * 2,
            "min-input-files": limits.files_min,
        }
        return f"map({', '.join(_text(str(part)) for option in options.items() for part in option)})"

    def _why(self, said: str) -> str:
        first = said.splitlines()[0]
        if "rewrite_data_files" in first or "PARSE" in first:
            first = (
                f"the procedure rewrite_data_files was not found ({first}). Before Spark 4.1 it needs Iceberg's "
                f"extensions: --conf "
                f"spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            )
        return f"{self.request.table}: {first}"


def _partition(row: Row) -> str:
    values = row.partition.asDict()
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _text(text: str) -> str:
    return literal("string", text)
