"""Cookies of several backends in one client: each cookie goes only to the backend that set it. Pure.

A client keeps one cookie of each name, whichever backend set it, and sends it with every call. So if there are
several backends, the proxy puts a mark of the backend in front of the value of each cookie that a backend sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

# 48 bits distinguish 64 backends. A mark does not reveal a backend's address. It is no secret either: a client
# that forges a mark sends its own cookie to a backend, as it could without the proxy.
_DIGEST_BYTES: Final = 6
_MARKED: Final = re.compile(r"(?P<name>[^=;]*=\s*\"?)starpruner-(?P<mark>[0-9a-f]{12})\.")
_VALUE: Final = re.compile(r"[^=;]*=\s*\"?")
# HttpAuthUtils.COOKIE_NAME. The cookie names its user, and the server has signed it.
LOGIN_COOKIE: Final = "hive.server2.auth"


def mark_of_backend(backend_name: str) -> str:
    """Return the mark of a backend, which is the same after a restart."""
    return blake2b(backend_name.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def with_mark(set_cookie: str, mark: str) -> str:
    """Return a backend's Set-Cookie with the backend's mark.

    >>> with_mark('a="1"; Path=/', "0123456789ab")
    'a="starpruner-0123456789ab.1"; Path=/'
    """
    value = _VALUE.match(set_cookie)
    return set_cookie if value is None else f"{value[0]}starpruner-{mark}.{set_cookie[value.end() :]}"


def marks_in(cookies: Iterable[str]) -> frozenset[str]:
    """Return the marks of the backends whose cookies a client sends."""
    found = (_MARKED.match(cookie) for text in cookies for cookie in text.split(";"))
    return frozenset(match["mark"] for match in found if match is not None)


def cookies_for(mark: str, cookie_header: str) -> str:
    """Return the part of a Cookie header for one backend, each cookie as the backend set it.

    A login cookie without a mark may be from any backend and is left out. Other unmarked cookies are the client's.

    >>> cookies_for("0123456789ab", "a=starpruner-0123456789ab.1; b=starpruner-ba9876543210.2; c=3")
    'a=1; c=3'
    """
    own: list[str] = []
    for cookie in map(str.strip, cookie_header.split(";")):
        match = _MARKED.match(cookie)
        if match is not None and match["mark"] == mark:
            own.append(_without_mark(cookie))
        elif match is None and not cookie.startswith(LOGIN_COOKIE):
            own.append(cookie)
    return "; ".join(own)


def without_marks(cookie_header: str) -> str:
    """Return all cookies as their backends set them, to be read and not to be sent."""
    return "; ".join(map(_without_mark, map(str.strip, cookie_header.split(";"))))


def _without_mark(cookie: str) -> str:
    # Matched from its start: a search would try each character of a long name, up to its end.
    match = _MARKED.match(cookie)
    return cookie if match is None else match["name"] + cookie[match.end() :]
