"""Signed cookies and form tokens of the admin port. Pure: the caller hands in the key and the time.

A cookie holds a visitor's name and what the visitor may see; nothing about it is kept. A form's token is made from
the cookie, so a page of another origin, which cannot read it, cannot send the form.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from hashlib import sha256
from typing import Final

import msgspec

# A working day and some more. A password is asked for again after it.
COOKIE_S: Final = 12 * 3_600
_COOKIE_CHARS_MAX: Final = 2_000


class Visitor(msgspec.Struct, frozen=True):
    """Somebody who has signed in. An administrator sees everybody's statements."""

    name: str
    is_administrator: bool

    @property
    def seen_by(self) -> str | None:
        """The user whose statements may be seen; None for those of all."""
        return None if self.is_administrator else self.name


class _Ticket(msgspec.Struct, frozen=True):
    visitor: Visitor | None
    expires_at: float
    # Makes the tokens of two cookies different.
    chance: str


class Tickets:
    """Signs and reads cookies and tokens with a key that lives as long as the proxy."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def cookie(self, visitor: Visitor | None, now: float) -> str:
        """A cookie for a visitor, or for somebody who has not signed in yet."""
        body = urlsafe_b64encode(msgspec.json.encode(_Ticket(visitor, now + COOKIE_S, secrets.token_hex(8))))
        return f"{body.decode()}.{self._sign(b'cookie', body)}"

    def is_cookie(self, cookie: str, now: float) -> bool:
        """True if the cookie is one of ours, and still counts."""
        return self._read(cookie, now) is not None

    def visitor(self, cookie: str, now: float) -> Visitor | None:
        """The visitor of a cookie; None for a cookie that is not ours, too old, or of nobody."""
        ticket = self._read(cookie, now)
        return None if ticket is None else ticket.visitor

    def token(self, cookie: str) -> str:
        """The token of all forms that are shown to the holder of this cookie."""
        return self._sign(b"form", cookie.encode())

    def is_token(self, token: str, cookie: str) -> bool:
        """True if the form was shown to the holder of this cookie."""
        return hmac.compare_digest(token.encode(), self.token(cookie).encode())

    def _read(self, cookie: str, now: float) -> _Ticket | None:
        body, _, signature = cookie.partition(".")
        if len(cookie) > _COOKIE_CHARS_MAX or not cookie.isascii():
            return None
        if not hmac.compare_digest(signature.encode(), self._sign(b"cookie", body.encode()).encode()):
            return None
        try:
            ticket = msgspec.json.decode(urlsafe_b64decode(body), type=_Ticket)
        except (msgspec.DecodeError, Base64Error, ValueError):
            return None
        return ticket if now < ticket.expires_at else None

    def _sign(self, purpose: bytes, signed: bytes) -> str:
        return hmac.new(self._key, purpose + b"\0" + signed, sha256).hexdigest()
