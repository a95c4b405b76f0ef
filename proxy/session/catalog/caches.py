"""Caches: values that cost something to fetch, and queries that were asked in vain a while ago.

Of values the most recently used are kept longest, and it is known who is fetching one at this moment. Queries that
were asked in vain are not worth asking again so soon.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from math import inf
from threading import Lock, RLock
from typing import Final, Generic, Protocol, TypeVar

# Of the sessions of one state. Dashboards have some dozens of key queries, and these read some dozens of tables.
QUERIES_MAX: Final = 1_000

_DIGEST_BYTES: Final = 16


class Sized(Protocol):
    """What takes memory."""

    @property
    def weight(self) -> int:
        """How much, in whatever it is counted in."""
        ...


K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Sized)


class WeightedLru(Generic[K, W]):
    """Values by their keys, up to a weight of all together. Used by several threads at once."""

    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        # A question that was given up says so as it is collected, which may be while this thread holds the lock.
        self._lock = RLock()
        self._values: OrderedDict[K, W] = OrderedDict()
        self._weight = 0
        # Those that some session is fetching at this moment: others go on without.
        self._under_way: set[K] = set()

    def get(self, key: K) -> W | None:
        """The value, which counts as used by that."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: W) -> None:
        """Keep a value, if need be in the place of those that were not used for longest. The last one stays."""
        with self._lock:
            before = self._values.pop(key, None)
            self._weight += value.weight - (before.weight if before is not None else 0)
            self._values[key] = value
            while self._weight > self._weight_max and len(self._values) > 1:
                _, oldest = self._values.popitem(last=False)
                self._weight -= oldest.weight

    @contextmanager
    def alone(self, key: K) -> Iterator[bool]:
        """Whether nobody else is fetching this; while this lasts, nobody else begins to."""
        with self._lock:
            is_alone = key not in self._under_way
            self._under_way.add(key)
        try:
            yield is_alone
        finally:
            if is_alone:
                with self._lock:
                    self._under_way.discard(key)


class NegativeCache:
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
