"""The files of Iceberg tables with their bounds, as sessions read them from metadata tables: once for each user.

The list tells how to put many keys into few ranges, and whether anything would be skipped at all. It never says
what a statement may leave out: Iceberg finds that by itself, in the snapshot that the statement reads. So one that
is out of date costs pruning, never rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from proxy.config.rewriting import FilesSection
from proxy.operations.query import Ask, FailureKind, Query, QueryFailed, QueryResult, Rows
from proxy.session.catalog.caches import WeightedLru
from proxy.session.catalog.file_index import TableFigures
from proxy.session.catalog.late_answers import believed_s
from proxy.session.catalog.metadata_cache import SessionMetadata
from rewriter import Plan, TableFacts, TableName
from rewriter.domains.instants import INSTANT, LOCAL_TIME
from rewriter.domains.literals import is_data_key_type, key_expression, literal
from rewriter.files.file_index import FileIndex
from rewriter.files.partition_files import FileSum
from rewriter.vocabulary.identifiers import Column, quoted

# Two numbers.
_SUMMARY_BYTES_MAX = 65_536


class _Key(NamedTuple):
    """The key of a list: user, table, and the columns whose bounds it has."""

    owner: tuple[str, ...]
    table: TableName
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class _Listed:
    """The files as of some snapshot or a later one; None where they could not be had."""

    index: FileIndex | None
    snapshot_id: int
    # Until when the list is believed whatever the snapshot, and a failure is not tried again.
    until: float
    # False if there was no answer.
    is_known: bool = True

    @property
    def weight(self) -> int:
        """The size of the list, in files. A failure takes some memory too."""
        return 1 + (self.index.weight if self.index is not None else 0)


@dataclass(frozen=True)
class SmallFileIndex:
    """The files of a table that has many small ones; None for any other table, or if that is not known now."""

    index: FileIndex | None
    is_known: bool


_UNKNOWN = SmallFileIndex(None, is_known=False)


class IcebergFiles:
    """The lists of the tables used last. Used by several threads at once."""

    def __init__(self, settings: FilesSection, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._kept = WeightedLru[_Key, _Listed](settings.files_kept_max)

    async def files(
        self, ask: Ask, facts: TableFacts, names: Collection[str], known: SessionMetadata
    ) -> FileIndex | None:
        """The files with the bounds of some columns, or None where they cannot be had now."""
        columns, table = _wanted(facts, names), facts.full_name
        snapshot_id = facts.iceberg.snapshot_id if facts.iceberg is not None else None
        if snapshot_id is None or table is None or not columns:
            return None
        key = _Key(known.list_owner, table, columns)
        listed = self._kept.get(key)
        if listed is not None and self._is_current(listed, snapshot_id):
            return listed.index
        with self._kept.alone(key) as is_alone:
            if not is_alone:
                return None
            answer, columns = await self._fetched(ask, table, columns)
            index = _read(answer, columns, facts.iceberg.sorted_by if facts.iceberg is not None else None)
            until = self._clock() + believed_s(answer, self._settings.tables_ttl_s)
            self._kept.put(key, _Listed(index, snapshot_id, until))
            return index

    async def small_files(
        self, ask: Ask, facts: TableFacts, known: SessionMetadata, files_min: int
    ) -> SmallFileIndex:
        """The files without bounds, of a table of more small files than that, as of the snapshot in the facts.

        The snapshot's summary tells first whether it is such a table, so that large tables are not listed for it.
        Many rows may have come with a later snapshot, so a list of an older one is not used.
        """
        table, snapshot_id = facts.full_name, facts.iceberg.snapshot_id if facts.iceberg is not None else None
        if snapshot_id is None or table is None:
            return _UNKNOWN
        key = _Key(known.list_owner, table, ())
        listed = self._kept.get(key)
        is_of_snapshot = listed is not None and (listed.index is None or listed.snapshot_id == snapshot_id)
        if listed is not None and is_of_snapshot and self._is_current(listed, snapshot_id):
            return SmallFileIndex(listed.index, listed.is_known)
        with self._kept.alone(key) as is_alone:
            if not is_alone:
                return _UNKNOWN
            index, answer = None, await ask(summary_query(table, snapshot_id, self._settings))
            if _has_small_files(answer, files_min, self._settings.files_max):
                answer = await ask(sizes_query(table, self._settings))
                index = _read(answer, (), None)
            until, is_known = (
                self._clock() + believed_s(answer, self._settings.tables_ttl_s),
                isinstance(answer, Rows),
            )
            self._kept.put(key, _Listed(index, snapshot_id, until, is_known))
            return SmallFileIndex(index, is_known)

    def is_under_way(self, facts: TableFacts, known: SessionMetadata) -> bool:
        """True if some session of the same user is asking for the small files of a table at this moment."""
        table = facts.full_name
        return table is not None and self._kept.is_under_way(_Key(known.list_owner, table, ()))

    async def _fetched(
        self, ask: Ask, table: TableName, columns: tuple[Column, ...]
    ) -> tuple[QueryResult, tuple[Column, ...]]:
        """The files as the table tells of them, by these columns or, at the second try, by fewer.

        To Spark a column of UUIDs is a string column. It has no bounds: Iceberg 1.12 fails where they are asked
        for (a ClassCastException), so the second try leaves out strings. Any other reason to reject fails both
        tries.
        """
        answer = await ask(files_query(table, columns, self._settings))
        rest = tuple(column for column in columns if column.type_name != "string")
        if isinstance(answer, QueryFailed) and answer.kind is FailureKind.REJECTED and rest and rest != columns:
            columns, answer = rest, await ask(files_query(table, rest, self._settings))
        return answer, columns

    def _is_current(self, listed: _Listed, snapshot_id: int) -> bool:
        """True if it need not be listed again: else a table that is written each second would be, each time."""
        return listed.until > self._clock() or (listed.index is not None and listed.snapshot_id == snapshot_id)


def columns_asked(planned: Plan, name: TableName) -> frozenset[str]:
    """The columns that a table's scans are narrowed by."""
    scans = (scan for scan in planned.scans if scan.reference.name == name)
    return frozenset(column for scan in scans for reducer in scan.reducers for column in reducer.columns)


