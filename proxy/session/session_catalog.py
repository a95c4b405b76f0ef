"""The session catalog: tables, keys, partitions and files as one session of the backend sees them.

Queries are asked in a session of the proxy's own, or in the client's where there is none (docs/decisions/0063).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from proxy.config.rewriting import CatalogSection
from proxy.operations.dispatch import always
from proxy.operations.query import NO_TABLES, Ask, Query, Rows, Work, ask_driver
from proxy.operations.spark_versions import DEFAULT_QUOTING
from proxy.session.catalog.answers import Answer
from proxy.session.catalog.facts_cache import DescribedTable, FactsMoment
from proxy.session.catalog.file_index import IndexOverview, words
from proxy.session.catalog.iceberg_snapshots import SnapshotRead
from proxy.session.catalog.late_answers import UNANSWERED_S, is_late
from proxy.session.catalog.metadata_cache import SessionMetadata
from proxy.session.catalog.spark_settings import (
    ServerSettings,
    functions_query,
    read_functions,
    read_settings,
    settings_query,
)
from proxy.session.catalog.split_packing import SplitPacking
from proxy.session.catalog.table_sizes import read_size, size_query
from proxy.session.consistency.asking import ask_nobody, shared
from proxy.session.consistency.write_fence import Fence
from proxy.session.key_queries import KeyAnswers, KeyQueries, UsableKeys
from proxy.session.layout.iceberg_file_counts import FileCounts, file_counts
from proxy.session.layout.iceberg_files import columns_asked
from proxy.session.layout.partition_lists import PartitionLists
from proxy.session.layout.partition_store import ListKey, StoreWait
from proxy.session.shared_state import SharedState
from proxy.session.table_lookup import describe, with_indexed
from proxy.statements.statement_class import StatementClass
from proxy.statements.written_tables import WriteTargets
from rewriter import (
    VIEW_NESTING_MAX,
    PartitionIndexes,
    Plan,
    RewriteLimits,
    Rule,
    SkipReason,
    Statement,
    TableFacts,
    TableKind,
    TableName,
    UnpinnedReason,
    catalog_at_snapshots,
    pin_snapshots,
    plan,
)
from rewriter.domains.gap_costs import PartitionCosts
from rewriter.files.file_index import FileIndex
from rewriter.partitions.index import PartitionIndex
from rewriter.scopes.steps import Steps
from rewriter.splits.packing import SplitHints
from rewriter.sql.deterministic_functions import NEWER_FUNCTIONS

T = TypeVar("T")

# A statement's plan names its tables, then those behind its views, then those behind these, then those that lack a
# size; it may call functions that the server is not known to have.
_PLANNING_ROUNDS_MAX = VIEW_NESTING_MAX + 4

# The rules that know files by the names of their columns.
_OF_FILES = frozenset({Rule.FILE_HINTS, Rule.RANGE_IN})


@dataclass(frozen=True)
class PinnedPlan:
    """The plan of a statement that names the snapshots of small sides as far as it can."""

    plan: Plan
    # The scans of the names whose snapshots are named, and the reasons why others are not.
    reads: Mapping[TableName, SnapshotRead]
    unpinned: Mapping[TableName, UnpinnedReason]


@dataclass(frozen=True)
class ListedPartitions:
    """A table's partitions, and their key in the store."""

    key: ListKey
    index: PartitionIndex


@dataclass(frozen=True)
class KnownPartitions:
    """A table as a session knows it: None where it cannot be described, or its partitions cannot be listed.

    Its files are those of the file index, where a statement has needed them: they are not asked for. Where `index`
    may lack partitions that a filter does not keep, `scanned` has the numbers of those in its scans, if known.
    """

    facts: TableFacts | None
    index: PartitionIndex | None
    files: FileIndex | None = None
    scanned: tuple[int | None, ...] | None = None


