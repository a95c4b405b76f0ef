"""SASL messages that open a HiveServer2 connection: status (1 byte), length (4), body.

The client sends START with the mechanism's name and, without waiting, its first response (hive-jdbc as
COMPLETE, PyHive and impyla as OK). The server answers OK with a challenge, COMPLETE, or BAD or ERROR with
a sentence. After COMPLETE both sides speak frames.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from proxy.wire.thrift.errors import RemoteProtocolError

# A PLAIN response is a name and a password. Kerberos tickets with many groups reach 64 KiB, and their
# START message passes here before the relay turns transparent.
SASL_BODY_BYTES_MAX: Final = 64 * 1024

# The mechanism's name: user and password in clear.
PLAIN: Final = b"PLAIN"

# First bytes of other protocols: the log names the protocol, so that the client's settings can be corrected.
_OTHER_BEGINNINGS: Final = {
    0x16: ", as TLS has it",
    0x80: ", as NOSASL has it",
    ord("P"): ", as HTTP has it",
}

# Names that RFC 4422 allows for a mechanism.
_MECHANISM: Final = re.compile(rb"[A-Z0-9_-]{1,20}")

_HEADER = struct.Struct(">BI")


class SaslStatus(IntEnum):
    """The first byte of a SASL message."""

    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


@dataclass(frozen=True)
class SaslMessage:
    """One whole SASL message. The body may contain credentials, so it stays out of logs."""

    status: SaslStatus
    body: bytes

    def __repr__(self) -> str:
        return f"SaslMessage({self.status.name}, {len(self.body)} bytes)"


def encode_sasl(status: SaslStatus, body: bytes = b"") -> bytes:
    """Return a SASL message as it goes over the wire."""
    return _HEADER.pack(status, len(body)) + body


def refusal(sentence: str) -> bytes:
    """An ERROR that hive-jdbc shows as "Peer indicated failure: <sentence>" and PyHive as "Bad status: 4"."""
    return encode_sasl(SaslStatus.ERROR, sentence.encode())


def plain_start(user: str, password: str) -> bytes:
    """Return both messages of a client that logs in with PLAIN: START and its response."""
    return plain_start_with(plain_response(user, password))


def plain_start_with(response: bytes) -> bytes:
    """Return both messages with a response that a client has given before."""
    return encode_sasl(SaslStatus.START, PLAIN) + encode_sasl(SaslStatus.COMPLETE, response)


def mechanism_name(body: bytes) -> str:
    """Return the mechanism that a START names, safe for a log: a client may send anything."""
    return body.decode("ascii") if _MECHANISM.fullmatch(body) else "an unknown mechanism"


def plain_response(user: str, password: str) -> bytes:
    """Return a PLAIN response: no other user to act for, a name, a password."""
    return b"\0".join((b"", user.encode(), password.encode()))


def plain_user(response: bytes) -> str | None:
    """Return the user that a PLAIN response logs in, as readable text."""
    name = plain_name(response)
    return None if name is None else name.decode("utf-8", "replace")


def plain_name(response: bytes) -> bytes | None:
    """Return that user's name as bytes, as the server reads it: the last word but one of two or three."""
    words = response.split(b"\0")
    return words[-2] if len(words) in (2, 3) else None


class SaslReader:
    """Cuts a byte stream into SASL messages; bytes after the last of them stay in `leftover`."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> None:
        """Take in bytes, cut anywhere."""
        self._buffer += data

    def next_message(self) -> SaslMessage | None:
        """Return the next whole message, or None until more bytes have come."""
        if not self._buffer:
            return None
        status = _status(self._buffer[0])
        if len(self._buffer) < _HEADER.size:
            return None
        end = _HEADER.size + self._checked_length()
        if len(self._buffer) < end:
            return None
        message = SaslMessage(status, self._buffer[_HEADER.size : end])
        self._buffer = self._buffer[end:]
        return message

    def leftover(self) -> bytes:
        """Return the bytes not yet returned as messages."""
        return self._buffer

    def _checked_length(self) -> int:
        length: int = _HEADER.unpack_from(self._buffer)[1]
        if length > SASL_BODY_BYTES_MAX:
            raise RemoteProtocolError(
                f"a SASL message announces {length} bytes, at most {SASL_BODY_BYTES_MAX} are accepted"
            )
        return length


def _status(first_byte: int) -> SaslStatus:
    try:
        return SaslStatus(first_byte)
    except ValueError:
        raise RemoteProtocolError(
            f"expected a SASL message (first byte 1 to 5), got a first byte of 0x{first_byte:02x}"
            + _OTHER_BEGINNINGS.get(first_byte, "")
        ) from None
