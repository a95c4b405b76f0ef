"""The version of the server of a test, as that says it: some statements and answers are of newer ones alone."""

from typing import Final, TypeAlias

import pyspark
import pytest
from pyhive import hive

from demo.hive import run

# Its first two numbers, as in 3.5.
Version: TypeAlias = tuple[int, int]


def _read(version: str) -> Version:
    first, second, *_ = version.split(".")
    return int(first), int(second)


# The environment's Spark.
NEWEST: Final = _read(pyspark.__version__)


def version_of(session: hive.Connection) -> Version:
    """The version of a session's server."""
    ((told,),) = run(session, "SELECT version()")
    return _read(str(told))


def needs(session: hive.Connection, version: Version, what: str) -> None:
    """Skip a test whose own statements need a newer server: `what` is it that older ones lack."""
    if version_of(session) < version:
        pytest.skip(f"Spark has {what} from {version[0]}.{version[1]} on")
