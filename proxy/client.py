"""A small HiveServer2 client on asyncio, for what the proxy asks outside any client's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NoReturn, Self, TypeVar

from proxy.address import Address, why_unreachable
from proxy.drive import answer_query, drive
from proxy.operation import CONTROL_REPLY_BYTES_MAX, Call, Reply
from proxy.queries import Query, QueryResult
from proxy.wire.errors import IncompleteError, RemoteProtocolError
from proxy.wire.frames import HEADER_BYTES, frame, frame_length
from proxy.wire.hs2 import (
    CLOSE_SESSION,
    OPEN_SESSION,
    PROTOCOL_V6,
    SessionHandle,
    encode_close_session,
    encode_open_session,
)
from proxy.wire.replies import decode_session_reply, expect_reply, open_reply
from proxy.wire.sasl import SaslReader, SaslStatus, plain_start

Returned = TypeVar("Returned")

# How long the farewell may take: the server ends the session anyway when the connection goes.
_FAREWELL_S: Final = 2.0
_READ_BYTES: Final = 64 * 1024


class BackendError(Exception):
    """The backend could not be reached, refused us, or is not a HiveServer2. The message is a sentence."""


@dataclass(frozen=True)
class Login:
    """Who logs in where, and how long that and each later call may take."""

    address: Address
    user: str
    password: str = field(repr=False)
    database: str | None
    connect_timeout_s: float
    reply_timeout_s: float


class BackendClient:
    """One session on its own connection: `async with BackendClient.connect(..) as client`."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._address = login.address
        self._reply_s = login.reply_timeout_s
        self._session = SessionHandle(b"")
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        # One session runs one statement at a time here, so one thread is enough.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="client")

    @classmethod
    def connect(  # noqa: PLR0913 - what a HiveServer2 URL holds
        cls,
        host: str,
        port: int,
        user: str,
        password: str,
        database: str | None = None,
        *,
        connect_timeout_s: float = 10.0,
        reply_timeout_s: float = 60.0,
    ) -> BackendClient:
        """A client that, once entered, has logged in with PLAIN and opened a session, or raises BackendError.

        `reply_timeout_s` bounds each call; the server holds none back for more than a few seconds.
        """
        address = Address(host, port)
        return cls(Login(address, user, password, database, connect_timeout_s, reply_timeout_s))

    async def __aenter__(self) -> Self:
        await self._dial()
        try:
            await self._log_in()
            await self._open_session()
        except BaseException:
            self._hang_up()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        try:
            await self._close_session()
        finally:
            self._hang_up()

    async def drive(self, generator: Generator[Query, QueryResult, Returned]) -> Returned:
        """Run a generator to its end, answering its queries in this session."""

        async def answer(query: Query) -> QueryResult:
            return await answer_query(query, self._session, self._ask, self._pool)

        return await drive(generator, answer, self._pool)

    async def _dial(self) -> None:
        timeout_s = self._login.connect_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                self._reader, self._writer = await asyncio.open_connection(self._address.host, self._address.port)
        except TimeoutError:
            raise BackendError(
                f"cannot reach the backend {self._address}: no connection within {timeout_s:g} s"
            ) from None
        except OSError as error:
            raise BackendError(f"cannot reach the backend {self._address}: {why_unreachable(error)}") from error

    def _hang_up(self) -> None:
        self._writer.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _log_in(self) -> None:
        self._writer.write(plain_start(self._login.user, self._login.password))
        sasl = SaslReader()
        try:
            async with asyncio.timeout(self._reply_s):
                while (message := sasl.next_message()) is None:
                    sasl.feed(await self._read_some())
        except TimeoutError:
            self._not_hiveserver2(f"no answer to the login within {self._reply_s:g} s")
        except RemoteProtocolError as error:
            self._not_hiveserver2(str(error))
        if message.status is not SaslStatus.COMPLETE:
            words = message.body.decode("utf-8", "replace") or "no reason given"
            raise BackendError(
                f"the backend {self._address} refused the login of user {self._login.user!r}: {words}"
            )

    async def _open_session(self) -> None:
        login = self._login
        configuration = {"use:database": login.database} if login.database else {}
        message = encode_open_session(1, login.user, login.password, configuration)
        raw = await self._ask(Call(OPEN_SESSION, 1, message, CONTROL_REPLY_BYTES_MAX))
        if raw is None:
            self._not_hiveserver2("its reply to OpenSession is too long")
        try:
            reply = decode_session_reply(open_reply(raw, expect_reply(raw, OPEN_SESSION, 1)))
        except RemoteProtocolError as error:
            self._not_hiveserver2(str(error))
        except IncompleteError:
            self._not_hiveserver2("its reply to OpenSession ends too early")
        if not reply.status.ok or reply.session is None:
            raise BackendError(f"the backend {self._address} opened no session: {reply.status.message}")
        if reply.protocol_version < PROTOCOL_V6:
            version = reply.protocol_version + 1
            raise BackendError(f"the backend {self._address} speaks protocol V{version}, V6 or later is needed")
        self._session = reply.session

    async def _close_session(self) -> None:
        message = encode_close_session(1, self._session)
        with suppress(BackendError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._ask(Call(CLOSE_SESSION, 1, message, CONTROL_REPLY_BYTES_MAX))

    async def _ask(self, call: Call) -> Reply:
        self._writer.write(frame(call.message))
        try:
            async with asyncio.timeout(self._reply_s):
                length = frame_length(await self._reader.readexactly(HEADER_BYTES))
                if length > call.reply_bytes_max:
                    await self._drop(length)
                    return None
                return await self._reader.readexactly(length)
        except TimeoutError:
            raise BackendError(
                f"the backend {self._address} did not answer {call.name} within {self._reply_s:g} s"
            ) from None
        except (asyncio.IncompleteReadError, OSError):
            self._closed(f"while {call.name} was under way")
        except RemoteProtocolError as error:
            self._not_hiveserver2(str(error))

    async def _drop(self, count: int) -> None:
        """Read past a reply that is too long to keep."""
        while count:
            count -= len(await self._reader.readexactly(min(count, _READ_BYTES)))

    async def _read_some(self) -> bytes:
        try:
            received = await self._reader.read(_READ_BYTES)
        except OSError:
            received = b""
        return received or self._closed("during the login")

    def _closed(self, when: str) -> NoReturn:
        raise BackendError(f"the backend {self._address} closed the connection {when}")

    def _not_hiveserver2(self, what: str) -> NoReturn:
        raise BackendError(
            f"the backend {self._address} does not speak HiveServer2's binary protocol over SASL PLAIN: {what}"
        )
