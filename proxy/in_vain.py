"""Queries that were asked in vain a while ago, and are not worth asking again so soon."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from math import inf
from threading import Lock
from typing import Final

# Of the sessions of one state. Dashboards have some dozens of key queries, and these read some dozens of tables.
QUERIES_MAX: Final = 1_000

_DIGEST_BYTES: Final = 16


class InVain:
    """Queries, each until it may have another answer. Used by several threads at once."""

    def __init__(self, clock: Callable[[], float], believed_s: float, *, queries_max: int = QUERIES_MAX) -> None:
        self._clock = clock
        self._believed_s = believed_s
        self._queries_max = queries_max
        self._lock = Lock()
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def add(self, sql: str) -> None:
        """It was asked in vain just now."""
        with self._lock:
            digest = _digest(sql)
            self._until[digest] = self._clock() + self._believed_s
            self._until.move_to_end(digest)
            if len(self._until) > self._queries_max:
                _ = self._until.popitem(last=False)

    def holds(self, sql: str) -> bool:
        """Whether it was asked in vain a while ago."""
        with self._lock:
            return self._until.get(_digest(sql), -inf) > self._clock()


def _digest(sql: str) -> bytes:
    return blake2b(sql.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
