"""The admin port's own socket, behind the guard of its connections."""

from __future__ import annotations

import asyncio

from aiohttp import web

from proxy.admin.doors import DOORS
from proxy.config.address import Address


class AdminPort:
    """Serves the application at one address."""

    def __init__(self, app: web.Application) -> None:
        self._app = app
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None)
        self._server: asyncio.Server | None = None

    async def setup(self) -> None:
        """Make ready, before anybody can connect."""
        await self._runner.setup()

    async def start(self, address: Address, *, shares_port: bool = False) -> None:
        """Listen. Raises OSError if the address is not available."""
        assert self._runner.server is not None  # noqa: S101 - setup() has made it
        factory = self._app[DOORS].guard.factory(self._runner.server)
        self._server = await asyncio.get_running_loop().create_server(
            factory, address.host, address.port, reuse_port=shares_port or None
        )

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._server is not None  # noqa: S101 - start() has made it
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Listen no more, and end the requests under way."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()
