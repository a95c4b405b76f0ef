"""What sessions were told of their tables and settings: asked once for all sessions of the same state.

Clients that open a session for each statement would otherwise pay for the same descriptions with every one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from threading import Lock
from typing import Final

from proxy.catalog import FactsCache
from proxy.config import CatalogSection
from proxy.file_index import Overview
from proxy.packings import KnownPackings
from proxy.queries import Query, QueryResult, Rows

# A warehouse has some dozens of users at a time, each with a few tools and databases.
STATES_MAX: Final = 200
# Key queries with long answers, of the sessions of one state. Dashboards have some dozens.
LONG_MAX: Final = 1_000

# Until a query is tried again whose answer was too long: tables change.
_BELIEVED_S: Final = 600.0
_DIGEST_BYTES: Final = 16

_OWNER_QUERY: Final = Query("SELECT current_user()", rows_max=1, bytes_max=65_536, deadline_s=5.0)


class TooLong:
    """Key queries whose answers were longer than they may be. Used by several threads at once."""

    def __init__(self, clock: Callable[[], float], queries_max: int = LONG_MAX) -> None:
        self._clock = clock
        self._queries_max = queries_max
        self._lock = Lock()
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def add(self, sql: str) -> None:
        """An answer was too long."""
        with self._lock:
            digest = _digest(sql)
            self._until[digest] = self._clock() + _BELIEVED_S
            self._until.move_to_end(digest)
            if len(self._until) > self._queries_max:
                _ = self._until.popitem(last=False)

    def holds(self, sql: str) -> bool:
        """Whether the answer was too long a while ago."""
        with self._lock:
            return self._until.get(_digest(sql), -inf) > self._clock()


def _digest(sql: str) -> bytes:
    return blake2b(sql.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()


@dataclass
class Known:
    """What sessions of one state were told. Used by several threads at once: each field is set as a whole."""

    facts: FactsCache
    too_long: TooLong
    # Whether quotes and backslashes mean what they mean by default; None until it was asked.
    default_quoting: bool | None = None
    # Whom the backend takes the session for; empty where it does not say, None until it was asked.
    owner: tuple[str, ...] | None = None
    # What the file index has; None until it was asked.
    indexed: Overview | None = None
    # How files are packed into splits.
    packings: KnownPackings = field(default_factory=KnownPackings)

    def forget(self) -> None:
        """Names and settings may mean something else from here on."""
        self.facts.clear()
        self.packings.forget()
        self.default_quoting = None


def owner_of(known: Known) -> Generator[Query, QueryResult, tuple[str, ...]]:
    """Whom the backend takes the session for; empty where it does not say."""
    if known.owner is None:
        answer = yield _OWNER_QUERY
        known.owner = tuple(map(str, answer.rows[0])) if isinstance(answer, Rows) and answer.rows else ()
    return known.owner


class Knowledge:
    """What is known for each state of a session (`SessionState.digest`), those used last kept longest."""

    def __init__(self, settings: CatalogSection, clock: Callable[[], float], states_max: int = STATES_MAX) -> None:
        self.settings = settings
        self._clock = clock
        self._states_max = states_max
        self._lock = Lock()
        self._states: OrderedDict[bytes, Known] = OrderedDict()

    def of_nobody_else(self) -> Known:
        """For a session whose state is like that of no other."""
        return Known(FactsCache(self.settings, self._clock), TooLong(self._clock))

    def of(self, state: bytes) -> Known:
        """For the sessions of a state."""
        with self._lock:
            known = self._states.get(state)
            if known is None:
                known = self._states[state] = self.of_nobody_else()
            self._states.move_to_end(state)
            if len(self._states) > self._states_max:
                _ = self._states.popitem(last=False)
            return known
