"""The session catalog: tables, keys, partitions and files as one session of the backend sees them.

Queries are asked in a session of the proxy's own, or in the client's where there is none (docs/decisions/0063).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Self

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import NO_TABLES, Ask, Query, QueryResult, Rows, ask_driver
from proxy.operations.spark_versions import DEFAULT_QUOTING
from proxy.session.catalog.answer_policy import AnswerPolicy
from proxy.session.catalog.answers import Answer
from proxy.session.catalog.facts_cache import DescribedTable
from proxy.session.catalog.late_answers import UNANSWERED_S
from proxy.session.catalog.metadata_cache import SessionMetadata
from proxy.session.catalog.spark_settings import (
    ServerSettings,
    functions_query,
    read_functions,
    read_settings,
    settings_query,
)
from proxy.session.consistency.asking import shared
from proxy.session.consistency.write_fence import Fence, WriteLog
from proxy.session.key_queries import KeyQueries, UsableKeys
from proxy.session.layout.partition_lists import PartitionLists
from proxy.session.layout.partition_store import ListKey, StoreWait
from proxy.session.shared_state import SharedState
from proxy.session.table_lookup import describe
from proxy.statements.statement_class import StatementClass
from rewriter import Plan, SkipReason, TableFacts, TableKind, TableName
from rewriter.domains.gap_costs import PartitionCosts
from rewriter.files.file_index import FileIndex
from rewriter.partitions.index import PartitionIndex
from rewriter.sql.deterministic_functions import NEWER_FUNCTIONS


@dataclass(frozen=True)
class ListedPartitions:
    """A table's partitions, and their key in the store."""

    key: ListKey
    index: PartitionIndex


