"""What sessions were told of their tables and settings: asked once for all sessions of the same state.

Clients that open a session for each statement would otherwise pay for the same descriptions with every one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import Query, QueryResult, Rows
from proxy.session.catalog.caches import NegativeCache
from proxy.session.catalog.facts_cache import FactsCache
from proxy.session.catalog.file_index import IndexOverview
from proxy.session.catalog.late_answers import UNANSWERED_S, LateNames, is_late
from proxy.session.catalog.split_packing import KnownPackings
from proxy.session.consistency.write_fence import LocalWriteLog, WriteLog
from proxy.statements.written_tables import WrittenTables
from rewriter import SkipReason

T = TypeVar("T")

# A warehouse has some dozens of users at a time, each with a few tools and databases.
STATES_MAX: Final = 200

_OWNER_SQL: Final = "SELECT current_user()"

# Until a key query is tried again whose answer was too long: tables change.
_LONG_S: Final = 600.0


@dataclass(frozen=True)
class Expiring(Generic[T]):
    """What was said of settings, which counts for a while. `until` is in seconds of the sessions' clock."""

    value: T
    until: float


@dataclass
class SessionMetadata:
    """What sessions of one state were told. Used by several threads at once: each field is set as a whole."""

    facts: FactsCache
    # Key queries whose answers were longer than they may be.
    too_long: NegativeCache
    # Questions about snapshots, and about the session, that got no answer.
    unanswered: NegativeCache
    # Tables that were not described in time.
    late: LateNames
    # How files are packed into splits.
    packings: KnownPackings
    # Whether quotes and backslashes mean what they mean by default.
    default_quoting: Expiring[bool] | None = None
    # Why names may mean others than what is described, by the server's settings.
    uncertainty: Expiring[SkipReason | None] | None = None
    # Whom the backend takes the session for; empty where it does not say, None until it was asked.
    owner: tuple[str, ...] | None = None
    # What the file index has; None until it was asked.
    indexed: IndexOverview | None = None

    def forget(self) -> None:
        """Names and settings may mean something else from here on."""
        self.facts.clear()
        self.packings.forget()
        self.default_quoting = None
        self.uncertainty = None

    def forget_written(self, tables: WrittenTables) -> None:
        """These tables may be others from here on; names and settings mean what they meant."""
        self.facts.forget_written(tables)
        if tables.may_change_columns:
            # By a replaced one, a table may be read in another format.
            self.packings.forget()


def owner_of(known: SessionMetadata) -> Generator[Query, QueryResult, tuple[str, ...]]:
    """Whom the backend takes the session for; empty where it does not say."""
    if known.owner is None and not known.unanswered.holds(_OWNER_SQL):
        deadline_s = known.facts.settings.query_deadline_s
        answer = yield Query(_OWNER_SQL, rows_max=1, bytes_max=65_536, deadline_s=deadline_s)
        if is_late(answer):
            known.unanswered.add(_OWNER_SQL)
        else:
            known.owner = tuple(map(str, answer.rows[0])) if isinstance(answer, Rows) and answer.rows else ()
    return known.owner or ()


class MetadataCache:
    """What is known for each state of a session (`SessionState.digest`), those used last kept longest."""

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

    def of_nobody_else(self) -> SessionMetadata:
        """For a session whose state is like that of no other."""
        facts, clock, settings = FactsCache(self.settings, self._clock, self._writes), self._clock, self.settings
        late = LateNames(clock, settings.query_deadline_s, settings.facts_ttl_s)
        return SessionMetadata(
            facts, NegativeCache(clock, _LONG_S), NegativeCache(clock, UNANSWERED_S), late, KnownPackings(clock)
        )

    def of(self, state: bytes) -> SessionMetadata:
        """For the sessions of a state."""
        with self._lock:
            known = self._states.get(state)
            if known is None:
                known = self._states[state] = self.of_nobody_else()
            self._states.move_to_end(state)
            if len(self._states) > self._states_max:
                _ = self._states.popitem(last=False)
            return known
