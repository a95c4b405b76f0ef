"""The HiveServer2 sessions of this process. A handle works from any connection, so they are kept together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from proxy.queries import Query, QueryResult
from proxy.rulings import Ruling
from proxy.wire.hs2 import PROTOCOL_V6, SessionHandle


@dataclass(frozen=True)
class Opened:
    """How a client opened its session."""

    # What it set for it. It may hold passwords.
    configuration: Mapping[str, str] = field(default_factory=dict, repr=False)
    # A digest of whom it logged in as: equal for equal credentials, for as long as the process lives.
    owner: str = field(default="", repr=False)


class SessionPort(Protocol):
    """What decides about the statements of one session."""

    def rewrite(self, sql: str) -> Generator[Query, QueryResult, Ruling]:
        """Yield queries for the session, be sent their results, return what to send on."""
        ...

    def untouched(self, sql: str) -> Ruling:
        """The statement goes on as it came, and nothing is asked."""
        ...

    def closed(self) -> None:
        """The session has ended. Called from the event loop: to be quick."""
        ...


@dataclass(frozen=True)
class OpenSession:
    """A session that rewriting is offered to. `turn` lets its statements in one at a time, in order."""

    port: SessionPort
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """Sessions by handle. Each lives until CloseSession, or until the connection that opened it ends."""

    def __init__(self, open_port: Callable[[Opened], SessionPort]) -> None:
        self._open_port = open_port
        # Stands for sessions that are not offered rewriting: that they write has to be known all the same.
        self.stranger = open_port(Opened())
        self._sessions: dict[SessionHandle, OpenSession] = {}

    def opened(self, handle: SessionHandle, protocol_version: int, opened: Opened | None) -> None:
        """A session has been opened; None says that its settings were too long to be read.

        Before V6 results come row by row, which we do not read; and settings that were not read may say anything.
        """
        if protocol_version >= PROTOCOL_V6 and opened is not None:
            self._sessions[handle] = OpenSession(self._open_port(opened))

    def find(self, handle: SessionHandle) -> OpenSession | None:
        """The session, unless it is unknown or not offered rewriting."""
        return self._sessions.get(handle)

    def closed(self, handles: Iterable[SessionHandle]) -> None:
        """These sessions have ended."""
        for handle in handles:
            session = self._sessions.pop(handle, None)
            if session is not None:
                session.port.closed()
