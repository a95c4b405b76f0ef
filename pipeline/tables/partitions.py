"""The partitions of a table as directories, and their entries in its catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from pipeline.spark.errors import PipelineError
from pipeline.spark.java import jvm, jvm_session, list_of_scala
from pipeline.tables.listed_partitions import listed_partitions
from pipeline.tables.storage import Storage
from pipeline.tables.table import Table, identifier
from rewriter.vocabulary.identifiers import quoted

# Spark's name of a directory for a null, and for an empty string.
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
# One statement adds that many partitions: a metastore takes thousands at once, and a log line of a megabyte.
PARTITIONS_PER_STATEMENT = 500
_ESCAPES = "spark.sql.parser.escapedStringLiterals"
_WORD = re.compile(r"[A-Za-z0-9_]")


def known_directories(spark: SparkSession, storage: Storage, table: Table) -> dict[str, str]:
    """The directory of each partition in the catalog, by the name that Spark would give it by itself.

    Both are relative to the table; they differ where a partition was given a LOCATION of its own.
    """
    if not table.partition_columns:
        return {}
    return {name: known.location for name, known in _Listed.of(spark, storage, table).by_name.items()}


@dataclass(frozen=True, slots=True)
class _Known:
    """The catalog's entry of a partition."""

    location: str
    # The position among the listed partitions.
    number: int


@dataclass(frozen=True, slots=True)
class _Listed:
    """The partitions of a table; a table without partitions is the one named ''."""

    by_name: dict[str, _Known]
    # Java's objects, in the order of their numbers.
    objects: Any

    @classmethod
    def of(cls, spark: SparkSession, storage: Storage, table: Table) -> _Listed:
        """The partitions that the catalog lists now."""
        described = _described(spark, table)
        if not table.partition_columns:
            location = str(jvm(spark).org.apache.hadoop.fs.Path(described.location()).toString())
            return cls({"": _Known(_relative(storage, location), 0)}, [described])
        if not table.tracks_partitions:
            return cls({}, [])
        nothing = getattr(getattr(jvm(spark).scala, "None$"), "MODULE$")
        partitions = jvm_session(spark).sessionState().catalog().listPartitions(described.identifier(), nothing)
        objects = list_of_scala(spark, partitions)
        found = enumerate(listed_partitions(spark, objects, table.partition_columns))
        known = {name: _Known(_relative(storage, location), number) for number, (name, location) in found}
        return cls(known, objects)


class CatalogLocations:
    """The locations of a table's partitions in the catalog; a table without partitions is the one named ''."""

    def __init__(self, spark: SparkSession, storage: Storage, table: Table) -> None:
        self._spark = spark
        self._storage = storage
        self._table = table
        self._listed = _Listed({}, [])

    def refresh(self) -> None:
        """Asks the catalog anew."""
        self._spark.catalog.refreshTable(self._table.sql_name)
        self._listed = _Listed.of(self._spark, self._storage, self._table)

    def directories(self) -> list[str]:
        """The names of all partitions."""
        return sorted(self._known)

    def location_of(self, directory: str) -> str | None:
        """The location of a partition, relative to the table's directory; None if there is no such partition."""
        return self._known[directory].location if directory in self._known else None

    def born_ms(self, directory: str) -> int | None:
        """The time at which the partition was added to the catalog; a change of its location keeps it."""
        known = self._known.get(directory)
        return None if known is None else int(self._listed.objects[known.number].createTime())

    def partitions_at(self, path: str) -> list[str]:
        """The partitions whose location is this path, or is below it."""
        return [name for name, known in self._known.items() if f"{known.location}/".startswith(f"{path}/")]

    def set_location(self, directory: str, location: str) -> None:
        """Changes the location of a partition in one step."""
        clause = f" {_spec(self._spark, directory)}" if directory else ""
        with _plain_literals(self._spark):
            self._spark.sql(
                f"ALTER TABLE {self._table.sql_name}{clause} "
                f"SET LOCATION {_literal(self._storage.absolute(location))}"
            )
        self._known[directory] = replace(self._known[directory], location=location)

    def owns_files(self) -> bool:
        """Tells whether DROP PARTITION deletes the files, as it does in a managed table."""
        described = _described(self._spark, self._table)
        return bool(described.tableType().name() == "MANAGED")

    @property
    def _known(self) -> dict[str, _Known]:
        return self._listed.by_name


def check_locations(known: dict[str, str], directories: set[str]) -> None:
    """Raises PipelineError if the catalog has one of the partitions elsewhere than in its own directory."""
    for directory in sorted(directories):
        if (location := known.get(directory, directory)) != directory:
            raise PipelineError(
                f"partition {directory} has a LOCATION of its own, {location}; a load can only publish within the "
                f"table's directory. Move its files there, and drop and add the partition without LOCATION"
            )


def register(spark: SparkSession, storage: Storage, table: Table, directories: tuple[str, ...]) -> None:
    """Adds partitions to the catalog that it does not have yet."""
    if not table.tracks_partitions:
        return
    with _plain_literals(spark):
        for start in range(0, len(directories), PARTITIONS_PER_STATEMENT):
            batch = directories[start : start + PARTITIONS_PER_STATEMENT]
            # The location states where the files are, rather than leave it to Spark's spelling of the values.
            clauses = " ".join(f"{_spec(spark, one)} LOCATION {_literal(storage.absolute(one))}" for one in batch)
            spark.sql(f"ALTER TABLE {table.sql_name} ADD IF NOT EXISTS {clauses}")


def partition_values(spark: SparkSession, directory: str) -> list[tuple[str, str | None]]:
    """The columns of a partition with their values, as texts, from the name of its directory."""
    unescape = _external_catalog(spark).unescapePathName
    parts = [part.partition("=") for part in directory.split("/")]
    texts = [(name, None if value == NULL_DIRECTORY else str(unescape(value))) for name, _, value in parts]
    return [(str(unescape(name)), value) for name, value in texts]


@contextmanager
def _plain_literals(spark: SparkSession) -> Iterator[None]:
    """Makes a literal mean the same in every session: all but letters and digits are written as escapes."""
    before = spark.conf.get(_ESCAPES)
    spark.conf.set(_ESCAPES, "false")
    try:
        yield
    finally:
        spark.conf.set(_ESCAPES, before or "false")


def _spec(spark: SparkSession, directory: str) -> str:
    values = [
        f"{quoted(name)} = {'NULL' if value is None else _literal(value)}"
        for name, value in partition_values(spark, directory)
    ]
    return f"PARTITION ({', '.join(values)})"


def _literal(text: str) -> str:
    r"""A string literal that no setting but `escapedStringLiterals` changes.

    >>> print(_literal("a/b"))
    'a\U0000002fb'
    """
    return "'" + "".join(c if _WORD.fullmatch(c) else f"\\U{ord(c):08x}" for c in text) + "'"


def _relative(storage: Storage, location: str) -> str:
    return "" if location == storage.root else location.removeprefix(f"{storage.root}/")


def _described(spark: SparkSession, table: Table) -> Any:
    catalog = jvm_session(spark).sessionState().catalog()
    return catalog.getTableMetadata(identifier(spark, *table.names[1:]))


def _external_catalog(spark: SparkSession) -> Any:
    return jvm(spark).org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
