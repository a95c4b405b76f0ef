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


# The first versions with what statements of tests have that older servers do not parse, or do not do.
CAST_OPERATOR: Final = (4, 0), "the operator ::"
INSERT_OPTIONS: Final = (4, 0), "INSERT .. WITH (options)"
# Iceberg 1.12 tells the snapshot and the schema of a scan there. On 3.5 the proxy names no snapshots.
SNAPSHOTS_IN_PLANS: Final = (4, 1), "plans that tell snapshots of Iceberg tables"
# All scans of an Iceberg table in one statement are of one snapshot there, also where the catalog keeps no tables.
ONE_SNAPSHOT_A_STATEMENT: Final = (4, 1)


def version_of(session: hive.Connection) -> Version:
    """The version of a session's server."""
    ((told,),) = run(session, "SELECT version()")
    return _read(str(told))


def needs(session: hive.Connection, version: Version, what: str) -> None:
    """Skip a test whose own statements need a newer server: `what` is it that older ones lack."""
    if version_of(session) < version:
        pytest.skip(f"Spark has {what} from {version[0]}.{version[1]} on")
