"""Scans are read from plans as Spark 4.3 writes them."""

import pytest

from proxy.operations.query import Rows
from proxy.session.catalog.plan_scans import planned_by, read_scans

FILE_SCAN = (
    "+- FileScan parquet spark_catalog.d.sales[a#1,ds#2] Batched: true, DataFilters: [], Format: Parquet,"
    " Location: {location}[file:/wh/ds=1, file:/w..., PartitionFilters: [{filters}], PushedFilters: [], X"
)
HIVE_SCAN = (
    "Scan hive spark_catalog.d.sales [a#1, ds#2], HiveTableRelation [`spark_catalog`.`d`.`sales`, org.x.Lazy, Data"
    " Cols: [a#1], Partition Cols: [ds#2]{pruned}], [isnotnull(ds#2), (ds#2 = 1)]"
)
ICEBERG_SCAN = (
    "BatchScan ice.d.sales[a#1] IcebergScan(table=ice.d.sales, schemaId=0, snapshotId=7, branch=null,"
    " filters={filters}, runtimeFilters=, groupedBy=)"
)
PRUNED = ", Pruned Partitions: [(ds=1), (ds=2){more}]"


def scan(
    location: str = "InMemoryFileIndex(3 paths)", filters: str = "isnotnull(ds#2), (length(ds#2) > 0)"
) -> str:
    return FILE_SCAN.format(location=location, filters=filters)


@pytest.mark.parametrize(
    ("lines", "scans", "is_whole"),
    [
        (scan(), [(3, True, True)], True),
        (scan("CatalogFileIndex(1 paths)", ""), [(None, True, False)], True),
        (scan(filters="isnotnull(ds#2), dynamicpruningexpression(ds#2 IN x)"), [(3, True, False)], True),
        (scan("PreparedDeltaFileIndex(1 paths)"), [(None, True, True)], True),
        (scan("PreparedDeltaFileIndex(1 paths)", "isnotnull(ds#2)"), [(None, True, False)], True),
        # Another index of Delta's has not left out anything yet.
        (scan("TahoeLogFileIndex(1 paths)"), [(None, False, False)], True),
        (
            scan(filters="").replace("DataFilters: []", "DataFilters: [PartitionFilters: [x]]"),
            [(3, True, False)],
            True,
        ),
        (scan().replace("spark_catalog.d.sales", ""), [], False),
        (ICEBERG_SCAN.format(filters=""), [(None, True, False)], True),
        (ICEBERG_SCAN.format(filters="ds = 'filters=, '"), [(None, True, None)], True),
        (HIVE_SCAN.format(pruned=""), [(None, True, False)], True),
        (HIVE_SCAN.format(pruned=PRUNED.format(more="")), [(2, True, True)], True),
        (HIVE_SCAN.format(pruned=PRUNED.format(more=", ... 7 more fields")), [(9, True, True)], True),
        ("*(1) BatchScan ice.d.sales[a#1] ice.d.sales [filters=]", [(None, False, False)], True),
        # A literal of the statement says what another plan would.
        (scan().replace("DataFilters: []", f"DataFilters: [(a#1 = {scan()})]"), [(3, True, True)], True),
        (
            scan("CatalogFileIndex(1 paths)", "(ds#2 = Location: InMemoryFileIndex(0 paths))"),
            [(None, True, True)],
            True,
        ),
        (f"{scan().partition('Location')[0]}\nLocation", [(None, False, False)], True),
        (f"{HIVE_SCAN.format(pruned='')}, (ds#2 = {PRUNED.format(more='')}], )", [(None, True, False)], True),
        ("LocalTableScan <empty>, [a#1]", [], True),
        (f"Execute InsertIntoHadoopFsRelationCommand file:/x\n{scan()}", [(3, True, True)], True),
        ("Execute CreateDataSourceTableAsSelectCommand\n   +- Relation d.sales[a#1] parquet", [], False),
        ("CacheTableAsSelect c, Project [a#1]", [], False),
    ],
)
def test_the_scans_of_a_plan(
    lines: str, scans: list[tuple[int | None, bool, bool | None]], *, is_whole: bool
) -> None:
    found = read_scans(Rows((), ((f"== Physical Plan ==\n{lines}\n",),), 0.0))
    assert found is not None
    assert [(one.partitions, one.is_known, one.is_filtered) for one in found.scans] == scans
    assert all(str(one.table).endswith("d.sales") for one in found.scans)
    assert found.is_whole is is_whole


def test_a_scan_has_the_bytes_of_the_optimized_plan() -> None:
    sizes = ("525.0 B", "1.0 KiB")
    relations = [f"+- Relation spark_catalog.d.sales[a#1] parquet, Statistics(sizeInBytes={one})" for one in sizes]
    for lines, found in ((relations, 1024), ([*relations, relations[0].replace("525.0 B", "8.0 EiB")], None)):
        plan = "\n".join(["== Optimized Logical Plan ==", "Union", *lines, "", "== Physical Plan ==", scan()])
        scans = read_scans(Rows((), ((plan,),), 0.0))
        assert scans is not None
        assert [one.size_bytes for one in scans.scans] == [found]


def test_what_is_no_plan_has_no_scans() -> None:
    assert read_scans(Rows((), (("an error",),), 0.0)) is None


@pytest.mark.parametrize(
    ("text", "planned"),
    [
        ("CACHE TABLE t AS SELECT 1", " SELECT 1"),
        ("/* x */ cache lazy table `a b`.t OPTIONS ('k' = 'v') SELECT 1", "SELECT 1"),
        ("CACHE TABLE d.t", "TABLE d.t"),
        ("SELECT 1", "SELECT 1"),
    ],
)
def test_of_a_table_to_cache_its_query_is_planned(text: str, planned: str) -> None:
    assert planned_by(text) == planned
