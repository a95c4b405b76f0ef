"""A cache of table facts, each with its time of expiry.

Unlike `proxy.session.catalog.answers` it looks at the write log, and reads all its entries at one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from proxy.config.rewriting import CatalogSection
from proxy.session.consistency.write_fence import Fence, WriteLog
from proxy.statements.written_tables import WrittenTables
from rewriter import PartOfTable, TableFacts, TableName

# Facts that have expired are kept for so long, for readers who ask for them again while they are used: the longest
# that keys may be remembered (`rewrite.keys_remembered_s`).
_KEPT_S: Final = 86_400.0

# Parts of a table whose sizes are kept, the newest.
_PARTS_MAX: Final = 100


@dataclass(frozen=True)
class DescribedTable:
    """A name as DESCRIBE answered; `identity` tells the table from every other one, where it is a table."""

    name: TableName
    facts: TableFacts | None
    identity: tuple[str, ...] = ()
    # True if the answer did not come in time.
    is_late: bool = False


@dataclass(frozen=True)
class FactsMoment:
    """The moment of a question: its answer is not remembered where the facts were forgotten or changed since."""

    generation: int
    fence: Fence
    at: float

    def earlier(self, seconds: float) -> FactsMoment:
        """The moment so many seconds before."""
        return replace(self, at=self.at - seconds)


@dataclass
class FactsCache:
    """Facts of tables, each with its time of expiry. Any thread may use it.

    A table that gets other columns through this proxy is described again: no condition in a statement could notice
    that a bare column name now belongs to another table, or that another column stands third.
    """

    settings: CatalogSection
    clock: Callable[[], float]
    writes: WriteLog

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[TableName, tuple[float, DescribedTable]] = {}
        self._token = object()
        # How often everything was forgotten.
        self._generation = 0
        # Opened when the entries were last compared with the writes.
        self._fence = self.writes.open()

    def moment(self) -> FactsMoment:
        """The moment before a question goes to the server; handed back to `add` with the answer."""
        return FactsMoment(self._generation, self.writes.open(), self.clock())

    @property
    def token(self) -> Hashable:
        """A value that changes once everything has been forgotten, and that no other cache has."""
        return self._token, self._generation

    def current(self, grace_s: float = 0.0) -> dict[TableName, TableFacts | None]:
        """The facts that are not older than the configuration allows, or expired so many seconds ago at most."""
        now = self.clock()
        with self._lock:
            # Opened before the look: a write in between is seen by the next look.
            opened = self.writes.open()
            changed = self._fence.changed_columns(self._entries)
            self._fence = opened
            self._entries = {
                name: entry
                for name, entry in self._entries.items()
                if entry[0] + _KEPT_S > now and name not in changed
            }
            return {
                name: described.facts
                for name, (until, described) in self._entries.items()
                if until + grace_s > now and (until > now or described.facts is not None)
            }

    def described(self, name: TableName) -> DescribedTable:
        """The facts known of a name, whatever their age: they were current when the statement was planned."""
        _, described = self._entries.get(name, (0.0, DescribedTable(name, None)))
        return described

    def described_since(self, name: TableName, moment: float) -> bool:
        """True if a description of a name was asked for at that moment or later, by the clock."""
        until, _ = self._entries.get(name, (0.0, None))
        return until - self.settings.facts_ttl_s >= moment

    def add(self, described: DescribedTable, asked: FactsMoment) -> None:
        """Remember the facts of a name, asked for at that moment, unless later ones are known.

        The oldest ones are dropped past the limit.
        """
        with self._lock:
            if asked.generation != self._generation or asked.fence.changed_columns([described.name]):
                return
            until = asked.at + self.settings.facts_ttl_s
            if self._entries.get(described.name, (until, None))[0] > until:
                return
            if described.name not in self._entries and len(self._entries) >= self.settings.tables_max:
                del self._entries[next(iter(self._entries))]
            self._entries[described.name] = (until, described)

    def add_size(self, name: TableName, size_bytes: int) -> bool:
        """Remember the size of a table whose facts are known. True if it was added."""
        described = self.described(name)
        facts = described.facts
        return facts is not None and self.add_to(described, replace(facts, size_bytes=size_bytes))

    def add_part_size(self, part: PartOfTable, size_bytes: int) -> bool:
        """Remember the size of a part of a table whose facts are known. True if it was added."""
        described = self.described(part.table)
        facts = described.facts
        if facts is None:
            return False
        sizes = (*facts.part_sizes, (part.text, size_bytes))[-_PARTS_MAX:]
        return self.add_to(described, replace(facts, part_sizes=sizes))

    def add_to(self, described: DescribedTable, facts: TableFacts) -> bool:
        """Remember more about a table, if it is still described so. It expires when it would have."""
        with self._lock:
            expires, known = self._entries.get(described.name, (0.0, None))
            if known is described:
                self._entries[described.name] = (expires, replace(described, facts=facts))
            return known is described

    def forget_written(self, tables: WrittenTables) -> None:
        """Forget the tables that a statement writes: sizes and snapshots change, the meaning of names stays."""
        with self._lock:
            self._entries = {name: entry for name, entry in self._entries.items() if not tables.hold(name)}

    def clear(self) -> None:
        """Forget everything: a session ran a statement that may have changed what names mean."""
        with self._lock:
            self._entries.clear()
            self._generation += 1
