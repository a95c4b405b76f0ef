"""The files of indexed tables, as sessions fetched them from the file index: once for all sessions of one user.

Nothing is forgotten because a statement writes: an index that is out of date costs pruning, never rows, since a
file is skipped only while its path, size and time are those of the file that was indexed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

from proxy.config.rewriting import FilesSection
from proxy.operations.query import Ask, FailureKind, QueryFailed, QueryResult, Rows
from proxy.session.catalog.caches import WeightedLru
from proxy.session.catalog.file_index import (
    FILES_WITH_ROW_GROUPS_MAX,
    IndexOverview,
    TableFigures,
    files_query,
    name_in_index,
    read_tables,
    tables_query,
)
from proxy.session.catalog.late_answers import believed_s
from proxy.session.catalog.metadata_cache import SessionMetadata
from rewriter import TableFacts
from rewriter.files.file_index import FileIndex


class _Key(NamedTuple):
    """The key of a list: user and table. One user may read rows of the index that another may not."""

    owner: tuple[str, ...]
    table: str


@dataclass(frozen=True)
class _Fetched:
    """A table's files, None where they could not be had, and the figures of the index before they were fetched."""

    index: FileIndex | None
    table: TableFigures
    type_names: Mapping[str, str]
    # When they were asked for, and until when that is not tried again if they could not be had.
    at: float
    until: float

    @property
    def weight(self) -> int:
        """The size of the list, in files. A failure takes some memory too."""
        return 1 + (self.index.weight if self.index is not None else 0)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that the index tells of, in lower case."""
        files = self.index.files if self.index is not None else ()
        return frozenset(name for facts in files for name in facts.bounds)


class FileLists:
    """The lists of the most recently used tables. Used by several threads at once."""

    def __init__(self, settings: FilesSection, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._fetched = WeightedLru[_Key, _Fetched](settings.files_kept_max)

    async def overview(self, ask: Ask, known: SessionMetadata, grace_s: float = 0.0) -> IndexOverview:
        """The tables that the index has, for a session that may read it; expired `grace_s` ago at most."""
        overview = self.current_overview(known, grace_s)
        if overview is not None:
            return overview
        stale, settings = known.indexed, self._settings
        if not settings.index:
            return IndexOverview("", {}, 0.0, inf)
        if stale is not None:
            # Sessions of the same state need not ask at the same time.
            known.indexed = replace(stale, until=self._clock() + settings.query_deadline_s)
        try:
            answer = await ask(tables_query(settings))
        except BaseException:
            # It is not asked after all.
            known.indexed = stale
            raise
        tables, now = read_tables(answer, settings.files_max), self._clock()
        until = now + believed_s(answer, settings.tables_ttl_s)
        known.indexed = overview = IndexOverview(settings.index, tables, now, until)
        return overview

    def current_overview(self, known: SessionMetadata, grace_s: float = 0.0) -> IndexOverview | None:
        """The same where nothing has to be asked."""
        overview = known.indexed
        if overview is None or overview.index != self._settings.index:
            return None
        return overview if overview.until + grace_s > self._clock() else None

    def has_small_files(self, facts: TableFacts, known: SessionMetadata, files_min: int) -> bool:
        """True if a table has more small files than that, as far as the index said when it was asked last."""
        table = known.indexed.tables.get(name_in_index(facts) or "") if known.indexed is not None else None
        return table is not None and table.has_small_files(files_min)

    def may_name_small_files(self, statement: str, known: SessionMetadata, files_min: int) -> bool | None:
        """True if a statement may name a table of more small files than that; None where the index must be asked.

        An answer that has expired, or that was a failure, is asked for again by the next statement.
        """
        if not self._settings.index:
            return False
        overview = self.current_overview(known)
        return None if overview is None else overview.names_small_files_in(statement, files_min)

    def is_named_by(self, words: Collection[str]) -> bool:
        """True if the file index itself may be among the tables that these words name, in lower case."""
        return self._settings.index.rpartition(".")[2].lower() in words

    async def columns(
        self, ask: Ask, facts: TableFacts, known: SessionMetadata, grace_s: float = 0.0
    ) -> tuple[str, ...]:
        """The columns that the index may tell of. Until a table's files were fetched, that may be any."""
        found = await self._find(ask, facts, known, grace_s)
        if found is None:
            return ()
        key, _ = found
        names, fetched = tuple(column.name for column in facts.columns), self._fetched.get(key)
        if fetched is None or (fetched.index is None and fetched.until <= self._clock()):
            return names
        return tuple(name for name in names if name.lower() in fetched.columns)

    def size_bytes(self, facts: TableFacts, known: SessionMetadata) -> int | None:
        """The size of a table's files, where the index is at hand."""
        overview = self.current_overview(known)
        table = overview.tables.get(name_in_index(facts) or "") if overview is not None else None
        return table.size_bytes if table is not None else None

    def last(self, facts: TableFacts, known: SessionMetadata) -> FileIndex | None:
        """The files of a table, where a session of the same user has fetched them: nothing is asked."""
        overview, name = known.indexed, name_in_index(facts)
        if overview is None or overview.index != self._settings.index or name not in overview.tables:
            return None
        fetched = self._fetched.get(_Key(known.list_owner, name)) if name is not None else None
        type_names = {column.name.lower(): column.type_name for column in facts.columns}
        return fetched.index if fetched is not None and fetched.type_names == type_names else None

    def is_under_way(self, facts: TableFacts, known: SessionMetadata) -> bool:
        """True if some session of the same user is fetching the files of a table at this moment."""
        name = name_in_index(facts)
        return name is not None and self._fetched.is_under_way(_Key(known.list_owner, name))

    async def files(
        self, ask: Ask, facts: TableFacts, known: SessionMetadata, grace_s: float = 0.0
    ) -> FileIndex | None:
        """The files of a table, or None where they cannot be had now; for `grace_s` see `overview`."""
        found = await self._find(ask, facts, known, grace_s)
        if found is None:
            return None
        key, overview = found
        type_names = {column.name.lower(): column.type_name for column in facts.columns}
        fetched = self._current(key, overview, type_names)
        if fetched is not None:
            return fetched.index
        with self._fetched.alone(key) as is_alone:
            if not is_alone:
                return None
            asked_at = self._clock()
            answer = await self._rows(ask, key.table, overview.tables[key.table].files)
            index = FileIndex.of_rows(answer.rows, type_names) if isinstance(answer, Rows) else None
            until = self._clock() + believed_s(answer, self._settings.tables_ttl_s)
            self._fetched.put(key, _Fetched(index, overview.tables[key.table], type_names, asked_at, until))
            return index

    async def _rows(self, ask: Ask, table: str, files: int) -> QueryResult:
        """The rows of the index, of so many files: without row groups where the answer is too large with them."""
        with_row_groups = files <= FILES_WITH_ROW_GROUPS_MAX
        answer = await ask(files_query(table, self._settings, with_row_groups=with_row_groups))
        if with_row_groups and isinstance(answer, QueryFailed) and answer.kind is FailureKind.TOO_MANY_BYTES:
            answer = await ask(files_query(table, self._settings, with_row_groups=False))
        return answer

    async def _find(
        self, ask: Ask, facts: TableFacts, known: SessionMetadata, grace_s: float
    ) -> tuple[_Key, IndexOverview] | None:
        """The key of a table's files, and the tables of the index; None where the index lacks the table."""
        name = name_in_index(facts)
        if name is None:
            return None
        overview = await self.overview(ask, known, grace_s)
        if name not in overview.tables:
            return None
        return _Key(known.list_owner, name), overview

    def _current(self, key: _Key, overview: IndexOverview, type_names: Mapping[str, str]) -> _Fetched | None:
        """The list that was fetched, if it need not be fetched again.

        Another session may have fetched rows that this one has not heard of yet: two that heard different things
        would else fetch them in turns.
        """
        fetched = self._fetched.get(key)
        if fetched is None or fetched.type_names != type_names:
            return None
        if fetched.table != overview.tables[key.table] and fetched.at < overview.at:
            return None
        return fetched if fetched.index is not None or fetched.until > self._clock() else None
