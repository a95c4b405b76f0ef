"""A cache of keys: users may allow small sides to be some time old, or keys to be checked while they are used.

An entry belongs to a session's state (`SessionState.digest`: user, settings, database), so nobody is given keys
that the backend might have refused or answered otherwise. A client may have manipulated the session that read
them: other sessions use them only where they ask again while their statement runs. An entry is void once a write
through the proxy may have touched a table that it was read from. Each reader says how old it may be. Each entry
keeps the fence that was opened before it was read, so no order of reading, writing and keeping lets a stale one
pass. `proxy.session.catalog.answers` would not do: entries are bounded by bytes, and told apart by asker and
fence.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock
from typing import Final

from proxy.session.consistency.write_fence import Fence
from rewriter import KeyQuery, KeyRanges, Keys, KeySet, PartitionMatches, TableName
from rewriter.domains.literals import Key

# A dashboard has some dozens of key queries, and each user and each setting has its own.
ENTRIES_MAX: Final = 1_000
# All entries together. A full one of 5,000 keys takes half a megabyte.
BYTES_MAX: Final = 64 * 1024 * 1024

# After so many answers in a row that differed from the one before, the keys are asked for first.
_CHANGES_MAX: Final = 3

# Bytes of a key beside the characters of its text: a string, its place in a tuple, and the tuple.
_KEY_BYTES: Final = 120
# Bytes of an entry beside its keys and its question.
_ENTRY_BYTES: Final = 1_000


@dataclass(frozen=True)
class _Entry:
    keys: Keys
    # The session that asked.
    asker: str
    tables: frozenset[TableName]
    asked_at: float
    fence: Fence
    size_bytes: int
    # How often in a row the answer differed from the one before.
    changes: int = 0


class KeyCache:
    """The keys of all sessions, those used last kept longest. Used by several threads at once."""

    def __init__(self, entries_max: int = ENTRIES_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._entries: dict[tuple[bytes, KeyQuery], _Entry] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def trusted(self, state: bytes, question: KeyQuery, *, asker: str, asked_since: float) -> Keys | None:
        """The keys that the session `asker` itself has asked for since then, if they still hold."""
        entry = self._current(state, question, asked_since)
        return entry.keys if entry is not None and entry.asker == asker else None

    def checked_later(self, state: bytes, question: KeyQuery, *, asked_since: float) -> Keys | None:
        """The keys that any session of that state has asked for, to be checked while they are used.

        None where the last answers all differed.
        """
        entry = self._current(state, question, asked_since)
        return entry.keys if entry is not None and entry.changes < _CHANGES_MAX else None

    def asked_at(self, state: bytes, question: KeyQuery) -> float | None:
        """When the keys that are kept were asked for, whether they still hold or not."""
        with self._lock:
            entry = self._entries.get((state, question))
            return entry.asked_at if entry is not None else None

    def put(  # noqa: PLR0913 - what an entry is made of
        self,
        state: bytes,
        question: KeyQuery,
        keys: Keys,
        *,
        asker: str,
        asked_at: float,
        fence: Fence,
    ) -> None:
        """Keep an answer that a session of that state asked for at a moment, behind a fence."""
        size_bytes = _size_bytes(question, keys)
        if size_bytes > self._bytes_max:
            return
        with self._lock:
            before = self._take(state, question)
            changes = 0 if before is None or before.keys == keys else before.changes + 1
            self._keep(state, question, _Entry(keys, asker, question.tables, asked_at, fence, size_bytes, changes))

    def _current(self, state: bytes, question: KeyQuery, asked_since: float) -> _Entry | None:
        """The entry, now the one used last, if it was asked for then or later. After a write it is dropped."""
        with self._lock:
            entry = self._take(state, question)
            # Behind its views there may be other tables by now than those that the entry was kept for.
            if entry is None or entry.tables != question.tables or not entry.fence.holds(entry.tables):
                return None
            self._keep(state, question, entry)
        return entry if entry.asked_at >= asked_since else None

    def _keep(self, state: bytes, question: KeyQuery, entry: _Entry) -> None:
        self._entries[state, question] = entry
        self._bytes += entry.size_bytes
        while self._bytes > self._bytes_max or len(self._entries) > self._entries_max:
            _ = self._take(*next(iter(self._entries)))

    def _take(self, state: bytes, question: KeyQuery) -> _Entry | None:
        entry = self._entries.pop((state, question), None)
        self._bytes -= entry.size_bytes if entry is not None else 0
        return entry


def _size_bytes(question: KeyQuery, keys: Keys) -> int:
    """About what an entry takes in memory."""
    rows: Collection[tuple[Key | None, ...]]
    if isinstance(keys, PartitionMatches):
        rows = keys.asked
    else:
        rows = keys.rows if isinstance(keys, KeySet) else keys.ranges
    texts = sum(len(value) for row in rows for value in row if isinstance(value, str))
    width = 2 if isinstance(keys, KeyRanges) else len(question.columns)
    asked = len(question.sql) + len(question.sql_with_repeats)
    return _ENTRY_BYTES + asked + len(rows) * width * _KEY_BYTES + texts
