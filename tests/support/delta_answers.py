"""Answers of Spark 4.1 with Delta 4.2, as the tests script them."""

from proxy.operations.query import Rows
from support.played_sessions import rows

DS_PARTITIONS = ("# Partition Information", ""), ("# col_name", "data_type"), ("ds", "string")


def described(
    name: str,
    *columns: tuple[str, str],
    partitioned: tuple[tuple[str, str], ...] = DS_PARTITIONS,
    properties: str = "delta.minReaderVersion=1,delta.minWriterVersion=2",
) -> Rows:
    """The answer to DESCRIBE TABLE EXTENDED of a Delta table."""
    details = ("Name", name), ("Type", "MANAGED"), ("Provider", "delta"), ("Table Properties", f"[{properties}]")
    heading = ("", ""), ("# Detailed Table Information", "")
    return rows(*((*row, "") for row in (*columns, *partitioned, *heading, *details)))
