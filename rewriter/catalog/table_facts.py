"""What is known of a table. Filled from outside (by SQL over the client's session); plain facts here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Final, Protocol, TypeAlias

from rewriter.sql.statement import Statement, parse_view
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.skip_reason import SkipReason


class TableKind(Enum):
    """What stands behind a name."""

    TABLE = "table"
    VIEW = "view"


# What a temporary view's name may be qualified by: `global_temp.v`, and `session.v` or `system.session.v`.
TEMPORARY_NAMESPACES: Final = frozenset({"global_temp", "session", "system"})


@dataclass(frozen=True)
class ViewText:
    """The query of a view as Spark keeps it, and what its names mean."""

    text: str
    # The catalog and the database that were current as the view was made.
    namespace: tuple[str, str]
    # The query's own names for the view's columns, in their order.
    outputs: tuple[str, ...] = ()
    # In a temporary view's text a name without a database may be that of another temporary view.
    is_temporary: bool = False

    @property
    def query(self) -> Statement | None:
        """The parsed text; None where it is not understood."""
        return parse_view(self.text)

    def is_ambiguous(self, name: TableName) -> bool:
        """Whether a name in the text may be that of a temporary view."""
        first, *further = name.parts
        return first.lower() in TEMPORARY_NAMESPACES if further else self.is_temporary

    def qualified(self, name: TableName) -> TableName:
        """What a name in the text denotes, wherever the session that asks is now.

        Where a name of two parts starts with another catalog, this is a name that nothing has.
        """
        return replace(name, parts=self.namespace[: 3 - len(name.parts)] + name.parts)


class FollowedView(Protocol):
    """What stands behind a view whose text was followed. See `rewriter.planning.views`."""

    @property
    def small_side_refusal(self) -> SkipReason | None:
        """Why a key query must not read the view, if it must not."""

    @property
    def is_filtered(self) -> bool:
        """Whether the view is likely to hold fewer keys than its tables."""

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables and views that the text names, and all that stand behind those."""

    def prunes_by(self, column: Column) -> bool:
        """Whether a filter on the view's column lets Spark prune partitions."""

    def skips_by(self, column: Column) -> bool:
        """Whether a filter on the view's column lets Iceberg skip files, in whatever is read for the column."""


# Formats in which a file by itself says what its columns hold: they stand in it by their names, in a binary form.
# CSV has them by their place, and what a text comes to depends on options and settings that may change after the
# file was looked into. Hive's own tables have no `_metadata`, by which files are told apart.
_INDEXED_PROVIDERS = frozenset({"parquet", "orc"})

# Formats that Spark writes in buckets and leaves buckets out of. Those of Hive's tables it ignores.
_BUCKETED_PROVIDERS = frozenset({"parquet", "orc", "csv", "json"})


@dataclass(frozen=True)
class IcebergFacts:
    """What a session saw of an Iceberg table when it was described."""

    # The current snapshot; None of a table into which nothing was written yet.
    snapshot_id: int | None
    # The transforms that it is partitioned by, as DESCRIBE writes them: `a`, `bucket(8, k)`, `months(p)`.
    partitioning: tuple[str, ...] = ()


# Catalog, database and table: below them stand `files`, `snapshots` and what else Iceberg tells of a table.
_TABLE_PARTS = 3


