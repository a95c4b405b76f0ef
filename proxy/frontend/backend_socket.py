"""The backend's side of a client connection: its socket, its lease, and the switch to another backend."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from proxy.access.handle_access import HandleAccess
from proxy.backends.pool import BackendSearch, Lease
from proxy.frontend.backend_switch import arrive
from proxy.frontend.context import ServerContext
from proxy.frontend.graceful_close import GracefulClose
from proxy.net.protected_transport import ProtectedTransport
from proxy.net.reply_room import NoReplyRoomError
from proxy.net.sockets import SocketCallbacks, prepare
from proxy.relay.relay import Relay
from proxy.upstream.dialer import UnreachableError
from proxy.upstream.errors import BackendError, LoginError
from proxy.wire.sasl import plain_user

log = logging.getLogger(__name__)

CLOSED_SILENTLY: Final = "closed the connection without a word"


class BackendSocket:
    """One connection's socket to a backend. `callbacks` makes the receiver of its events."""

    def __init__(
        self,
        name: str,
        context: ServerContext,
        handle_access: HandleAccess,
        callbacks: Callable[[], SocketCallbacks],
    ) -> None:
        self.transport: asyncio.Transport | None = None
        # Room on the backend that is or was connected, or is being tried.
        self.lease: Lease | None = None
        self._name = name
        self._context = context
        self._settings = context.config.proxy
        self._handle_access = handle_access
        self._callbacks = callbacks
        # The search of a client whose login passes to the backend, and the lease that it found for the next try.
        self._search: BackendSearch | None = None
        self._next_lease: Lease | None = None

    async def connect(self, credentials: bytes | None) -> str | None:
        """Connect to the best backend that can be reached. Returns the reason if none can."""
        search = self._search
        if search is None:
            login = None if credentials is None else plain_user(credentials)
            search = self._search = self._context.backends.search(login)
        while (lease := self._next_lease or search.next_lease()) is not None:
            self._next_lease = None
            self._use(lease)
            try:
                # A plain asyncio.Protocol ignores the events of an attempt that fails after its socket was open.
                # No bytes are lost: a server sends none before the client has.
                transport = await self._context.dialer.connect(asyncio.Protocol, lease.address)
            except UnreachableError as error:
                search.lease_failed(str(error))
                continue
            if transport.is_closing():
                search.login_unanswered(CLOSED_SILENTLY)
                continue
            transport.set_protocol(self._callbacks())
            self.connected(transport)
            return None
        return search.reason

    def find_another(self) -> bool:
        """Take room on another backend, since this one closed the connection without a byte. False if none has."""
        if self._search is None:
            return False
        self._search.login_unanswered(CLOSED_SILENTLY)
        self._next_lease = self._search.next_lease()
        if self._next_lease is None:
            return False
        self._use(self._next_lease)
        return True

    def answered(self) -> None:
        """The backend has sent bytes."""
        if self.lease is not None:
            self.lease.backend_answered()
        if self._search is not None:
            self._search.login_answered()

    @property
    def lack_of_room(self) -> str | None:
        """The reason why the proxy has ended the connection, where that was for a reply without room."""
        failure = self.transport.failure if isinstance(self.transport, ProtectedTransport) else None
        return str(failure) if isinstance(failure, NoReplyRoomError) else None

    def time_is_up(self, reason: str) -> str:
        """Return why there is no connection yet, for a client that has waited for as long as it may."""
        return reason if self._search is None else self._search.time_is_up(reason)

    async def log_in(self, credentials: bytes) -> str | None:
        """Connect and log in to the best backend that can be reached. Returns the reason if none can."""
        search = self._search = self._context.backends.search(plain_user(credentials))
        while (lease := search.next_lease()) is not None:
            self._use(lease)
            try:
                transport = await arrive(
                    self._context.dialer, lease, credentials, self._settings.handshake_timeout_s
                )
            except LoginError as error:
                # The backend refused the client's password, which another backend would refuse too.
                self._context.backends.login_refused()
                return str(error)
            except BackendError as error:
                # `arrive` has released the lease, and has recorded whether the backend is to blame.
                search.lease_failed(str(error))
            else:
                transport.set_protocol(self._callbacks())
                self.connected(transport)
                return None
        return search.reason

    def connected(self, transport: asyncio.Transport) -> None:
        """Take the transport of a new connection."""
        self.transport = transport
        prepare(transport, self._settings)

    async def switch_to(self, name: str, credentials: bytes) -> bool:
        """Log in at another backend, and use it from then on; False if it cannot be reached."""
        lease = self._context.backends.lease_on_backend_named(name, plain_user(credentials))
        if lease is None:
            log.warning("%s: stays although its call is about the backend %s, which has no room", self._name, name)
            return False
        try:
            transport = await arrive(self._context.dialer, lease, credentials, self._settings.handshake_timeout_s)
        except BackendError as error:
            log.warning("%s: stays although its call is about another backend: %s", self._name, error)
            return False
        old = self.transport
        if old is not None:
            # The events of the old connection no longer count.
            old.set_protocol(asyncio.Protocol())
            old.close()
        transport.set_protocol(self._callbacks())
        self.connected(transport)
        self.release()
        self._use(lease)
        log.info("%s: goes on with the backend %s", self._name, lease.address)
        return True

    def pause_reading(self, *, on: bool) -> None:
        """Stop reading, or go on."""
        if self.transport is None or self.transport.is_closing():
            return
        if on:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def leave(self, relay: Relay) -> None:
        """Tell the backend to end an operation of ours that is still open, then close the socket."""
        transport, graceful_closes = self.transport, self._context.graceful_closes
        if transport is None or transport.is_closing():
            self.release()
            return
        own = relay.own_operation
        if own.is_awaited or own.is_being_ended:
            graceful_closes.add(GracefulClose(transport, relay, self._closed_gracefully))
        else:
            transport.close()
            self.release()

    def release(self) -> None:
        """Give the room on the backend back."""
        if self.lease is not None:
            self.lease.release()

    def _use(self, lease: Lease) -> None:
        self.lease, self._handle_access.backend_name = lease, str(lease.address)

    def _closed_gracefully(self, graceful_close: GracefulClose) -> None:
        self._context.graceful_closes.discard(graceful_close)
        self.release()
