"""Switches a connection to another backend than the one that its client was given, up to the login. Shell."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from proxy.backends.pool import Lease
from proxy.config.endpoints import Transport
from proxy.net.sockets import SocketCallbacks
from proxy.upstream.dialer import Dialer, UnreachableError
from proxy.upstream.errors import BackendError, LoginError
from proxy.wire.sasl import SaslReader, SaslStatus, plain_start_with
from proxy.wire.thrift.errors import RemoteProtocolError


async def arrive(dialer: Dialer, lease: Lease, credentials: bytes, login_s: float) -> asyncio.Transport:
    """Connect, and log in with this PLAIN response if the backend asks for a login.

    The lease is released if that fails. Raises BackendError.
    """
    login = b"" if dialer.upstream.transport is Transport.NOSASL else plain_start_with(credentials)
    arrival = _Arrival(login)
    try:
        return await _arrive(arrival, dialer, lease, login_s)
    except BaseException:
        arrival.abort()
        lease.release()
        raise


async def _arrive(arrival: _Arrival, dialer: Dialer, lease: Lease, login_s: float) -> asyncio.Transport:
    try:
        await dialer.connect(arrival.side, lease.address)
        async with asyncio.timeout(login_s):
            transport = _still_open(await arrival.accepted)
    except UnreachableError as error:
        lease.backend_failed(str(error))
        raise BackendError(f"cannot reach the backend {lease.address}: {error}") from None
    except TimeoutError:
        lease.backend_failed(f"no answer to a login within {login_s:g} s")
        raise BackendError(f"the backend {lease.address} did not answer a login within {login_s:g} s") from None
    except RemoteProtocolError as error:
        lease.backend_failed(str(error))
        raise BackendError(f"the backend {lease.address}, asked for a login, {error}") from None
    except LoginError as error:
        lease.backend_answered()
        raise LoginError(f"the backend {lease.address} {error}") from None
    if arrival.has_logged_in:
        lease.backend_answered()
    return transport


def _still_open(transport: asyncio.Transport) -> asyncio.Transport:
    """The transport, if it has not ended: its next protocol would not be told of that. Raises BackendError."""
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

    @property
    def has_logged_in(self) -> bool:
        """Whether the backend has answered: without a login it has only been connected."""
        return bool(self._login)

    def side(self) -> SocketCallbacks:
        """The callbacks of the connection."""
        return SocketCallbacks(self._connected, self._answered, self._lost, lambda _: None)

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
        self._refuse(RemoteProtocolError("closed the connection without a word"))

    def _accept(self) -> None:
        with suppress(asyncio.InvalidStateError):
            assert self._transport is not None  # noqa: S101 - it has just connected, or spoken
            self.accepted.set_result(self._transport)

    def _refuse(self, error: Exception) -> None:
        with suppress(asyncio.InvalidStateError):
            self.accepted.set_exception(error)
