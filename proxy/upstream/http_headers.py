"""HTTP headers: the caller that a request's headers name, and the headers that the proxy forwards. Pure: no I/O.

Header names are compared in lower case, since HTTP ignores their case.
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

from proxy.kerberos.delegation import name_of_owner
from proxy.upstream.http_cookies import LOGIN_COOKIE
from proxy.wire.sasl import plain_user

# Headers in the order in which they came; a name occurs as often as it was sent.
Headers: TypeAlias = tuple[tuple[str, str], ...]

# Headers of every call.
THRIFT_HEADERS: Final[Headers] = (("Content-Type", "application/x-thrift"), ("Accept", "application/x-thrift"))

# Headers about one connection or about the transfer of a body over it: each side has its own.
_OF_A_CONNECTION: Final = frozenset(
    """
    connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer transfer-encoding
    upgrade host content-length expect
    """.split()
)
# The proxy reads replies as they are, so it asks for no content coding.
_NOT_ASKED_FOR: Final = frozenset({"accept-encoding"})
# Headers that say nothing about the caller. Requests that differ in any other header count as different callers.
_OF_THE_MESSAGE: Final = _OF_A_CONNECTION | _NOT_ASKED_FOR | {"accept", "content-type", "user-agent"}
# Headers by which a client says who it is. The last one has a delegation token of HiveServer2.
OF_A_LOGIN: Final = frozenset({"authorization", "cookie", "x-hive-delegation-token"})
# The type of a body that is a message.
_THRIFT: Final = "application/x-thrift"
_COOKIE: Final = re.compile(r"hive\.server2\.auth\s*=\s*\"?cu=([^&;,\"]*)")
# Long enough that two callers never have the same digest.
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True)
class CallerHeaders:
    """The caller of a request, as its query and headers describe it. A secret."""

    # The path's query, which may name another user (`doAs`), and the headers that may identify the caller.
    query: str = field(repr=False)
    headers: Headers = field(repr=False)
    # The login that the proxy itself has checked, as a PLAIN response, perhaps with tickets. None: the backend
    # reads it.
    proven: bytes | None = field(default=None, repr=False)

    @classmethod
    def from_request(
        cls, query: str, headers: Iterable[tuple[str, str]], proven: bytes | None = None
    ) -> CallerHeaders:
        """Return the caller of a request.

        Beside a login that the proxy has checked, headers that could name somebody else do not count.
        """
        ignored = _OF_THE_MESSAGE if proven is None else _OF_THE_MESSAGE | OF_A_LOGIN
        kept = ((name.lower(), value) for name, value in headers)
        return cls(query, tuple(sorted(pair for pair in kept if pair[0] not in ignored)), proven)

    def owner_digest(self, key: bytes) -> str:
        """Return a digest of the owner of sessions that this caller opens: equal for equal callers.

        It includes the cookie, which the server prefers to the credentials and which differs from login to login.
        """
        return _digest(key, self.query, self.headers, self.proven)

    def owner_digest_without_cookie(self, key: bytes) -> str:
        """Return the same, without the cookie if there are credentials: PyHive sends its cookie only now and then.

        This is enough for uses that need to know a handle too.
        """
        lasting = tuple(pair for pair in self.headers if pair[0] != "cookie")
        return _digest(key, self.query, self.headers if self.authorization is None else lasting, self.proven)

    @cached_property
    def authorization(self) -> str | None:
        """The Authorization header; None unless there is exactly one."""
        said = [value for name, value in self.headers if name == "authorization"]
        return said[0] if len(said) == 1 else None

    @cached_property
    def credentials(self) -> bytes | None:
        """Name and password of basic authentication, or the proven login, as a PLAIN response; None without."""
        if self.proven is not None:
            return self.proven
        return None if self.authorization is None else plain_response(self.authorization)

    @cached_property
    def login(self) -> str:
        """The user that the server takes an accepted client to be; empty if the request names none or several.

        The server reads its cookie first, and the credentials only if the cookie has expired.
        """
        if self.proven is not None:
            return plain_user(self.proven) or ""
        if self.authorization is None and any(name == "authorization" for name, _ in self.headers):
            return ""
        names = {""} if self.authorization is not None and self.credentials is None else set[str]()
        if self.credentials is not None:
            names.add(plain_user(self.credentials) or "")
        names |= _names_in([value for name, value in self.headers if name == "cookie"])
        return names.pop() if len(names) == 1 else ""

    @cached_property
    def claimed_users(self) -> frozenset[str]:
        """The users that the request claims to be from. A cookie that cannot be read counts as the empty name.

        With tickets it is the principal: two of one short name are two users.
        """
        if self.proven is not None:
            return frozenset({name_of_owner(self.proven).decode("utf-8", "replace")})
        cookies = _names_in([value for name, value in self.headers if name == "cookie"])
        basic = set() if self.credentials is None else {plain_user(self.credentials) or ""}
        return frozenset(cookies | basic)

    @property
    def can_be_reused(self) -> bool:
        """True if the proxy can make calls with these credentials: those of Kerberos and tokens work only once."""
        says_nothing = not any(name == "authorization" for name, _ in self.headers)
        return says_nothing or self.credentials is not None


def _digest(key: bytes, query: str, headers: Headers, proven: bytes | None) -> str:
    digest = blake2b(key=key, digest_size=_DIGEST_BYTES)
    texts = (query, *(text for pair in headers for text in pair))
    words = [text.encode(errors="surrogateescape") for text in texts]
    # Behind pairs of headers a single word cannot be taken for one of theirs.
    for encoded in words if proven is None else [*words, proven]:
        digest.update(len(encoded).to_bytes(8) + encoded)
    return digest.hexdigest()


def _names_in(cookies: list[str]) -> set[str]:
    """Return the users named in the server's cookies; the empty name for a cookie that cannot be read."""
    names: set[str] = set()
    for text in cookies:
        found = _COOKIE.findall(text)
        names |= {*found} if len(found) == text.count(LOGIN_COOKIE) else {""}
    return names


