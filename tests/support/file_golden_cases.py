"""The golden cases about files and buckets, with what a file index and DESCRIBE say of their tables.

Where files lie and how large they are differs from one server to the next, so the recorded index calls them by the
order of their bounds. A test on the server holds it to the real files, and executes every case with those.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rewriter import (
    Catalog,
    KeyQuery,
    KeySet,
    Plan,
    Rewrite,
    RewriteLimits,
    TableFacts,
    TableName,
    apply,
)
from rewriter.files.file_index import FileIndex
from rewriter.files.splits import Packing, SplitHints
from support.golden_cases import FOLDER, Expected, catalog
from support.goldens import planned_with

KIND = "files"
LIMITS = RewriteLimits(has_file_index=True)
CHARS_MAX = 100_000
_INDEX = FOLDER / KIND / "index.json"

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
BUCKETS = {"bucketed": (("k",), 8), "bucketed_by_two": (("k", "id"), 8)}

# As if a split could hold no more than one file and what it costs to open another.
PACKING = Packing(slots=2, split_bytes_max=1 << 20, open_cost_bytes=1 << 20)

# A row of the index: path, size, modification time, rows, and the bounds and lacks as JSON.
IndexRow: TypeAlias = tuple[str, int, int, int, str, str]


def facts() -> dict[str, TableFacts]:
    """What is known of the tables."""
    return {name: with_layout(name, described) for name, described in catalog(KIND).items()}


def with_layout(name: str, described: TableFacts) -> TableFacts:
    """The table with its indexed columns and its buckets."""
    columns, count = BUCKETS.get(name, ((), None))
    return replace(described, indexed_columns=INDEXED.get(name, ()), bucket_columns=columns, bucket_count=count)


def pure_catalog(names: frozenset[TableName]) -> Catalog:
    """The catalog of the given names: None for one that is no table."""
    known = facts()
    return {name: known.get(name.parts[-1].lower()) for name in names}


def recorded_index() -> dict[str, list[IndexRow]]:
    """The rows of the index by table, as they were last recorded."""
    found = json.loads(_INDEX.read_text(encoding="utf-8"))
    return {
        name: [(*row[:4], json.dumps(row[4]), json.dumps(row[5])) for row in rows] for name, rows in found.items()
    }


def write_index(rows: Mapping[str, Sequence[IndexRow]]) -> None:
    """Record rows, for `--update-goldens`."""
    lines = [
        f" {json.dumps(name)}: [\n"
        + ",\n".join("  " + json.dumps([*row[:4], json.loads(row[4]), json.loads(row[5])]) for row in files)
        + "\n ]"
        for name, files in rows.items()
    ]
    _INDEX.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def planned(sql: str, limits: RewriteLimits = LIMITS) -> Plan:
    """The plan of a statement over the tables."""
    return planned_with(sql, pure_catalog, limits, has_file_index=True)


@dataclass(frozen=True)
class Outcome:
    """What a plan comes to with the answers of its key queries."""

    found: Plan
    answers: Mapping[KeyQuery, KeySet]
    index: Mapping[str, Sequence[IndexRow]]

    @classmethod
    def of(cls, found: Plan, expected: Expected, index: Mapping[str, Sequence[IndexRow]]) -> "Outcome":
        """The outcome of recorded answers."""
        rows = zip(found.key_queries, expected.answers, strict=True)
        read_rows = ((query, query.read(answer)) for query, answer in rows)
        return cls(found, {query: keys for query, keys in read_rows if isinstance(keys, KeySet)}, index)

    def rewrite(self, limits: RewriteLimits = LIMITS) -> Rewrite:
        """The statement with the files that it wants."""
        wanted = self.found.wants_files(self.answers, for_splits=True)
        files = {name: file_index(name.parts[-1].lower(), self.index) for name in wanted}
        hints = SplitHints(dict.fromkeys(wanted, PACKING))
        return apply(self.found, self.answers, limits, files=files, split_hints=hints)


def file_index(name: str, index: Mapping[str, Sequence[IndexRow]]) -> FileIndex:
    """The index of one table."""
    types = {column.name.lower(): column.type_name for column in facts()[name].columns}
    return FileIndex.of_rows(index.get(name, []), types)
