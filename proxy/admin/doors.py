"""Doors of the admin port: middlewares that check the host, the origin, the time and the number of requests.

A route reads the body of a request by `body_of`, which limits its time and its length.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from aiohttp import web

from proxy.admin.answers import Handler, Refusal
from proxy.admin.own_names import OwnNames
from proxy.net import request_guard
from proxy.net.newcomers import Newcomers, address_group
from proxy.net.request_guard import RequestGuard

# Connections without a request under way, and those of one address: a browser has six, Prometheus one. They are
# closed after seconds, also between two requests.
WAITING_MAX: Final = 256
WAITING_OF_ADDRESS_MAX: Final = 128
# Requests that are answered at once, and those of one address. Behind an HTTPS proxy all users have its address.
REQUESTS_MAX: Final = 128
REQUESTS_OF_ADDRESS_MAX: Final = 64
# Balancers, Kubernetes and Prometheus have room of their own, so that nobody keeps them out.
WATCHED: Final = frozenset({"/healthz", "/readyz", "/metrics"})
# Time for a client to read an answer of some megabytes. A client that reads nothing would hold its room for ever.
READ_S: Final = 60.0


class RequestRoom:
    """Requests that are answered at once, counted by address."""

    def __init__(self) -> None:
        self._of_address: Counter[str] = Counter()

    def enter(self, address: str) -> None:
        """Count a request. Raises Refusal where there are too many."""
        if self._of_address.total() >= REQUESTS_MAX or self._of_address[address] >= REQUESTS_OF_ADDRESS_MAX:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests are being answered; try again.", 1.0)
        self._of_address[address] += 1

    def leave(self, address: str) -> None:
        """A request has been answered."""
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]


_ROOM: Final = web.RequestKey("room", RequestRoom)


class Doors:
    """The doors of one port."""

    def __init__(self, names: OwnNames, request_bytes_max: int) -> None:
        self._names = names
        self._request_bytes_max = request_bytes_max
        newcomers = Newcomers(time.monotonic, WAITING_MAX, WAITING_OF_ADDRESS_MAX)
        self.guard = RequestGuard("the admin port", newcomers, keeps=False)
        self._watchers, self._others = RequestRoom(), RequestRoom()

    @web.middleware
    async def outer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The outermost middleware: the time limits, and the room of a request until its answer is read."""
        transport = request.transport
        self.guard.header_came(transport)
        try:
            answer = await handler(request)
            # aiohttp would send the answer only after this middleware: a client could hold any number of them.
            await _hand_over(request, answer)
            return answer
        finally:
            if _ROOM in request:
                request[_ROOM].leave(_address(request))
            self.guard.answered(transport, is_well=True)

    @web.middleware
    async def inner(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The inner middleware: checks the port's name, and the page that sends. A refusal becomes a sentence."""
        hosts, origins = request.headers.getall("Host", []), request.headers.getall("Origin", [])
        if not all(map(self._names.has, hosts)):
            sentence = "The port has another name: call it by its address, or add this name to admin.hosts."
            raise Refusal(HTTPStatus.FORBIDDEN, sentence)
        if not all(self._names.may_send(origin, "".join(hosts)) for origin in origins):
            raise Refusal(HTTPStatus.FORBIDDEN, "A page of another origin may not do this.")
        if request.method != "POST" or not request.can_read_body:
            self._enter(request)
        return await handler(request)

    async def body_of(self, request: web.Request, limit: int | None = None) -> bytes:
        """The body of a request. Raises Refusal where it is too long, or takes too long."""
        body, bytes_max = bytearray(), limit or self._request_bytes_max
        try:
            async with asyncio.timeout(request_guard.REQUEST_S):
                while piece := await request.content.readany():
                    body += piece
                    if len(body) > bytes_max:
                        sentence = f"The request is longer than {bytes_max} bytes."
                        raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)
        except TimeoutError:
            raise Refusal(HTTPStatus.REQUEST_TIMEOUT, "The request's body did not come in time.") from None
        self._enter(request)
        return bytes(body)

    def _enter(self, request: web.Request) -> None:
        """Count a request that has arrived whole."""
        if _ROOM in request:
            return
        self.guard.request_came(request.transport)
        room = self._watchers if request.path in WATCHED else self._others
        room.enter(_address(request))
        request[_ROOM] = room


DOORS: Final = web.AppKey("doors", Doors)


async def _hand_over(request: web.Request, answer: web.StreamResponse) -> None:
    transport = request.transport
    try:
        async with asyncio.timeout(READ_S):
            with suppress(ConnectionError):
                await answer.prepare(request)
                await answer.write_eof()
    except TimeoutError:
        if transport is not None:
            transport.abort()


def _address(request: web.Request) -> str:
    return address_group(request.remote or "")
