"""What Spark 4.1 with Iceberg 1.12 answers, as the tests of sessions script it."""

from proxy.operations.query import Column, Rows, Value

DAYS_SNAPSHOT = 7_015_892_706_763_905_315
NEXT_SNAPSHOT = 8_235_144_093_007_451_947


def rows(*values: tuple[Value, ...]) -> Rows:
    return Rows(tuple(Column(f"c{i}", "string") for i in range(3)), values, 0.25)


def described(
    name: str,
    *columns: tuple[str, str],
    partitioning: tuple[tuple[str, str], ...] = (),
    properties: str = "",
    size_bytes: int = 2_800,
) -> Rows:
    """The answer to DESCRIBE TABLE EXTENDED of an Iceberg table."""
    properties = properties or f"current-snapshot-id={DAYS_SNAPSHOT},format=iceberg/parquet,format-version=2"
    details = ("Name", name), ("Type", "MANAGED"), ("Provider", "iceberg"), ("Table Properties", f"[{properties}]")
    return rows(
        *((*column, None) for column in columns),
        *((*row, "") for row in partitioning),
        *(("# Metadata Columns", "", ""), ("_file", "string", ""), ("_partition", "struct<>", "")),
        *(("", "", ""), ("# Detailed Table Information", "", "")),
        *((*row, "") for row in details),
        ("Statistics", f"{size_bytes} bytes, 100 rows", None),
    )


def scan(table: str, *, snapshot: int = DAYS_SNAPSHOT, schema: int = 0, branch: str = "null") -> Rows:
    """The answer to EXPLAIN of a scan."""
    said = f"table={table}, schemaId={schema}, snapshotId={snapshot}, branch={branch}, filters=, runtimeFilters="
    return rows((f"== Physical Plan ==\n*(1) Project [1 AS 1#1]\n+- BatchScan {table}[] IcebergScan({said})",))