class SessionCatalogs:
    """The catalogs of one client session: one for each state that it is in."""

    def __init__(self, shared: SharedState, list_owner: tuple[str, ...] = ()) -> None:
        """Take the owner of lists where the session is one of the proxy's own, which no client uses."""
        self._shared = shared
        # A new configuration counts from the next session on.
        self._settings = shared.config.catalog
        self._lists = PartitionLists(shared.lists, self._settings, shared.clock)
        self._list_owner = list_owner
        self._cache = shared.metadata
        self._own = self._cache.of_nobody_else(list_owner)

    def of_state(self, state: bytes | None) -> SessionCatalog:
        """The catalog of the session in this state (`SessionState.digest`), shared with its other sessions.

        Each statement has one of its own, with the time that it may wait for a store.
        Without a digest the session is like no other, and the catalog is its own. So it is as long as the proxy
        has no session in that state to ask in.
        """
        if self._cache is not self._shared.metadata:
            # The configuration was read anew.
            self._cache = self._shared.metadata
            self._own = self._cache.of_nobody_else(self._list_owner)
        known = None if state is None else self._shared.own_sessions.state_of(state)
        metadata = self._own if known is None else self._shared.metadata.of(known)
        wait = StoreWait(self._settings.store_deadline_s)
        is_private = state is None
        catalog = SessionCatalog(self._shared, self._settings, self._lists, wait, is_private, self._own, metadata)
        return catalog.asking()

    def forget(self, words: Collection[str], state: bytes | None) -> None:
        """Forget the meanings of names and settings, for all sessions of a state.

        The file index is forgotten where it may be one of the tables among these words. Files that it has listed
        need not be asked for again (`proxy.session.layout.file_lists`).
        """
        is_of_index = self._shared.files.is_named_by(words)
        for metadata in self._kept(state):
            metadata.forget()
            if is_of_index or metadata is self._own:
                metadata.indexed = None

    def forget_written(self, tables: WriteTargets, state: bytes | None) -> None:
        """Forget these tables, which may differ from here on, for all sessions of a state."""
        for metadata in self._kept(state):
            metadata.forget_written(tables)
            if self._shared.files.is_named_by(tables.names):
                metadata.indexed = None

    def _kept(self, state: bytes | None) -> Iterator[SessionMetadata]:
        """The metadata of this session, and of the state, whether the proxy has a session to ask in or not."""
        yield self._own
        shared = None if state is None else self._shared.metadata.kept(state)
        if shared is not None:
            yield shared

    def forget_own(self) -> None:
        """Forget the answers that this session got while its state was like that of no other."""
        self._own.forget()
        self._own.indexed = None


