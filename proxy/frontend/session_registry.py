"""The HiveServer2 sessions of this process. A handle works from any connection, so all connections share them.

A process rewrites a session's statements only if it has seen the session open and sees all of its statements: one
that another process forwards may change the session's settings, its database or its views.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from proxy.access.handle_owners import HandleOwners
from proxy.frontend.own_session import Access
from proxy.operations.session_port import SessionOpening, SessionPort
from proxy.wire.hs2.calls import PROTOCOL_V6, SessionHandle
from proxy.wire.hs2.handles import handle_id_of

# Sessions that were opened past this process and are used through it: clients of a proxy that was restarted.
UNSEEN_SESSIONS_MAX: Final = 1_000
# The first statement here of a session that another process has opened waits this long. By then the backend has
# the statements that the other process was deciding about.
SETTLING_S: Final = 0.1


@dataclass(frozen=True)
class OpenSession:
    """A session. `turn` lets its statements in one at a time, in order."""

    port: SessionPort
    # True if its statements may be rewritten. Its writes have to be known either way.
    is_offered: bool = True
    # The sessions of an owner share one thread. A session that was not seen to open has an owner of its own.
    owner: str = ""
    # Its statements wait until this time, by the clock of the event loop.
    settled_at: float = 0.0
    # The login of the client that opened it; None where that is not known.
    access: Access | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class SessionRegistry:
    """Sessions by handle. Each lives until CloseSession, or until the connection that opened it ends."""

    def __init__(self, open_port: Callable[[SessionOpening], SessionPort], handles: HandleOwners) -> None:
        self._open_port = open_port
        self._handles = handles
        self._sessions: dict[SessionHandle, OpenSession] = {}
        # Sessions whose opening was not seen; their end may not be seen either.
        self._unseen: deque[SessionHandle] = deque()

    def opened(
        self,
        handle: SessionHandle,
        protocol_version: int,
        opened: SessionOpening | None,
        access: Access | None = None,
    ) -> None:
        """Add a session that has been opened; `opened` is None if its settings or its login are not known.

        Neither such a session nor one before V6 is rewritten: unknown settings may say anything, and results that
        come row by row are not read.
        """
        is_offered = protocol_version >= PROTOCOL_V6 and opened is not None
        opened = opened or SessionOpening(is_seen=False)
        owner = opened.counts_for or uuid4().hex
        port = self._open_port(opened)
        self._sessions[handle] = OpenSession(port, is_offered=is_offered, owner=owner, access=access)

    def of(self, handle: SessionHandle) -> OpenSession:
        """The session. One that was opened elsewhere, or before a restart, is not offered rewriting."""
        found = self._sessions.get(handle)
        if found is None:
            if len(self._unseen) >= UNSEEN_SESSIONS_MAX:
                self.closed([self._unseen.popleft()], are_forgotten=True)
            self._unseen.append(handle)
            identifier = handle_id_of(handle)
            roams = identifier is not None and self._handles.used_elsewhere(identifier)
            settled_at = asyncio.get_running_loop().time() + SETTLING_S if roams else 0.0
            port = self._open_port(SessionOpening(is_seen=False))
            found = self._sessions[handle] = OpenSession(
                port, is_offered=False, owner=uuid4().hex, settled_at=settled_at
            )
        elif not self._is_local(handle):
            found.port.used_elsewhere()
        return found

    def access_of(self, handle: SessionHandle) -> Access | None:
        """The login by which the session was opened here, as long as it is open; None where that is not known."""
        session = self._sessions.get(handle)
        return None if session is None else session.access

    def is_offered(self, handle: SessionHandle) -> bool:
        """True if the session's statements may be rewritten now. Checked again after each decision."""
        session = self._sessions.get(handle)
        return session is not None and session.is_offered and self._is_local(handle)

    def _is_local(self, handle: SessionHandle) -> bool:
        identifier = handle_id_of(handle)
        return identifier is not None and self._handles.is_local(identifier)

    def ended_elsewhere(self) -> list[SessionHandle]:
        """End the sessions that were opened elsewhere and have ended there. Returns them."""
        ended = []
        for handle in self._unseen:
            identifier = handle_id_of(handle)
            if identifier is not None and self._handles.is_closed(identifier):
                ended.append(handle)
        for handle in ended:
            self._unseen.remove(handle)
        self.closed(ended)
        return ended

    def closed(self, handles: Iterable[SessionHandle], *, are_forgotten: bool = False) -> None:
        """Remove sessions that have ended, or that go on and are too many."""
        for handle in handles:
            session = self._sessions.pop(handle, None)
            if session is not None:
                session.port.closed(is_forgotten=are_forgotten)
