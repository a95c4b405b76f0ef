"""What one session asks of the backend to decide about a statement: descriptions, keys, lists of partitions.

Each question is a generator: it yields queries for the client's own session, and is sent their results.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from proxy.operations.query import Query, QueryResult, Rows
from proxy.session.catalog.facts_cache import DescribedTable, FactsMoment
from proxy.session.catalog.file_index import IndexOverview
from proxy.session.catalog.iceberg_snapshots import SnapshotRead
from proxy.session.catalog.late_answers import UNANSWERED_S
from proxy.session.catalog.metadata_cache import Expiring, SessionMetadata
from proxy.session.catalog.spark_settings import settings_query, uncertainty
from proxy.session.catalog.split_packing import packings, worth_asking
from proxy.session.consistency.write_fence import Fence
from proxy.session.consistency.written_tables import WriteTargets
from proxy.session.key_queries import KeyAnswers, KeyQueries, RememberedKeys
from proxy.session.layout.iceberg_file_counts import FileCounts, file_counts
from proxy.session.layout.iceberg_files import columns_asked
from proxy.session.layout.partition_lists import PartitionLists
from proxy.session.layout.partition_store import ListKey
from proxy.session.shared_state import SharedState
from proxy.session.table_lookup import describe, with_indexed
from proxy.session.timings import Timings
from rewriter import (
    VIEW_NESTING_MAX,
    Limits,
    Plan,
    SkipReason,
    Statement,
    TableFacts,
    TableKind,
    TableName,
    Unpinned,
    known_at,
    pinned,
    plan,
)
from rewriter.domains.gap_costs import PartitionCosts
from rewriter.files.file_index import FileIndex
from rewriter.files.splits import Packing
from rewriter.partitions.index import PartitionIndex

T = TypeVar("T")
Queries: TypeAlias = Generator[Query, QueryResult, T]

# A statement's plan names its tables, then those behind its views, then those behind these.
_PLANNING_ROUNDS_MAX = VIEW_NESTING_MAX + 2

_QUOTING_SETTINGS = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.parser.escapedStringLiterals")


@dataclass(frozen=True)
class PinnedPlan:
    """The plan of a statement that names the snapshots of small sides as far as it can."""

    plan: Plan
    # What the names stood for of which the snapshots are named, and why those of others are not.
    reads: Mapping[TableName, SnapshotRead]
    unpinned: Mapping[TableName, Unpinned]


@dataclass(frozen=True)
class ListedPartitions:
    """A table's partitions, and by what key they are kept."""

    key: ListKey
    index: PartitionIndex


