"""Operations that stand for others: a statement that was run again has two, and its client names the first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from proxy.wire.hs2.calls import OperationId, SessionHandle

# Operations that stand for another since a rerun, until the client closes them. Past this nothing is run again.
ALIASES_MAX: Final = 2_000


class OperationAliases(Protocol):
    """Operations by the one that they stand for, until the client closes that or its session ends."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands for anything."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether one more operation may be given a successor."""
        ...

    def add(self, old: OperationId, new: OperationId, session: SessionHandle) -> bool:
        """From now on the new one stands for the old one; False where there is no room."""
        ...

    def of(self, old: OperationId) -> OperationId | None:
        """What stands for an operation."""
        ...

    def drop(self, old: OperationId) -> OperationId | None:
        """The operation is closed. Returns what stood for it."""
        ...

    def sessions_ended(self, sessions: Iterable[SessionHandle]) -> None:
        """The backend ends the operations of a session with it."""
        ...


@dataclass(frozen=True)
class _Alias:
    operation: OperationId = field(repr=False)
    session: SessionHandle = field(repr=False)


class LocalOperationAliases:
    """The successors of one process."""

    def __init__(self, successors_max: int = ALIASES_MAX) -> None:
        self._successors_max = successors_max
        self._found: dict[OperationId, _Alias] = {}

    @property
    def is_empty(self) -> bool:
        """See OperationAliases."""
        return not self._found

    @property
    def has_room(self) -> bool:
        """See OperationAliases."""
        return len(self._found) < self._successors_max

    def add(self, old: OperationId, new: OperationId, session: SessionHandle) -> bool:
        """See OperationAliases."""
        if not self.has_room:
            return False
        self._found[old] = _Alias(new, session)
        return True

    def of(self, old: OperationId) -> OperationId | None:
        """See OperationAliases."""
        found = self._found.get(old)
        return None if found is None else found.operation

    def drop(self, old: OperationId) -> OperationId | None:
        """See OperationAliases."""
        found = self._found.pop(old, None)
        return None if found is None else found.operation

    def sessions_ended(self, sessions: Iterable[SessionHandle]) -> None:
        """See OperationAliases."""
        ended = frozenset(sessions)
        for old in [old for old, found in self._found.items() if found.session in ended]:
            del self._found[old]
