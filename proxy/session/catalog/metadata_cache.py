"""The metadata cache: tables and settings as described to sessions, shared by all sessions of the same state.

Clients that open a session for each statement would otherwise pay for the same descriptions with every one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from threading import Lock
from typing import Final
from uuid import uuid4

from proxy.config.rewriting import CatalogSection
from proxy.operations.session_port import KnownState
from proxy.session.catalog.answers import Answers
from proxy.session.catalog.caches import NegativeCache
from proxy.session.catalog.facts_cache import FactsCache
from proxy.session.catalog.file_index import IndexOverview, last_words
from proxy.session.catalog.iceberg_snapshots import Snapshots
from proxy.session.catalog.late_answers import UNANSWERED_S, LateNames
from proxy.session.catalog.learning import Learning
from proxy.session.catalog.plan_scans import PlanScans
from proxy.session.catalog.spark_settings import ServerSettings
from proxy.session.catalog.split_packing import KnownPackings
from proxy.session.consistency.write_fence import LocalWriteLog, WriteLog
from proxy.statements.written_tables import WrittenTables
from rewriter import TableName
from rewriter.files.partition_files import FileSum

# A warehouse has some dozens of users at a time, each with a few tools and databases.
STATES_MAX: Final = 200

# Names of tables that sessions of one state read without a join.
_TABLE_NAMES_MAX: Final = 2_000

# Time until a key query that gave no keys, or a table without a size, is tried again: tables change.
_LONG_S: Final = 600.0


@dataclass
class SessionMetadata:
    """Metadata of the sessions of one state. Used by several threads at once: each field is set as a whole."""

    facts: FactsCache
    # Key queries whose answers were longer than they may be, or an error that comes again.
    without_keys: NegativeCache
    # Questions about sizes that Spark does not know.
    unsized: NegativeCache
    # The sizes of tables without statistics that something was to narrow.
    large_sizes: Answers[TableName, int]
    # Questions about snapshots, and about the session, that got no answer.
    unanswered: NegativeCache
    # Tables that were not described in time.
    late: LateNames
    # True if quotes and backslashes mean what they mean by default.
    default_quoting: Answers[None, bool]
    # Settings of the server that decide what names mean, and what a user sees of a table.
    server_settings: Answers[None, ServerSettings]
    # Functions of newer versions of Spark that the server does not have.
    missing_functions: Answers[None, frozenset[str]]
    # The scans of statements as Spark plans them, by the digests of their texts.
    plans: Answers[bytes, PlanScans | None]
    # The files and bytes of snapshots of Iceberg tables, where these are known.
    snapshot_sums: Answers[tuple[TableName, int], FileSum | None]
    # The packing of files into splits.
    packings: KnownPackings
    # The turn to ask for what decides about splits alone.
    learning: Learning
    # Statements whose scans keep their splits: they need not be parsed again to see that.
    ungrouped: NegativeCache
    # The snapshots that names read.
    snapshots: Snapshots
    # The owner of the lists of partitions and files: one session, unless they are asked for in sessions that no
    # client ever used.
    list_owner: tuple[str, ...]
    are_lists_shared: bool
    # The state of the sessions that share this metadata: the proxy asks for it in its own session of that state.
    # None where it belongs to one session, which is asked itself.
    state: bytes | None = None
    # Names that were described as tables, in lower case: no join is hidden in them, as in a view's text. A table
    # that has become a view meanwhile is not narrowed, which does no harm.
    table_names: frozenset[str] = frozenset()
    # Iceberg tables that were described, each with whether it has many small files; None until that was asked.
    # They are found by the words of a text, and not by a question.
    iceberg_sizes: Mapping[TableName, bool | None] = field(default_factory=dict)
    # The tables of the file index; None until it was asked.
    indexed: IndexOverview | None = None
    # True once the server has told a temporary view's text as Spark 3 does: the query for Spark 4 fails there.
    has_older_views: bool = False
    # By the answers in `iceberg_sizes`, a word of the name of each such table.
    _iceberg_words: Mapping[bool | None, frozenset[str]] = field(default_factory=dict)
    # The time from which on tables without many small files are asked about again.
    _iceberg_until: float = inf

    def forget(self) -> None:
        """Forget facts and settings: names may mean something else from here on."""
        self.facts.clear()
        self.packings.forget()
        self.plans.forget()
        self.default_quoting.forget()
        self.server_settings.forget()
        self.missing_functions.forget()
        self.table_names = frozenset()
        self.without_keys.clear()
        self.ungrouped.clear()
        self.iceberg_sizes, self._iceberg_words = {}, {}

    def add_table_name(self, name: str) -> None:
        """Remember that a name is a table's; past a limit the names are learned anew."""
        known = self.table_names if len(self.table_names) < _TABLE_NAMES_MAX else frozenset()
        self.table_names = known | {name}

    def add_iceberg(
        self,
        name: TableName,
        has_small_files: bool | None = None,  # noqa: FBT001 - an answer
        until: float = inf,
    ) -> None:
        """Remember an Iceberg table, and whether it has many small files; past a limit all are learned anew.

        A table that has few may get many, so `has_small_files=False` is believed only until then.
        """
        known = self.iceberg_sizes if len(self.iceberg_sizes) < _TABLE_NAMES_MAX else {}
        found = known.get(name) if has_small_files is None else has_small_files
        if name not in known or known[name] != found:
            self.iceberg_sizes = {**known, name: found}
            self._iceberg_words = {answer: _words_of(self.iceberg_sizes, answer) for answer in (True, None)}
        if has_small_files is False:
            self._iceberg_until = min(self._iceberg_until, until)

    def may_name_small_iceberg(self, words: Iterable[str], now: float) -> bool | None:
        """True if words may be names of Iceberg tables with many small files; None where that was not asked."""
        if now >= self._iceberg_until:
            self._iceberg_until = inf
            self.iceberg_sizes = {name: found or None for name, found in self.iceberg_sizes.items()}
            self._iceberg_words = {answer: _words_of(self.iceberg_sizes, answer) for answer in (True, None)}
        named = set(words)
        for answer in (True, None):
            if not named.isdisjoint(self._iceberg_words.get(answer, frozenset())):
                return answer
        return False

    def forget_written(self, tables: WrittenTables) -> None:
        """Forget these tables, which may differ from here on; names and settings mean what they meant."""
        self.facts.forget_written(tables)
        self.plans.forget()
        if tables.may_change_columns:
            # A replaced table may have another format, and columns that a key query lacked.
            self.packings.forget()
            self.without_keys.clear()


