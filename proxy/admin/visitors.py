"""Visitors of the admin port: who they are, and what they may see.

Administrators of `[admin] users` are checked by the hash of their password, everybody else by the backend.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from ipaddress import ip_address
from typing import Final

from aiohttp import web

from proxy.admin.basic_login import basic_login
from proxy.admin.passwords import is_password
from proxy.admin.tickets import COOKIE_S, Tickets, Visitor
from proxy.config.address import address
from proxy.config.config import Config

COOKIE: Final = "starpruner"
# Somebody who guesses waits this long for each answer; and so many are answered at once.
WRONG_PASSWORD_S: Final = 1.0
_CHECKS_AT_ONCE: Final = 2
# A program that asks with a password each time is checked again after this.
_REMEMBERED_S: Final = 60.0
_REMEMBERED_MAX: Final = 1_000
# Everybody who can reach the port, if it is open.
EVERYBODY: Final = Visitor("", is_administrator=True)


class SignInError(Exception):
    """Nobody was signed in. The message is a sentence for the user."""


class Visitors:
    """Signs visitors in, and finds them again."""

    def __init__(self, config: Config, key: bytes, check_at_backend: Callable[[str, str], Awaitable[str]]) -> None:
        """`check_at_backend` logs a user in and returns the name of the user's sessions.

        It raises an error with a sentence where that fails.
        """
        self._admin = config.admin
        self._key = key
        self._check_at_backend = check_at_backend
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._remembered: dict[bytes, tuple[Visitor, float]] = {}
        self.tickets = Tickets(key)

    async def of_request(self, request: web.Request) -> Visitor | None:
        """The visitor of a request: by its cookie, or by HTTP Basic. Raises SignInError for a wrong password."""
        if self._admin.open:
            return EVERYBODY if self._is_named_rightly(request) else None
        return await self._signed_in(request)

    async def _signed_in(self, request: web.Request) -> Visitor | None:
        visitor = self.tickets.visitor(request.cookies.get(COOKIE, ""), time.time())
        header = request.headers.get("Authorization")
        if visitor is not None or header is None:
            return visitor
        try:
            login = basic_login(header)
        except ValueError as error:
            raise SignInError(f"The request is not understood: {error}.") from error
        return await self._remembered_or_checked(login.user, login.password)

    async def may_administrate(self, request: web.Request) -> bool:
        """True for an administrator, and for everybody where none is named. An open port lets nobody else in.

        A page of another name may not ask: its site may have given that name our address. Programs send no origin.
        """
        if not self._admin.users:
            return "Origin" not in request.headers or self._is_named_rightly(request)
        try:
            visitor = await self._signed_in(request)
        except SignInError:
            return False
        return visitor is not None and visitor.is_administrator

    async def sign_in(self, name: str, password: str) -> Visitor:
        """The visitor with this name and password. Raises SignInError."""
        if not name:
            raise SignInError("A name is needed.")
        async with self._checks:
            try:
                return await self._checked(name, password)
            except SignInError:
                await asyncio.sleep(WRONG_PASSWORD_S)
                raise

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

    async def _checked(self, name: str, password: str) -> Visitor:
        hashed = self._admin.users.get(name)
        if hashed is not None:
            if await asyncio.to_thread(is_password, password, hashed):
                return Visitor(name, is_administrator=True)
            raise SignInError("The name or the password is wrong.")
        try:
            user = await self._check_at_backend(name, password)
        except Exception as error:
            raise SignInError(f"The backend did not let {name!r} in: {error}") from error
        # Not the typed name: the annas of two realms are two users, and the history has their sessions' names.
        return Visitor(user, is_administrator=False)

    async def _remembered_or_checked(self, name: str, password: str) -> Visitor:
        digest = blake2b(f"{name}\0{password}".encode(), key=self._key[:32]).digest()
        found = self._remembered.get(digest)
        if found is not None and time.monotonic() < found[1]:
            return found[0]
        visitor = await self.sign_in(name, password)
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[digest] = visitor, time.monotonic() + _REMEMBERED_S
        return visitor

    def _is_named_rightly(self, request: web.Request) -> bool:
        """True if an open port is asked by its address: a page elsewhere could give its own name our address."""
        host = request.url.host or ""
        if host in {"localhost", address(self._admin.listen).host}:
            return True
        try:
            ip_address(host)
        except ValueError:
            return False
        return True
