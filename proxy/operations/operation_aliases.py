"""Operation aliases: after a fallback, the handle of the first run names the operation of the original.

A statement that fell back has two operations, and its client names the first. The first is an alias of the second:
calls that name it go to the second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from proxy.wire.hs2.calls import OperationId, SessionHandle

# An alias is kept until the client closes it. With this many, no statement falls back.
ALIASES_MAX: Final = 2_000


class OperationAliases(Protocol):
    """Operations by their aliases, until the client closes an alias or its session ends."""

    @property
    def is_empty(self) -> bool:
        """True if there is no alias."""
        ...

    @property
    def has_room(self) -> bool:
        """True if one more operation may be given an alias."""
        ...

    def add(self, alias: OperationId, operation: OperationId, session: SessionHandle) -> bool:
        """From now on the alias names the operation; False where there is no room."""
        ...

    def operation_of(self, alias: OperationId) -> OperationId | None:
        """The operation that an alias names; None where it is no alias."""
        ...

    def alias_closed(self, alias: OperationId) -> OperationId | None:
        """The client closes what may be an alias. Returns the operation that it named."""
        ...

    def sessions_ended(self, sessions: Iterable[SessionHandle]) -> None:
        """The sessions have ended: the backend ends the operations of a session with it."""
        ...


@dataclass(frozen=True)
class _Aliased:
    operation: OperationId = field(repr=False)
    session: SessionHandle = field(repr=False)


class LocalOperationAliases:
    """The aliases of one process."""

    def __init__(self, aliases_max: int = ALIASES_MAX) -> None:
        self._aliases_max = aliases_max
        self._by_alias: dict[OperationId, _Aliased] = {}

    @property
    def is_empty(self) -> bool:
        """See OperationAliases."""
        return not self._by_alias

    @property
    def has_room(self) -> bool:
        """See OperationAliases."""
        return len(self._by_alias) < self._aliases_max

    def add(self, alias: OperationId, operation: OperationId, session: SessionHandle) -> bool:
        """See OperationAliases."""
        if not self.has_room:
            return False
        self._by_alias[alias] = _Aliased(operation, session)
        return True

    def operation_of(self, alias: OperationId) -> OperationId | None:
        """See OperationAliases."""
        found = self._by_alias.get(alias)
        return None if found is None else found.operation

    def alias_closed(self, alias: OperationId) -> OperationId | None:
        """See OperationAliases."""
        found = self._by_alias.pop(alias, None)
        return None if found is None else found.operation

    def sessions_ended(self, sessions: Iterable[SessionHandle]) -> None:
        """See OperationAliases."""
        ended = frozenset(sessions)
        for alias in [alias for alias, found in self._by_alias.items() if found.session in ended]:
            del self._by_alias[alias]
