"""Java's side of the running Spark. Each call there takes 0.1 ms or more, however little it does."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession

# No file system lets it stand in a name, and no metastore in a value.
_SEPARATOR = "\0"


def jvm(spark: SparkSession) -> JVMView:
    """Java's packages. PySpark gives them no public name; Spark Connect has no JVM at all."""
    found = spark.sparkContext._jvm  # noqa: SLF001 - see above
    assert found is not None  # noqa: S101 - it is None only after the session was stopped
    return found


def jvm_session(spark: SparkSession) -> Any:
    """Spark's own session object, for what SQL does not tell."""
    return spark._jsparkSession  # noqa: SLF001 - the only way to it


def list_of(spark: SparkSession, array: Any) -> Any:
    """Java's list of what is in an array of its."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - as above
    java = jvm(spark).java
    # Py4J finds no method that takes an array of anything but objects.
    objects = gateway.new_array(java.lang.Object, len(array))
    java.lang.System.arraycopy(array, 0, objects, 0, len(array))
    return java.util.Arrays.asList(objects)


def texts(spark: SparkSession, objects: Any) -> list[str] | None:
    """What each of Java's list of objects says of itself, in one call; None where that cannot be told apart."""
    joined = str(jvm(spark).org.apache.hadoop.util.StringUtils.join(_SEPARATOR, objects))
    found = joined.split(_SEPARATOR)
    return found if len(found) == len(objects) else None
