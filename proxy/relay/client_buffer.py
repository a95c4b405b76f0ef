"""The client's messages, and the bytes of them that may wait while none can be handled."""

from __future__ import annotations

from typing import Final

from proxy.relay.commands import Command, PauseClient, ResumeClient
from proxy.wire.thrift.messages import FramedMessageReader, Message, UnframedMessageReader
from proxy.wire.thrift.reader import Header

# A client waits for a reply before it sends its next call. Bytes that come while no call can be handled are kept
# up to this many (and one read more): the proxy reads on until then, to notice that the client has left.
WAITING_BYTES_MAX: Final = 64 * 1024


class ClientBuffer:
    """Bytes in, messages out. Says when the client is to be read no further, and when again."""

    def __init__(self, messages: FramedMessageReader | UnframedMessageReader) -> None:
        self._messages = messages
        self._waiting_bytes = 0
        self._has_paused = False

    @property
    def is_between_messages(self) -> bool:
        """True if the next byte to come begins a message, and its frame if it has one."""
        return self._messages.is_between_messages

    @property
    def waiting_bytes(self) -> int:
        """Bytes of messages that have not been handed out: unfinished ones, and those that wait."""
        return self._messages.waiting_bytes

    def begun_header(self) -> Header | None:
        """The header of a message that has begun to come."""
        return self._messages.begun_header()

    def feed(self, data: bytes) -> None:
        """Take in bytes that can be handled now."""
        self._messages.feed(data)

    def keep(self, data: bytes) -> list[Command]:
        """Take in bytes that have to wait until `resume`."""
        self._messages.feed(data)
        self._waiting_bytes += len(data)
        return self.pause_past(self._waiting_bytes)

    def pause_past(self, waiting_bytes: int) -> list[Command]:
        """Read no more of the client where this much waits."""
        if waiting_bytes <= WAITING_BYTES_MAX or self._has_paused:
            return []
        self._has_paused = True
        return [PauseClient()]

    def resume(self) -> list[Command]:
        """Messages can be handled again."""
        self._waiting_bytes = 0
        if not self._has_paused:
            return []
        self._has_paused = False
        return [ResumeClient()]

    def next_message(self) -> Message | None:
        """The next whole message, or None until more bytes have come."""
        return self._messages.next_message()

    def leftover(self) -> bytes:
        """The bytes not yet handed out, as the client sends them."""
        return self._messages.leftover()
