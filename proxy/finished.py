"""Remembers the status of finished operations, and answers the same question again.

hive-jdbc asks GetOperationStatus once per fetched row. Relayed, that costs it two thirds of its speed.
"""

from __future__ import annotations

from typing import Final

from proxy.wire.frames import HEADER, HEADER_BYTES, frame
from proxy.wire.hs2 import GET_OPERATION_STATUS
from proxy.wire.messages import Message
from proxy.wire.thrift import Header

# Statements that one connection fetches from in turns; a forgotten one is merely asked for again.
STATUSES_MAX: Final = 16
# A status carries counters and progress; one with more to say is not worth keeping.
STATUS_BYTES_MAX: Final = 64 * 1024

# Where the seqid stands in a frame that holds a call of GetOperationStatus: behind the frame's length, the
# version, and the name with its length.
_SEQID_START: Final = HEADER_BYTES + 4 + 4 + len(GET_OPERATION_STATUS)
_SEQID_STOP: Final = _SEQID_START + 4


def key_of(message: Message) -> bytes:
    """The call without its seqid: equal for calls that ask the same."""
    header = message.header
    return message.raw[: header.seqid_offset] + message.raw[header.body_offset :]


class FinishedStatuses:
    """Replies by call, at most STATUSES_MAX of them. Each is kept as a frame, cut where the seqid goes."""

    def __init__(self) -> None:
        self._replies: dict[bytes, tuple[bytes, bytes]] = {}

    def remember(self, key: bytes, raw: bytes, header: Header) -> None:
        """The operation has finished, and this reply says so."""
        if len(raw) + len(key) > STATUS_BYTES_MAX:
            return
        if len(self._replies) >= STATUSES_MAX:
            self._replies.pop(next(iter(self._replies)))
        framed, seqid_at = frame(raw), HEADER_BYTES + header.seqid_offset
        self._replies[key] = (framed[:seqid_at], framed[seqid_at + 4 :])

    def answer(self, data: bytes) -> bytes | None:
        """The frame that answers the call in a frame, or None if the bytes are anything else.

        Looked up by the very bytes, without parsing them: this is what hive-jdbc asks once per row.
        """
        if len(data) < _SEQID_STOP:
            return None
        if data[:HEADER_BYTES] != HEADER.pack(len(data) - HEADER_BYTES):
            return None
        found = self._replies.get(data[HEADER_BYTES:_SEQID_START] + data[_SEQID_STOP:])
        return None if found is None else found[0] + data[_SEQID_START:_SEQID_STOP] + found[1]

    def forget(self) -> None:
        """Something happened that may end an operation."""
        self._replies.clear()
