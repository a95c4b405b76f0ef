"""Opening of connections to a backend, with TLS if the backend speaks TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from proxy.config.address import Address, why_unreachable
from proxy.config.endpoints import UPSTREAM, UpstreamSection
from proxy.net.reply_room import UNBOUNDED, ReplyRoom
from proxy.net.tls import HANDSHAKE_S, SHUTDOWN_S, Certificates, why_no_handshake

Connected = TypeVar("Connected")


class UnreachableError(Exception):
    """The backend could not be connected. The message says why, without the address."""


class Dialer:
    """Opens connections in one way (transport, TLS, timeout) to any backend address."""

    def __init__(
        self, upstream: UpstreamSection = UPSTREAM, connect_timeout_s: float = 10.0, room: ReplyRoom = UNBOUNDED
    ) -> None:
        """`room` is for long replies that come wrapped. Raises ConfigError if its TLS files cannot be used."""
        self.upstream = upstream
        self.room = room
        self.timeout_s = connect_timeout_s
        self._certificates = (
            None if upstream.tls is None else Certificates.of_upstream(upstream.tls, time.monotonic)
        )

    async def connect(self, protocol: Callable[[], asyncio.Protocol], address: Address) -> asyncio.Transport:
        """Connect a protocol, and return its transport. Raises UnreachableError."""
        loop, tls = asyncio.get_running_loop(), self.tls_arguments(address)
        async with self._mapped_errors():
            transport, _ = await _first(
                address, lambda host: loop.create_connection(protocol, host, address.port, **tls)
            )
            return transport

    async def open_streams(self, address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect a pair of streams. Raises UnreachableError."""
        tls = self.tls_arguments(address)
        async with self._mapped_errors():
            return await _first(address, lambda host: asyncio.open_connection(host, address.port, **tls))

    def reload_certificates(self) -> None:
        """Read the TLS files again."""
        if self._certificates is not None:
            self._certificates.reload()

    def tls_arguments(self, address: Address) -> dict[str, Any]:
        """Return asyncio's TLS arguments for a connection; none if the backend speaks no TLS."""
        if self.upstream.tls is None or self._certificates is None:
            return {}
        return {
            "ssl": self._certificates.context(),
            "server_hostname": self.upstream.tls.server_name or address.name or address.host,
            "ssl_handshake_timeout": HANDSHAKE_S,
            "ssl_shutdown_timeout": SHUTDOWN_S,
        }

    @asynccontextmanager
    async def _mapped_errors(self) -> AsyncIterator[None]:
        """Map timeouts and errors of a connection attempt to UnreachableError."""
        try:
            async with asyncio.timeout(self.timeout_s):
                yield
        except TimeoutError:
            raise UnreachableError(f"no connection within {self.timeout_s:g} s") from None
        except ssl.SSLError as error:
            raise UnreachableError(f"no TLS: {why_no_handshake(error)}") from error
        except OSError as error:
            raise UnreachableError(why_unreachable(error)) from error
        except UnicodeError as error:
            # The host is no name that a name service could be asked for.
            raise UnreachableError(str(error)) from error


async def _first(address: Address, connect: Callable[[str], Awaitable[Connected]]) -> Connected:
    """The connection to the first of a name's addresses that can be connected. Raises OSError.

    The name is looked up here: uvloop, asked to connect to a name, leaves a lookup behind that times out, and logs
    its error as one that nobody has retrieved.
    """
    failure: OSError | None = None
    for host in await _addresses(address):
        try:
            return await connect(host)
        except ssl.SSLError:
            raise
        except OSError as error:
            failure = failure or error
    raise failure or OSError(f"{address.host} has no address")


async def _addresses(address: Address) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(where[0]) for *_, where in found))
