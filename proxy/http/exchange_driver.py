"""Makes the calls of one exchange, and keeps the reply for the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from proxy.http.exchange import Step, Steps
from proxy.http.upstream_protocol import Upstream
from proxy.operations.internal_call import Reply
from proxy.operations.key_check import KeyCheck
from proxy.upstream.reply import UpstreamReply


@dataclass(frozen=True)
class ExchangeReply:
    """The reply for the client: `body`, or where that is None the backend's reply as it comes."""

    body: bytes | None = field(repr=False)
    # None where the backend was asked nothing.
    incoming: UpstreamReply | None

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, as it comes. Raises BackendError where it is cut off."""
        if self.body is not None:
            yield self.body
        elif self.incoming is not None:
            async for piece in self.incoming.chunks():
                yield piece

    def drop(self) -> None:
        """Drop the rest of the backend's reply: nobody wants it."""
        if self.incoming is not None:
            self.incoming.drop()


class ExchangeDriver:
    """Makes the calls of an exchange one after the other, in the place of one call of a client."""

    def __init__(self, steps: Steps, upstream: Upstream) -> None:
        self._steps = steps
        self._upstream = upstream
        self._incoming: UpstreamReply | None = None
        self._reply: Reply = None
        self._body: bytes | None = None

    @property
    def answered(self) -> ExchangeReply:
        """The client's reply: the one that the exchange made, or else the last one that was read."""
        return ExchangeReply(self._body, self._incoming)

    def next_step(self) -> Step | None:
        """The call to make, or the check to await; None once the client's reply is known."""
        try:
            # Sending None starts a generator, which its type cannot express.
            return self._steps.send(self._reply)
        except StopIteration as end:
            self._body = end.value
            return None
        except BaseException:
            self._give_up()
            raise

    async def make(self, step: Step) -> None:
        """Make a call and read its reply, or await a check. Raises BackendError."""
        self._drop()
        try:
            if isinstance(step, KeyCheck):
                await _settled(step)
                self._reply = None
            else:
                self._incoming = await self._upstream.send(step)
                self._reply = await self._incoming.read_all(step.reply_bytes_max)
        except BaseException:
            self._give_up()
            raise

    async def rest(self, step: Step | None) -> ExchangeReply:
        """Take this step and all that follow. Raises BackendError."""
        while step is not None:
            await self.make(step)
            step = self.next_step()
        return self.answered

    def _give_up(self) -> None:
        self._drop()
        self._steps.close()

    def _drop(self) -> None:
        if self._incoming is not None:
            self._incoming.drop()


async def _settled(check: KeyCheck) -> None:
    settled = asyncio.Event()
    check.call_when_settled(settled.set)
    await settled.wait()
