"""Connects to a backend and logs in there for a client, at first or to switch to another backend. Shell."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from proxy.backends.pool import Lease
from proxy.config.address import Address
from proxy.config.endpoints import Transport
from proxy.config.kerberos import BackendKerberos
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.security_layer import SecurityLayer
from proxy.net.login_threads import step_within_s
from proxy.net.protected_transport import ProtectedTransport
from proxy.net.sockets import SocketCallbacks
from proxy.upstream.dialer import Dialer, UnreachableError
from proxy.upstream.errors import BackendError, LoginError, OwnLoginError
from proxy.upstream.kerberos_login import log_in_by_kerberos
from proxy.wire.sasl import SaslReader, SaslStatus, plain_start_with
from proxy.wire.thrift.errors import RemoteProtocolError


async def arrive(dialer: Dialer, lease: Lease, credentials: bytes, login_s: float) -> asyncio.Transport:
    """Connect, and log in with this PLAIN response if one is asked for, or by Kerberos.

    By Kerberos the proxy logs in as itself, or by the tickets that come with the response.

    The lease is released if the login fails. Raises BackendError.
    """
    takes_plain = dialer.upstream.kerberos is None and dialer.upstream.transport is not Transport.NOSASL
    login = plain_start_with(credentials) if takes_plain else b""
    arrival = _Arrival(login)
    try:
        return await _arrive(arrival, dialer, lease, credentials, login_s)
    except BaseException:
        arrival.abort()
        lease.release()
        raise


async def _arrive(
    arrival: _Arrival, dialer: Dialer, lease: Lease, credentials: bytes, login_s: float
) -> asyncio.Transport:
    try:
        _ = await dialer.connect(arrival.side, lease.address)
        async with asyncio.timeout(login_s):
            transport = _still_open(await arrival.accepted)
            if (kerberos := dialer.upstream.kerberos) is not None:
                step_s = step_within_s(login_s)
                layer = await arrival.log_in(transport, kerberos, lease.address, credentials, step_s)
                if layer is not None:
                    transport = ProtectedTransport(transport, layer, room=dialer.room)
    except UnreachableError as error:
        lease.backend_failed(str(error))
        raise BackendError(f"cannot reach the backend {lease.address}: {error}") from None
    except TimeoutError:
        lease.backend_failed(f"no answer to a login within {login_s:g} s")
        raise BackendError(f"the backend {lease.address} did not answer a login within {login_s:g} s") from None
    except RemoteProtocolError as error:
        lease.backend_failed(str(error))
        raise BackendError(f"the backend {lease.address}, asked for a login, {error}") from None
    except KerberosError as error:
        # The cause may be on either side (a key, a clock, a KDC), so it does not count against the backend.
        raise OwnLoginError(f"the backend {lease.address}: {error}") from None
    except LoginError as error:
        lease.backend_answered()
        raise LoginError(f"the backend {lease.address} {error}") from None
    if arrival.has_logged_in:
        lease.backend_answered()
    return transport


def _still_open(transport: asyncio.Transport) -> asyncio.Transport:
    """The transport, if it is open: its next protocol would not hear of its end. Raises RemoteProtocolError."""
    if transport.is_closing():
        raise RemoteProtocolError("closed the connection")
    return transport


class _Arrival:
    """The socket's callbacks until the backend has answered the login."""

    def __init__(self, login: bytes) -> None:
        self.accepted: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()
        self._login = login
        self._sasl = SaslReader()
        self._transport: asyncio.Transport | None = None
        # Bytes for a login by Kerberos; empty ones are the end of the stream.
        self._received: asyncio.Queue[bytes] | None = None
        self.has_logged_in = bool(login)

    def side(self) -> SocketCallbacks:
        """The callbacks of the connection."""
        return SocketCallbacks(self._connected, self._answered, self._lost, lambda _: None)

    async def log_in(
        self,
        transport: asyncio.Transport,
        kerberos: BackendKerberos,
        address: Address,
        credentials: bytes,
        step_s: float,
    ) -> SecurityLayer | None:
        """Log in by Kerberos. Raises KerberosError or RemoteProtocolError."""
        received: asyncio.Queue[bytes] = asyncio.Queue()
        self._received = received
        layer = await log_in_by_kerberos(kerberos, address, credentials, self._read, transport.write, step_s)
        if not received.empty():
            raise RemoteProtocolError("said more than was asked")
        self.has_logged_in = True
        _ = _still_open(transport)
        return layer

    async def _read(self) -> bytes:
        assert self._received is not None  # noqa: S101 - the login has begun
        received = await self._received.get()
        if not received:
            raise RemoteProtocolError("closed the connection")
        return received

    def abort(self) -> None:
        """Drop the connection."""
        self.accepted.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _connected(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        if self._login:
            transport.write(self._login)
        else:
            self._accept()

    def _answered(self, data: bytes) -> None:
        if self._received is not None:
            self._received.put_nowait(data)
            return
        try:
            self._sasl.feed(data)
            message = self._sasl.next_message()
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        if message is None:
            return
        if message.status is not SaslStatus.COMPLETE:
            self._refuse(LoginError("refused the login that the client came with"))
        elif self._sasl.leftover():
            self._refuse(RemoteProtocolError("said more than was asked"))
        else:
            self._accept()

    def _lost(self) -> None:
        if self._received is not None:
            self._received.put_nowait(b"")
        self._refuse(RemoteProtocolError("closed the connection without a word"))

    def _accept(self) -> None:
        with suppress(asyncio.InvalidStateError):
            assert self._transport is not None  # noqa: S101 - it has just connected, or spoken
            self.accepted.set_result(self._transport)

    def _refuse(self, error: Exception) -> None:
        with suppress(asyncio.InvalidStateError):
            self.accepted.set_exception(error)