@dataclass(frozen=True)
class KnownPartitions:
    """A table as a session knows it: None where it cannot be described, or its partitions cannot be listed.

    Its files are those that a statement has already fetched from the file index: no query asks for them. If
    `index` comes from scans by a filter, it may lack partitions that the filter does not keep. Then `scanned` has
    the number of partitions in each scan, None where it is not known.
    """

    facts: TableFacts | None
    index: PartitionIndex | None
    files: FileIndex | None = None
    scanned: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class SessionCatalog:
    """Tables, settings, keys and partitions as a session of one state sees them, and queries that ask for them.

    It is bound to the state: it remembers only answers of sessions of the same state. `proxy.session.planning`
    plans statements by it, and `proxy.session.table_files` looks up files.
    """

    shared: SharedState
    settings: CatalogSection
    _lists: PartitionLists
    _store_wait: StoreWait
    # True if the session's state is like that of no other, so that no other has use of its answers.
    is_like_no_other: bool
    # Answers to this session alone, or to all sessions of the state.
    metadata: SessionMetadata
    policy: AnswerPolicy

    def by(self, policy: AnswerPolicy) -> Self:
        """The catalog that answers by another policy."""
        return replace(self, policy=policy)

    def described(self, name: TableName) -> DescribedTable:
        """The description of a table that a plan names, as far as it is known."""
        return self.metadata.facts.described(name)

    def facts(self, name: TableName) -> TableFacts | None:
        """The facts of a table that a plan names."""
        return self.described(name).facts

    def partition_count(self, name: TableName) -> int | None:
        """The number of a table's partitions, where its list is at hand."""
        return self._lists.count(self.described(name), self.metadata)

    def last_partitions(self, names: Iterable[TableName]) -> dict[TableName, PartitionIndex]:
        """The partition lists of those tables whose lists are at hand, for numbers: some may be of yesterday."""
        found = {name: self._lists.last(self.described(name), self.metadata) for name in names}
        return {name: index for name, index in found.items() if index is not None}

    def indexed_bytes(self, name: TableName) -> int | None:
        """The size of a table's files, where the file index knows them."""
        facts = self.facts(name)
        return self.shared.files.size_bytes(facts, self.metadata) if facts is not None else None

    async def quoting_is_default(self) -> bool:
        """True if the session's quotes and backslashes mean what they mean by default."""
        known, may_keep = self.metadata.default_quoting, self.policy.is_session_unchanged
        return await known.get_or_ask(None, self._ask_quoting, may_keep=may_keep)

    async def _ask_quoting(self) -> tuple[bool, float]:
        values = {}
        for setting in DEFAULT_QUOTING:
            deadline_s = self.settings.query_deadline_s
            answer = await self.policy.ask(Query(f"SET {setting}", 1, 65_536, deadline_s, reads=NO_TABLES))
            values[setting] = answer.rows[0][1] if isinstance(answer, Rows) and answer.rows else None
        is_default = all(values[setting] in usual for setting, usual in DEFAULT_QUOTING.items())
        return is_default, self._counts_s(is_answered=None not in values.values())

    def may_read_views(self, statement: StatementClass) -> bool:
        """True if a statement without a join may read a view; False if all its names are known to be tables."""
        return not statement.names_read <= self.metadata.table_names

    async def server_settings(self) -> ServerSettings:
        """The server's settings, which may change what names mean."""
        last = self.last_settings
        # Settings for which nothing is rewritten have no grace: no check would ask for them again.
        grace_s = self.policy.grace_s if last is not None and last.value.uncertainty is None else 0.0
        known, may_keep = self.metadata.server_settings, self.policy.is_session_unchanged
        return await known.get_or_ask(None, self._ask_settings, grace_s, may_keep=may_keep)

    async def _ask_settings(self) -> tuple[ServerSettings, float]:
        settings = read_settings(await self.policy.ask(settings_query(self.settings)))
        is_answered = settings.uncertainty is not SkipReason.SETTINGS_UNKNOWN
        return settings, self._counts_s(is_answered=is_answered)

    async def missing_functions(self) -> frozenset[str]:
        """Functions of newer versions that the server does not have; all of them if it does not tell."""
        known, may_keep = self.metadata.missing_functions, self.policy.is_session_unchanged
        return await known.get_or_ask(None, self._ask_functions, may_keep=may_keep)

    async def _ask_functions(self) -> tuple[frozenset[str], float]:
        names = read_functions(await self.policy.ask(functions_query(self.settings)))
        return NEWER_FUNCTIONS - names, self._counts_s(is_answered=bool(names))

    def _counts_s(self, *, is_answered: bool) -> float:
        """The seconds for which an answer about settings counts: a busy server may soon have recovered."""
        counts_s = self.settings.facts_ttl_s
        return counts_s if is_answered else min(counts_s, UNANSWERED_S)

    async def describe(self, names: AbstractSet[TableName]) -> set[TableName]:
        """Describe tables, and remember the answers. Returns the names that were not described in time."""
        left_alone = {name for name in names if self.metadata.late.is_left_alone(name)}
        described = await self._described(names)
        known = self.metadata.facts.current().keys()
        return left_alone | (set() if described.keys() >= names - left_alone else names - known)

    async def _described(self, names: AbstractSet[TableName]) -> dict[TableName, tuple[float, TableFacts | None]]:
        """Describe tables: the moment at which each was asked about, and its facts. Late ones are missing.

        Once one is late, the others are not waited for: a statement waits for one deadline at most.
        """
        facts, left_alone = self.metadata.facts, self.metadata.late
        found: dict[TableName, tuple[float, TableFacts | None]] = {}
        for name in sorted(names, key=str):
            if left_alone.is_left_alone(name):
                continue
            asked_at, ages = facts.moment(), _Ages()
            ask = ages.noting(self.policy.ask)
            described = await describe(ask, name, self.metadata, self.shared.files, self.settings)
            if not self.policy.is_session_unchanged():
                break
            if described.is_late:
                left_alone.missed(name)
                break
            left_alone.came(name)
            asked_at = asked_at.earlier(ages.oldest_s)
            facts.add(described, asked_at)
            found[name] = asked_at.at, described.facts
            if described.facts is not None and described.facts.has_snapshots and not name.version:
                self.metadata.add_iceberg(name)
            if described.facts is not None and described.facts.kind is TableKind.TABLE:
                self.metadata.add_table_name(str(name).lower())
        return found

    @property
    def last_settings(self) -> Answer[ServerSettings] | None:
        """The server's settings as they were last asked for, expired or not."""
        return self.metadata.server_settings.known(None)

    def knows_settings(self, then: Answer[ServerSettings] | None) -> bool:
        """True if the server's settings have not expired, and are as `then`, if they were known then."""
        now = self.metadata.server_settings.get(None)
        return now is not None and (then is None or now.value == then.value)

    async def are_settings(self, then: ServerSettings) -> bool:
        """True if the server's settings are as they were; they are asked for again where they have expired."""
        return await self.by(self.policy.current()).server_settings() == then

    def is_current(self, planned: Plan) -> bool:
        """True if the facts that the plan was made with have neither expired nor changed."""
        known = self.metadata.facts.current()
        used = {name: planned.catalog.get(name) for name in planned.names}
        return all(facts is None or _is_as(known.get(name), facts) for name, facts in used.items())

    async def is_as_planned(self, planned: Plan, since: float) -> bool:
        """True if the tables are described as they were when the plan was made. Expired facts are asked for again.

        The views whose texts the plan follows, and the tables behind them, must have been described at `since` or
        later: a view that was replaced past this proxy would be narrowed by keys of its old text.
        """
        facts = self.metadata.facts
        used = {name: planned.catalog.get(name) for name in planned.names | planned.follows}
        before = {name: then for name, then in used.items() if then is not None or name in planned.follows}
        known = facts.current()
        now = {
            name: facts.described(name).facts
            for name in before.keys() & known.keys()
            if name not in planned.follows or facts.described_since(name, since)
        }
        described = await self._described(before.keys() - now.keys())
        # Another session may have asked about some before that moment.
        older = {name for name, (at, _) in described.items() if name in planned.follows and at < since}
        # A query that is under way by now was asked since that moment.
        again = await self._described(older)
        now |= {name: found for name, (_, found) in described.items() if name not in older}
        now |= {name: found for name, (at, found) in again.items() if at >= since}
        for name, then in before.items():
            found = now.get(name)
            if found is None or not _is_as(found, then):
                return False
            if then is not None and then.size_bytes is not None and found.size_bytes is None:
                facts.add_size(name, then.size_bytes)
        return True

    async def look_up(self, names: Iterable[TableName]) -> None:
        """Describe the tables among these that are not known now."""
        _ = await self.describe(set(names) - self.metadata.facts.current().keys())

    def is_table(self, name: TableName) -> bool:
        """True if a name is known to be that of a table, and of no view."""
        facts = self.metadata.facts.current().get(name)
        return facts is not None and facts.kind is TableKind.TABLE

    def key_queries(self, usable: UsableKeys | None, fence: Fence) -> KeyQueries:
        """The key queries of one statement; `fence` was opened before the first of them."""
        policy = self.policy
        return KeyQueries(self.shared, self.metadata, usable, fence, policy.ask, policy.is_session_unchanged)

    async def partitions(self, names: Iterable[TableName]) -> dict[TableName, ListedPartitions]:
        """The partition lists of those tables that can be listed."""
        lists, wanted = {}, sorted(names, key=str)
        self._lists.ask_ahead([self.described(name) for name in wanted], self.metadata)
        for name in wanted:
            found = await self._lists.find(self.policy.ask, self.described(name), self.metadata, self._store_wait)
            if found is not None:
                lists[name] = ListedPartitions(*found)
        return lists

    async def known_partitions(self, name: TableName, condition: str) -> KnownPartitions:
        """A table and its partitions, or those that the filter keeps, as far as the session may know them."""
        await self.look_up([name])
        facts = self.facts(name)
        files = self.shared.files.last(facts, self.metadata) if facts is not None else None
        scanned = self._lists.scanned(self.described(name), self.metadata, condition)
        if scanned is not None:
            return KnownPartitions(facts, scanned.index, files, scanned.scanned)
        found = await self.partitions([name])
        return KnownPartitions(facts, found[name].index if name in found else None, files)

    def costs(self, listed: Mapping[TableName, ListedPartitions]) -> dict[TableName, Mapping[str, PartitionCosts]]:
        """The numbers of partitions between the keys of each list, by column."""
        return {name: self._lists.costs(one.key, one.index) for name, one in listed.items()}


