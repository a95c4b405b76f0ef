"""A small HiveServer2 client on asyncio, for queries that the proxy runs outside any client's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

from proxy.config.address import Address
from proxy.config.endpoints import UPSTREAM, UpstreamSection
from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call
from proxy.operations.query import Query, QueryResult, Work
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError
from proxy.upstream.http_link import link_to
from proxy.upstream.query_driver import answer_in_slot, answer_query, drive
from proxy.wire.hs2.calls import (
    CLOSE_SESSION,
    OPEN_SESSION,
    PROTOCOL_V6,
    SessionHandle,
    encode_close_session,
    encode_open_session,
)
from proxy.wire.hs2.open_session import PROXY_USER
from proxy.wire.hs2.replies import decode_session_reply, expect_reply, open_reply
from proxy.wire.sasl import plain_response
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError

Returned = TypeVar("Returned")

# The time that CloseSession may take: the server closes the session anyway when the connection ends.
_CLOSE_SESSION_S: Final = 2.0


@dataclass(frozen=True)
class Login:
    """A user, the backend to log in to, and the time that the login and each later call may take."""

    address: Address
    user: str
    password: str = field(repr=False)
    database: str | None
    dialer: Dialer
    # The user whose session it is, where the proxy logs in as itself. None: the one who logs in.
    acts_for: str | None = None
    # The PLAIN response to use, if it brings more along than user and password, such as tickets.
    credentials: bytes | None = field(default=None, repr=False)
    # Settings of the session, beside the database.
    configuration: Mapping[str, str] = field(default_factory=dict, repr=False)
    # For each call; the server answers every call within a few seconds.
    reply_timeout_s: float = 60.0


class BackendClient:
    """One session on its own connection: `async with BackendClient.connect(..) as client`."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._link = link_to(login.address, login.dialer, login.reply_timeout_s)
        # A secret: the handle works from any connection.
        self.session = SessionHandle(b"")
        # One session runs one statement at a time here, so one thread is enough.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="client")

    @classmethod
    def connect(  # noqa: PLR0913 - the parts of a HiveServer2 URL
        cls,
        host: str,
        port: int,
        user: str,
        password: str,
        database: str | None = None,
        *,
        upstream: UpstreamSection = UPSTREAM,
        connect_timeout_s: float = 10.0,
        reply_timeout_s: float = 60.0,
    ) -> BackendClient:
        """Return a client that logs in and opens a session when it is entered, or raises BackendError.

        `reply_timeout_s` bounds each call; the server answers every call within a few seconds.
        """
        address = Address(host, port)
        dialer = Dialer(upstream, connect_timeout_s)
        return cls(Login(address, user, password, database, dialer, reply_timeout_s=reply_timeout_s))

    @property
    def user(self) -> str:
        """The user whose session it is."""
        return self._login.acts_for or self._login.user

    async def __aenter__(self) -> Self:
        login = self._login
        credentials = login.credentials or plain_response(login.user, login.password)
        await self._link.open(credentials, f"user {login.user!r}")
        try:
            await self._open_session()
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        try:
            await self._close_session()
        finally:
            self._close()

    @property
    def is_closed(self) -> bool:
        """True if the connection is closed, with which the session ends."""
        return self._link.is_closed

    async def answer(self, query: Query) -> QueryResult:
        """Run one query in this session. Raises BackendError."""
        return await answer_query(query, self.session, self._link.ask, self._pool)

    async def drive(self, work: Work[Returned], slots: asyncio.Semaphore | None = None) -> Returned:
        """Do work to its end and its queries in this session; a query that needs a slot waits for one."""

        async def answer_in_turn(query: Query) -> QueryResult:
            return await answer_in_slot(query, slots, self.answer)

        return await drive(work, answer_in_turn, self._pool)

    def _close(self) -> None:
        self._link.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _open_session(self) -> None:
        login = self._login
        configuration = dict(login.configuration)
        if login.database:
            configuration["use:database"] = login.database
        if login.acts_for:
            configuration[PROXY_USER] = login.acts_for
        message = encode_open_session(1, login.user, login.password, configuration)
        raw = await self._link.ask(Call(OPEN_SESSION, 1, message, CONTROL_REPLY_BYTES_MAX))
        if raw is None:
            self._link.not_hiveserver2("its reply to OpenSession is too long")
        try:
            reply = decode_session_reply(open_reply(raw, expect_reply(raw, OPEN_SESSION, 1)))
        except RemoteProtocolError as error:
            self._link.not_hiveserver2(str(error))
        except IncompleteError:
            self._link.not_hiveserver2("its reply to OpenSession ends too early")
        if not reply.status.ok or reply.session is None:
            raise BackendError(f"the backend {login.address} opened no session: {reply.status.message}")
        if reply.protocol_version < PROTOCOL_V6:
            version = reply.protocol_version + 1
            raise BackendError(f"the backend {login.address} speaks protocol V{version}, V6 or later is needed")
        self.session = reply.session

    async def _close_session(self) -> None:
        message = encode_close_session(1, self.session)
        with suppress(BackendError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SESSION_S):
                await self._link.ask(Call(CLOSE_SESSION, 1, message, CONTROL_REPLY_BYTES_MAX))
