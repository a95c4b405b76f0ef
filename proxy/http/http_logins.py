"""Logins of clients over HTTP that the proxy takes itself: SPNEGO (RFC 4559), or a name and a password.

Each request brings its login. One that is taken goes on as if it had come with the short name by HTTP Basic: from
there on all is as for a client with a password.
"""

from __future__ import annotations

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

from proxy.kerberos.client_login import UNCHECKED_PASSWORD
from proxy.kerberos.client_logins import ClientLogins, PlainLogins
from proxy.kerberos.errors import KerberosError, sentence_for_client
from proxy.net.login_threads import password_check_in_thread, step_in_thread, step_within_s
from proxy.upstream.errors import RefusedError
from proxy.upstream.http_headers import plain_response
from proxy.wire.sasl import plain_user

log = logging.getLogger(__name__)

# A password that the KDC has taken is not asked about again for so long, in as many entries: each call has one.
_REMEMBERED_S: Final = 60.0
_REMEMBERED_MAX: Final = 10_000
# hive-jdbc writes "Negotiate : TOKEN", since it takes the scheme for a part of the header's name.
_NEGOTIATE: Final = re.compile(r"negotiate *:? *", re.IGNORECASE)
# A PLAIN response: a user to act for, a name, a password.
_PLAIN_WORDS: Final = 3


@dataclass(frozen=True)
class Identified:
    """A request whose client is known."""

    headers: list[tuple[str, str]] = field(repr=False)
    # Headers of the answer, by which the proxy proves who it is.
    proof: list[tuple[str, str]] = field(repr=False)


class HttpLogins:
    """The logins of a process over HTTP."""

    def __init__(self, logins: ClientLogins, login_s: float) -> None:
        self._logins = logins
        self._step_s = step_within_s(login_s)
        self._key = token_bytes(32)
        self._remembered: dict[bytes, tuple[str, float]] = {}

    @property
    def challenges(self) -> list[str]:
        """The schemes that a client may log in by, each the value of a WWW-Authenticate."""
        negotiates = ["Negotiate"] if self._logins.service is not None else []
        return negotiates if self._logins.plain is PlainLogins.REFUSE else [*negotiates, 'Basic realm="hive"']

    async def identified(self, headers: list[tuple[str, str]]) -> Identified:
        """Return the headers with the login that the backend side goes by. Raises RefusedError."""
        said = [value for name, value in headers if name.lower() == "authorization"]
        if len(said) != 1:
            raise RefusedError("a request needs one login, by Negotiate (Kerberos) or as the server offers")
        user, answer = await self._user(said[0])
        basic = b64encode(f"{user}:{UNCHECKED_PASSWORD}".encode()).decode()
        # A cookie could name somebody else.
        others = [pair for pair in headers if pair[0].lower() not in ("authorization", "cookie")]
        # A client that asked for no proof reads past it.
        proof = [("WWW-Authenticate", f"Negotiate {b64encode(answer).decode()}")] if answer else []
        return Identified([*others, ("Authorization", f"Basic {basic}")], proof)

    async def _user(self, authorization: str) -> tuple[str, bytes]:
        try:
            if (negotiate := _NEGOTIATE.match(authorization)) is not None:
                token = _decoded(authorization[negotiate.end() :])
                return await step_in_thread(partial(self._logins.user_with_ticket, token), self._step_s)
            return await self._user_with_password(authorization), b""
        except KerberosError as error:
            log.warning("the login of a client over HTTP failed: %r", str(error))
            raise RefusedError(sentence_for_client(error)) from None

    async def _user_with_password(self, authorization: str) -> str:
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
        user = plain_user(credentials) or ""
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[digest] = user, time.monotonic() + _REMEMBERED_S
        return user


def _decoded(token: str) -> bytes:
    try:
        return b64decode(token.strip(), validate=True)
    except (Base64Error, ValueError):
        raise KerberosError("the token of Negotiate is not base64") from None
