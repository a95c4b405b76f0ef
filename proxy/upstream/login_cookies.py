"""Cookies by which a kerberized server over HTTP knows a login again, each for one session of one principal. Pure.

With the cookie that came with a login's first reply (`hive.server2.auth`) further calls need no ticket. The cookie
lets its bearer in as the one who logged in. So the proxy finds a cookie only by its session (or an operation of
that), the user of the session and the principal of the login, and sends it only to the backend that set it.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from proxy.access.handle_access import CATALOG_CALLS
from proxy.operations.internal_call import Call
from proxy.upstream.http_cookies import LOGIN_COOKIE
from proxy.wire.hs2.calls import CLOSE_OPERATION, CLOSE_SESSION, EXECUTE_STATEMENT, OPEN_SESSION, SessionHandle
from proxy.wire.hs2.handles import HandleId, handle_id_of, handle_named_by
from proxy.wire.hs2.replies import decode_operation_reply, expect_reply, open_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import read_header

# Sessions and operations with a cookie, each below a kilobyte. Without its entry a call costs a ticket.
COOKIES_MAX: Final = 10_000
# As RFC 6265 has it for a whole cookie; that of HiveServer2 has some 100 bytes.
_COOKIE_BYTES_MAX: Final = 4096
# A cookie expires after a day (hive.server2.thrift.http.cookie.max.age). One that is refused more often in a row
# in a session is known to only one of several servers behind a name. To try it first would make each call two.
_REFUSALS_MAX: Final = 3
# A cookie that was not used for this long is dropped at the next call of any client. The server's lasts as long.
# Not every session is closed by its client.
_UNUSED_S: Final = 24 * 3600.0
# The characters that RFC 6265 allows in a value, quotes around it too.
_PAIR: Final = re.compile(rf"{re.escape(LOGIN_COOKIE)}=(?!\"\"$)([\x21-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+)")
# An age by which a server takes a cookie back.
_ENDED: Final = re.compile(r"max-age\s*=\s*(-[0-9]+|0+)", re.IGNORECASE)
_OPENS_OPERATION: Final = CATALOG_CALLS | {EXECUTE_STATEMENT}


class CookieOwner(NamedTuple):
    """The backend that set a cookie, the user whose handles it is used with, and the principal that it names."""

    backend: str
    user: str
    principal: str


_Key: TypeAlias = tuple[CookieOwner, HandleId]


class LoginCookie:
    """The cookie of one session, if its server has set one."""

    def __init__(self, principal: str, on_cookie: Callable[[LoginCookie], None] = lambda _: None) -> None:
        """`on_cookie` is called when the server has set one."""
        self._principal = principal
        self._on_cookie = on_cookie
        self._pair: str | None = None
        self._refusals = 0
        self._is_over = False

    @property
    def is_set(self) -> bool:
        """True if the server has set a cookie that can be used."""
        return self._pair is not None

    def pair_for(self, principal: str) -> str | None:
        """Return name and value for a call as this principal; None if there is no cookie, or only another's."""
        return self._pair if principal == self._principal else None

    def login_accepted(self, principal: str, set_cookies: Iterable[str], *, is_encrypted: bool) -> None:
        """Keep the cookie of a reply to a ticket of this principal."""
        if principal != self._principal or self._is_over or self._refusals >= _REFUSALS_MAX:
            return
        for text in set_cookies:
            pair, *attributes = (part.strip() for part in text.split(";"))
            if pair.partition("=")[0].rstrip() != LOGIN_COOKIE:
                continue
            if any(map(_ENDED.fullmatch, attributes)):
                self._pair = None
                continue
            # A server may forbid to send it unencrypted.
            is_allowed = is_encrypted or "secure" not in {attribute.lower() for attribute in attributes}
            if is_allowed and len(pair) <= _COOKIE_BYTES_MAX and _PAIR.fullmatch(pair) is not None:
                self._pair = pair
        if self.is_set:
            self._on_cookie(self)

    def accepted(self) -> None:
        """The server has taken the cookie."""
        self._refusals = 0

    def refused(self, pair: str) -> None:
        """The server no longer takes it. If several calls have sent it at once, only the first one counts."""
        self._refusals += self._pair == pair
        self.drop(pair)

    def drop(self, pair: str) -> None:
        """Send it no more."""
        if self._pair == pair:
            self._pair = None

    def session_closed(self) -> None:
        """Keep none from now on."""
        self._is_over = True
        self._pair = None


class SessionCookies:
    """The cookies of a process's sessions, up to COOKIES_MAX. Used by its event loop alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # With the time of the last call, longest ago first.
        self._cookies: OrderedDict[_Key, tuple[LoginCookie, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._cookies)

    def cookie_for(self, owner: CookieOwner, call: Call) -> LoginCookie:
        """Return the cookie of the session that a call is about. A call that opens a session has a new one."""
        self._drop_unused()
        identifier = None if call.name == OPEN_SESSION else _named_by(call)
        if identifier is None:
            return LoginCookie(owner.principal)
        key = (owner, identifier)
        is_last = call.name in (CLOSE_OPERATION, CLOSE_SESSION)
        if key not in self._cookies:
            # For a handle that another worker has seen opened, the cookie is the handle's own. It is kept only
            # once the server has set it: a client can make up any number of handles.
            return (
                LoginCookie(owner.principal) if is_last else LoginCookie(owner.principal, partial(self._keep, key))
            )
        cookie, _ = self._cookies.pop(key)
        if not is_last:
            self._keep(key, cookie)
        return cookie

    def session_opened(self, owner: CookieOwner, session: SessionHandle, cookie: LoginCookie) -> None:
        """The call with this cookie has opened a session."""
        identifier = handle_id_of(session)
        if identifier is not None and cookie.is_set:
            self._keep((owner, identifier), cookie)

    def reply_came(self, owner: CookieOwner, call: Call, cookie: LoginCookie, raw: bytes) -> None:
        """A call with this cookie has had this reply: an operation that it names is of the same session."""
        if call.name not in _OPENS_OPERATION or not cookie.is_set:
            return
        with suppress(RemoteProtocolError, IncompleteError):
            reply = decode_operation_reply(open_reply(raw, expect_reply(raw, call.name, call.seqid)))
            identifier = None if reply.operation is None else handle_id_of(reply.operation)
            if identifier is not None:
                self._keep((owner, identifier), cookie)

    def _drop_unused(self) -> None:
        now = self._clock()
        while self._cookies and next(iter(self._cookies.values()))[1] + _UNUSED_S <= now:
            self._cookies.popitem(last=False)

    def _keep(self, key: _Key, cookie: LoginCookie) -> None:
        self._cookies[key] = cookie, self._clock()
        self._cookies.move_to_end(key)
        if len(self._cookies) > COOKIES_MAX:
            self._cookies.popitem(last=False)


def _named_by(call: Call) -> HandleId | None:
    with suppress(RemoteProtocolError, IncompleteError):
        named = handle_named_by(Message(read_header(call.message), call.message))
        return None if named is None else named.identifier
    return None
