"""Compaction of Iceberg tables by Iceberg's own procedure, which commits a snapshot: one step for readers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.compaction.compaction import Compaction
from pipeline.compaction.own_procedure import Candidates, described, dry_run_report, named, sentences_for
from pipeline.compaction.plan import SMALL_SHARE
from pipeline.spark.errors import PipelineError
from pipeline.spark.session import Progress
from rewriter.domains.literals import literal
from rewriter.vocabulary.identifiers import quoted

# A catalog, at least one namespace and the table.
_NAME_PARTS_MIN = 3
# Conditions that Iceberg can turn into an expression of its own, by which it chooses files.
_WHERE_EXPECTED = "For --where it takes comparisons, IN, IS NULL and LIKE 'a%', of columns with literals"


def iceberg_catalog(spark: SparkSession, name: str, told: Mapping[str, str]) -> tuple[str, ...]:
    """The full name of an Iceberg table, its catalog first, by what DESCRIBE told of it. Raises PipelineError."""
    full_name = told.get("Name", "")
    parts = tuple(full_name.split("."))
    if len(parts) < _NAME_PARTS_MIN or not all(parts):
        raise PipelineError(f"{name}: Iceberg describes it as {full_name!r}; expected catalog.database.table")
    again = described(spark, ".".join(map(quoted, parts)))
    if any(again.get(key) != told.get(key) for key in ("Name", "Location")):
        raise PipelineError(
            f"{name}: Iceberg describes it as {full_name!r}, and a dot in it belongs to a name, so that it is not "
            f"certain which table is meant. Call the procedure rewrite_data_files by hand"
        )
    if not _ends_in(name, parts[-1]):
        raise PipelineError(f"{name}: is a branch or a tag of {full_name}; expected the table itself")
    return parts


def _ends_in(name: str, part: str) -> bool:
    said, expected = (text.replace("`", "").lower() for text in (name, part))
    return f".{said}".endswith(f".{expected}")


class _Sizes(NamedTuple):
    least: int
    most: int


@dataclass(frozen=True)
class IcebergCompaction:
    """The compaction of one Iceberg table."""

    spark: SparkSession
    names: tuple[str, ...]
    request: Compaction

    def plan(self) -> str:
        """The report of a dry run: the files that Iceberg would choose, judged by their sizes alone."""
        files = self._files_of_other_sizes()
        is_partitioned = "partition" in files.columns
        keys = ["spec_id", "partition"] if is_partitioned else ["spec_id"]
        counted = files.groupBy(*keys).agg(f.count("*").alias("files"), f.sum("file_size_in_bytes").alias("bytes"))
        rows = counted.where(self._is_worth_rewriting()).orderBy(f.desc("files")).collect()
        found = [
            Candidates(named(row.partition.asDict()) if is_partitioned else "", row.files, row.bytes)
            for row in rows
        ]
        said = dry_run_report(self.request.table, "Iceberg", found)
        return said + (", less what --where leaves out" if self.request.where else "")

    def run(self, progress: Progress) -> str:
        """Calls the procedure, and returns a report of what it did."""
        progress(f"{self.request.table}: {quoted(self.names[0])}.system.rewrite_data_files")
        with sentences_for(self._why):
            [done] = self.spark.sql(self._call()).collect()
        return (
            f"{self.request.table}: {done.rewritten_data_files_count} files became {done.added_data_files_count}, "
            f"{done.rewritten_bytes_count} bytes rewritten"
        )

    def _files_of_other_sizes(self) -> DataFrame:
        files = self.spark.table(".".join(map(quoted, (*self.names, "files"))))
        size, sizes = f.col("file_size_in_bytes"), self._sizes()
        # 0 is a data file; the other numbers are delete files.
        return files.where(f.col("content") == 0).where((size < sizes.least) | (size > sizes.most))

    def _is_worth_rewriting(self) -> Column:
        """The condition by which Iceberg chooses a partition's files (`SizeBasedFileRewritePlanner`)."""
        files, size = f.col("files"), f.col("bytes")
        is_enough = (files >= self.request.limits.files_min) | (size > self.request.limits.target_bytes)
        return ((files > 1) & is_enough) | (size > self._sizes().most)

    def _sizes(self) -> _Sizes:
        """The range of sizes in which files are left unchanged."""
        target_bytes = self.request.limits.target_bytes
        return _Sizes(int(target_bytes * SMALL_SHARE), target_bytes * 2)

    def _call(self) -> str:
        arguments = {"table": self._text(".".join(map(quoted, self.names[1:]))), "options": self._options()}
        if self.request.sort_by:
            order = ", ".join(f"{quoted(name)} ASC NULLS FIRST" for name in self.request.sort_by)
            arguments |= {"strategy": self._text("sort"), "sort_order": self._text(order)}
        if self.request.where is not None:
            arguments["where"] = self._text(self.request.where)
        said = ", ".join(f"{name} => {value}" for name, value in arguments.items())
        return f"CALL {quoted(self.names[0])}.system.rewrite_data_files({said})"

    def _options(self) -> str:
        limits, sizes = self.request.limits, self._sizes()
        options = {
            "target-file-size-bytes": limits.target_bytes,
            "min-file-size-bytes": sizes.least,
            "max-file-size-bytes": sizes.most,
            "min-input-files": limits.files_min,
        }
        return f"map({', '.join(self._text(str(part)) for option in options.items() for part in option)})"

    def _why(self, first: str) -> str:
        if first.startswith("[") and ("rewrite_data_files" in first or "PARSE" in first):
            return (
                f"{self.request.table}: the procedure rewrite_data_files was not found ({first}). "
                f"Before Spark 4.1 it needs Iceberg's extensions: --conf "
                f"spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            )
        expected = "" if self.request.where is None else f". {_WHERE_EXPECTED}"
        return f"{self.request.table}: Iceberg's rewrite_data_files failed: {first}{expected}"

    def _text(self, text: str) -> str:
        """The text as an argument. On Spark 3.5 Iceberg's CALL takes constants alone, not functions."""
        if self.spark.conf.get("spark.sql.parser.escapedStringLiterals", "false") != "false":
            return literal("string", text)
        return constant(text)


# Characters that quotes, escapes and variables (`${..}`) are made of, and those that a terminal does not show.
_NOT_PLAIN: Final = re.compile(r"[\x00-\x1f\x7f'\"\\$\u2028\u2029]")


def constant(text: str) -> str:
    r"""The text between quotes, as Spark reads it unless `spark.sql.parser.escapedStringLiterals` is set.

    >>> print(constant("it's ${x}"))
    'it\u0027s \u0024{x}'
    """
    return f"'{_NOT_PLAIN.sub(_escaped, text)}'"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
