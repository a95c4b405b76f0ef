"""Interfaces of a reply from a backend and of its caller, shared by binary and HTTP backends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from proxy.operations.internal_call import Call, Reply
from proxy.upstream.errors import BackendError
from proxy.upstream.http_headers import Headers


class UpstreamReply(Protocol):
    """A reply whose head has come. The caller reads it to its end, or drops it."""

    @property
    def status(self) -> int:
        """The HTTP status; 200 where the backend does not speak HTTP."""
        ...

    @property
    def headers(self) -> Headers:
        """The HTTP headers to forward."""
        ...

    @property
    def length(self) -> int | None:
        """The length of the body, if the backend announced it."""
        ...

    @property
    def is_reply(self) -> bool:
        """True if it is a Thrift message that can be read, and not an HTTP error."""
        ...

    async def read_all(self, bytes_max: int) -> Reply:
        """Return the body; None if it is longer or no reply: `chunks` then yields all. Raises BackendError."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in parts, as they come. Raises BackendError if the body is cut off."""
        ...

    def drop(self) -> None:
        """Discard the rest of the reply."""
        ...


class Sender(Protocol):
    """A way to make calls to one backend."""

    async def send(self, call: Call) -> UpstreamReply:
        """Make a call. Raises BackendError."""
        ...


async def ask(sender: Sender, call: Call) -> Reply:
    """Make a call and return its whole reply. Raises BackendError."""
    incoming = await sender.send(call)
    try:
        reply = await incoming.read_all(call.reply_bytes_max)
        if reply is None and not incoming.is_reply:
            raise BackendError(f"the backend answered {call.name} with HTTP status {incoming.status}")
        return reply
    finally:
        incoming.drop()