class SessionCatalog:
    """What one client session was told of its tables and settings, and what it asks for."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._clock = shared.clock
        self._catalog = catalog = shared.config.catalog
        self._lists = PartitionLists(shared.lists, catalog, shared.clock)
        self._own = shared.knowledge.of_nobody_else()
        self._known: SessionMetadata = self._own

    def enter(self, state: bytes | None) -> None:
        """The session is in this state now (`SessionState.digest`)."""
        self._known = self._own if state is None else self._shared.knowledge.of(state)

    def forget(self, words: Collection[str]) -> None:
        """Names and settings may mean something else from here on, for all sessions of this state.

        So may the tables among these words, of which the file index may be one. Those that it tells of need not be
        asked for again (`proxy.session.layout.file_lists`).
        """
        self.forget_own()
        self._known.forget()
        if self._shared.files.is_named_by(words):
            self._known.indexed = None

    def forget_written(self, tables: WriteTargets) -> None:
        """These tables may be others from here on, for all sessions of this state."""
        for known in (self._own, self._known):
            known.forget_written(tables)
            if self._shared.files.is_named_by(tables.names):
                known.indexed = None

    def forget_own(self) -> None:
        """The same for what this session alone was told."""
        self._own.forget()
        self._own.indexed = None

    def described(self, name: TableName) -> DescribedTable:
        """What is known of a table that a plan names."""
        return self._known.facts.described(name)

    def facts(self, name: TableName) -> TableFacts | None:
        """The facts of a table that a plan names."""
        return self.described(name).facts

    def partition_count(self, name: TableName) -> int | None:
        """How many partitions a table has, where its list is at hand."""
        return self._lists.count(self.described(name), self._known)

    def indexed_at_hand(self) -> IndexOverview | None:
        """What the file index has, where nothing has to be asked to know that."""
        return self._shared.files.overview_at_hand(self._known)

    def indexed(self, timings: Timings) -> Queries[IndexOverview]:
        """What the file index has, as far as the session may read it."""
        start = self._clock()
        overview = yield from self._shared.files.overview(self._known)
        timings.catalog_s += self._clock() - start
        return overview

    def indexed_bytes(self, name: TableName) -> int | None:
        """The size of a table's files, where the file index knows them."""
        facts = self.facts(name)
        return self._shared.files.size_bytes(facts, self._known) if facts is not None else None

    def quoting_is_default(self) -> Queries[bool]:
        """Whether the session's quotes and backslashes mean what they mean by default."""
        known = self._known
        believed = known.default_quoting
        if believed is None or believed.until <= self._clock():
            values = []
            for setting in _QUOTING_SETTINGS:
                deadline_s = self._catalog.query_deadline_s
                answer = yield Query(f"SET {setting}", rows_max=1, bytes_max=65_536, deadline_s=deadline_s)
                values.append(answer.rows[0][1] if isinstance(answer, Rows) and answer.rows else None)
            is_default = all(value == "false" for value in values)
            believed = known.default_quoting = self._believed(is_default, is_answered=None not in values)
        return believed.value

    def _uncertainty(self, timings: Timings) -> Queries[SkipReason | None]:
        """Why names may mean other tables than those that are described, if the server's settings make them."""
        known = self._known
        believed = known.uncertainty
        if believed is None or believed.until <= self._clock():
            answer = yield settings_query(self._catalog)
            timings.catalog_s += answer.seconds
            reason = uncertainty(answer)
            is_answered = reason is not SkipReason.SETTINGS_UNKNOWN
            believed = known.uncertainty = self._believed(reason, is_answered=is_answered)
        return believed.value

    def _believed(self, said: T, *, is_answered: bool) -> Expiring[T]:
        """For how long what was said of settings counts. A server too busy to say may have recovered soon."""
        counts_s = self._catalog.facts_ttl_s
        return Expiring(said, self._clock() + (counts_s if is_answered else min(counts_s, UNANSWERED_S)))

    def plan(self, statement: Statement, limits: Limits, timings: Timings) -> Queries[Plan | SkipReason]:
        """Plan a statement, with whatever has to be known of its tables."""
        uncertain = yield from self._uncertainty(timings)
        if uncertain is not None:
            return uncertain
        asked: set[TableName] = set()
        late: set[TableName] = set()
        facts = self._known.facts
        for _ in range(_PLANNING_ROUNDS_MAX):
            known = facts.current()
            late -= known.keys()
            planned = plan(statement, {**known, **dict.fromkeys(late)}, limits)
            if not planned.missing:
                return _with_late(planned, frozenset(late)) if late else planned
            if planned.missing <= asked:
                break  # they change under us, or are more than the session may keep
            if facts.moment().fence.changed_columns(planned.missing):
                break  # somebody is changing one of them, and what is said of it now is not remembered
            late |= yield from self._look_up(planned.missing, timings)
            asked |= planned.missing
        return SkipReason.TABLES_UNSETTLED

    def _look_up(self, names: AbstractSet[TableName], timings: Timings) -> Queries[set[TableName]]:
        """Ask for tables, and remember what is said of them. Returns those of which nothing was said in time.

        Once one is late, the others are not waited for: a statement waits for one deadline at most.
        """
        facts, left_alone = self._known.facts, self._known.late
        late = {name for name in names if left_alone.is_left_alone(name)}
        for name in sorted(names - late, key=str):
            asked_at = facts.moment()
            asking = describe(name, self._known, self._shared.files, self._catalog)
            described = yield from timings.of_catalog(asking)
            if described.is_late:
                left_alone.missed(name)
                return late | (names - facts.current().keys())
            left_alone.came(name)
            facts.add(described, asked_at)
        return late

    def look_up(self, names: Iterable[TableName]) -> Queries[None]:
        """Ask for tables that nothing is known of now."""
        _ = yield from self._look_up(set(names) - self._known.facts.current().keys(), Timings())

    def is_table(self, name: TableName) -> bool:
        """Whether a name is known to be that of a table, and of no view."""
        facts = self._known.facts.current().get(name)
        return facts is not None and facts.kind is TableKind.TABLE

    def pinned(self, planned: Plan, limits: Limits, timings: Timings) -> Queries[PinnedPlan]:
        """The plan of the statement with the snapshots of its small sides; as it was where none can be named."""
        asked_at = self._known.facts.moment()
        asking = self._shared.snapshots.current(planned.pinnable, self._catalog, self._known.unanswered)
        found = yield from timings.of_catalog(asking)
        reads = {name: what for name, what in found.items() if isinstance(what, SnapshotRead)}
        unpinned = {name: what for name, what in found.items() if isinstance(what, Unpinned)}
        again = (yield from self._planned_at(planned, reads, asked_at, limits, timings)) if reads else None
        if again is None:
            return PinnedPlan(planned, {}, {**unpinned, **dict.fromkeys(reads, Unpinned.NOT_PROVEN)})
        return PinnedPlan(again, reads, unpinned)

    def _planned_at(
        self,
        planned: Plan,
        reads: Mapping[TableName, SnapshotRead],
        asked_at: FactsMoment,
        limits: Limits,
        timings: Timings,
    ) -> Queries[Plan | None]:
        """The plan of the statement that names these snapshots, if there is a point in it."""
        facts, at = self._known.facts, {name: scanned.snapshot_id for name, scanned in reads.items()}
        statement = pinned(planned.statement, at)
        if statement is None:
            return None
        known = known_at(facts.current(), at)
        for version in (name.at(snapshot_id) for name, snapshot_id in at.items()):
            if version in known:
                facts.add(DescribedTable(version, known[version]), asked_at)
        again = yield from self.plan(statement, limits, timings)
        return again if isinstance(again, Plan) and again.key_queries else None

    def keys(
        self, planned: Plan, memory: RememberedKeys | None, fence: Fence, timings: Timings
    ) -> Queries[KeyAnswers]:
        """The keys of all small sides, or why there are none; `fence` was opened before."""
        return (yield from KeyQueries(self._shared, self._known, memory, fence, timings).answers(planned))

    def partitions(
        self, names: Iterable[TableName], timings: Timings
    ) -> Queries[dict[TableName, ListedPartitions]]:
        """The partition lists of tables, of those that can be listed."""
        lists = {}
        for name in sorted(names, key=str):
            start = self._clock()
            found = yield from self._lists.find(self.described(name), self._known)
            timings.catalog_s += self._clock() - start
            if found is not None:
                lists[name] = ListedPartitions(*found)
        return lists

    def files(
        self, planned: Plan, answers: KeyAnswers, timings: Timings, *, for_splits: bool = False
    ) -> Queries[dict[TableName, FileIndex]]:
        """What is known of the files of the tables that a plan wants, of those that are listed anywhere."""
        start, found = self._clock(), {}
        for name in sorted(planned.wants_files(answers, for_splits=for_splits), key=str):
            index = yield from self._files(name, planned)
            if index is not None:
                found[name] = index
        timings.files_s += self._clock() - start
        return found

    def _files(self, name: TableName, planned: Plan) -> Queries[FileIndex | None]:
        known, described = self._known.facts, self.described(name)
        asked_at, facts = known.moment(), described.facts
        if facts is None:
            return None
        if facts.iceberg is not None:
            return (yield from self._shared.iceberg_files.files(facts, columns_asked(planned, name), self._known))
        index = yield from self._shared.files.files(facts, self._known)
        # By now it is known which columns the index has.
        again = yield from with_indexed(facts, self._known, self._shared.files)
        if again != facts and name in known.current():
            known.add(replace(described, facts=again), asked_at)
        return index

    def file_counts(self, planned: Plan, timings: Timings) -> Queries[dict[TableName, FileCounts]]:
        """What the files of the Iceberg tables are that could be narrowed, of those that tell."""
        found = {}
        for scan in planned.scans:
            name, facts = scan.reference.name, scan.facts
            if name in found or name.version or facts is None or facts.iceberg is None or facts.full_name is None:
                continue
            counts = yield from timings.of_catalog(file_counts(facts.full_name, self._shared.config.files))
            if counts is not None:
                found[name] = counts
        return found

    def packings(
        self, names: Iterable[TableName], files: Mapping[TableName, FileIndex], timings: Timings
    ) -> Queries[dict[TableName, Packing]]:
        """How Spark packs the files of tables that have many, where that is not to be left to it."""
        settings = self._shared.config.splits
        asked = worth_asking(files, names, settings.saved_min)
        asking = packings(asked, self._known.packings, settings.asked_every_s, self._catalog.query_deadline_s)
        return (yield from timings.of_catalog(asking))

    def costs(self, listed: Mapping[TableName, ListedPartitions]) -> dict[TableName, Mapping[str, PartitionCosts]]:
        """Where the partitions of the lists lie."""
        return {name: self._lists.costs(one.key, one.index) for name, one in listed.items()}


def _with_late(planned: Plan, late: frozenset[TableName]) -> Plan:
    """The plan, where it took tables for unknown since nothing was said of them in time."""
    scans = (
        replace(scan, skip=SkipReason.DESCRIPTION_LATE)
        if scan.skip is SkipReason.UNKNOWN_TABLE and scan.reference.name in late
        else scan
        for scan in planned.scans
    )
    return replace(planned, scans=tuple(scans), late=late)
