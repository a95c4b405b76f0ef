"""What the workers tell one another: each answers for its own counters, and any of them for the sum."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout, UnixConnector, web

from proxy.workers.place import Place
from proxy.workers.sums import summed

# A worker answers this within milliseconds unless it is overwhelmed; its counters are then left out for once.
_ANSWER_WITHIN_S: Final = 2.0
# The counters of one worker take 30 KB.
_ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024

log = logging.getLogger(__name__)


class Siblings:
    """The other workers, on sockets in the directory that they share."""

    def __init__(self, place: Place, own: Callable[[], bytes]) -> None:
        self._place = place
        self._own = own
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Answer the others."""

        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=self._own())

        application = web.Application()
        application.add_routes([web.get("/metrics", answer)])
        self._runner = web.AppRunner(application, handle_signals=False, access_log=None)
        await self._runner.setup()
        path = self._place.socket_path(self._place.slot)
        # Of the worker that was here before.
        path.unlink(missing_ok=True)
        await web.UnixSite(self._runner, path).start()

    async def stop(self) -> None:
        """Answer no longer."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def exposition(self) -> bytes:
        """The counters of all workers, added up."""
        others = [slot for slot in range(self._place.count) if slot != self._place.slot]
        answers = await asyncio.gather(*(self._ask(slot) for slot in others))
        return summed([self._own(), *(answer for answer in answers if answer is not None)])

    async def _ask(self, slot: int) -> bytes | None:
        connector = UnixConnector(str(self._place.socket_path(slot)))
        timeout = ClientTimeout(total=_ANSWER_WITHIN_S)
        try:
            async with (
                ClientSession(connector=connector, timeout=timeout) as session,
                session.get("http://worker/metrics") as answer,
            ):
                return await answer.content.read(_ANSWER_BYTES_MAX)
        except (ClientError, OSError, TimeoutError) as error:
            log.warning("the counters of worker %d are left out: %s", slot, type(error).__name__)
            return None
