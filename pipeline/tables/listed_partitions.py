"""The partitions that a catalog lists. Java is asked once for all of them: each alone would take twenty calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from pipeline.spark.java import jvm, texts

# What Spark writes as it is in the name of a directory.
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
# As `CatalogTablePartition.toString` in org/apache/spark/sql/catalyst/catalog/interface.scala says it.
_PARTITION = r"CatalogPartition\(\n\tPartition Values: \[%s\]\n\tLocation: ([^\n]+)\n\t.*\)"
# What a null says of itself, and a text too.
_UNCLEAR = "null"

Place = tuple[str, str]


def listed_partitions(spark: SparkSession, objects: Any, columns: Sequence[str]) -> list[Place]:
    """Of each `CatalogTablePartition` in a Java list: the directory that Spark would give it, and where it is."""
    if not len(objects):
        return []
    told, said = teller(columns), texts(spark, objects)
    if said is None:
        return [_asked(spark, partition, columns) for partition in objects]
    return [told(text) or _asked(spark, objects[number], columns) for number, text in enumerate(said)]


def teller(columns: Sequence[str]) -> Callable[[str], Place | None]:
    r"""Reads what partitions by these columns say; None where another one could say the same.

    >>> said = "CatalogPartition(\n\tPartition Values: [day=1]\n\tLocation: file:/t/day=1\n\tCreated Time: now)"
    >>> teller(["day"])(said)
    ('day=1', 'file:/t/day=1')
    """
    are_plain = all(map(_PLAIN.fullmatch, columns))
    values = ", ".join(f"{re.escape(column)}=({_PLAIN.pattern})" for column in columns)
    pattern = re.compile(_PARTITION % values, re.DOTALL)

    def told(text: str) -> Place | None:
        found = pattern.fullmatch(text) if are_plain else None
        if found is None or _UNCLEAR in found.groups():
            return None
        *values, place = found.groups()
        return "/".join(f"{column}={value}" for column, value in zip(columns, values, strict=True)), place

    return told


def _asked(spark: SparkSession, partition: Any, columns: Sequence[str]) -> Place:
    java = jvm(spark)
    escape = java.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.escapePathName
    spec = java.scala.jdk.javaapi.CollectionConverters.asJava(partition.spec())
    name = "/".join(f"{escape(column)}={escape(spec[column])}" for column in columns)
    return name, str(java.org.apache.hadoop.fs.Path(partition.location()).toString())
