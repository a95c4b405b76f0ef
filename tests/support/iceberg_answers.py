"""Answers of Spark 4.1 with Iceberg 1.12, as the tests of sessions script them, and of 3.5 where those differ."""

import json

from proxy.operations.query import Rows
from support.played_sessions import rows

DAYS_SNAPSHOT = 7_015_892_706_763_905_315
NEXT_SNAPSHOT = 8_235_144_093_007_451_947
OF_K = "readable_metrics.`k`"
# The files of a table as its metadata table lists them.
FILES_SQL = (
    "SELECT file_path, file_size_in_bytes, 0L, record_count, to_json(named_struct('k', named_struct('type', 'int',"
    f" 'low', CAST({OF_K}.lower_bound AS STRING), 'high', CAST({OF_K}.upper_bound AS STRING),"
    f" 'nulls', {OF_K}.null_value_count, 'row_groups', size(split_offsets)))), NULL"
    " FROM `ice`.`db`.`f`.`data_files`"
)


def a_file(path: str, low: int, high: int) -> tuple[str, int, int, int, str, None]:
    bounds = {"type": "int", "low": str(low), "high": str(high), "nulls": 0}
    return path, 1_000, 0, 10, json.dumps({"k": bounds}), None


def described(
    name: str,
    *columns: tuple[str, str],
    partitioning: tuple[tuple[str, str], ...] = (),
    properties: str = "",
    size_bytes: int | None = 2_800,
) -> Rows:
    """The answer to DESCRIBE TABLE EXTENDED of an Iceberg table; 3.5 tells no size."""
    properties = properties or f"current-snapshot-id={DAYS_SNAPSHOT},format=iceberg/parquet,format-version=2"
    details = ("Name", name), ("Type", "MANAGED"), ("Provider", "iceberg"), ("Table Properties", f"[{properties}]")
    return rows(
        *((*column, None) for column in columns),
        *((*row, "") for row in partitioning),
        *(("# Metadata Columns", "", ""), ("_file", "string", ""), ("_partition", "struct<>", "")),
        *(("", "", ""), ("# Detailed Table Information", "", "")),
        *((*row, "") for row in details),
        *([] if size_bytes is None else [("Statistics", f"{size_bytes} bytes, 100 rows", None)]),
    )


def scan(table: str, *, snapshot: int = DAYS_SNAPSHOT, schema: int = 0, branch: str = "null") -> Rows:
    """The answer to EXPLAIN of a scan."""
    said = f"table={table}, schemaId={schema}, snapshotId={snapshot}, branch={branch}, filters=, runtimeFilters="
    return rows((f"== Physical Plan ==\n*(1) Project [1 AS 1#1]\n+- BatchScan {table}[] IcebergScan({said})",))


def older_scan(table: str, *, branch: str = "null", grouped_by: str = "") -> Rows:
    """The answer of Spark 3.5 to EXPLAIN of a scan."""
    said = f"{table} (branch={branch}) [filters=, groupedBy={grouped_by}] RuntimeFilters: []"
    return rows(
        (f"== Physical Plan ==\nProject [1 AS 1#1]\n+- ColumnarToRow\n   +- BatchScan {table}[] {said}\n\n",)
    )