@dataclass(frozen=True)
class SessionCatalog:
    """Tables, settings, keys and partitions as a session of one state sees them, and queries that ask for them.

    It is bound to the state: answers that it remembers are those of sessions of the same state.
    """

    _shared: SharedState
    _settings: CatalogSection
    _lists: PartitionLists
    _store_wait: StoreWait
    # True if the session's state is like that of no other, so that no other has use of its answers.
    is_like_no_other: bool
    # Answers to this session alone, and those to all sessions of the state: the same object where they are not
    # shared.
    _own: SessionMetadata
    _metadata: SessionMetadata
    # Facts and settings may have expired so many seconds ago: they are asked for again while the statement runs.
    grace_s: float = 0.0
    # So may answers that decide about splits alone.
    splits_grace_s: float = 0.0
    # Whether statements whose scans were found to keep their splits are not looked at again.
    believes_ungrouped: bool = True
    # Answers that came after a change of the session are not remembered: they are not those of the state.
    is_session_unchanged: Callable[[], bool] = always
    # Steps that all plans of a decision share. Without them each plan has its own.
    steps: Steps | None = None
    ask: Ask = ask_driver

    def asking(self, *, anew: bool = False) -> SessionCatalog:
        """The catalog that asks its driver: in the proxy's own session of the state, where answers are shared.

        With `anew` the answers are those of now: none that is on its way will do.
        """
        metadata = self._metadata
        if metadata.state is None:
            return replace(self, ask=ask_driver)
        own = object()
        # Equal for all sessions of the state until names may have got another meaning.
        key = (lambda: own) if anew else (lambda: metadata.facts.token)
        return replace(self, ask=shared(ask_driver, metadata.state, key, self._shared.writes))

    def at_hand(self, *, is_planned: bool) -> SessionCatalog:
        """The catalog that asks nobody. Answers about splits may have expired lately, and are asked for beside."""
        splits_s = self._shared.config.splits.asked_every_s
        grace_s = self.grace_s if is_planned else splits_s
        return replace(self, ask=ask_nobody, grace_s=grace_s, splits_grace_s=splits_s)

    def described(self, name: TableName) -> DescribedTable:
        """The description of a table that a plan names, as far as it is known."""
        return self._metadata.facts.described(name)

    def facts(self, name: TableName) -> TableFacts | None:
        """The facts of a table that a plan names."""
        return self.described(name).facts

    def partition_count(self, name: TableName) -> int | None:
        """The number of a table's partitions, where its list is at hand."""
        return self._lists.count(self.described(name), self._metadata)

    def last_partitions(self, names: Iterable[TableName]) -> dict[TableName, PartitionIndex]:
        """The partition lists of those tables whose lists are at hand, for numbers: some may be of yesterday."""
        found = {name: self._lists.last(self.described(name), self._metadata) for name in names}
        return {name: index for name, index in found.items() if index is not None}

    def current_overview(self) -> IndexOverview | None:
        """The tables of the file index, where that needs no query."""
        return self._shared.files.current_overview(self._metadata)

    async def indexed(self) -> IndexOverview:
        """The tables of the file index, as far as the session may read it."""
        return await self._shared.files.overview(self.ask, self._metadata, self.splits_grace_s)

    def indexed_bytes(self, name: TableName) -> int | None:
        """The size of a table's files, where the file index knows them."""
        facts = self.facts(name)
        return self._shared.files.size_bytes(facts, self._metadata) if facts is not None else None

    async def quoting_is_default(self) -> bool:
        """Whether the session's quotes and backslashes mean what they mean by default."""
        known, may_keep = self._metadata.default_quoting, self.is_session_unchanged
        return await known.get_or_ask(None, self._ask_quoting, may_keep=may_keep)

    async def _ask_quoting(self) -> tuple[bool, float]:
        values = {}
        for setting in DEFAULT_QUOTING:
            deadline_s = self._settings.query_deadline_s
            answer = await self.ask(Query(f"SET {setting}", 1, 65_536, deadline_s, reads=NO_TABLES))
            values[setting] = answer.rows[0][1] if isinstance(answer, Rows) and answer.rows else None
        is_default = all(values[setting] in usual for setting, usual in DEFAULT_QUOTING.items())
        return is_default, self._counts_s(is_answered=None not in values.values())

    def may_read_views(self, statement: StatementClass) -> bool:
        """Whether a statement without a join may read a view: not if all its names are known to be tables'."""
        return not statement.names_read <= self._metadata.table_names

    async def _server_settings(self) -> ServerSettings:
        """The server's settings, which may change what names mean."""
        last = self.last_settings
        # One for which nothing is rewritten is not used any longer than it counts: nothing would ask again.
        grace_s = self.grace_s if last is not None and last.value.uncertainty is None else 0.0
        known, may_keep = self._metadata.server_settings, self.is_session_unchanged
        return await known.get_or_ask(None, self._ask_settings, grace_s, may_keep=may_keep)

    async def _ask_settings(self) -> tuple[ServerSettings, float]:
        settings = read_settings(await self.ask(settings_query(self._settings)))
        is_answered = settings.uncertainty is not SkipReason.SETTINGS_UNKNOWN
        return settings, self._counts_s(is_answered=is_answered)

    async def _missing_functions(self) -> frozenset[str]:
        """Functions of newer versions that the server does not have; all of them if it does not tell."""
        known, may_keep = self._metadata.missing_functions, self.is_session_unchanged
        return await known.get_or_ask(None, self._ask_functions, self.grace_s, may_keep=may_keep)

    async def _ask_functions(self) -> tuple[frozenset[str], float]:
        names = read_functions(await self.ask(functions_query(self._settings)))
        return NEWER_FUNCTIONS - names, self._counts_s(is_answered=bool(names))

    def _counts_s(self, *, is_answered: bool) -> float:
        """The seconds for which an answer about settings counts: a busy server may soon have recovered."""
        counts_s = self._settings.facts_ttl_s
        return counts_s if is_answered else min(counts_s, UNANSWERED_S)

    async def plan(
        self, statement: Statement, limits: RewriteLimits, partitions: PartitionIndexes | None = None
    ) -> Plan | SkipReason:
        """Plan a statement by the descriptions of its tables, and by lists of their partitions.

        Where no steps are left to plan it by sizes too, the plan is one without them.
        """
        server = await self._server_settings()
        if server.uncertainty is not None:
            return server.uncertainty
        found = self._metadata.missing_functions.get(None, self.grace_s)
        limits = replace(
            limits,
            has_unknown_extensions=server.has_unknown_extensions,
            unconverted_formats=server.unconverted_formats,
            rules_off=limits.rules_off | (_OF_FILES if server.reads_by_position else frozenset()),
            table_names=self._metadata.table_names,
            missing_functions=NEWER_FUNCTIONS if found is None else found.value,
        )
        asked: set[TableName] = set()
        late: set[TableName] = set()
        unsized: Plan | None = None
        facts, knows_functions = self._metadata.facts, found is not None
        for _ in range(_PLANNING_ROUNDS_MAX):
            known = facts.current(self.grace_s)
            late -= known.keys()
            planned = plan(statement, {**known, **dict.fromkeys(late)}, limits, partitions or {}, self.steps)
            if planned.calls_missing_function and not knows_functions:
                knows_functions = True
                limits = replace(limits, missing_functions=await self._missing_functions())
                continue
            if planned.skip is not None:
                return planned.skip if unsized is None else _with_late(unsized, frozenset(late))
            if not planned.missing:
                if unsized is None and await self._find_sizes(planned.unsized):
                    unsized = planned
                    continue
                return _with_late(planned, frozenset(late))
            if planned.missing <= asked:
                break  # they change meanwhile, or are more than the session may keep
            if facts.moment().fence.changed_columns(planned.missing):
                break  # one of them is being changed, and its description now is not remembered
            late |= await self._look_up(planned.missing)
            asked |= planned.missing
        return SkipReason.TABLES_UNSETTLED

    async def _look_up(self, names: AbstractSet[TableName]) -> set[TableName]:
        """Describe tables, and remember the answers. Returns the names that were not described in time.

        Once one is late, the others are not waited for: a statement waits for one deadline at most.
        """
        facts, left_alone = self._metadata.facts, self._metadata.late
        late = {name for name in names if left_alone.is_left_alone(name)}
        for name in sorted(names - late, key=str):
            asked_at = facts.moment()
            described = await describe(self.ask, name, self._metadata, self._shared.files, self._settings)
            if not self.is_session_unchanged():
                return late | (names - facts.current().keys())
            if described.is_late:
                left_alone.missed(name)
                return late | (names - facts.current().keys())
            left_alone.came(name)
            facts.add(described, asked_at)
            if described.facts is not None and described.facts.has_snapshots and not name.version:
                self._metadata.add_iceberg(name)
            if described.facts is not None and described.facts.kind is TableKind.TABLE:
                self._metadata.add_table_name(str(name).lower())
        return late

    @property
    def last_settings(self) -> Answer[ServerSettings] | None:
        """The server's settings as they were last asked for, expired or not."""
        return self._metadata.server_settings.known(None)

    async def are_settings(self, then: ServerSettings) -> bool:
        """True if the server's settings are as they were; they are asked for again where they have expired."""
        return await replace(self, grace_s=0.0)._server_settings() == then  # noqa: SLF001 - of its own class

    def is_current(self, planned: Plan) -> bool:
        """True if no facts that the plan was made with have expired, or are others by now."""
        known = self._metadata.facts.current()
        used = {name: planned.catalog.get(name) for name in planned.names}
        return all(facts is None or _is_as(known.get(name), facts) for name, facts in used.items())

    async def is_as_planned(self, planned: Plan, since: float) -> bool:
        """True if the tables are described as they were when the plan was made. Expired facts are asked for again.

        Those behind the views whose texts the plan follows are described now or since a moment: a view that was
        replaced past this proxy would be narrowed by keys of its old text.
        """
        facts = self._metadata.facts
        used = {name: planned.catalog.get(name) for name in planned.names | planned.follows}
        before = {name: then for name, then in used.items() if then is not None or name in planned.follows}
        known = facts.current()
        late = await self._look_up(
            {
                name
                for name in before
                if name not in known or (name in planned.follows and not facts.described_since(name, since))
            }
        )
        for name, then in before.items():
            now = facts.described(name).facts
            if late or not _is_as(now, then):
                return False
            if then is not None and then.size_bytes is not None and now is not None and now.size_bytes is None:
                facts.add_size(name, then.size_bytes)
        return True

    async def _find_sizes(self, names: AbstractSet[TableName]) -> bool:
        """Ask for the sizes of described tables that have none, up to one that is late. True if any got one."""
        facts, unsized = self._metadata.facts, self._metadata.unsized
        has_found = False
        for name in sorted(names, key=str) if self._settings.asks_sizes else ():
            query = size_query(name, self._settings)
            if unsized.holds(query.sql):
                continue
            answer = await self.ask(query)
            size_bytes = read_size(answer)
            if size_bytes is not None:
                facts.add_size(name, size_bytes)
                has_found = True
                continue
            unsized.add(query.sql)
            if is_late(answer):
                break
        return has_found

    async def look_up(self, names: Iterable[TableName]) -> None:
        """Describe the tables among these that are not known now."""
        _ = await self._look_up(set(names) - self._metadata.facts.current().keys())

    def is_table(self, name: TableName) -> bool:
        """Whether a name is known to be that of a table, and of no view."""
        facts = self._metadata.facts.current().get(name)
        return facts is not None and facts.kind is TableKind.TABLE

    async def pinned(self, planned: Plan, limits: RewriteLimits) -> PinnedPlan:
        """The plan of the statement with the snapshots of its small sides, where any can be named."""
        asked_at = self._metadata.facts.moment()
        unanswered = self._metadata.unanswered
        found = await self._metadata.snapshots.current(self.ask, planned.pinnable, self._settings, unanswered)
        reads = {name: what for name, what in found.items() if isinstance(what, SnapshotRead)}
        unpinned = {name: what for name, what in found.items() if isinstance(what, UnpinnedReason)}
        again = await self._planned_at(planned, reads, asked_at, limits) if reads else None
        if again is None:
            return PinnedPlan(planned, {}, {**unpinned, **dict.fromkeys(reads, UnpinnedReason.NOT_PROVEN)})
        return PinnedPlan(again, reads, unpinned)

    async def _planned_at(
        self,
        planned: Plan,
        reads: Mapping[TableName, SnapshotRead],
        asked_at: FactsMoment,
        limits: RewriteLimits,
    ) -> Plan | None:
        """The plan of the statement that names these snapshots, if it still asks for keys."""
        facts, at = self._metadata.facts, {name: scanned.snapshot_id for name, scanned in reads.items()}
        statement = pin_snapshots(planned.statement, at)
        if statement is None:
            return None
        known = catalog_at_snapshots(facts.current(self.grace_s), at)
        for version in (name.at(snapshot_id) for name, snapshot_id in at.items()):
            if version in known:
                facts.add(DescribedTable(version, known[version]), asked_at)
        again = await self.plan(statement, limits, planned.partitions)
        return again if isinstance(again, Plan) and again.key_queries else None

    async def with_lists(self, planned: Plan, answers: KeyAnswers, limits: RewriteLimits) -> Plan:
        """The plan with the lists of partitions that it wants by these answers; the same plan if it wants none."""
        wanted = planned.wants_lists(answers)
        if not wanted:
            return planned
        found = await self.partitions(wanted)
        lists = {name: found[name].index if name in found else None for name in wanted}
        again = await self.plan(planned.statement, limits, {**planned.partitions, **lists})
        return again if isinstance(again, Plan) else planned

    def key_queries(self, usable: UsableKeys | None, fence: Fence) -> KeyQueries:
        """The key queries of one statement; `fence` was opened before the first of them."""
        return KeyQueries(self._shared, self._metadata, usable, fence, self.ask, self.is_session_unchanged)

    async def partitions(self, names: Iterable[TableName]) -> dict[TableName, ListedPartitions]:
        """The partition lists of those tables that can be listed."""
        lists, wanted = {}, sorted(names, key=str)
        self._lists.ask_ahead([self.described(name) for name in wanted], self._metadata)
        for name in wanted:
            found = await self._lists.find(self.ask, self.described(name), self._metadata, self._store_wait)
            if found is not None:
                lists[name] = ListedPartitions(*found)
        return lists

    async def known_partitions(self, name: TableName, condition: str) -> KnownPartitions:
        """A table and its partitions, or those that the filter keeps, as far as the session may know them."""
        await self.look_up([name])
        facts = self.facts(name)
        files = self._shared.files.last(facts, self._metadata) if facts is not None else None
        scanned = self._lists.scanned(self.described(name), self._metadata, condition)
        if scanned is not None:
            return KnownPartitions(facts, scanned.index, files, scanned.scanned)
        found = await self.partitions([name])
        return KnownPartitions(facts, found[name].index if name in found else None, files)

    async def files(
        self, planned: Plan, answers: KeyAnswers, limits: RewriteLimits, *, of_all: bool
    ) -> dict[TableName, FileIndex]:
        """The files of the tables whose files a plan wants to know, of those that are listed anywhere.

        Without `of_all`, those of tables that nothing narrows are left out.
        """
        found = {}
        packing = self._split_packing
        for_splits = packing.is_on(limits)
        alone = planned.grouped_alone(answers)
        wanted = set(planned.wants_files(answers, for_splits=for_splits))
        for name in sorted(wanted if of_all else wanted - alone, key=str):
            facts = self.facts(name)
            if name in alone and facts is not None and facts.iceberg is not None:
                files_min = packing.files_min
                small = await self._shared.iceberg_files.small_files(self.ask, facts, self._metadata, files_min)
                if small.is_known:
                    until = self._shared.clock() + self._shared.config.files.tables_ttl_s
                    self._metadata.add_iceberg(name, small.index is not None, until=until)
                if small.index is not None:
                    found[name] = small.index
                continue
            if name in alone and facts is not None:
                # The rows of the index are fetched for their sizes alone, which takes a query.
                _ = await self.indexed()
                if not self._shared.files.has_small_files(facts, self._metadata, packing.files_min):
                    continue
            index = await self._files(name, planned)
            if index is not None:
                found[name] = index
        return found

    def may_name_small_files(self, statement: StatementClass) -> bool | None:
        """Whether a statement may read a table of many small files; None where that was not asked yet."""
        settings = self._shared.config.splits
        if not (settings.enabled and settings.unnarrowed_scans and statement.names_read):
            return False
        if not statement.keeps_meanings:
            # It may write as many files as there are tasks.
            return False
        if self.believes_ungrouped and self._metadata.ungrouped.holds(statement.text):
            return False
        by_index = self._shared.files.may_name_small_files(statement.text, self._metadata, settings.saved_min)
        if by_index or not self._metadata.iceberg_sizes:
            return by_index
        if by_index is None:
            return None
        return self._metadata.may_name_small_iceberg(words(statement.text), self._shared.clock())

    def ungrouped(self, statement: StatementClass) -> None:
        """The scans of a statement keep their splits, by all that is known now."""
        self._metadata.ungrouped.add(statement.text)

    async def split_hints(
        self,
        planned: Plan,
        answers: KeyAnswers,
        files: Mapping[TableName, FileIndex],
        limits: RewriteLimits,
        *,
        of_all: bool,
    ) -> SplitHints | None:
        """The split hints of a statement by these files; None where splits are left to Spark. See `files`."""
        return await self._split_packing.hints(self.ask, planned, answers, files, limits, of_all=of_all)

    @property
    def _split_packing(self) -> SplitPacking:
        deadline_s = self._settings.query_deadline_s
        settings, known = self._shared.config.splits, self._metadata.packings
        return SplitPacking(settings, known, deadline_s, self.splits_grace_s)

    def are_splits_current(self, planned: Plan) -> bool:
        """True if nothing has expired of what decides about the splits of a plan's scans."""
        settings, packings = self.last_settings, self._metadata.packings
        is_current = settings is not None and settings.until > self._shared.clock() and self.is_current(planned)
        has_index = bool(self._shared.config.files.index)
        is_current = is_current and (not has_index or self.current_overview() is not None)
        names = planned.wants_packings({})
        return is_current and packings.are_current(names) and not any(map(self._is_listing, names))

    def _is_listing(self, name: TableName) -> bool:
        """Whether another session is asking for a table's files, so that this one went on without them."""
        facts = self.facts(name)
        lists = (self._shared.files, self._shared.iceberg_files)
        return facts is not None and any(one.is_under_way(facts, self._metadata) for one in lists)

    def learning(self, learn: Callable[[SessionCatalog], Coroutine[Any, Any, None]]) -> Work[None] | None:
        """Work to do beside a statement, by this catalog; None where others of its state do so."""

        async def learn_by(ask: Ask) -> None:
            await learn(replace(self, ask=ask))

        return self._metadata.learning.turn(learn_by, self.asking().ask, self.is_session_unchanged)

    async def _files(self, name: TableName, planned: Plan) -> FileIndex | None:
        known, described = self._metadata.facts, self.described(name)
        asked_at, facts = known.moment(), described.facts
        if facts is None:
            return None
        if facts.iceberg is not None:
            columns = columns_asked(planned, name)
            return await self._shared.iceberg_files.files(self.ask, facts, columns, self._metadata)
        if facts.delta is not None:
            return None
        index = await self._shared.files.files(self.ask, facts, self._metadata, self.splits_grace_s)
        # By now the columns of the index are known.
        again = await with_indexed(self.ask, facts, self._metadata, self._shared.files, self.splits_grace_s)
        if again != facts and name in known.current():
            known.add(replace(described, facts=again), asked_at)
        return index

    async def file_counts(self, planned: Plan) -> dict[TableName, FileCounts]:
        """Files and bytes of the Iceberg tables that could be narrowed, where Iceberg tells them."""
        found = {}
        for scan in planned.scans:
            name, facts = scan.reference.name, scan.facts
            if name in found or name.version or facts is None or facts.iceberg is None or facts.full_name is None:
                continue
            counts = await file_counts(self.ask, facts.full_name, self._shared.config.files)
            if counts is not None:
                found[name] = counts
        return found

    def costs(self, listed: Mapping[TableName, ListedPartitions]) -> dict[TableName, Mapping[str, PartitionCosts]]:
        """The numbers of partitions between the keys of each list, by column."""
        return {name: self._lists.costs(one.key, one.index) for name, one in listed.items()}


def _is_as(now: TableFacts | None, then: TableFacts | None) -> bool:
    """Whether a table, or a view's text, is as it was but for its rows."""
    if now is None or then is None:
        return False
    return replace(now, size_bytes=None, iceberg=None) == replace(then, size_bytes=None, iceberg=None)


def _with_late(planned: Plan, late: frozenset[TableName]) -> Plan:
    """The plan, with DESCRIPTION_LATE for tables that it took for unknown."""
    scans = (
        replace(scan, skip=SkipReason.DESCRIPTION_LATE)
        if scan.skip is SkipReason.UNKNOWN_TABLE and scan.reference.name in late
        else scan
        for scan in planned.scans
    )
    return replace(planned, scans=tuple(scans), late=late)


def indexes_of(listed: Mapping[TableName, ListedPartitions]) -> dict[TableName, PartitionIndex]:
    """The lists of partitions, without their keys in the store."""
    return {name: one.index for name, one in listed.items()}
