"""The error that a user can do something about, and those of Spark: any other is a defect, and shows its stack."""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

# PySpark has no class of its own for some errors of Java's; in Spark 3 it has none for errors that end a job.
SPARK_ERRORS = (PySparkException, Py4JJavaError)


class PipelineError(Exception):
    """A command cannot do its work; the message says why, and what to do."""


def said(error: Exception) -> str:
    """The message of an error, for a user. For one without a class in PySpark, the line before Java's stack."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString()).strip().partition("\n")[0]
    return str(error)


def first_line(error: Exception) -> str:
    """The first line of an error's message: some of Spark's go on with the query and the place in it."""
    return said(error).strip().partition("\n")[0]
