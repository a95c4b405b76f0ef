"""The partition lists that one session may use: from the store, or asked for in the session itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import Ask
from proxy.session.catalog.answers import Answers
from proxy.session.catalog.caches import WeightedLru
from proxy.session.catalog.describe import partitions_query, read_partitions
from proxy.session.catalog.facts_cache import DescribedTable
from proxy.session.catalog.late_answers import believed_s
from proxy.session.catalog.metadata_cache import SessionMetadata
from proxy.session.layout.partition_store import ListKey, PartitionStore, ScannedPartitions, StoreWait
from rewriter import TableKind
from rewriter.domains.gap_costs import PartitionCosts
from rewriter.partitions.filter_text import FilterError, read_filter
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.partitions.pruning import partition_costs
from rewriter.partitions.scan_plan import plan_scans
from rewriter.partitions.value_encoding import NotIndexableError

# Lists whose costs are kept: 16 bytes a partition and column, so 400 MB if each has 200,000 partitions by two.
_COSTS_KEPT_MAX = 64
# Lists whose number of partitions is kept.
_COUNTS_KEPT_MAX = 1_000
# Partitions in the lists of sessions that share theirs with no other, all together: some 100 bytes each.
_OWN_PARTITIONS_MAX = 500_000


@dataclass(frozen=True)
class _OwnList:
    """A list that one session asked for itself, and the time until which it is believed."""

    index: PartitionIndex
    until: float

    @property
    def weight(self) -> int:
        """The number of partitions."""
        return 1 + self.index.count

    @cached_property
    def costs(self) -> Mapping[str, PartitionCosts]:
        """The numbers of partitions between its keys, by column."""
        return partition_costs(self.index)


class SharedLists:
    """The partition lists of a process: the store, and the costs computed from its lists.

    The store has lists that the proxy asked for in sessions of its own. What a client's session answers is kept
    beside it, for that session alone.
    """

    def __init__(self, store: PartitionStore | None = None) -> None:
        self.store = store
        self.own = WeightedLru[ListKey, _OwnList](_OWN_PARTITIONS_MAX)
        self._costs: dict[tuple[ListKey, bytes], Mapping[str, PartitionCosts]] = {}
        self._counts: dict[tuple[ListKey, bytes], int] = {}

    def costs(self, key: ListKey, index: PartitionIndex) -> Mapping[str, PartitionCosts]:
        """The numbers of partitions between the keys of a list. A new list has a new generation."""
        generation = getattr(index.entries, "generation", b"")
        if not generation:
            own = self.own.get(key)
            is_own = own is not None and own.index.entries is index.entries
            return own.costs if own is not None and is_own else partition_costs(index)
        found = self._costs.get((key, generation))
        if found is None:
            found = partition_costs(index)
            if len(self._costs) >= _COSTS_KEPT_MAX:
                # Another thread may have made room in the meantime.
                _ = self._costs.pop(next(iter(self._costs), (key, generation)), None)
            self._costs[key, generation] = found
        return found

    def counted(self, key: ListKey, index: PartitionIndex) -> PartitionIndex:
        """The list with the number of its partitions, which are counted once: 100,000 take 15 ms."""
        generation = getattr(index.entries, "generation", b"")
        if not generation:
            return index
        count = self._counts.get((key, generation))
        if count is None:
            count = index.count
            if len(self._counts) >= _COUNTS_KEPT_MAX:
                self._counts.clear()
            self._counts[key, generation] = count
        return replace(index, known_count=count)

    def forget(self, names: AbstractSet[str]) -> None:
        """Drop everyone's lists of the tables of these names, in lower case: their partitions may change."""
        self.own.drop(lambda key: key.name in names)
        if self.store is not None:
            self.store.forget(names)


