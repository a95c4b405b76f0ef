"""Protection of what follows a login, and the messages that negotiate it: RFC 4752, section 3.

The server offers a byte of bits and the longest token that it takes; the client answers with one of the bits, the
longest token that *it* takes, and the user whom it wants to act for.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proxy.kerberos.errors import KerberosError

# The length has three bytes.
TOKEN_BYTES_MAX: Final = 0xFF_FFFF
_MESSAGE: Final = struct.Struct(">I")
# Names of users are shorter; a bound before they are decoded.
_AUTHORIZATION_BYTES_MAX: Final = 1024


class Protection(Enum):
    """A quality of protection (QOP) by its name in SASL and in Hadoop."""

    AUTH = "auth"  # A login, and frames in clear.
    INTEGRITY = "auth-int"  # Frames that nobody can change.
    CONFIDENTIALITY = "auth-conf"  # Frames that nobody can read either.

    @property
    def bit(self) -> int:
        """Its bit in an offer."""
        return _BITS[self]

    @property
    def encrypts(self) -> bool:
        """True if frames are encrypted."""
        return self is Protection.CONFIDENTIALITY


_BITS: Final = {Protection.AUTH: 1, Protection.INTEGRITY: 2, Protection.CONFIDENTIALITY: 4}


@dataclass(frozen=True)
class Offer:
    """The server's message."""

    protections: frozenset[Protection]
    token_bytes_max: int


@dataclass(frozen=True)
class ChosenProtection:
    """The client's answer. An empty name asks to be the one who logged in."""

    protection: Protection
    token_bytes_max: int
    authorization: str


def encode_offer(protections: Iterable[Protection]) -> bytes:
    """Encode an offer. A server that offers no wrapping announces no length."""
    bits = sum(each.bit for each in set(protections))
    return _MESSAGE.pack(bits << 24 | (TOKEN_BYTES_MAX if bits != Protection.AUTH.bit else 0))


def decode_offer(message: bytes) -> Offer:
    """Decode an offer. Raises KerberosError."""
    if len(message) != _MESSAGE.size:
        raise KerberosError(f"an offer of protection has {len(message)} bytes, not {_MESSAGE.size}")
    word: int = _MESSAGE.unpack(message)[0]
    return Offer(frozenset(each for each in Protection if word >> 24 & each.bit), word & TOKEN_BYTES_MAX)


def encode_selection(protection: Protection) -> bytes:
    """Encode the answer of a client that acts for nobody else."""
    return _MESSAGE.pack(protection.bit << 24 | (0 if protection is Protection.AUTH else TOKEN_BYTES_MAX))


def decode_selection(message: bytes, offered: Collection[Protection]) -> ChosenProtection:
    """Decode a client's answer to an offer. Raises KerberosError unless it selects one of the offered."""
    if not _MESSAGE.size <= len(message) <= _MESSAGE.size + _AUTHORIZATION_BYTES_MAX:
        raise KerberosError(f"an answer to the offer of protection has {len(message)} bytes")
    word: int = _MESSAGE.unpack_from(message)[0]
    selected = [each for each in offered if each.bit == word >> 24]
    if not selected:
        names = ", ".join(each.value for each in Protection if each in offered)
        raise KerberosError(f"the client selected no protection (QOP) of those offered, which are {names}")
    try:
        authorization = message[_MESSAGE.size :].decode()
    except UnicodeDecodeError:
        raise KerberosError("the user to act for is no text") from None
    return ChosenProtection(selected[0], word & TOKEN_BYTES_MAX, authorization)
