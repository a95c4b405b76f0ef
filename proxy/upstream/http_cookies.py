"""Cookies of several backends in one client: each goes back to the backend that gave it, and to no other. Pure.

A client keeps one cookie of a name, whichever backend it is from, and sends it with every call. So where there are
several, a mark stands in front of the value of each cookie that a backend gives, and says which one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

# 48 bits tell 64 backends apart. Not their addresses, which are nobody's business; and no secret, since whoever
# writes a mark himself gets his own cookie to a backend, as without us.
_DIGEST_BYTES: Final = 6
_MARKED: Final = re.compile(r"(?P<name>[^=;]*=\s*\"?)starpruner-(?P<mark>[0-9a-f]{12})\.")
_VALUE: Final = re.compile(r"[^=;]*=\s*\"?")
# HttpAuthUtils.COOKIE_NAME. It says whose it is, and is signed by the server.
LOGIN_COOKIE: Final = "hive.server2.auth"


def mark_of_backend(backend_name: str) -> str:
    """What tells a backend from the others, today as after a restart."""
    return blake2b(backend_name.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def with_mark(set_cookie: str, mark: str) -> str:
    """What a backend's Set-Cookie becomes.

    >>> with_mark('a="1"; Path=/', "0123456789ab")
    'a="starpruner-0123456789ab.1"; Path=/'
    """
    value = _VALUE.match(set_cookie)
    return set_cookie if value is None else f"{value[0]}starpruner-{mark}.{set_cookie[value.end() :]}"


def marks_in(cookies: Iterable[str]) -> frozenset[str]:
    """The backends whose cookies a client has."""
    found = (_MARKED.match(cookie) for text in cookies for cookie in text.split(";"))
    return frozenset(match["mark"] for match in found if match is not None)


def cookies_for(mark: str, cookie_header: str) -> str:
    """What goes to that backend of a Cookie header, each cookie as the backend gave it.

    A login without a mark was given by we know not which. Other cookies without one are the client's own.

    >>> cookies_for("0123456789ab", "a=starpruner-0123456789ab.1; b=starpruner-ba9876543210.2; c=3")
    'a=1; c=3'
    """
    own: list[str] = []
    for cookie in map(str.strip, cookie_header.split(";")):
        match = _MARKED.match(cookie)
        if match is not None and match["mark"] == mark:
            own.append(match["name"] + cookie[match.end() :])
        elif match is None and not cookie.startswith(LOGIN_COOKIE):
            own.append(cookie)
    return "; ".join(own)


def without_marks(cookie_header: str) -> str:
    """All cookies as their backends gave them, to be read and not to be sent."""
    return "; ".join(
        _MARKED.sub(r"\g<name>", cookie, count=1) for cookie in map(str.strip, cookie_header.split(";"))
    )
