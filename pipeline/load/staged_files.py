"""Contents of the staged files, read back before publication, so that the index rests on what was written."""

from __future__ import annotations

import functools
import posixpath
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from pipeline.index.rows import FileColumnBounds, LacksEntry, bounds
from pipeline.load.skew import IS_SKEWED, labelled
from pipeline.spark.errors import PipelineError
from pipeline.spark.local_rows import local_frame
from pipeline.tables.table import Table
from rewriter.domains.literals import is_key_type
from rewriter.vocabulary.identifiers import quoted

_FILE = "__starpruner_file"
_DIRECTORY = "__starpruner_directory"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One staged file; its path is below the staging directory, in the spelling of Spark's `_metadata`."""

    path: str
    rows: int
    is_skewed: bool
    columns: Mapping[str, FileColumnBounds]
    lacks: tuple[LacksEntry, ...] = ()

    @property
    def directory(self) -> str:
        """The directory of its partition."""
        return posixpath.dirname(self.path)


def inspect(
    spark: SparkSession, staged: DataFrame, table: Table, skewed: DataFrame, columns: Sequence[str]
) -> list[StagedFile]:
    """Every staged file with its bounds and the values it lacks. Raises PipelineError if one holds two groups."""
    # A partition's directory holds a `=`, so the last `/data/` is that of the staging directory.
    path = f.element_at(f.split("_metadata.file_path", "/data/"), -1)
    rows = staged.withColumn(_FILE, path)
    indexed = [name for name in (*columns, *table.partition_columns) if is_key_type(table.columns[name])]
    counted = (
        labelled(rows, skewed, table.partition_columns, columns)
        .groupBy(_FILE)
        .agg(f.count("*").alias("rows"), f.count_if(IS_SKEWED).alias("skewed"), *_aggregates(indexed))
    )
    files = [_file(row, table, indexed, columns) for row in counted.collect()]
    return _with_lacks(spark, rows, table, files, columns)


def rows_of(files: Sequence[StagedFile]) -> int:
    """The number of rows in all files."""
    return sum(file.rows for file in files)


def _file(row: Row, table: Table, indexed: Sequence[str], columns: Sequence[str]) -> StagedFile:
    known = {
        name.lower(): bounds(
            table.columns[name], row[f"low{position}"], row[f"high{position}"], row[f"nulls{position}"]
        )
        for position, name in enumerate(indexed)
    }
    # The skewed columns come first in `indexed`.
    is_one_tuple = all(
        row[f"low{i}"] == row[f"high{i}"] and row[f"nulls{i}"] in {0, row.rows} for i in range(len(columns))
    )
    if row.skewed not in {0, row.rows} or (row.skewed and not is_one_tuple):
        raise PipelineError(
            f"staged file {row[_FILE]} holds rows of more than one group: {row.skewed} of {row.rows} are skewed. "
            f"Nothing was published; this is a defect of the load, please report it"
        )
    return StagedFile(row[_FILE], row.rows, row.skewed > 0, known)


def _with_lacks(
    spark: SparkSession, rows: DataFrame, table: Table, files: list[StagedFile], columns: Sequence[str]
) -> list[StagedFile]:
    """The files; those of other rows lack the tuples that have files of their own in the same partition."""
    tuples: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for file in files:
        known = [file.columns[name.lower()].low for name in columns]
        texts = tuple(text for text in known if text is not None)
        if file.is_skewed and len(texts) == len(columns):
            tuples[file.directory].add(texts)
    fields = (_DIRECTORY, *(f"claim{i}" for i in range(len(columns))))
    schema = ", ".join(f"{field} STRING" for field in fields)
    claimed = (
        dict(zip(fields, (directory, *texts), strict=True))
        for directory, of_directory in tuples.items()
        for texts in of_directory
    )
    types = {name: table.columns[name] for name in columns}
    others = {file.path for file in files if not file.is_skewed}
    _check_absent(rows, local_frame(spark, claimed, schema), types, others)
    names = tuple(name.lower() for name in columns)
    return [
        replace(file, lacks=(LacksEntry(names, tuple(sorted(tuples[file.directory]))),))
        if not file.is_skewed and file.directory in tuples
        else file
        for file in files
    ]


def _check_absent(rows: DataFrame, claims: DataFrame, types: Mapping[str, str], others: set[str]) -> None:
    """Raises PipelineError if a row has a tuple that its file is recorded to lack; the texts are read back."""
    same = [f.regexp_extract(rows[_FILE], "^(.*)/[^/]*$", 1) == claims[_DIRECTORY]]
    same += [
        rows[quoted(name)] == claims[f"claim{position}"].cast(type_name)
        for position, (name, type_name) in enumerate(types.items())
    ]
    found = rows.join(f.broadcast(claims), functools.reduce(Column.__and__, same)).select(_FILE).distinct()
    if wrong := {row[_FILE] for row in found.collect()} & others:
        raise PipelineError(
            f"{len(wrong)} staged files hold rows that belong in files of their own, such as {min(wrong)}. "
            f"Nothing was published; this is a defect of the load, please report it"
        )


def _aggregates(columns: Sequence[str]) -> list[Column]:
    found: list[Column] = []
    for position, name in enumerate(columns):
        column = f.col(quoted(name))
        found += [
            f.min(column).cast("string").alias(f"low{position}"),
            f.max(column).cast("string").alias(f"high{position}"),
            f.count_if(column.isNull()).alias(f"nulls{position}"),
        ]
    return found
