"""Visitors of the admin port: who they are, and what they may see.

Administrators of `[admin] users` are checked by the hash of their password, everybody else by the backend. Wrong
passwords are counted for each address and name (`proxy/admin/throttle.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from http import HTTPStatus
from math import ceil
from typing import Final
from weakref import WeakValueDictionary

from aiohttp import web

from proxy.admin.answers import Refusal
from proxy.admin.basic_login import BasicLogin, basic_login
from proxy.admin.passwords import is_password
from proxy.admin.throttle import Throttle, pair_of
from proxy.admin.tickets import COOKIE_S, Tickets, Visitor
from proxy.config.config import Config
from proxy.net.newcomers import address_group
from proxy.upstream.errors import LoginError, RefusedError

COOKIE: Final = "starpruner"
# Hashes at once: each takes 32 MB and a tenth of a second of a core.
_HASHES_AT_ONCE: Final = 2
# A program may send a password with each request: the password is checked again after this time.
_REMEMBERED_S: Final = 60.0
_REMEMBERED_MAX: Final = 1_000
# Everybody who can reach the port, if it is open.
EVERYBODY: Final = Visitor("", is_administrator=True)

Check = Callable[[str, str], Awaitable[Visitor]]


class SignInError(Refusal):
    """Nobody was signed in."""

    def __init__(self, sentence: str, status: HTTPStatus = HTTPStatus.UNAUTHORIZED, wait_s: float = 0.0) -> None:
        """A wrong password, unless the status says otherwise."""
        super().__init__(status, sentence, wait_s)


class Visitors:
    """Signs visitors in, and finds them again."""

    def __init__(
        self,
        config: Config,
        key: bytes,
        check_at_backend: Callable[[str, str], Awaitable[str]],
        clock: Callable[[], float],
        on_refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`check_at_backend` logs a user in and returns the name of the user's sessions.

        It raises an error with a sentence where that fails. `on_refused` is told why a visitor is not let
        in: refused, or throttled.
        """
        self._admin = config.admin
        self._key = key
        self._check_at_backend = check_at_backend
        self._clock = clock
        self._on_refused = on_refused
        self._throttle = Throttle(clock)
        # Tries of one address for one name are made one after the other.
        self._turns: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        self._hashing = asyncio.Semaphore(_HASHES_AT_ONCE)
        # One hash at a time for each administrator: guesses at one name delay no other administrator.
        self._hashing_of = {name: asyncio.Lock() for name in self._admin.users}
        self._remembered: dict[bytes, tuple[Visitor, float]] = {}
        self.tickets = Tickets(key)

    async def of_request(self, request: web.Request) -> Visitor | None:
        """The visitor of a request: by its cookie, or by HTTP Basic. Raises SignInError for a wrong password."""
        return EVERYBODY if self._admin.open else await self._signed_in(request)

    async def _signed_in(self, request: web.Request) -> Visitor | None:
        visitor = self.tickets.visitor(request.cookies.get(COOKIE, ""), time.time())
        login = None if visitor is not None else _login_of(request)
        return visitor if login is None else await self.sign_in(request, login.user, login.password)

    async def backend_login(self, request: web.Request) -> BasicLogin | None:
        """The login at the backend that a request brings, once the backend has accepted it. Raises SignInError.

        Return None if the port is open and the request has no login: everybody may ask.
        """
        login = _login_of(request)
        if login is None:
            if self._admin.open:
                return None
            raise SignInError("Send a name and a password of the backend, by HTTP Basic.")
        await self.try_at_backend(request, login)
        return login

    async def try_at_backend(self, request: web.Request, login: BasicLogin) -> None:
        """Let the backend check a login, unless it has done so a moment ago. Raises SignInError."""
        await self._let_in(request, "backend", login.user, login.password, self._user_of_backend)

    async def may_administrate(self, request: web.Request) -> bool:
        """True for an administrator, and for everybody where none is named. An open port lets nobody else in."""
        return not self._admin.users or await self.administrator(request) is not None

    async def administrator(self, request: web.Request) -> Visitor | None:
        """The administrator who sent a request: everybody where the port is open and none is named."""
        if not self._admin.users:
            return EVERYBODY if self._admin.open else None
        try:
            visitor = await self._signed_in(request)
        except SignInError:
            return None
        return visitor if visitor is not None and visitor.is_administrator else None

    async def sign_in(self, request: web.Request, name: str, password: str) -> Visitor:
        """The visitor with this name and password. Raises SignInError."""
        if not name:
            raise SignInError("A name is needed.")
        check = self._administrator if name in self._admin.users else self._user_of_backend
        return await self._let_in(request, "visitor", name, password, check)

    def cookie_of(self, request: web.Request) -> str:
        """The cookie of the request if it is one of ours, or a new one of nobody."""
        cookie, now = request.cookies.get(COOKIE, ""), time.time()
        return cookie if self.tickets.is_cookie(cookie, now) else self.tickets.cookie(None, now)

    def set_cookie(self, response: web.StreamResponse, request: web.Request, cookie: str) -> None:
        """Send the cookie, for this origin alone and out of reach of scripts."""
        is_secure = request.headers.get("X-Forwarded-Proto") == "https"
        response.set_cookie(
            COOKIE, cookie, max_age=COOKIE_S, httponly=True, samesite="Strict", secure=is_secure, path="/"
        )

    async def _let_in(self, request: web.Request, purpose: str, name: str, password: str, check: Check) -> Visitor:
        pair = pair_of(address_group(request.remote or ""), name)
        secret = f"{purpose}\0{name}\0{password}".encode(errors="surrogatepass")
        digest = blake2b(secret, key=self._key[:32]).digest()
        turn = self._turns.setdefault(pair, asyncio.Lock())
        async with turn:
            # The throttle comes first: else a client could go on guessing while the right password is remembered.
            self._expect_patience(pair)
            found = self._remembered.get(digest)
            if found is not None and self._clock() < found[1]:
                return found[0]
            self._throttle.count(pair)
            try:
                visitor = await check(name, password)
            except SignInError as error:
                if error.status == HTTPStatus.UNAUTHORIZED:
                    self._on_refused("refused")
                raise
            self._throttle.forgive(pair)
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[digest] = visitor, self._clock() + _REMEMBERED_S
        return visitor

    def _expect_patience(self, pair: bytes) -> None:
        wait_s = self._throttle.wait_s(pair)
        if wait_s > 0:
            self._on_refused("throttled")
            sentence = f"Too many passwords were wrong for this name; try again in {ceil(wait_s)} s."
            raise SignInError(sentence, HTTPStatus.TOO_MANY_REQUESTS, wait_s)

    async def _administrator(self, name: str, password: str) -> Visitor:
        async with self._hashing_of[name], self._hashing:
            is_right = await asyncio.to_thread(is_password, password, self._admin.users[name])
        if not is_right:
            raise SignInError("The name or the password is wrong.")
        return Visitor(name, is_administrator=True)

    async def _user_of_backend(self, name: str, password: str) -> Visitor:
        try:
            user = await self._check_at_backend(name, password)
        except Exception as error:
            is_refused = isinstance(error, LoginError | RefusedError)
            status = HTTPStatus.UNAUTHORIZED if is_refused else HTTPStatus.BAD_GATEWAY
            raise SignInError(f"The backend did not let {name!r} in: {error}", status) from error
        # The session's name, not the typed one: anna of one realm and anna of another are two users, and the
        # history has the names of sessions.
        return Visitor(user, is_administrator=False)


def _login_of(request: web.Request) -> BasicLogin | None:
    """The login of a request by HTTP Basic. Raises SignInError for any other one."""
    header = request.headers.get("Authorization")
    if header is None:
        return None
    try:
        return basic_login(header)
    except ValueError as error:
        raise SignInError(f"The request is not understood: {error}.") from error
