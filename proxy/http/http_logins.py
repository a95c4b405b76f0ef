"""Logins of clients over HTTP that the proxy takes itself: SPNEGO (RFC 4559), or a name and a password.

Each request brings its login. The proxy passes a login that it has taken on as a PLAIN response: the short name
without a password, or with the client's tickets (`proxy.kerberos.delegation`), which are used in its name alone.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from secrets import token_bytes
from typing import Final

from proxy.kerberos.client_logins import ClientLogins, PlainLogins
from proxy.kerberos.errors import KerberosError, sentence_for_client
from proxy.net.login_threads import password_check_in_thread, step_in_thread, step_within_s
from proxy.upstream.errors import RefusedError
from proxy.upstream.http_headers import OF_A_LOGIN, plain_response

log = logging.getLogger(__name__)

# For this long the KDC is not asked again about a password that it took: each call brings one. So many are kept.
_REMEMBERED_S: Final = 60.0
_REMEMBERED_MAX: Final = 10_000
# hive-jdbc writes "Negotiate : TOKEN", since it takes the scheme for a part of the header's name.
_NEGOTIATE: Final = re.compile(r"negotiate *:? *", re.IGNORECASE)
# A PLAIN response: a user to act for, a name, a password.
_PLAIN_WORDS: Final = 3


@dataclass(frozen=True)
class Identified:
    """A request whose client is known."""

    # The request's headers without those of a login, which could name somebody else.
    headers: list[tuple[str, str]] = field(repr=False)
    # The login that has been checked, as a PLAIN response, perhaps with tickets.
    credentials: bytes = field(repr=False)
    # Headers of the answer, by which the proxy proves who it is.
    proof: list[tuple[str, str]] = field(repr=False)


class HttpLogins:
    """The logins of a process over HTTP."""

    def __init__(self, logins: ClientLogins, login_s: float) -> None:
        self._logins = logins
        self._step_s = step_within_s(login_s)
        self._key = token_bytes(32)
        # By digests of names and passwords, oldest first.
        self._remembered: dict[bytes, tuple[bytes, float]] = {}
        self._purge: asyncio.TimerHandle | None = None

    @property
    def challenges(self) -> list[str]:
        """The schemes that a client may log in by, each the value of a WWW-Authenticate."""
        negotiates = ["Negotiate"] if self._logins.service is not None else []
        return negotiates if self._logins.plain is PlainLogins.REFUSE else [*negotiates, 'Basic realm="hive"']

    async def identified(self, headers: list[tuple[str, str]]) -> Identified:
        """Return the login that the backend side goes by, and the other headers. Raises RefusedError."""
        said = [value for name, value in headers if name.lower() == "authorization"]
        if len(said) != 1:
            raise RefusedError("a request needs one login, by Negotiate (Kerberos) or as the server offers")
        credentials, answer = await self._credentials(said[0])
        others = [pair for pair in headers if pair[0].lower() not in OF_A_LOGIN]
        # A client that asked for no proof ignores it.
        proof = [("WWW-Authenticate", f"Negotiate {b64encode(answer).decode()}")] if answer else []
        return Identified(others, credentials, proof)

    async def _credentials(self, authorization: str) -> tuple[bytes, bytes]:
        try:
            if (negotiate := _NEGOTIATE.match(authorization)) is not None:
                token = _decoded(authorization[negotiate.end() :])
                return await step_in_thread(partial(self._logins.credentials_with_ticket, token), self._step_s)
            return await self._credentials_with_password(authorization), b""
        except KerberosError as error:
            log.warning("the login of a client over HTTP failed: %r", str(error))
            raise RefusedError(sentence_for_client(error)) from None

    async def _credentials_with_password(self, authorization: str) -> bytes:
        words = (plain_response(authorization) or b"").split(b"\0")
        if len(words) != _PLAIN_WORDS:
            raise KerberosError("expected Negotiate or Basic")
        digest = blake2b(authorization.encode(errors="surrogateescape"), key=self._key).digest()
        found = self._remembered.get(digest)
        if found is not None and time.monotonic() < found[1]:
            return found[0]
        name, password = words[1].decode("utf-8", "replace"), words[2]
        credentials = await password_check_in_thread(
            partial(self._logins.credentials_with_password, name, password), self._step_s
        )
        self._remember(digest, credentials)
        return credentials

    def _remember(self, digest: bytes, credentials: bytes) -> None:
        self._remembered.pop(digest, None)
        if len(self._remembered) >= _REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[digest] = credentials, time.monotonic() + _REMEMBERED_S
        if self._purge is None:
            self._purge = asyncio.get_running_loop().call_later(_REMEMBERED_S, self._forget_ended)

    def _forget_ended(self) -> None:
        """Keep tickets no longer than they are used, whether or not somebody else logs in."""
        now, self._purge = time.monotonic(), None
        while self._remembered:
            digest, (_, until) = next(iter(self._remembered.items()))
            if until > now:
                self._purge = asyncio.get_running_loop().call_later(until - now, self._forget_ended)
                return
            del self._remembered[digest]


def _decoded(token: str) -> bytes:
    try:
        return b64decode(token.strip(), validate=True)
    except (Base64Error, ValueError):
        raise KerberosError("the token of Negotiate is not base64") from None
