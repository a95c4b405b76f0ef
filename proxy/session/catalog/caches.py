"""Two caches: an LRU cache of values bounded by their weight, and a negative cache of queries that failed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar

from proxy.session.catalog.answers import ANSWERS_MAX, Answer, Answers

_DIGEST_BYTES: Final = 16


class Sized(Protocol):
    """A value that takes memory."""

    @property
    def weight(self) -> int:
        """Its share of the cache, in the unit of `weight_max`."""
        ...


K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Sized)


class WeightedLru(Generic[K, W]):
    """Values by their keys, up to a total weight. Used by several threads at once."""

    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        self._lock = Lock()
        self._values: OrderedDict[K, W] = OrderedDict()
        self._weight = 0
        # Keys that some session is fetching at this moment: others go on without the value.
        self._under_way: set[K] = set()

    def get(self, key: K) -> W | None:
        """The value of a key, which becomes the most recently used one."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: W) -> None:
        """Keep a value; the least recently used ones are dropped to make room, but never this one."""
        with self._lock:
            before = self._values.pop(key, None)
            self._weight += value.weight - (before.weight if before is not None else 0)
            self._values[key] = value
            while self._weight > self._weight_max and len(self._values) > 1:
                _, oldest = self._values.popitem(last=False)
                self._weight -= oldest.weight

    def drop(self, is_dropped: Callable[[K], bool]) -> None:
        """Drop the values of these keys."""
        with self._lock:
            for key in [key for key in self._values if is_dropped(key)]:
                self._weight -= self._values.pop(key).weight

    def is_under_way(self, key: K) -> bool:
        """True if somebody is fetching the value of a key at this moment."""
        with self._lock:
            return key in self._under_way

    @contextmanager
    def alone(self, key: K) -> Iterator[bool]:
        """Enter with True where nobody else is fetching the value of a key, and keep others from it meanwhile."""
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
    """Negative cache: queries that failed recently are not repeated until a deadline. Any thread may use it."""

    def __init__(self, clock: Callable[[], float], believed_s: float, *, queries_max: int = ANSWERS_MAX) -> None:
        self._believed_s = believed_s
        # Spark's error, by the digest of the query.
        self._failed = Answers[bytes, str](clock, queries_max)

    def add(self, sql: str, error: str = "") -> None:
        """Remember that a query has just failed."""
        self._failed.keep(_digest(sql), error, self._believed_s)

    def clear(self) -> None:
        """Forget all queries."""
        self._failed.forget()

    def recent_failure(self, sql: str) -> Answer[str] | None:
        """The recent failure of a query, with Spark's error if it is known; None where it may be asked."""
        return self._failed.get(_digest(sql))

    def holds(self, sql: str) -> bool:
        """True if a query failed recently."""
        return self.recent_failure(sql) is not None


def _digest(sql: str) -> bytes:
    return blake2b(sql.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