class _Ages:
    """The ages of shared answers: how long before us another session had asked the same query."""

    def __init__(self) -> None:
        self.oldest_s = 0.0

    def noting(self, ask: Ask) -> Ask:
        """Ask, and note the age of each answer."""

        async def ask_noting(query: Query) -> QueryResult:
            answer = await ask(query)
            if isinstance(answer, Rows):
                self.oldest_s = max(self.oldest_s, answer.asked_before_s)
            return answer

        return ask_noting


def _is_as(now: TableFacts | None, then: TableFacts | None) -> bool:
    """True if a table, or a view's text, is as it was but for its rows, and for what the file index has of it."""
    if now is None or then is None:
        return False
    # Facts that nobody has asked for again are one object, and copies of it are not worth making.
    return now is then or _without_rows(now) == _without_rows(then)


def _without_rows(facts: TableFacts) -> TableFacts:
    iceberg = replace(facts.iceberg, snapshot_id=None) if facts.iceberg is not None else None
    return replace(facts, size_bytes=None, iceberg=iceberg, indexed_columns=())


def indexes_of(listed: Mapping[TableName, ListedPartitions]) -> dict[TableName, PartitionIndex]:
    """The lists of partitions, without their keys in the store."""
    return {name: one.index for name, one in listed.items()}


def asking(known: SessionMetadata, writes: WriteLog, *, anew: bool = False) -> Ask:
    """Ask the driver: in the proxy's own session of the state, where answers are shared.

    With `anew` every query is asked now: an answer that is on its way to another session is not shared.
    """
    if known.state is None:
        return ask_driver
    own = object()
    # Equal for all sessions of the state until names may have got another meaning.
    key = (lambda: own) if anew else (lambda: known.facts.token)
    return shared(ask_driver, known.state, key, writes)
