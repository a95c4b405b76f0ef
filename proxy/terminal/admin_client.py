"""Client of the admin port of a proxy that runs: signs in, and reads its JSON."""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Final, TypeVar

import aiohttp
import click
import msgspec

from proxy.admin.answers import ErrorAnswer
from proxy.admin.basic_login import BasicLogin
from proxy.config.address import why_unreachable

T = TypeVar("T")

# The port gives up on its own queries sooner, and checks a password within a login's time.
_ANSWER_S: Final = 90.0


class AdminClient:
    """The admin port, asked by one visitor. Whatever goes wrong is a ClickException with a sentence."""

    def __init__(self, url: str, user: str | None, password: str | None) -> None:
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        self._user = user
        self._password = password

    def get(self, path: str, answer: type[T]) -> T:
        """The answer at a path, as a value of this type."""
        try:
            return msgspec.json.decode(self.get_json(path), type=answer)
        except msgspec.DecodeError as error:
            raise click.ClickException(f"{self.url}{path} answers as no proxy of this version: {error}") from error

    def get_json(self, path: str) -> bytes:
        """The answer at a path. Asks the user for a name and a password if these are needed and were not given."""
        status, body = self._fetch(path)
        if status == HTTPStatus.UNAUTHORIZED and self._asks_for_login():
            status, body = self._fetch(path)
        if status != HTTPStatus.OK:
            raise click.ClickException(_sentence(status, body))
        return body

    def _asks_for_login(self) -> bool:
        """Ask the user for the missing parts of the login. False where none is missing, or nobody could answer."""
        if (self._user is not None and self._password is not None) or not _is_somebody_there():
            return False
        self._user = self._user or click.prompt("User", err=True)
        self._password = self._password or click.prompt("Password", hide_input=True, err=True)
        return True

    def _fetch(self, path: str) -> tuple[int, bytes]:
        try:
            return asyncio.run(self._fetch_once(path))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            if isinstance(error, aiohttp.ClientConnectorError):
                reason = why_unreachable(error.os_error)
            elif isinstance(error, aiohttp.InvalidURL):
                reason = "it is no address such as http://127.0.0.1:10080"
            raise click.ClickException(f"cannot reach the admin port {self.url}: {reason}") from error

    async def _fetch_once(self, path: str) -> tuple[int, bytes]:
        headers = {}
        if self._user is not None and self._password is not None:
            headers["Authorization"] = BasicLogin(self._user, self._password).header
        async with (
            aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=_ANSWER_S)) as session,
            # A login is not sent on to another address.
            session.get(f"{self.url}{path}", allow_redirects=False) as answer,
        ):
            return answer.status, await answer.read()


def _is_somebody_there() -> bool:
    return sys.stdin.isatty()


def _sentence(status: int, body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=ErrorAnswer).error
    except msgspec.DecodeError:
        return f"the admin port answers with status {status}"