def forwarded_headers(headers: Iterable[tuple[str, str]], *, to_backend: bool) -> list[tuple[str, str]]:
    """Return the headers that the proxy forwards to the other side.

    A backend reads parameters such as `doAs` from a body too, if its type is that of a form.
    """
    left_out = _OF_A_CONNECTION | _NOT_ASKED_FOR if to_backend else _OF_A_CONNECTION
    passing = ((name, value) for name, value in headers if name.lower() not in left_out)
    if not to_backend:
        return list(passing)
    return [(name, _THRIFT if name.lower() == "content-type" else value) for name, value in passing]


def plain_response(authorization: str) -> bytes | None:
    r"""Return basic authentication as a response of SASL PLAIN; None for another authentication.

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
    """Return a PLAIN response as basic authentication; None if it is malformed, for another user, or has a ":"."""
    parts = response.split(b"\0")
    if len(parts) != 3 or not parts[1] or b":" in parts[1]:  # noqa: PLR2004 - whom to act for, name, password
        return None
    if parts[0] not in (b"", parts[1]):
        return None
    return "Basic " + b64encode(parts[1] + b":" + parts[2]).decode()


def proxy_users_of(query: str) -> list[str]:
    """Return the users that a request may act for by the server's reading of its query, in any order.

    The server takes the last of several, and ignores case as Java does: the long s, U+017F, is an `s` to it. Its
    parser may also know separators and escapes (`;`, `%u0053`) that ours does not. So a name that is not plain
    counts as `doAs`, and both readings of a semicolon count.

    >>> proxy_users_of("a=b&doAs=anna")
    ['anna']
    >>> proxy_users_of("doA%C5%BF=anna")
    ['anna']
    """
    if not query:
        return []
    readings = (query.replace(";", "&"), query)
    pairs = [pair for text in readings for pair in parse_qsl(text, keep_blank_values=True)]
    return list(dict.fromkeys(value for name, value in pairs if _may_be_do_as(name)))


def _may_be_do_as(name: str) -> bool:
    return name.lower() == "doas" or not name.isascii() or "%" in name
