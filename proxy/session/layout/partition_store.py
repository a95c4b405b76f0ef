"""The interface of stores of partition lists, and the keys by which they find them.

Access: a list was asked for in a session of the proxy's own, and it is found again under the same `ListKey` alone.
The key is the login that the backend accepted, with the user for whom it acts and its settings, and the table as
DESCRIBE identified it. So nobody is handed a list of a table that their login could not describe, nor another
user's view of it.

A store is a cache: whatever goes wrong with it means that a list is not kept or not found, and is asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

import msgspec

from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.partitions.scan_plan import ScanPlan


@dataclass(frozen=True)
class ListKey:
    """The key of a list: user and table. Both are compared part by part, verbatim."""

    # All that the backend knows the session by: the user who logged in, and the user whom the session acts for.
    owner: tuple[str, ...]
    # The answer of DESCRIBE: the table's own name first, then database, catalog, location and time of creation: by
    # these, a table that was dropped and created again is another one.
    table: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.owner or not self.table:
            raise ValueError("a list without an owner, or of no table, could be anyone's")

    @property
    def name(self) -> str:
        """The table's own name, in lower case: lists are dropped by it."""
        return self.table[0].lower()

    @property
    def digest(self) -> bytes:
        """A name of fixed length, that of the table first."""
        return _digest(self.table) + _digest(self.owner)


class StoreWait:
    """The time that one statement may still wait for a store that replicas share, over all its lists."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = self._left_s = deadline_s

    @property
    def left_s(self) -> float:
        """The seconds that are left."""
        return self._left_s

    @property
    def is_whole(self) -> bool:
        """True if nothing was waited for so far."""
        return self._left_s >= self._deadline_s

    def waited(self, seconds: float) -> None:
        """Count seconds that were waited. The statement goes on in one thread at a time."""
        self._left_s = max(0.0, self._left_s - seconds)


@dataclass(frozen=True)
class ScannedPartitions:
    """The answer to one filter from a list that is not at hand."""

    # Of the entries at least those that the filter keeps; its count is that of the whole list.
    index: PartitionIndex
    # The number of partitions in each scan of the plan; None where the filter was tested elsewhere.
    scanned: tuple[int | None, ...]


def _digest(parts: tuple[str, ...]) -> bytes:
    return sha256(msgspec.msgpack.encode(parts)).digest()


class PartitionStore(Protocol):
    """Partition lists by key, until they expire."""

    def put(self, key: ListKey, columns: Sequence[str], type_names: Sequence[str], specs: Sequence[str]) -> bool:
        """Keep a list in the place of an earlier one, and say whether it is kept.

        If not, an earlier one stays until it expires. A million partitions take seconds: not on the event loop.
        """
        ...

    def get(self, key: ListKey, *, or_old: bool = False) -> PartitionIndex | None:
        """The list as it is now, where it is at hand, or None where there is none that is still believed.

        With `or_old` also one that has expired within a day, for numbers that people look at.
        """
        ...

    def ask_ahead(self, keys: Sequence[ListKey]) -> None:
        """Begin to look lists up that a statement is about to ask for, all at once. Returns at once."""
        ...

    def look_up(self, key: ListKey, wait: StoreWait) -> PartitionIndex | None:
        """The list as it is now, as `get` gives it, or as other replicas have it.

        That is waited for as long as the statement may still wait: a few milliseconds for all its lists.
        """
        ...

    def scan(self, key: ListKey, keys: PartitionKeys, plan: ScanPlan) -> ScannedPartitions | None:
        """The partitions in a plan's scans of a list that other replicas have, and that is not at hand.

        None where there is no such list, or no answer soon. The caller waits, so this is for people who ask.
        """
        ...

    def forget(self, names: AbstractSet[str]) -> None:
        """Drop everyone's lists of the tables of these names, in lower case, in any database.

        A statement that holds these words may have changed their partitions.
        """
        ...
