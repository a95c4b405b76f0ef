"""The Spark session of a command: that of spark-submit if there is one, else a local one of its own."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from pipeline.spark.errors import PipelineError

Progress = Callable[[str], None]

# The least version of Spark: PySpark 3.4 lacks functions that the commands use.
VERSION_MIN = (3, 5)


@contextmanager
def spark_session(master: str | None = None, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session that reaches the metastore of the Thrift Server; stopped at the end if it was made here."""
    found = SparkSession.getActiveSession()
    session = found or _new_session(master, conf or {})
    try:
        check_version(session.version)
        yield session
    finally:
        if found is None:
            session.stop()


def to_stderr(message: str) -> None:
    """Prints on standard error what a command is doing: one line for each stage."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def check_version(version: str) -> None:
    """Raises PipelineError for a Spark that is too old."""
    major, minor, *_ = version.split(".")
    if (int(major), int(minor)) < VERSION_MIN:
        needed = ".".join(map(str, VERSION_MIN))
        raise PipelineError(
            f"this is Spark {version}, and the commands need {needed} or later, which may share its metastore"
        )


def _new_session(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    # `getOrCreate` takes the master of spark-submit and of spark-defaults.conf where none is named here.
    builder = SparkSession.builder.appName("starpruner pipeline").enableHiveSupport()
    # Spark's progress bar would write over the lines that say what is being done.
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    for name, setting in conf.items():
        builder = builder.config(name, setting)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
