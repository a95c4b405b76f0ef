"""The listeners of the binary protocol before backends that speak HTTP: their connections, one task for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from proxy.config.endpoints import Transport
from proxy.http.binary_client import CLIENT_CLOSED, FAREWELL_S, BinaryClient, BinarySettings, SignedIn
from proxy.http.gateway import Gateway
from proxy.net.sockets import peer_name, prepare
from proxy.relay.connection_profile import refused

log = logging.getLogger(__name__)

# No more than the relay keeps of a client that sends calls and reads no replies.
_AHEAD_BYTES_MAX: Final = 64 * 1024


class BinaryFront:
    """The connections of one listener. `accept` makes the protocol for each."""

    def __init__(self, settings: BinarySettings, gateway: Gateway, sign_in: Callable[[str], SignedIn]) -> None:
        self._settings = settings
        self._gateway = gateway
        self._sign_in = sign_in
        self._clients: dict[BinaryClient, asyncio.Task[str]] = {}
        self._ends: set[asyncio.Task[None]] = set()

    def accept(self) -> asyncio.BaseProtocol:
        """Somebody connects."""
        return _ClientProtocol(self._serve)

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._clients)

    @property
    def awaits_replies(self) -> bool:
        """Whether a call is under way."""
        return any(client.awaits_reply for client in self._clients)

    async def close(self) -> None:
        """End every connection, and its sessions."""
        for serving in self._clients.values():
            serving.cancel()
        if self._ends:
            await asyncio.wait(self._ends, timeout=FAREWELL_S)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> asyncio.Task[str] | None:
        limit = self._settings.connections_max
        if len(self._clients) >= limit:
            sentence = f"Starpruner serves {limit} connections already (connections_max); try again later"
            writer.write(refused(Transport.NOSASL if self._settings.login else Transport.SASL, sentence))
            writer.close()
            log.info("a connection was refused, %d are open", limit)
            return None
        transport = cast("asyncio.Transport", writer.transport)
        prepare(transport, self._settings.write_buffer_bytes_max, self._settings.keepalive)
        client = BinaryClient(self._settings, self._gateway, self._sign_in)
        loop = asyncio.get_running_loop()
        serving = self._clients[client] = loop.create_task(client.serve(reader, writer))
        end = loop.create_task(self._end(client, serving, peer_name(transport)))
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)
        return serving

    async def _end(self, client: BinaryClient, serving: asyncio.Task[str], name: str) -> None:
        await asyncio.wait([serving])
        await client.leave()
        del self._clients[client]
        log.info("a connection from %s ended: %s", name, _reason(serving))


def _reason(serving: asyncio.Task[str]) -> str:
    if serving.cancelled():
        return CLIENT_CLOSED
    error = serving.exception()
    # Not its own words: they may quote the statement.
    return serving.result() if error is None else f"failed with {type(error).__name__}"


class _ClientProtocol(asyncio.StreamReaderProtocol):
    """A connection as streams, whose task ends as soon as the client has left."""

    def __init__(
        self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], asyncio.Task[str] | None]
    ) -> None:
        super().__init__(asyncio.StreamReader(limit=_AHEAD_BYTES_MAX), self._connected)
        self._serve = serve
        self._client: asyncio.Task[str] | None = None

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._client = self._serve(reader, writer)

    def eof_received(self) -> bool | None:
        """The client has said all, and waits for nothing: HiveServer2's clients close both ways at once."""
        self._cancel()
        return super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone."""
        self._cancel()
        super().connection_lost(error)

    def _cancel(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.cancel()
