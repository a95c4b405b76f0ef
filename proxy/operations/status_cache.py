"""Remembers the status of finished operations, and answers the same question from memory.

hive-jdbc asks GetOperationStatus once per fetched row (2.3 always, 4.0 until a reply of ours has told it that
there is a result set). If these calls are relayed, hive-jdbc loses two thirds of its speed.
"""

from __future__ import annotations

from typing import Final

from proxy.wire.framing import FRAMED, Framing
from proxy.wire.hs2.calls import GET_OPERATION_STATUS
from proxy.wire.thrift.frames import HEADER, HEADER_BYTES
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Header

# Statements that one connection fetches from in turns; a forgotten one is merely asked for again.
STATUSES_MAX: Final = 16
# A status carries counters and progress; one with more to say is not worth keeping.
STATUS_BYTES_MAX: Final = 64 * 1024

# The place of the seqid in a call of GetOperationStatus: behind the version, and the name with its length.
_SEQID_OFFSET: Final = 4 + 4 + len(GET_OPERATION_STATUS)


def key_of_status_call(message: Message) -> bytes:
    """The call without its seqid: equal for calls that ask the same."""
    header = message.header
    return message.raw[: header.seqid_offset] + message.raw[header.body_offset :]


class StatusCache:
    """Replies by call, at most STATUSES_MAX of them. Each is kept as it is sent, cut where the seqid goes."""

    def __init__(self, framing: Framing = FRAMED) -> None:
        self._framing = framing
        self._header_bytes = HEADER_BYTES if framing.has_frames else 0
        self._seqid_start = self._header_bytes + _SEQID_OFFSET
        self._seqid_stop = self._seqid_start + 4
        self._replies: dict[bytes, tuple[bytes, bytes]] = {}

    def remember_status(self, key: bytes, raw: bytes, header: Header) -> None:
        """Remember the reply by which the operation has finished."""
        if len(raw) + len(key) > STATUS_BYTES_MAX:
            return
        if len(self._replies) >= STATUSES_MAX:
            self._replies.pop(next(iter(self._replies)))
        sent, seqid_at = self._framing.to_wire(raw), self._header_bytes + header.seqid_offset
        self._replies[key] = (sent[:seqid_at], sent[seqid_at + 4 :])

    def reply_to(self, data: bytes) -> bytes | None:
        """The reply to the call, or None unless the bytes are one call whose reply is remembered.

        The bytes are looked up without parsing them: hive-jdbc asks this once per row.
        """
        header_bytes, start, stop = self._header_bytes, self._seqid_start, self._seqid_stop
        if not self._replies or len(data) < stop:
            return None
        if header_bytes and data[:HEADER_BYTES] != HEADER.pack(len(data) - HEADER_BYTES):
            return None
        found = self._replies.get(data[header_bytes:start] + data[stop:])
        return None if found is None else found[0] + data[start:stop] + found[1]

    def clear(self) -> None:
        """Forget all statuses: something happened that may end an operation."""
        self._replies.clear()