class PartitionLists:
    """The lists of one session. It only sees lists that its own user was given, of tables it could describe."""

    def __init__(self, shared: SharedLists, settings: CatalogSection, clock: Callable[[], float]) -> None:
        self._shared = shared
        self._settings = settings
        self._clock = clock
        # Tables that could not be listed, which is not tried again for a while.
        self._unlisted = Answers[ListKey, None](clock, settings.tables_max)

    def ask_ahead(self, tables: Sequence[DescribedTable], known: SessionMetadata) -> None:
        """Begin to look up the lists of several tables that a statement is about to ask for."""
        store = self._store_of(known)
        identities = [table.identity for table in tables if _may_be_listed(table) and table.identity]
        if store is not None and len(identities) > 1:
            store.ask_ahead([ListKey(known.list_owner, identity) for identity in identities])

    async def find(
        self, ask: Ask, table: DescribedTable, known: SessionMetadata, wait: StoreWait
    ) -> tuple[ListKey, PartitionIndex] | None:
        """The list of a table, or None where there is none that can be used. `wait` is that of the statement."""
        if not _may_be_listed(table) or not table.identity:
            return None
        key = ListKey(known.list_owner, table.identity)
        store = self._store_of(known)
        index = self._own_list(key) if store is None else store.look_up(key, wait)
        if index is not None and not _is_of(index, table):
            index = None
        if index is None and self._unlisted.get(key) is None:
            index = await self._asked(ask, key, table, store)
        return (key, self._shared.counted(key, index)) if index is not None else None

    def scanned(self, table: DescribedTable, known: SessionMetadata, condition: str) -> ScannedPartitions | None:
        """The partitions that a filter keeps, where other replicas have the list and this one does not."""
        store = self._store_of(known)
        if store is None or not _may_be_listed(table) or not table.identity:
            return None
        try:
            keys = PartitionKeys(*_columns(table))
            plan = plan_scans(read_filter(condition, keys), keys)
        except (FilterError, NotIndexableError):
            return None
        return store.scan(ListKey(known.list_owner, table.identity), keys, plan)

    def costs(self, key: ListKey, index: PartitionIndex) -> Mapping[str, PartitionCosts]:
        """The numbers of partitions between the keys of a list, by column."""
        return self._shared.costs(key, index)

    def count(self, table: DescribedTable, known: SessionMetadata) -> int | None:
        """The number of a table's partitions, where its list is at hand: nothing is asked.

        Partitions without a place in the order, such as the default partition, are not counted.
        """
        found = self._kept(table, known)
        if found is None:
            return None
        return max((costs.totals[-1] for costs in self.costs(*found).values()), default=None)

    def last(self, table: DescribedTable, known: SessionMetadata) -> PartitionIndex | None:
        """The list of a table, where it is at hand, maybe one that has expired: nothing is asked."""
        found = self._kept(table, known, or_old=True)
        return None if found is None else self._shared.counted(*found)

    def _kept(
        self, table: DescribedTable, known: SessionMetadata, *, or_old: bool = False
    ) -> tuple[ListKey, PartitionIndex] | None:
        if not table.identity:
            return None
        key, store = ListKey(known.list_owner, table.identity), self._store_of(known)
        index = self._own_list(key) if store is None else store.get(key, or_old=or_old)
        return None if index is None or not _is_of(index, table) else (key, index)

    def _store_of(self, known: SessionMetadata) -> PartitionStore | None:
        """The store, for sessions whose lists may be shared."""
        return self._shared.store if known.are_lists_shared else None

    def _own_list(self, key: ListKey) -> PartitionIndex | None:
        found = self._shared.own.get(key)
        return found.index if found is not None and found.until > self._clock() else None

    async def _asked(
        self, ask: Ask, key: ListKey, table: DescribedTable, store: PartitionStore | None
    ) -> PartitionIndex | None:
        answer = await ask(partitions_query(table.name, self._settings))
        specs = read_partitions(answer)
        names, types = _columns(table)
        try:
            index = PartitionIndex.of(names, types, specs) if specs is not None else None
        except NotIndexableError:
            index = None
        if index is None or specs is None:
            self._unlisted.keep(key, None, believed_s(answer, self._settings.partitions_ttl_s))
            return None
        if len(specs) > self._settings.partitions_max:
            return index
        if store is None:
            self._shared.own.put(key, _OwnList(index, self._clock() + self._settings.partitions_ttl_s))
        elif store.put(key, names, types, specs):
            return store.get(key) or index
        return index


def _may_be_listed(table: DescribedTable) -> bool:
    facts = table.facts
    return facts is not None and facts.kind is TableKind.TABLE and bool(facts.partition_columns)


def _is_of(index: PartitionIndex, table: DescribedTable) -> bool:
    """True if a list, which another replica may have written, has the partition columns of the table."""
    return _columns(table) == (index.keys.columns, index.keys.type_names)


def _columns(table: DescribedTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names and types of a table's partition columns, as its description has them."""
    facts = table.facts
    columns = [facts.column(name) for name in facts.partition_columns] if facts is not None else []
    found = [column for column in columns if column is not None]
    return tuple(column.name for column in found), tuple(column.type_name for column in found)
