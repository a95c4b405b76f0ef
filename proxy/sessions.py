"""The HiveServer2 sessions of this process. A handle works from any connection, so they are kept together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from proxy.queries import Query, QueryResult
from proxy.rulings import Ruling
from proxy.wire.hs2 import PROTOCOL_V6, SessionHandle


class SessionPort(Protocol):
    """What decides about the statements of one session."""

    def rewrite(self, sql: str) -> Generator[Query, QueryResult, Ruling]:
        """Yield queries for the session, be sent their results, return what to send on."""
        ...

    def filter_refused(self) -> None:
        """The metastore refused the partition filter of a statement that was rewritten."""
        ...


@dataclass(frozen=True)
class OpenSession:
    """A session that rewriting is offered to. `turn` lets its statements in one at a time, in order."""

    port: SessionPort
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """Sessions by handle. Each lives until CloseSession, or until the connection that opened it ends."""

    def __init__(self, open_port: Callable[[], SessionPort]) -> None:
        self._open_port = open_port
        self._sessions: dict[SessionHandle, OpenSession] = {}

    def opened(self, handle: SessionHandle, protocol_version: int) -> None:
        """A session has been opened. Before V6 results come row by row, which we do not read."""
        if protocol_version >= PROTOCOL_V6:
            self._sessions[handle] = OpenSession(self._open_port())

    def find(self, handle: SessionHandle) -> OpenSession | None:
        """The session, unless it is unknown or too old to be offered rewriting."""
        return self._sessions.get(handle)

    def closed(self, handles: Iterable[SessionHandle]) -> None:
        """These sessions have ended."""
        for handle in handles:
            self._sessions.pop(handle, None)
