"""Facts that are known of a table, as plain values. The caller fills them by SQL over the client's session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Final, Protocol, TypeAlias

from rewriter.sql.statement import Statement, parse_view
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.skip_reason import Refusal


class TableKind(Enum):
    """The kind of object that a name denotes."""

    TABLE = "table"
    VIEW = "view"


# Qualifiers that a temporary view's name may have: `global_temp.v`, and `session.v` or `system.session.v`.
TEMPORARY_NAMESPACES: Final = frozenset({"global_temp", "session", "system"})


@dataclass(frozen=True)
class ViewText:
    """The query of a view as Spark keeps it, and the meaning of its names."""

    text: str
    # The catalog and the database that were current when the view was made.
    namespace: tuple[str, str]
    # The query's own names for the view's columns, in their order.
    outputs: tuple[str, ...] = ()
    # A name without a database in a temporary view's text may be that of another temporary view.
    is_temporary: bool = False

    @property
    def query(self) -> Statement | None:
        """The parsed text; None where it is not understood."""
        return parse_view(self.text)

    def is_ambiguous(self, name: TableName) -> bool:
        """True if a name in the text may be that of a temporary view."""
        first, *further = name.parts
        return first.lower() in TEMPORARY_NAMESPACES if further else self.is_temporary

    def qualified(self, name: TableName) -> TableName:
        """The full name of a name in the text, whatever database the session has chosen now.

        If a name of two parts starts with another catalog, the result is a name that no table has.
        """
        return replace(name, parts=self.namespace[: 3 - len(name.parts)] + name.parts)


class FollowedView(Protocol):
    """A view whose text was followed down to its tables. See `rewriter.planning.views`."""

    @property
    def small_side_refusal(self) -> Refusal | None:
        """The reason why a key query must not read the view; None if it may."""

    @property
    def refusal_of_partitions(self) -> Refusal | None:
        """The reason why a key query must not read some partitions of the tables behind it; None if it may."""

    @property
    def reads_unpartitioned_alone(self) -> bool:
        """True if the view reads tables that have neither partitions nor another layout, and nothing else."""

    @property
    def joins_inside(self) -> bool:
        """True if its text, by syntax alone, joins tables or compares with subqueries."""

    @property
    def is_filtered(self) -> bool:
        """True if the view is likely to hold fewer keys than its tables."""

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables and views that the text names, and all that those views read."""

    def prunes_by(self, column: Column) -> bool:
        """True if a filter on the view's column lets Spark prune partitions."""

    def skips_by(self, column: Column) -> bool:
        """True if a filter on the view's column lets a format skip files in all tables that are read for it."""

    @property
    def reads_delta(self) -> bool:
        """True if a table behind it is Delta's."""

    def as_derived_table(self, alias: str) -> str | None:
        """A SELECT of the view's columns from its text, under the alias; None if that is not certain."""


# Formats whose files name their columns and hold the values in binary form. CSV finds columns by their place, and
# the value of a text depends on options and settings that may change after the file was indexed. Hive's own tables
# have no `_metadata`, which identifies files, also where Spark reads them as its own.
_INDEXED_PROVIDERS = frozenset({"parquet", "orc"})

# Formats that lose no row by a filter on a timestamp. Spark hands no filter to Hive's own reader.
_FINDING_TIMES = frozenset({"parquet", "csv", "json", "avro", "text", "hive"})

# Formats that compare with a filter as Spark does: files that Spark reads itself, Hive's tables, and Iceberg and
# Delta as far as `rewriter.predicates` asks them. A database behind JDBC orders texts by a collation of its own,
# and may refuse a long list. Hudi may lose rows where a filter's columns have no statistics (HUDI-7246).
_COMPARING_AS_SPARK = frozenset(
    {"parquet", "orc", "orc by position", "hive", "csv", "json", "avro", "text", "iceberg", "delta"}
)

# Formats that Spark writes in buckets and prunes by buckets. It ignores the buckets of Hive's tables.
_BUCKETED_PROVIDERS = frozenset({"parquet", "orc", "csv", "json"})


# A part of a partitioning: `a`, `months(p)`, `bucket(8, k)`.
_TRANSFORM = re.compile(r"(?:(\w+)\((?:\d+, )?)?`?(.+?)`?\)?", re.ASCII)


