"""Operation aliases: a statement that fell back has two operations, and its client names the first.

The second is the alias of the first: calls that name the first go to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from proxy.wire.hs2.calls import OperationId, SessionHandle

# Aliases since a fallback, until the client closes the operation. Past this nothing falls back.
ALIASES_MAX: Final = 2_000


class OperationAliases(Protocol):
    """Aliases by the operation that the client names, until the client closes that or its session ends."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no alias."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether one more operation may be given an alias."""
        ...

    def add(self, old: OperationId, new: OperationId, session: SessionHandle) -> bool:
        """From now on the new one is the alias of the old one; False where there is no room."""
        ...

    def alias_of(self, old: OperationId) -> OperationId | None:
        """The alias of an operation, if it has one."""
        ...

    def operation_closed(self, old: OperationId) -> OperationId | None:
        """The operation is closed. Returns the alias that it had."""
        ...

    def sessions_ended(self, sessions: Iterable[SessionHandle]) -> None:
        """The sessions have ended: the backend ends the operations of a session with it."""
        ...


@dataclass(frozen=True)
class _Alias:
    operation: OperationId = field(repr=False)
    session: SessionHandle = field(repr=False)


class LocalOperationAliases:
    """The aliases of one process."""

    def __init__(self, aliases_max: int = ALIASES_MAX) -> None:
        self._aliases_max = aliases_max
        self._aliases: dict[OperationId, _Alias] = {}

    @property
    def is_empty(self) -> bool:
        """See OperationAliases."""
        return not self._aliases

    @property
    def has_room(self) -> bool:
        """See OperationAliases."""
        return len(self._aliases) < self._aliases_max

    def add(self, old: OperationId, new: OperationId, session: SessionHandle) -> bool:
        """See OperationAliases."""
        if not self.has_room:
            return False
        self._aliases[old] = _Alias(new, session)
        return True

    def alias_of(self, old: OperationId) -> OperationId | None:
        """See OperationAliases."""
        found = self._aliases.get(old)
        return None if found is None else found.operation

    def operation_closed(self, old: OperationId) -> OperationId | None:
        """See OperationAliases."""
        found = self._aliases.pop(old, None)
        return None if found is None else found.operation

    def sessions_ended(self, sessions: Iterable[SessionHandle]) -> None:
        """See OperationAliases."""
        ended = frozenset(sessions)
        for old in [old for old, found in self._aliases.items() if found.session in ended]:
            del self._aliases[old]
