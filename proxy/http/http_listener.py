"""The HTTP listener: requests in, replies out as they come."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE
from multidict import CIMultiDict

from proxy.config.config import Config
from proxy.frontend.memory_gate import SMALL_BYTES, NoRoomError, Room
from proxy.http.exchange import message_of
from proxy.http.exchange_driver import ExchangeReply
from proxy.http.gateway import Gateway
from proxy.http.http_logins import HttpLogins
from proxy.http.upstream_protocol import CallClient
from proxy.net.newcomers import Newcomers
from proxy.net.request_guard import RequestGuard
from proxy.upstream.errors import BackendError, RefusedError, UnsentError
from proxy.upstream.http_connections import HEADER_BYTES_MAX
from proxy.upstream.http_cookies import without_marks
from proxy.upstream.http_headers import CallerHeaders, proxy_users_of
from proxy.wire.hs2.calls import OPEN_SESSION
from proxy.wire.thrift.errors import RemoteProtocolError

log = logging.getLogger(__name__)

# Makes the client of a request with this query, these headers, and this login where the proxy has taken it.
Clients: TypeAlias = Callable[[str, list[tuple[str, str]], bytes | None], CallClient]
# Refuses a login that may not act for a user by a sentence; None where it may.
Refusal: TypeAlias = Callable[[str, str], str | None]

# Short, since calls had their time while the proxy was draining.
SHUTDOWN_S: Final = 1.0

_THRIFT: Final = "application/x-thrift"
# hive-jdbc repeats a request once that is answered by 401; it and PyHive show the other numbers as they are. The
# first class that an error is an instance of counts.
_STATUSES: Final[dict[type[Exception], HTTPStatus]] = {
    RefusedError: HTTPStatus.UNAUTHORIZED,
    UnsentError: HTTPStatus.SERVICE_UNAVAILABLE,
    BackendError: HTTPStatus.BAD_GATEWAY,
    RemoteProtocolError: HTTPStatus.BAD_REQUEST,
}


@dataclass(eq=False)
class _CallUnderWay:
    request: web.Request
    # It has no time until the proxy ends the call.
    deadline: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    is_answer_begun: bool = False
    # Headers by which the proxy proves who it is, where its client has logged in to it.
    proof: list[tuple[str, str]] = field(default_factory=list)


class HttpListener:
    """The requests of one listener. `factory` makes the protocol for each of its connections."""

    def __init__(  # noqa: PLR0913, PLR0917 - where to serve, and who decides what
        self,
        path: str,
        config: Config,
        gateway: Gateway,
        clients: Clients,
        refusal: Refusal,
        logins: HttpLogins | None = None,
    ) -> None:
        """Serve HiveServer2 at `path`; `refusal` refuses logins that may not act for a user.

        Without `logins`, those of the requests pass to the backend.
        """
        self._logins = logins
        self._path = path
        self._connections_max = config.proxy.connections_max
        self._request_bytes_max = config.proxy.request_bytes_max
        self._body_s = config.http.body_s
        self._gateway = gateway
        self._clients = clients
        self._refusal = refusal
        self._calls: set[_CallUnderWay] = set()
        self._guard = RequestGuard(f"HTTP at {path}", Newcomers(time.monotonic), keeps=True)
        # Sessions that are open go on, new ones are refused.
        self.is_draining = False
        app = web.Application(client_max_size=config.proxy.request_bytes_max)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_response_prepare.append(_say_nothing_of_ourselves)
        self._runner = web.AppRunner(
            app,
            handle_signals=False,
            shutdown_timeout=SHUTDOWN_S,
            access_log=None,
            # The call of a client that has gone is cancelled.
            handler_cancellation=True,
            keepalive_timeout=config.http.keep_alive_s,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
            auto_decompress=False,
        )

    async def start(self) -> Callable[[], asyncio.BaseProtocol]:
        """Make ready. Returns the factory of the connections' protocols."""
        await self._runner.setup()
        assert self._runner.server is not None  # noqa: S101 - setup() has just made it
        return self._guard.factory(self._runner.server)

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return 0 if self._runner.server is None else len(self._runner.server.connections)

    @property
    def call_count(self) -> int:
        """The number of calls under way."""
        return len(self._calls)

    async def close(self) -> None:
        """Answer the calls under way by an error, and close every connection."""
        for call in self._calls:
            call.deadline.reschedule(asyncio.get_running_loop().time())
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        transport, is_well = request.transport, False
        self._guard.header_came(transport)
        try:
            answer = await self._answer_within_time(request)
            is_well = answer.status < HTTPStatus.BAD_REQUEST
            # A client may begin without a login, to be told which ones there are.
            if answer.status == HTTPStatus.UNAUTHORIZED and "Authorization" in request.headers:
                self._gateway.login_refused()
            # aiohttp would send the answer only after this. No next request is due until the answer is read.
            with suppress(ConnectionError):
                await answer.prepare(request)
                await answer.write_eof()
            return answer
        finally:
            self._guard.answered(transport, is_well=is_well)

    async def _answer_within_time(self, request: web.Request) -> web.StreamResponse:
        call = _CallUnderWay(request)
        try:
            async with call.deadline:
                self._calls.add(call)
                return await self._answer_or_refuse(call)
        except TimeoutError:
            if call.is_answer_begun and request.transport is not None:
                # The only way to say that this is not all of it.
                request.transport.abort()
            return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, "Starpruner is stopping; connect again.")
        finally:
            self._calls.discard(call)

    async def _answer_or_refuse(self, call: _CallUnderWay) -> web.StreamResponse:
        request = call.request
        try:
            return self._wrong(request) or await self._answer(call)
        except (BackendError, RemoteProtocolError) as error:
            log.warning("a request from %s: %s", request.remote, error)
            status = next(status for kind, status in _STATUSES.items() if isinstance(error, kind))
            refused = _sentence(status, str(error))
            if self._logins is not None and isinstance(error, RefusedError):
                for challenge in self._logins.challenges:
                    refused.headers.add("WWW-Authenticate", challenge)
            return refused
        except NoRoomError as error:
            log.warning("a request from %s is refused: memory is short", request.remote)
            return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except TimeoutError:
            log.warning("a request from %s: no body within %g s", request.remote, self._body_s)
            return _sentence(HTTPStatus.REQUEST_TIMEOUT, "The request's body did not come in time.")
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - nobody else may put it into a log
            # Without its own words: they may quote the statement.
            log.error("a request from %s failed with %s", request.remote, type(error).__name__)  # noqa: TRY400
            return _sentence(HTTPStatus.INTERNAL_SERVER_ERROR, "Starpruner has failed; its log says more.")

    def _wrong(self, request: web.Request) -> web.Response | None:
        limit = self._connections_max
        # Connections that have sent no call so far take nobody's place.
        if self._guard.served_count >= limit and self._guard.is_newcomer(request.transport):
            sentence = f"Starpruner serves {limit} connections already (connections_max); try again later."
            return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
        if request.path != self._path and not request.path.startswith(f"{self._path}/"):
            return _sentence(HTTPStatus.NOT_FOUND, f"HiveServer2 is at {self._path} here.")
        if request.method != "POST":
            return _sentence(HTTPStatus.METHOD_NOT_ALLOWED, "HiveServer2 is called by POST.", Allow="POST")
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            return _sentence(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "HiveServer2 reads no encoded bodies.")
        return None

    def _refused(self, query: str, headers: list[tuple[str, str]], proven: bytes | None) -> str | None:
        users = proxy_users_of(query)
        if not users:
            return None
        # The check takes the cookies of all backends: no backend gets another name than these give.
        said = ((name, without_marks(value) if name.lower() == "cookie" else value) for name, value in headers)
        login = CallerHeaders.from_request(query, said, proven).login
        for wanted in users:
            refused = self._refusal(login, wanted)
            if refused is not None:
                return refused
        return None

    async def _answer(self, call: _CallUnderWay) -> web.StreamResponse:
        request, memory = call.request, self._gateway.memory
        begun, length = b"", request.content_length
        if length is None:
            async with asyncio.timeout(self._body_s):
                begun = await _beginning(request)
            length = len(begun) if request.content.at_eof() else None
        bytes_max = min(self._request_bytes_max, memory.call_bytes_max)
        _expect_room(length, bytes_max)
        async with memory.room_for(length) as room:
            async with asyncio.timeout(self._body_s):
                body = begun + await request.read()
            _expect_room(len(body), bytes_max)
            room.resize(len(body))
            return await self._answer_in_room(call, body, room)

    async def _answer_in_room(self, call: _CallUnderWay, body: bytes, room: Room) -> web.StreamResponse:
        request = call.request
        self._guard.request_came(request.transport)
        query, headers = request.raw_path.partition("?")[2], list(request.headers.items())
        proven: bytes | None = None
        if self._logins is not None:
            identified = await self._logins.identified(headers)
            headers, proven, call.proof = identified.headers, identified.credentials, identified.proof
        refused = self._refused(query, headers, proven)
        if refused is not None:
            log.warning("a request from %s: %s", request.remote, refused)
            return _sentence(HTTPStatus.FORBIDDEN, refused)
        message = message_of(body)
        if self.is_draining and message.header.name == OPEN_SESSION:
            return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, "Starpruner is shutting down.")
        client, host = self._clients(query, headers, proven), request.remote or "HTTP"
        return await _forward(call, await self._gateway.carry(message, client, host, room.release))


