"""Clients that speak the binary protocol over SASL PLAIN, before backends that speak HTTP.

The negotiation is ours: the client's name and password become basic authentication, and the backend is asked
whether it takes them before the client hears that it may go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from proxy.backends.backend import Backend
from proxy.config.endpoints import Transport
from proxy.frontend.settings import ServerSettings
from proxy.http.exchange_driver import ExchangeReply
from proxy.http.gateway import Gateway
from proxy.http.http_upstream import HttpClient, HttpReach, HttpUpstream
from proxy.http.upstream_protocol import Upstream
from proxy.net.timeouts import Keepalive
from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call
from proxy.upstream.errors import BackendError
from proxy.upstream.http_headers import THRIFT_HEADERS, basic_authorization
from proxy.upstream.reply import UpstreamReply, ask
from proxy.wire.framing import Framing
from proxy.wire.hs2.calls import (
    CLOSE_SESSION,
    OPEN_SESSION,
    SessionHandle,
    encode_close_session,
    encode_exception,
    encode_unknown_call,
)
from proxy.wire.sasl import PLAIN, SaslMessage, SaslReader, SaslStatus, encode_sasl, plain_response, refusal
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import Message

log = logging.getLogger(__name__)

CLIENT_CLOSED: Final = "the client closed"

_READ_BYTES: Final = 64 * 1024
# What an HTTP error has to say to a client that does not speak HTTP.
_WORDS_BYTES_MAX: Final = 2_000
# How long the backend may take to close the sessions of a client that has left.
FAREWELL_S: Final = 10.0


@dataclass(frozen=True)
class BinarySettings:
    """What a listener takes, and how long it waits."""

    # The Authorization header of clients that bring no credentials, whose messages stand in no frames; None where
    # clients negotiate. A secret.
    login: str | None = field(repr=False)
    request_bytes_max: int
    connections_max: int
    handshake_timeout_s: float
    write_buffer_bytes_max: int
    keepalive: Keepalive

    @classmethod
    def of(cls, settings: ServerSettings, spoken: Transport) -> BinarySettings:
        """What they are on a listener that speaks SASL or NOSASL."""
        configured = plain_response(settings.upstream.user, settings.upstream.password)
        return cls(
            login=basic_authorization(configured) if spoken is Transport.NOSASL else None,
            request_bytes_max=settings.request_bytes_max,
            connections_max=settings.connections_max,
            handshake_timeout_s=settings.handshake_timeout_s,
            write_buffer_bytes_max=settings.write_buffer_bytes_max,
            keepalive=settings.keepalive,
        )


class SignedIn(HttpClient):
    """Whoever has logged in on one connection, and the sessions that are to end with it, each on its backend."""

    def __init__(self, reach: HttpReach, authorization: str) -> None:
        super().__init__(reach, "", [("Authorization", authorization), *THRIFT_HEADERS])
        self.sessions: dict[SessionHandle, Upstream] = {}

    def at(self, backend: Backend) -> HttpUpstream:
        """An upstream to that backend, which is asked as this client."""
        return _BinaryUpstream(self._reach, backend, self._headers, self.sessions)

    async def close_sessions(self) -> None:
        """What a server does by itself where a connection ends that speaks the binary protocol."""
        for session, upstream in tuple(self.sessions.items()):
            call = Call(CLOSE_SESSION, 1, encode_close_session(1, session), CONTROL_REPLY_BYTES_MAX)
            with suppress(BackendError):
                _ = await ask(upstream, call)


class _BinaryUpstream(HttpUpstream):
    """Keeps `sessions`, those of its client."""

    def __init__(
        self,
        reach: HttpReach,
        backend: Backend,
        headers: list[tuple[str, str]],
        sessions: dict[SessionHandle, Upstream],
    ) -> None:
        super().__init__(reach, backend, "", headers)
        self._sessions = sessions

    def opened(self, session: SessionHandle) -> None:
        """The client has opened it on its connection."""
        self._sessions[session] = self

    def closed(self, session: SessionHandle) -> None:
        """The client closes it."""
        self._sessions.pop(session, None)


class BinaryClient:
    """One connection."""

    def __init__(self, settings: BinarySettings, gateway: Gateway, sign_in: Callable[[str], SignedIn]) -> None:
        """`sign_in` says who has that Authorization header."""
        self._settings = settings
        self._gateway = gateway
        self._sign_in = sign_in
        self._framing = Framing(client=settings.login is None)
        self._messages = self._framing.reader(settings.request_bytes_max)
        self._client: SignedIn | None = None
        # The last session that the client asked for. It is opened to the end where the client leaves: nobody else
        # would close it.
        self._opening: asyncio.Task[ExchangeReply] | None = None
        self.awaits_reply = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Serve the client to its end, or until cancelled. Returns the reason of the end."""
        try:
            client = self._client = await self._negotiated(reader, writer)
            await self._answer_calls(client, reader, writer)
        except _RefusedError as refused:
            writer.write(refused.answer)
            return str(refused)
        except RemoteProtocolError as error:
            return f"client: {error}"
        except (BackendError, ConnectionError) as error:
            # The only way to say that a reply is not all there.
            writer.transport.abort()
            return str(error)
        finally:
            writer.close()
        return CLIENT_CLOSED

    async def leave(self) -> None:
        """End what the client has left open."""
        if self._client is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._end_opening()
                await self._client.close_sessions()
        self._gateway.forget(tuple(self._client.sessions))

    # --- the negotiation

    async def _negotiated(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> SignedIn:
        seconds = self._settings.handshake_timeout_s
        try:
            async with asyncio.timeout(seconds):
                return await self._negotiate(reader, writer)
        except TimeoutError:
            raise RemoteProtocolError(f"no completed negotiation within {seconds:g} s") from None

    async def _negotiate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> SignedIn:
        if self._settings.login is not None:
            return self._sign_in(self._settings.login)
        sasl = SaslReader()
        try:
            _expect_plain(await _next_message(sasl, reader))
            response = (await _next_message(sasl, reader)).body
        except RemoteProtocolError as error:
            sentence = f"Starpruner speaks SASL PLAIN to clients of a backend that speaks HTTP: {error}"
            raise _RefusedError(sentence, refusal(sentence)) from None
        authorization = basic_authorization(response)
        if authorization is None:
            raise _rejected("a name and a password are needed, and nobody else to act for")
        client = self._sign_in(authorization)
        await self._check_login(client)
        writer.write(encode_sasl(SaslStatus.COMPLETE))
        self._messages.feed(sasl.leftover())
        return client

    async def _check_login(self, client: SignedIn) -> None:
        """By a call that no server knows: it looks at the credentials, does nothing, and logs nothing."""
        try:
            check = Call("", 1, encode_unknown_call(), CONTROL_REPLY_BYTES_MAX)
            incoming = await self._gateway.reach(client, check)
        except BackendError as error:
            raise _RefusedError(str(error), refusal(f"Starpruner: {error}")) from None
        try:
            # Read to its end, the connection is good for the next call.
            _ = await incoming.read_all(CONTROL_REPLY_BYTES_MAX)
            if incoming.status == HTTPStatus.UNAUTHORIZED:
                raise _rejected(await _words(incoming))
            if incoming.status != HTTPStatus.OK:
                sentence = f"the backend answers with HTTP status {incoming.status}: {await _words(incoming)}"
                raise _RefusedError(f"HTTP status {incoming.status}", refusal(sentence))
        finally:
            incoming.drop()

    # --- calls

    async def _answer_calls(
        self, client: SignedIn, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            message = self._messages.next_message()
            if message is None:
                data = await reader.read(_READ_BYTES)
                if not data:
                    return
                self._messages.feed(data)
                continue
            self.awaits_reply = True
            await self._answer(message, client, writer)
            self.awaits_reply = False

    async def _end_opening(self) -> None:
        opening = self._opening
        if opening is None:
            return
        try:
            _ = await asyncio.wait([opening])
        finally:
            opening.cancel()
        if not opening.cancelled() and opening.exception() is None:
            opening.result().drop()

    async def _carry(self, message: Message, client: SignedIn) -> ExchangeReply:
        carrying = self._gateway.carry(message, client)
        if message.header.name != OPEN_SESSION:
            return await carrying
        self._opening = asyncio.get_running_loop().create_task(carrying)
        return await asyncio.shield(self._opening)

    async def _answer(self, message: Message, client: SignedIn, writer: asyncio.StreamWriter) -> None:
        try:
            answered = await self._carry(message, client)
        except BackendError as error:
            self._write_failure(writer, message, str(error))
            return
        try:
            await self._forward(message, answered, writer)
        finally:
            answered.drop()

    async def _forward(self, message: Message, answered: ExchangeReply, writer: asyncio.StreamWriter) -> None:
        incoming = answered.incoming
        if answered.body is None and incoming is not None and incoming.status != HTTPStatus.OK:
            sentence = f"the backend answered with HTTP status {incoming.status}: {await _words(incoming)}"
            self._write_failure(writer, message, sentence)
            return
        # How long it is nobody knows, so each piece is a frame: clients read on until they have a whole message.
        async for piece in answered.pieces():
            writer.write(self._framing.to_client(piece))
            await writer.drain()

    def _write_failure(self, writer: asyncio.StreamWriter, message: Message, sentence: str) -> None:
        header = message.header
        failure = encode_exception(header.name, header.seqid, f"Starpruner: {sentence}")
        writer.write(self._framing.to_client(failure))


class _RefusedError(Exception):
    """The client may not come in. `answer` tells it why."""

    def __init__(self, reason: str, answer: bytes) -> None:
        super().__init__(reason)
        self.answer = answer


def _rejected(words: str) -> _RefusedError:
    return _RefusedError("the login was refused", encode_sasl(SaslStatus.BAD, words.encode()))


def _expect_plain(start: SaslMessage) -> None:
    if start.status is not SaslStatus.START or start.body != PLAIN:
        raise RemoteProtocolError("expected a SASL START message for PLAIN")


async def _next_message(sasl: SaslReader, reader: asyncio.StreamReader) -> SaslMessage:
    while (message := sasl.next_message()) is None:
        data = await reader.read(_READ_BYTES)
        if not data:
            raise RemoteProtocolError("the client closed during the negotiation")
        sasl.feed(data)
    return message


async def _words(incoming: UpstreamReply) -> str:
    """What the body of an HTTP error says first."""
    said = b""
    async for piece in incoming.chunks():
        said += piece
        if len(said) > _WORDS_BYTES_MAX:
            break
    return said[:_WORDS_BYTES_MAX].decode("utf-8", "replace").strip()