def transforms(partitioning: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The transform and the column of each part of an Iceberg table's partitioning, `identity` for a plain column.

    >>> transforms(["a", "months(p)", "bucket(8, k)"])
    (('identity', 'a'), ('months', 'p'), ('bucket', 'k'))
    """
    found = (_TRANSFORM.fullmatch(part) for part in partitioning)
    return tuple((one[1] or "identity", one[2]) for one in found if one is not None)


@dataclass(frozen=True)
class IcebergFacts:
    """An Iceberg table as a session described it."""

    # The current snapshot; None for a table into which nothing was written yet.
    snapshot_id: int | None
    # The transforms that it is partitioned by, as DESCRIBE writes them: `a`, `bucket(8, k)`, `months(p)`.
    partitioning: tuple[str, ...] = ()
    # The column, in lower case, by which writers sort the rows of a file first; None if they do not.
    sorted_by: str | None = None
    # True if its files may be in ORC: writers choose that format, or the files were taken over from another table.
    may_hold_orc: bool = False


@dataclass(frozen=True)
class DeltaFacts:
    """A Delta table as a session described it."""

    # Columns that have one value in each file.
    partitioned_by: tuple[str, ...] = ()


# Catalog, database and table: a further part names one of Iceberg's metadata tables, `files`, `snapshots` and so
# on.
_TABLE_PARTS = 3


@dataclass(frozen=True)
class TableFacts:
    """A table as the client's session sees it: columns in order, partition columns among them."""

    columns: tuple[Column, ...]
    partition_columns: tuple[str, ...] = ()
    provider: str = "parquet"
    kind: TableKind = TableKind.TABLE
    # Catalog, database and table, the name in all sessions; None for a table or view of one session.
    full_name: TableName | None = None
    # True if the table is not to be narrowed, whatever could be done.
    is_off: bool = False
    # True if the statement inserts into it, or into a table behind it.
    is_written: bool = False
    # The size of all files together, if the server keeps statistics.
    size_bytes: int | None = None
    # The sizes of parts of it, by the text that chooses them (`rewriter.semijoins.small_sides.PartOfTable`).
    part_sizes: tuple[tuple[str, int], ...] = ()
    # A view's text, if the session could tell it; and the view's tables, once the text was followed.
    view: ViewText | None = None
    behind: FollowedView | None = field(default=None, compare=False)
    # The columns that a file index has bounds of, in any case and order; partition columns may be among them. For
    # an Iceberg or Delta table all columns that can have keys: the format keeps their bounds itself, and needs no
    # index to skip files.
    indexed_columns: tuple[str, ...] = ()
    # The columns whose hash decides which bucket a row is in, and the number of buckets.
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int | None = None
    # The format, parquet or orc, of a table in Hive's format that Spark reads by its own reader, which skips row
    # groups; empty for any other.
    converted_format: str = ""
    # Facts of an Iceberg table; None for any other.
    iceberg: IcebergFacts | None = None
    # Facts of a Delta table that may be narrowed; None for any other.
    delta: DeltaFacts | None = None
    # True if it is a Delta table whose protocol allows columns that are generated from others.
    allows_generated: bool = False
    # True if the statement reads, or could read, a table of which a filter loses timestamps.
    is_beside_lost_times: bool = False
    # True if the statement reads a Delta table, whose log may misjudge decimals and texts.
    is_beside_delta: bool = False

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name.lower(): column for column in self.columns}

    @property
    def columns_differ_by_case(self) -> bool:
        """True if two columns differ in case alone: a session that ignores case takes them for one."""
        return len(self._by_name) < len(self.columns)

    def part_size(self, text: str) -> int | None:
        """The size of a part of it, if that is known."""
        return dict(self.part_sizes).get(text)

    def column(self, name: str) -> Column | None:
        """The column of that name, in any case, or None."""
        return self._by_name.get(name.lower())

    def is_partition_column(self, column: Column) -> bool:
        """True if Spark can prune partitions by the column."""
        if self.behind is not None:
            return self.behind.prunes_by(column)
        return column.name.lower() in {name.lower() for name in self.partition_columns}

    @cached_property
    def pruned_by(self) -> tuple[str, ...]:
        """The columns whose filters leave out partitions, also where the format keeps them, not the catalog."""
        if self.delta is not None:
            return self.delta.partitioned_by
        if self.iceberg is not None:
            return tuple(dict.fromkeys(column for _, column in transforms(self.iceberg.partitioning)))
        return self.partition_columns

    @cached_property
    def hashed_columns(self) -> frozenset[str]:
        """The bucketed columns, in lower case: single values leave out Iceberg's partitions, ranges do not."""
        by_transform = transforms(self.iceberg.partitioning) if self.iceberg is not None else ()
        others = {column.lower() for transform, column in by_transform if transform != "bucket"}
        return frozenset(column.lower() for _, column in by_transform) - others

    @cached_property
    def file_columns(self) -> frozenset[str]:
        """The columns, in lower case, by which files or row groups can be left out, partition columns among them.

        In a table of Hive's format that Spark converts, Spark skips row groups alone, perhaps all of a file's.
        """
        is_known = self._has_file_identities or self.skips_files_itself or (self.is_hive and self.converted_format)
        if self.kind is not TableKind.TABLE or not is_known:
            return frozenset()
        return frozenset(name.lower() for name in self.indexed_columns) & self._by_name.keys()

    @property
    def skips_files_itself(self) -> bool:
        """True if its format knows the bounds of all columns in each file, and compares them with a condition."""
        return self.iceberg is not None or self.delta is not None

    @property
    def _has_file_identities(self) -> bool:
        # A column named `_metadata` hides Spark's own, which identifies files.
        return self.provider in _INDEXED_PROVIDERS and self.column("_metadata") is None

    @property
    def takes_file_hints(self) -> bool:
        """True if a condition can name files that are to be skipped."""
        return self._has_file_identities and bool(self.file_columns)

    @property
    def has_snapshots(self) -> bool:
        """True if it is an Iceberg table, and not one of Iceberg's metadata tables such as `t.snapshots`."""
        name = self.full_name
        return self.iceberg is not None and (name is None or len(name.parts) <= _TABLE_PARTS)

    @property
    def is_hive(self) -> bool:
        """True if it is a table in Hive's format, which has no `_metadata` to identify files."""
        return self.kind is TableKind.TABLE and self.provider == "hive"

    @property
    def may_generate_partitions(self) -> bool:
        """True if it is a Delta table a partition column of which may be generated from another column.

        A Delta table that may be narrowed has no such column now. As of a version, or by its path, it may have
        one.
        """
        return self.allows_generated and self.delta is None

    @property
    def loses_times(self) -> bool:
        """True if a filter on a timestamp may lose rows of the table that have it.

        ORC loses rows where Spark or Iceberg hands its reader filters: with Spark 4.1 a file loses its least time
        if that has digits below the millisecond, with 4.3 a time of the last second before 1970. Delta loses rows
        too: it knows times by the millisecond, and times before 1900 in a zone that is cut short (delta-io/delta
        5512). A format that is not known here may lose rows.
        """
        if self.kind is TableKind.VIEW:
            return False  # its tables do, or it counts as unknown
        if self.iceberg is not None:
            return self.iceberg.may_hold_orc
        return self.provider not in _FINDING_TIMES or self.converted_format == "orc"

    @property
    def is_foreign(self) -> bool:
        """True if it is a table whose format may compare with a filter in another way than Spark."""
        return self.kind is TableKind.TABLE and self.provider not in _COMPARING_AS_SPARK

    @property
    def bucket_column(self) -> str | None:
        """The column, in lower case, by which buckets can be left out: Spark prunes by a single one only."""
        is_pruned = self.kind is TableKind.TABLE and self.provider in _BUCKETED_PROVIDERS and self.bucket_count
        return self.bucket_columns[0].lower() if is_pruned and len(self.bucket_columns) == 1 else None

    @property
    def has_layout(self) -> bool:
        """True if files or buckets of the table can be left out, which is prepared for large tables mostly."""
        return bool(self.file_columns or self.bucket_column)

    @property
    def packs_files(self) -> bool:
        """True if the files are packed into splits by their sizes, and the sizes are known.

        Each bucket is a split, which saves Spark a shuffle: fewer splits would bring the shuffle back.
        """
        return bool(self.file_columns) and not self.bucket_count and not self.is_hive and self.delta is None

    def is_data_column(self, column: Column) -> bool:
        """True if files or buckets can be left out by the column, which is no partition column."""
        if self.behind is not None:
            return self.behind.skips_by(column)
        name = column.name.lower()
        return (name in self.file_columns or name == self.bucket_column) and not self.is_partition_column(column)


# None: the client's session could not describe the table, or its description was not understood.
Catalog: TypeAlias = Mapping[TableName, TableFacts | None]


def may_read_anything(facts: TableFacts | None) -> bool:
    """True if it is not known which tables a name reads."""
    return facts is None or (facts.kind is TableKind.VIEW and facts.behind is None)


def is_fixed(catalog: Catalog, name: TableName) -> bool:
    """True if the name denotes the same rows whenever it is read: an Iceberg table at a snapshot.

    Snapshots are numbered at random. Counted versions are not enough: a table that was made again has the same
    ones.
    """
    facts = catalog.get(name)
    return name.snapshot_id is not None and facts is not None and facts.has_snapshots
