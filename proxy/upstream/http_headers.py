"""What a request's headers say, and which of them pass. Pure: no I/O.

Names are lower case throughout: HTTP does not tell their cases apart.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from proxy.wire.sasl import plain_user

# As they came, a name once for each time that it was sent.
Headers: TypeAlias = tuple[tuple[str, str], ...]

# What a client sends with every call.
THRIFT_HEADERS: Final[Headers] = (("Content-Type", "application/x-thrift"), ("Accept", "application/x-thrift"))

# Of one connection, or about the body's way over it: each side has its own.
_OF_A_CONNECTION: Final = frozenset(
    """
    connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer transfer-encoding
    upgrade host content-length expect
    """.split()
)
# A reply has to be read as it stands, so no other coding is asked for.
_NOT_ASKED_FOR: Final = frozenset({"accept-encoding"})
# What says nothing of who asks. Whatever is not named here may: whoever differs in it is taken for another.
_OF_THE_MESSAGE: Final = _OF_A_CONNECTION | _NOT_ASKED_FOR | {"accept", "content-type", "user-agent"}
# HttpAuthUtils.COOKIE_NAME. It says whose it is, and is signed by the server.
_COOKIE_NAME: Final = "hive.server2.auth"
_COOKIE: Final = re.compile(r"hive\.server2\.auth\s*=\s*\"?cu=([^&;,\"]*)")
# Enough that two callers never have one digest.
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True)
class Caller:
    """Whoever makes a call: what the request says of them, which is secret."""

    # The path's query, which may name somebody else (`doAs`), and the headers that may say who asks.
    query: str = field(repr=False)
    headers: Headers = field(repr=False)

    @classmethod
    def of(cls, query: str, headers: Iterable[tuple[str, str]]) -> Caller:
        """What a request says of whoever sent it."""
        kept = ((name.lower(), value) for name, value in headers)
        return cls(query, tuple(sorted(pair for pair in kept if pair[0] not in _OF_THE_MESSAGE)))

    def owner(self, key: bytes) -> str:
        """Whom a session belongs to that is opened so: equal for equal callers, of no use without the key.

        With the cookie, which counts for more than the credentials to the server. It differs from login to login.
        """
        return _digest(key, self.query, self.headers)

    def name(self, key: bytes) -> str:
        """The same for what only those can use who know a handle: PyHive sends its cookie now and then."""
        lasting = tuple(pair for pair in self.headers if pair[0] != "cookie")
        return _digest(key, self.query, self.headers if self.authorization is None else lasting)

    @cached_property
    def authorization(self) -> str | None:
        """What the header says; None where there is not exactly one."""
        said = [value for name, value in self.headers if name == "authorization"]
        return said[0] if len(said) == 1 else None

    @cached_property
    def credentials(self) -> bytes | None:
        """Name and password of basic authentication, as PLAIN has them; None where there are none."""
        return None if self.authorization is None else plain_response(self.authorization)

    @cached_property
    def login(self) -> str:
        """Whom the server takes the client for if it lets it in; empty where the request says none, or several.

        The server goes by its cookie first, and looks at the credentials only where that is out of date.
        """
        if self.authorization is None and any(name == "authorization" for name, _ in self.headers):
            return ""
        names = {""} if self.authorization is not None and self.credentials is None else set[str]()
        if self.credentials is not None:
            names.add(plain_user(self.credentials) or "")
        names |= _names_in([value for name, value in self.headers if name == "cookie"])
        return names.pop() if len(names) == 1 else ""

    @cached_property
    def names(self) -> frozenset[str]:
        """Whom the request says it is from. The empty name stands for a cookie that cannot be read."""
        cookies = _names_in([value for name, value in self.headers if name == "cookie"])
        basic = set() if self.credentials is None else {plain_user(self.credentials) or ""}
        return frozenset(cookies | basic)

    @property
    def may_be_asked_for(self) -> bool:
        """Whether calls of ours can be made in this name: what Kerberos and tokens prove, they prove once."""
        says_nothing = not any(name == "authorization" for name, _ in self.headers)
        return says_nothing or self.credentials is not None


def _digest(key: bytes, query: str, headers: Headers) -> str:
    digest = blake2b(key=key, digest_size=_DIGEST_BYTES)
    for text in (query, *(text for pair in headers for text in pair)):
        encoded = text.encode(errors="surrogateescape")
        digest.update(len(encoded).to_bytes(8) + encoded)
    return digest.hexdigest()


def _names_in(cookies: list[str]) -> set[str]:
    """Whose the server's cookies are; an empty name among them where one cannot be read."""
    names: set[str] = set()
    for text in cookies:
        found = _COOKIE.findall(text)
        names |= {*found} if len(found) == text.count(_COOKIE_NAME) else {""}
    return names


def passing(headers: Iterable[tuple[str, str]], *, to_backend: bool) -> list[tuple[str, str]]:
    """The headers that go on to the other side."""
    is_local = _OF_A_CONNECTION | _NOT_ASKED_FOR if to_backend else _OF_A_CONNECTION
    return [(name, value) for name, value in headers if name.lower() not in is_local]


def plain_response(authorization: str) -> bytes | None:
    r"""What basic authentication says, as a response of SASL PLAIN; None where it is something else.

    >>> plain_response("Basic dXNlcjpwYXNzd29yZA==")
    b'\x00user\x00password'
    """
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = b64decode(encoded.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    if not (user and colon) or b"\0" in user + password:
        return None
    return b"\0".join((b"", user, password))


def basic_authorization(response: bytes) -> str | None:
    """The reverse; None where the response is not PLAIN's, cannot be said so, or wants to act for another."""
    parts = response.split(b"\0")
    if len(parts) != 3 or not parts[1] or b":" in parts[1]:  # noqa: PLR2004 - whom to act for, name, password
        return None
    if parts[0] not in (b"", parts[1]):
        return None
    return "Basic " + b64encode(parts[1] + b":" + parts[2]).decode()


def acts_for(query: str) -> list[str]:
    """Whom a request wants to act for. The server takes the name in any case, the last one of several."""
    if not query:
        return []
    pairs = parse_qsl(query.replace(";", "&"), keep_blank_values=True)
    return [value for name, value in pairs if name.lower() == "doas"]