def _words_of(sizes: Mapping[TableName, bool | None], answer: bool | None) -> frozenset[str]:  # noqa: FBT001
    return last_words(str(name).lower() for name, found in sizes.items() if found is answer)


class MetadataCache:
    """The metadata of each state of a session (`SessionState.digest`), the most recently used states kept."""

    def __init__(
        self,
        settings: CatalogSection,
        clock: Callable[[], float],
        writes: WriteLog | None = None,
        states_max: int = STATES_MAX,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._writes = LocalWriteLog() if writes is None else writes
        self._states_max = states_max
        self._lock = Lock()
        self._states: OrderedDict[bytes, SessionMetadata] = OrderedDict()

    def of_nobody_else(self, list_owner: tuple[str, ...] = ()) -> SessionMetadata:
        """New metadata, for a session that shares its answers with no other.

        Nor does it share lists of partitions and files, unless it is the proxy's own and `list_owner` says whose
        they are.
        """
        facts, clock, settings = FactsCache(self.settings, self._clock, self._writes), self._clock, self.settings
        late = LateNames(clock, settings.query_deadline_s, settings.facts_ttl_s)
        return SessionMetadata(
            facts,
            without_keys=NegativeCache(clock, _LONG_S),
            unsized=NegativeCache(clock, _LONG_S),
            large_sizes=Answers(clock),
            unanswered=NegativeCache(clock, UNANSWERED_S),
            late=late,
            default_quoting=Answers(clock),
            server_settings=Answers(clock),
            missing_functions=Answers(clock),
            plans=Answers(clock),
            snapshot_sums=Answers(clock),
            packings=KnownPackings(clock),
            learning=Learning(clock),
            ungrouped=NegativeCache(clock, settings.facts_ttl_s),
            snapshots=Snapshots(clock),
            list_owner=list_owner or (uuid4().hex,),
            are_lists_shared=bool(list_owner),
        )

    def of(self, state: KnownState) -> SessionMetadata:
        """The metadata that the proxy asks for in a session of its own, for all sessions of a state."""
        with self._lock:
            known = self._states.get(state.digest)
            if known is None:
                known = replace(self.of_nobody_else(state.list_owner), state=state.digest)
                self._states[state.digest] = known
            self._states.move_to_end(state.digest)
            if len(self._states) > self._states_max:
                _ = self._states.popitem(last=False)
            return known

    def kept(self, state: bytes) -> SessionMetadata | None:
        """The metadata of a state, where there is any."""
        with self._lock:
            return self._states.get(state)
