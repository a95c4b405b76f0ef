"""The partitions of a table as directories, and what its catalog is told of them."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.storage import Storage, jvm, jvm_session
from pipeline.tables import Table, identifier
from rewriter.catalog import quoted

# How Spark writes a null, and an empty string, as the name of a directory.
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
# One statement adds that many partitions: a metastore takes thousands at once, and a log line of a megabyte.
PARTITIONS_PER_STATEMENT = 500
_ESCAPES = "spark.sql.parser.escapedStringLiterals"
_WORD = re.compile(r"[A-Za-z0-9_]")


def known_directories(spark: SparkSession, storage: Storage, table: Table) -> dict[str, str]:
    """Directory of each partition that the catalog knows, by the name that Spark would give it by itself.

    Both are relative to the table; they differ where a partition was given a LOCATION of its own.
    """
    if not (table.partition_columns and table.tracks_partitions):
        return {}
    catalog = jvm_session(spark).sessionState().catalog()
    described = catalog.getTableMetadata(identifier(spark, *table.names[1:]))
    nothing = getattr(getattr(jvm(spark).scala, "None$"), "MODULE$")
    collections = jvm(spark).scala.jdk.javaapi.CollectionConverters
    found = {}
    for partition in collections.asJava(catalog.listPartitions(described.identifier(), nothing)):
        spec = collections.asJava(partition.spec())
        name = "/".join(_directory(spark, column, spec[column]) for column in table.partition_columns)
        found[name] = _relative(
            storage, str(jvm(spark).org.apache.hadoop.fs.Path(partition.location()).toString())
        )
    return found


def check_places(known: dict[str, str], directories: set[str]) -> None:
    """Raises PipelineError if the catalog has one of the partitions elsewhere than in its own directory."""
    for directory in sorted(directories):
        if (place := known.get(directory, directory)) != directory:
            raise PipelineError(
                f"partition {directory} has a LOCATION of its own, {place}; a load can only publish within the "
                f"table's directory. Move its files there, and drop and add the partition without LOCATION"
            )


def register(spark: SparkSession, storage: Storage, table: Table, directories: tuple[str, ...]) -> None:
    """Adds partitions to the catalog, where they are not known yet."""
    if not table.tracks_partitions:
        return
    before = spark.conf.get(_ESCAPES)
    # Off, a literal means the same in every session: all but letters and digits are written as escapes.
    spark.conf.set(_ESCAPES, "false")
    try:
        for start in range(0, len(directories), PARTITIONS_PER_STATEMENT):
            batch = directories[start : start + PARTITIONS_PER_STATEMENT]
            clauses = " ".join(_clause(spark, storage, directory) for directory in batch)
            spark.sql(f"ALTER TABLE {table.sql_name} ADD IF NOT EXISTS {clauses}")
    finally:
        spark.conf.set(_ESCAPES, before or "false")


def _clause(spark: SparkSession, storage: Storage, directory: str) -> str:
    """PARTITION (..) LOCATION '..': the location says outright where the files are."""
    unescape = _external_catalog(spark).unescapePathName
    values = []
    for part in directory.split("/"):
        name, _, value = part.partition("=")
        text = "NULL" if value == NULL_DIRECTORY else _literal(unescape(value))
        values.append(f"{quoted(unescape(name))} = {text}")
    return f"PARTITION ({', '.join(values)}) LOCATION {_literal(storage.absolute(directory))}"


def _literal(text: str) -> str:
    r"""A string literal that no setting but `escapedStringLiterals` changes.

    >>> print(_literal("a/b"))
    'a\U0000002fb'
    """
    return "'" + "".join(c if _WORD.fullmatch(c) else f"\\U{ord(c):08x}" for c in text) + "'"


def _directory(spark: SparkSession, column: str, value: str) -> str:
    escape = _external_catalog(spark).escapePathName
    return f"{escape(column)}={escape(value)}"


def _relative(storage: Storage, place: str) -> str:
    return place.removeprefix(f"{storage.root}/")


def _external_catalog(spark: SparkSession) -> Any:
    return jvm(spark).org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
