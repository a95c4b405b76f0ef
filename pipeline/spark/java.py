"""Access to the JVM of the running Spark. Each call there takes 0.1 ms or more, however little it does."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession

# No file system allows it in a name, and no metastore in a value.
_SEPARATOR = "\0"


def jvm(spark: SparkSession) -> JVMView:
    """Java's packages. PySpark has no public name for them; Spark Connect has no JVM at all."""
    found = spark.sparkContext._jvm  # noqa: SLF001 - see above
    assert found is not None  # noqa: S101 - it is None only after the session was stopped
    return found


def jvm_session(spark: SparkSession) -> Any:
    """Spark's own session object, for facts that SQL does not tell."""
    return spark._jsparkSession  # noqa: SLF001 - the only way to it


def forget_listings(spark: SparkSession) -> None:
    """Forget the files of tables that the session has read: others may have written to these tables since."""
    jvm_session(spark).sessionState().catalog().invalidateAllCachedTables()


def list_of(spark: SparkSession, array: Any) -> Any:
    """The elements of a Java array as a Java list."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - as above
    java = jvm(spark).java
    # Py4J finds no method that takes an array of anything but objects.
    objects = gateway.new_array(java.lang.Object, len(array))
    java.lang.System.arraycopy(array, 0, objects, 0, len(array))
    return java.util.Arrays.asList(objects)


def list_of_scala(spark: SparkSession, sequence: Any) -> Any:
    """The elements of a Scala sequence as a Java list."""
    return _converters(spark).seqAsJavaList(sequence)


def map_of_scala(spark: SparkSession, mapping: Any) -> Any:
    """A Scala map as a Java map."""
    return _converters(spark).mapAsJavaMap(mapping)


def _converters(spark: SparkSession) -> Any:
    # Scala 2.13 says that they are deprecated; 2.12, which Spark 3 has, knows no others.
    return jvm(spark).scala.collection.JavaConverters


def texts(spark: SparkSession, objects: Any) -> list[str] | None:
    """The texts of all objects in a Java list, from one call; None where they cannot be told apart."""
    joined = str(jvm(spark).org.apache.hadoop.util.StringUtils.join(_SEPARATOR, objects))
    found = joined.split(_SEPARATOR)
    return found if len(found) == len(objects) else None
