"""A reply on its way from the backend, and who asks for it: what the two kinds of backend have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from proxy.backend_link import BackendError
from proxy.backends.backend import Backend
from proxy.http.headers import Headers
from proxy.operations.internal_call import Call, Reply
from proxy.wire.hs2.calls import SessionHandle


class UnsentError(BackendError):
    """Nothing has been sent: to try again cannot do anything twice."""


class RefusedError(BackendError):
    """The backend does not take the client's credentials."""


class Incoming(Protocol):
    """A reply, of which the head has come. To be read to its end, or dropped."""

    @property
    def status(self) -> int:
        """The HTTP status; 200 where the backend does not speak HTTP."""
        ...

    @property
    def headers(self) -> Headers:
        """The HTTP headers that pass."""
        ...

    @property
    def length(self) -> int | None:
        """How long it is, where that was said."""
        ...

    @property
    def is_reply(self) -> bool:
        """Whether it is a Thrift message that can be read: an HTTP error is none."""
        ...

    async def whole(self, bytes_max: int) -> Reply:
        """All of it; None if it is longer or no reply, and `pieces` still has everything. Raises BackendError."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """What there is of it, as it comes. Raises BackendError where it is cut off."""
        ...

    def drop(self) -> None:
        """The rest is of no use."""
        ...


class Sender(Protocol):
    """Whoever makes calls."""

    async def send(self, call: Call) -> Incoming:
        """Make a call. Raises BackendError."""
        ...


class Upstream(Sender, Protocol):
    """One backend, asked in the name of one client."""

    @property
    def backend(self) -> Backend:
        """Which one."""
        ...

    @property
    def owner(self) -> str | None:
        """Whom a session opened here belongs to; None where nothing may be asked in that name."""
        ...

    @property
    def name(self) -> str:
        """Equal for calls that the same client may have made."""
        ...

    @property
    def login(self) -> str | None:
        """Whom the backend takes the client for; empty where it has not said, None where nobody asks."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """Whom the client says it is; nobody where it gives no name, several where that is unclear."""
        ...

    @property
    def credentials(self) -> bytes | None:
        """The name and the password, as PLAIN has them. A secret."""
        ...

    def opened(self, session: SessionHandle) -> None:
        """The last call has opened this session."""
        ...

    def closed(self, session: SessionHandle) -> None:
        """The client closes the session."""
        ...


class Client(Protocol):
    """Whoever a call comes from. Each may go to another backend."""

    @property
    def marks(self) -> frozenset[str]:
        """Of the backends whose cookies it has."""
        ...

    def at(self, backend: Backend) -> Upstream:
        """That backend, asked in its name."""
        ...


async def ask(sender: Sender, call: Call) -> Reply:
    """Make a call of our own. Raises BackendError."""
    incoming = await sender.send(call)
    try:
        reply = await incoming.whole(call.reply_bytes_max)
        if reply is None and not incoming.is_reply:
            raise BackendError(f"the backend answered {call.name} with HTTP status {incoming.status}")
        return reply
    finally:
        incoming.drop()
