"""What was fetched at some cost, the most recently used kept longest, and who is fetching at this moment."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Generic, Protocol, TypeVar


class Weighed(Protocol):
    """What takes memory."""

    @property
    def weight(self) -> int:
        """How much, in whatever it is counted in."""
        ...


K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Weighed)


class Kept(Generic[K, W]):
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
