"""The proxy's own calls in a client's session, and the operation that they leave open where they are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from proxy.operations.internal_call import Call, InternalOperation, Reply
from proxy.upstream.errors import BackendError


class InternalCalls:
    """Makes the proxy's own calls, and keeps the operation that they have open."""

    def __init__(self, ask: Callable[[Call], Awaitable[Reply]]) -> None:
        self._ask = ask
        self._operation = InternalOperation()
        self._exchange: asyncio.Task[Reply] | None = None

    @property
    def has_unfinished(self) -> bool:
        """True if there is, or may be, an open operation that only the proxy can close."""
        return self._operation.is_awaited or self._operation.is_open

    async def ask(self, call: Call) -> Reply:
        """Make a call. Raises BackendError."""
        # The exchange continues if this is cancelled: its reply may name the operation to close.
        self._exchange = asyncio.get_running_loop().create_task(self._asked(call))
        return await asyncio.shield(self._exchange)

    async def close_operation(self, seconds_max: float) -> None:
        """Close the operation that is still open."""
        with suppress(BackendError, TimeoutError):
            async with asyncio.timeout(seconds_max):
                if self._exchange is not None:
                    await self._exchange
                # A socket that is closed before the replies have come loses the bytes written.
                for call in self._operation.closing_calls():
                    _ = await self._ask(call)

    async def _asked(self, call: Call) -> Reply:
        self._operation.call_sent(call)
        reply = await self._ask(call)
        self._operation.reply_came(call.name, call.seqid, reply)
        return reply