def _wanted(facts: TableFacts, names: Collection[str]) -> tuple[Column, ...]:
    found = (facts.column(name) for name in sorted({name.lower() for name in names}))
    return tuple(column for column in found if column is not None and is_data_key_type(column.type_name))


def files_query(table: TableName, columns: Collection[Column], settings: FilesSection) -> Query:
    """The statement whose rows `FileIndex.of_rows` reads.

    Bounds of texts are cut to 16 characters, the lower one downwards and the upper one upwards: they hold. A file
    can be split where a row group begins, or a stripe; files of Avro have no such places. Iceberg 1.12 tells these
    places only if the file's size is asked for too.
    """
    bounds = ", ".join(f"{literal('string', column.name.lower())}, {_bounds(column)}" for column in columns)
    # No time and nothing that is lacking: Iceberg never writes a file twice, and keeps bounds alone.
    told = f"file_path, file_size_in_bytes, 0L, record_count, to_json(named_struct({bounds})), NULL"
    sql = f"SELECT {told} FROM {TableName((*table.parts, 'data_files')).sql}"  # noqa: S608 - quoted names
    limits = settings.files_max, settings.fetch_bytes_max, settings.query_deadline_s
    return Query(sql, *limits, needs_slot=True)


def summary_query(table: TableName, snapshot_id: int, settings: FilesSection) -> Query:
    """The statement whose row has the numbers of files and bytes of a snapshot."""
    snapshots = TableName((*table.parts, "snapshots")).sql
    told = ", ".join(f"CAST(summary['{name}'] AS BIGINT)" for name in ("total-data-files", "total-files-size"))
    sql = f"SELECT {told} FROM {snapshots} WHERE snapshot_id = {snapshot_id:d}"  # noqa: S608 - quoted names
    return Query(sql, 1, _SUMMARY_BYTES_MAX, settings.query_deadline_s, needs_slot=True)


def read_summary(answer: QueryResult) -> FileSum | None:
    """The numbers in the answer to `summary_query`; None where writers did not keep them."""
    match answer.rows[0] if isinstance(answer, Rows) and answer.rows else ():
        case (int(files), int(size_bytes)):
            return FileSum(files, size_bytes)
    return None


def _has_small_files(answer: QueryResult, files_min: int, files_max: int) -> bool:
    found = read_summary(answer)
    return (
        found is not None
        and found.files <= files_max
        and TableFigures(found.files, found.size_bytes, 0).has_small_files(files_min)
    )


def sizes_query(table: TableName, settings: FilesSection) -> Query:
    """The statement whose rows `FileIndex.of_rows` reads, without bounds of any column."""
    told = "file_path, file_size_in_bytes, 0L, record_count, '{}', NULL"
    sql = f"SELECT {told} FROM {TableName((*table.parts, 'data_files')).sql}"  # noqa: S608 - quoted names
    limits = settings.files_max, settings.fetch_bytes_max, settings.query_deadline_s
    return Query(sql, *limits, needs_slot=True)


def _bounds(column: Column) -> str:
    """A column's bounds in each file as the file index has them: its type, and the values as text."""
    of_file = f"readable_metrics.{quoted(column.name)}"
    low, high = (_text_of_bound(column.type_name, of_file, f"{end}_bound") for end in ("lower", "upper"))
    type_name = literal("string", column.type_name)
    nulls, row_groups = f"{of_file}.null_value_count", "size(split_offsets)"
    return (
        f"named_struct('type', {type_name}, 'low', {low}, 'high', {high}, 'nulls', {nulls}, "
        f"'row_groups', {row_groups})"
    )


def _text_of_bound(type_name: str, of_file: str, bound: str) -> str:
    if type_name == LOCAL_TIME:
        # By itself such a bound is null (Iceberg 1.12), as JSON it is cut to milliseconds, which is near enough.
        return f"replace(get_json_object(to_json({of_file}), '$.{bound}'), 'T', ' ')"
    value = f"{of_file}.{bound}"
    # The text of an instant depends on the session's time zone.
    return f"CAST({key_expression(type_name, value) if type_name == INSTANT else value} AS STRING)"


def _read(answer: QueryResult, columns: Collection[Column], sorted_by: str | None) -> FileIndex | None:
    if not isinstance(answer, Rows):
        return None
    type_names: Mapping[str, str] = {column.name.lower(): column.type_name for column in columns}
    return FileIndex.of_rows(answer.rows, type_names).with_order_unknown(sorted_by)
