"""Facts of the golden cases' tables beside their description: file indexes, lists of partitions, Iceberg, Delta.

Where files lie and how large they are differs from one server to the next, so the recorded index calls them by the
order of their bounds. A test on the server holds it to the real files, and executes every case with those.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from rewriter import Catalog, Column, IcebergFacts, PartitionIndexes, TableFacts, TableKind, TableName
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.domains.literals import is_data_key_type
from rewriter.files.file_index import FileIndex
from rewriter.partitions.index import PartitionIndex
from rewriter.splits.packing import Packing
from support.golden_cases import FOLDER, catalog, pure_catalog

_INDEX = FOLDER / "files" / "index.json"
_PARTITIONS = FOLDER / "listed" / "partitions.json"

# What the index knows beside what DESCRIBE tells: the columns of each table, and the tuples that it keeps apart.
INDEXED = {
    "clustered": ("x", "s", "d", "f", "c", "o"),
    "skewed": ("x", "y"),
    "parted": ("x", "p"),
    "many": ("x", "p"),
    "in_hive": ("x",),
    "in_hive_parted": ("x",),
    "in_hive_text": ("x",),
    "as_csv": ("x",),
    "hiding": ("x",),
}
SKEWED = {"skewed": (("x", "y"), (("10", "a"), ("10", "b"), ("20", "c")))}
_BUCKETS = {"bucketed": (("k",), 8), "bucketed_by_two": (("k", "id"), 8)}

# As if a split could hold no more than one file and what it costs to open another.
PACKING = Packing(slots=2, split_bytes_max=1 << 20, open_cost_bytes=1 << 20)

NAMESPACE = ("ice", "golden")
PARTITIONING = {
    "hashed": ("bucket(16, k)",),
    "monthly": ("months(day)",),
    "crossed": ("a", "b"),
    "evolved": ("truncate(10, k)",),
}
# As the statistics say it, but that they change with each version of a writer.
_SMALL_BYTES, _FACT_BYTES = 1_000, 1_000_000

# A row of the index: path, size, modification time, rows, and the bounds and lacks as JSON.
IndexRow: TypeAlias = tuple[str, int, int, int, str, str]
Index: TypeAlias = Mapping[str, Sequence[IndexRow]]


def facts(kind: str) -> dict[str, TableFacts]:
    """What is known of the tables of a kind of cases."""
    known = catalog(kind)
    if kind == "files":
        return {name: with_layout(name, described) for name, described in known.items()}
    if kind == "delta":
        return {name: _with_delta(name, described) for name, described in known.items()}
    if kind == "iceberg":
        known = {name: _with_iceberg(name, described) for name, described in known.items()}
        columns = (Column("file_size_in_bytes", "bigint"), Column("spec_id", "int"))
        files = replace(known["sorted"], columns=columns, indexed_columns=("spec_id",))
        known["files"] = replace(files, full_name=TableName((*NAMESPACE, "sorted", "files")))
    return known


def catalog_of(kind: str, names: frozenset[TableName]) -> Catalog:
    """The catalog of the given names: None for one that is no table."""
    if not kind:
        return pure_catalog(names)
    known = facts(kind)
    return {name: known.get(name.parts[-1].lower()) for name in names}


def with_layout(name: str, described: TableFacts) -> TableFacts:
    """The table with its indexed columns and its buckets."""
    columns, count = _BUCKETS.get(name, ((), None))
    return replace(described, indexed_columns=INDEXED.get(name, ()), bucket_columns=columns, bucket_count=count)


def _with_iceberg(name: str, described: TableFacts) -> TableFacts:
    """The table with its transforms and with all columns that can have keys; a view as it is."""
    if described.kind is TableKind.VIEW:
        return described
    return replace(
        described,
        full_name=TableName((*NAMESPACE, name)),
        size_bytes=_SMALL_BYTES if name in {"small", "moments"} else _FACT_BYTES,
        indexed_columns=tuple(column.name for column in described.columns if is_data_key_type(column.type_name)),
        iceberg=IcebergFacts(1, PARTITIONING.get(name, ())),
    )


def _with_delta(name: str, described: TableFacts) -> TableFacts:
    """The table with all columns that can have keys; a view as it is."""
    if described.kind is TableKind.VIEW:
        return described
    return replace(
        described,
        full_name=TableName(("spark_catalog", "golden_delta", name)),
        size_bytes=_SMALL_BYTES if name == "small" else _FACT_BYTES,
        partition_columns=(),
        indexed_columns=tuple(column.name for column in described.columns if is_data_key_type(column.type_name)),
        delta=DeltaFacts(described.partition_columns),
    )


def recorded_index() -> dict[str, list[IndexRow]]:
    """The rows of the index by table, as they were last recorded."""
    found = json.loads(_INDEX.read_text(encoding="utf-8"))
    return {
        name: [(*row[:4], json.dumps(row[4]), json.dumps(row[5])) for row in rows] for name, rows in found.items()
    }


def write_index(rows: Index) -> None:
    """Record rows, for `--update-goldens`."""
    lines = [
        f" {json.dumps(name)}: [\n"
        + ",\n".join("  " + json.dumps([*row[:4], json.loads(row[4]), json.loads(row[5])]) for row in files)
        + "\n ]"
        for name, files in rows.items()
    ]
    _INDEX.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def file_index(name: TableName, index: Index) -> FileIndex:
    """The index of one table."""
    table = name.parts[-1].lower()
    types = {column.name.lower(): column.type_name for column in catalog("files")[table].columns}
    return FileIndex.of_rows(index.get(table, []), types)


def recorded_partitions() -> dict[str, list[str]]:
    """The rows of SHOW PARTITIONS by table."""
    found = json.loads(_PARTITIONS.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def write_partitions(found: Mapping[str, Sequence[str]]) -> None:
    """Record them, for `--update-goldens`."""
    _ = _PARTITIONS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def partition_lists(names: Sequence[TableName]) -> PartitionIndexes:
    """The lists of some tables' partitions."""
    found, known, indexes = recorded_partitions(), catalog("listed"), {}
    for name in names:
        table = known[name.parts[-1]]
        types = [column.type_name for column in table.columns if table.is_partition_column(column)]
        indexes[name] = PartitionIndex.of(table.partition_columns, types, found[name.parts[-1]])
    return indexes