@dataclass(frozen=True)
class TableFacts:
    """A table as the client's session sees it: columns in order, partition columns among them."""

    columns: tuple[Column, ...]
    partition_columns: tuple[str, ...] = ()
    provider: str = "parquet"
    kind: TableKind = TableKind.TABLE
    # Catalog, database and table, by which all sessions know it; None of what belongs to one session.
    full_name: TableName | None = field(default=None, compare=False)
    # Whether it is to be left alone, whatever could be done.
    is_off: bool = False
    # Of all files together, where the server keeps statistics.
    size_bytes: int | None = None
    # Of a view: its text, where the session could tell; and what that comes to, once it was followed.
    view: ViewText | None = None
    behind: FollowedView | None = field(default=None, compare=False)
    # The columns that a file index tells of, in any case and order; partition columns may be among them. Of an
    # Iceberg table all that can have keys: Iceberg itself keeps their bounds, and needs no index to skip files.
    indexed_columns: tuple[str, ...] = ()
    # The columns whose hash says which of so many buckets a row is in.
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int | None = None
    # What is known of an Iceberg table; None of any other.
    iceberg: IcebergFacts | None = None

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name.lower(): column for column in self.columns}

    @property
    def columns_differ_by_case(self) -> bool:
        """Whether two columns are one to a session that ignores case and two to one that does not."""
        return len(self._by_name) < len(self.columns)

    def column(self, name: str) -> Column | None:
        """The column of that name, in any case, or None."""
        return self._by_name.get(name.lower())

    def is_partition_column(self, column: Column) -> bool:
        """Whether Spark can prune partitions by the column."""
        if self.behind is not None:
            return self.behind.prunes_by(column)
        return column.name.lower() in {name.lower() for name in self.partition_columns}

    @cached_property
    def file_columns(self) -> frozenset[str]:
        """The columns, in lower case, by which whole files can be left out, partition columns among them."""
        # Behind a column of that name Spark hides its own, by which files are told apart.
        names_files = self.provider in _INDEXED_PROVIDERS and self.column("_metadata") is None
        names_files = names_files or self.iceberg is not None
        if self.kind is not TableKind.TABLE or not names_files:
            return frozenset()
        return frozenset(name.lower() for name in self.indexed_columns) & self._by_name.keys()

    @property
    def has_snapshots(self) -> bool:
        """Whether it is an Iceberg table, and none in which Iceberg tells of one, such as `t.snapshots`."""
        name = self.full_name
        return self.iceberg is not None and (name is None or len(name.parts) <= _TABLE_PARTS)

    @property
    def is_hive(self) -> bool:
        """Whether it is a table in Hive's format, which has no `_metadata` to tell files apart by."""
        return self.kind is TableKind.TABLE and self.provider == "hive"

    @property
    def bucket_column(self) -> str | None:
        """The column, in lower case, by which buckets can be left out: Spark does so by a single one only."""
        is_pruned = self.kind is TableKind.TABLE and self.provider in _BUCKETED_PROVIDERS and self.bucket_count
        return self.bucket_columns[0].lower() if is_pruned and len(self.bucket_columns) == 1 else None

    @property
    def has_layout(self) -> bool:
        """Whether files or buckets of it can be left out: somebody has seen to that, as for large tables."""
        return bool(self.file_columns or self.bucket_column)

    @property
    def packs_files(self) -> bool:
        """Whether files of known sizes are packed into splits by these.

        Of buckets each is a split, by which Spark spares a shuffle: to read them in fewer would bring that back.
        """
        return bool(self.file_columns) and not self.bucket_count

    def is_data_column(self, column: Column) -> bool:
        """Whether files or buckets can be left out by the column, which is no partition column."""
        if self.behind is not None:
            return self.behind.skips_by(column)
        name = column.name.lower()
        return (name in self.file_columns or name == self.bucket_column) and not self.is_partition_column(column)


# None: the client's session could not describe it, or what it said was not understood.
Catalog: TypeAlias = Mapping[TableName, TableFacts | None]


def may_read_anything(facts: TableFacts | None) -> bool:
    """Whether it is not known what stands behind a name."""
    return facts is None or (facts.kind is TableKind.VIEW and facts.behind is None)


def is_fixed(catalog: Catalog, name: TableName) -> bool:
    """Whether what the name denotes is the same whenever it is read: an Iceberg table at a snapshot.

    Snapshots are numbered at random. Where versions are counted, a table that was made again has the same ones.
    """
    facts = catalog.get(name)
    return name.snapshot_id is not None and facts is not None and facts.has_snapshots
