"""The partitions that a catalog lists. Java is asked once for all of them: each alone would take twenty calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from pipeline.spark.java import jvm, map_of_scala, texts

# Characters that Spark writes unescaped in the name of a directory.
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
# The text of `CatalogTablePartition.toString` in org/apache/spark/sql/catalyst/catalog/interface.scala.
_PARTITION = r"CatalogPartition\(\n\tPartition Values: \[%s\]\n\tLocation: ([^\n]+)\n\t.*\)"
# The text of a null, and also of a string of these letters.
_UNCLEAR = "null"

Location = tuple[str, str]


def listed_partitions(spark: SparkSession, objects: Any, columns: Sequence[str]) -> list[Location]:
    """The directory that Spark would give each `CatalogTablePartition` of a Java list, and its location."""
    if not len(objects):
        return []
    parse, said = partition_parser(columns), texts(spark, objects)
    if said is None:
        return [_asked(spark, partition, columns) for partition in objects]
    return [parse(text) or _asked(spark, objects[number], columns) for number, text in enumerate(said)]


def partition_parser(columns: Sequence[str]) -> Callable[[str], Location | None]:
    r"""A reader of the texts of partitions by these columns; None where two partitions could have one text.

    >>> said = "CatalogPartition(\n\tPartition Values: [day=1]\n\tLocation: file:/t/day=1\n\tCreated Time: now)"
    >>> partition_parser(["day"])(said)
    ('day=1', 'file:/t/day=1')
    """
    are_plain = all(map(_PLAIN.fullmatch, columns))
    values = ", ".join(f"{re.escape(column)}=({_PLAIN.pattern})" for column in columns)
    pattern = re.compile(_PARTITION % values, re.DOTALL)

    def parse(text: str) -> Location | None:
        found = pattern.fullmatch(text) if are_plain else None
        if found is None or _UNCLEAR in found.groups():
            return None
        *values, location = found.groups()
        if "%" in location or ":///" in location:
            # Spark 3 writes the location as a URI, in which a space is %20.
            return None
        return "/".join(f"{column}={value}" for column, value in zip(columns, values, strict=True)), location

    return parse


def _asked(spark: SparkSession, partition: Any, columns: Sequence[str]) -> Location:
    java = jvm(spark)
    escape = java.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.escapePathName
    spec = map_of_scala(spark, partition.spec())
    name = "/".join(f"{escape(column)}={escape(spec[column])}" for column in columns)
    return name, str(java.org.apache.hadoop.fs.Path(partition.location()).toString())
