"""Connects to a backend and logs in there for a client, at first or to switch to another backend. Shell."""

from __future__ import annotations

import asyncio
from typing import cast

from proxy.backends.pool import Lease
from proxy.config.endpoints import Transport
from proxy.kerberos.errors import KerberosError
from proxy.net.login_threads import step_within_s
from proxy.net.protected_transport import ProtectedTransport
from proxy.upstream.dialer import Dialer, UnreachableError
from proxy.upstream.errors import BackendError, LoginError, OwnLoginError
from proxy.upstream.sasl_login import log_in
from proxy.wire.thrift.errors import RemoteProtocolError


async def arrive(dialer: Dialer, lease: Lease, credentials: bytes, login_s: float) -> asyncio.Transport:
    """Connect, and log in with this PLAIN response if one is asked for, or by Kerberos.

    By Kerberos the proxy logs in as itself, or by the tickets that come with the response.

    The lease is released if the login fails. Raises BackendError.
    """
    try:
        transport = await _connected(dialer, lease)
        try:
            return await _logged_in(transport, dialer, lease, credentials, login_s)
        except BaseException:
            transport.abort()
            raise
    except BaseException:
        lease.release()
        raise


async def _connected(dialer: Dialer, lease: Lease) -> asyncio.Transport:
    try:
        return await dialer.connect(_Arrival, lease.address)
    except UnreachableError as error:
        lease.backend_failed(str(error))
        raise BackendError(f"cannot reach the backend {lease.address}: {error}") from None


async def _logged_in(
    transport: asyncio.Transport, dialer: Dialer, lease: Lease, credentials: bytes, login_s: float
) -> asyncio.Transport:
    arrival = cast("_Arrival", transport.get_protocol())
    try:
        async with asyncio.timeout(login_s):
            layer = await log_in(
                dialer.upstream,
                *(lease.address, credentials, arrival.read, transport.write, step_within_s(login_s)),
            )
        arrival.check_silent()
    except TimeoutError:
        lease.backend_failed(f"no answer to a login within {login_s:g} s")
        raise BackendError(f"the backend {lease.address} did not answer a login within {login_s:g} s") from None
    except RemoteProtocolError as error:
        lease.backend_failed(str(error))
        raise BackendError(f"the backend {lease.address}, asked for a login, {error}") from None
    except KerberosError as error:
        # The cause may be on either side (a key, a clock, a KDC), so it does not count against the backend.
        raise OwnLoginError(f"the backend {lease.address}: {error}") from None
    except LoginError:
        # Without its words: they may quote the client's.
        lease.backend_answered()
        raise LoginError(f"the backend {lease.address} refused the login that the client came with") from None
    if dialer.upstream.transport is not Transport.NOSASL:
        lease.backend_answered()
    return transport if layer is None else ProtectedTransport(transport, layer, room=dialer.room)


class _Arrival(asyncio.Protocol):
    """The socket until the backend has answered the login: whoever logs in reads it."""

    def __init__(self) -> None:
        # An empty one is the end of the stream.
        self._received: asyncio.Queue[bytes] = asyncio.Queue()
        self._has_spoken = False

    async def read(self) -> bytes:
        """Wait for the next bytes. Raises RemoteProtocolError at the end of the stream."""
        received = await self._received.get()
        if not received:
            raise RemoteProtocolError(f"closed the connection{'' if self._has_spoken else ' without a word'}")
        return received

    def check_silent(self) -> None:
        """Raise RemoteProtocolError if more bytes have come, or the end: the next protocol is not told of them."""
        if not self._received.empty():
            ended = not self._received.get_nowait()
            raise RemoteProtocolError("closed the connection" if ended else "said more than was asked")

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self._has_spoken = True
        self._received.put_nowait(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """The socket is closed, by either side."""
        self._received.put_nowait(b"")