async def _beginning(request: web.Request) -> bytes:
    """The beginning of a body in chunks, which has no length: enough to tell whether it is small."""
    begun = b""
    while len(begun) <= SMALL_BYTES and (piece := await request.content.readany()):
        begun += piece
    return begun


def _expect_room(length: int | None, bytes_max: int) -> None:
    if length is not None and length > bytes_max:
        raise web.HTTPRequestEntityTooLarge(bytes_max, length)


async def _forward(call: _CallUnderWay, answered: ExchangeReply) -> web.StreamResponse:
    request, incoming = call.request, answered.incoming
    if answered.body is not None or incoming is None:
        answered.drop()
        passing = () if incoming is None else incoming.headers
        headers = [(name, value) for name, value in passing if name.lower() != "content-type"] + call.proof
        return web.Response(body=answered.body, headers=CIMultiDict(headers), content_type=_THRIFT)
    response = web.StreamResponse(status=incoming.status, headers=CIMultiDict((*incoming.headers, *call.proof)))
    response.content_length = incoming.length
    call.is_answer_begun = True
    try:
        await response.prepare(request)
        async for piece in incoming.chunks():
            # Waits while the client reads slower than the backend sends.
            await response.write(piece)
        await response.write_eof()
    except ConnectionError:
        # The client has read its message to the end and does not wait for the end of the body, or it has left.
        log.debug("a request from %s: the client has closed its connection", request.remote)
    except BackendError as error:
        log.warning("a request from %s: %s", request.remote, error)
        # The only way to say that this is not all of it.
        if request.transport is not None:
            request.transport.abort()
    finally:
        incoming.drop()
    return response


def _sentence(status: HTTPStatus, sentence: str, **headers: str) -> web.Response:
    return web.Response(status=status, text=f"{sentence}\n", headers=headers)


async def _say_nothing_of_ourselves(_: web.Request, response: web.StreamResponse) -> None:
    if response.headers.get("Server") == SERVER_SOFTWARE:
        del response.headers["Server"]
