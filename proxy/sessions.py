"""The HiveServer2 sessions of this process. A handle works from any connection, so they are kept together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from proxy.queries import Query, QueryResult
from proxy.rulings import Ruling
from proxy.wire.hs2 import PROTOCOL_V6, SessionHandle

# Sessions that somebody opened past this process and uses through it: clients of a proxy that was restarted.
STRANGERS_MAX: Final = 1_000


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
    # Whether its statements are offered for rewriting. What it writes has to be known either way.
    is_offered: bool = True
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """Sessions by handle. Each lives until CloseSession, or until the connection that opened it ends."""

    def __init__(self, open_port: Callable[[Opened], SessionPort]) -> None:
        self._open_port = open_port
        self._sessions: dict[SessionHandle, OpenSession] = {}
        # Those of which the opening was not seen, and maybe the end will not be.
        self._strangers: deque[SessionHandle] = deque()

    def opened(self, handle: SessionHandle, protocol_version: int, opened: Opened | None) -> None:
        """A session has been opened; None says that its settings were too long to be read.

        Before V6 results come row by row, which we do not read; and settings that were not read may say anything.
        """
        is_offered = protocol_version >= PROTOCOL_V6 and opened is not None
        self._sessions[handle] = OpenSession(self._open_port(opened or Opened()), is_offered=is_offered)

    def of(self, handle: SessionHandle) -> OpenSession:
        """The session. One that was opened elsewhere, or before a restart, is not offered rewriting."""
        found = self._sessions.get(handle)
        if found is None:
            if len(self._strangers) >= STRANGERS_MAX:
                self.closed([self._strangers.popleft()])
            self._strangers.append(handle)
            found = self._sessions[handle] = OpenSession(self._open_port(Opened()), is_offered=False)
        return found

    def closed(self, handles: Iterable[SessionHandle]) -> None:
        """These sessions have ended."""
        for handle in handles:
            session = self._sessions.pop(handle, None)
            if session is not None:
                session.port.closed()
