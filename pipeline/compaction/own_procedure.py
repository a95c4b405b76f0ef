"""Parts of compaction by a table format's own procedure that are the same for all formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.spark.errors import SPARK_ERRORS, PipelineError, first_line

# A dry run shows the partitions with most small files.
PARTITIONS_SHOWN_MAX = 100


class Candidates(NamedTuple):
    """The files of one partition that a procedure would rewrite; no name stands for a table without partitions."""

    partition: str
    files: int
    size_bytes: int


def described(spark: SparkSession, name: str) -> dict[str, str]:
    """The lines of DESCRIBE TABLE EXTENDED; none if Spark refuses it. Raises PipelineError for an error of Java's.

    Such an error comes where a format is missing, or where the files that describe its table cannot be read.
    """
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        # There is no such table, or this is no table name: the search for a table of files reports which.
        return {}
    except Py4JJavaError as error:
        raise PipelineError(f"{name}: {first_line(error)}") from error
    return {row.col_name: str(row.data_type) for row in rows}


def named(values: Mapping[str, object]) -> str:
    """The name of a partition for a report."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def dry_run_report(table: str, table_format: str, found: Sequence[Candidates]) -> str:
    """The report of a dry run, of partitions with most files first."""
    lines = [
        f"{one.partition or table}: {one.files} files, {one.size_bytes} bytes"
        for one in found[:PARTITIONS_SHOWN_MAX]
    ]
    total = sum(one.files for one in found)
    said = f"{table}: going by sizes, {table_format} would rewrite {total} files of {len(found)} partitions"
    return "\n".join([*lines, said])


@contextmanager
def sentences_for(why: Callable[[str], str]) -> Iterator[None]:
    """Raises PipelineError for an error of Spark's or Java's, with what `why` makes of the error's first line."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise PipelineError(why(first_line(error))) from error
