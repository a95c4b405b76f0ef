"""A reply on its way from the backend, and who asks for it: what the two kinds of backend have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from proxy.operations.internal_call import Call, Reply
from proxy.upstream.errors import BackendError
from proxy.upstream.http_headers import Headers


class UpstreamReply(Protocol):
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
        """The parts of the body, as they come. Raises BackendError where the body is cut off."""
        ...

    def drop(self) -> None:
        """The rest is of no use."""
        ...


class Sender(Protocol):
    """Whoever makes calls."""

    async def send(self, call: Call) -> UpstreamReply:
        """Make a call. Raises BackendError."""
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
