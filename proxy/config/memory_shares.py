"""The memory of a process, shared out among what grows with its clients.

>>> small = MemoryShares.of(160 * 1024 * 1024)
>>> small.connections_max, small.request_bytes_max
(409, 4194304)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MIB: Final = 1024 * 1024

# A process without sessions has 68 MB. The rest is for gaps in its heap, and for the health check of its image,
# which runs in the same container for a moment.
BASE_BYTES: Final = 96 * _MIB
# With less, every share would be too small for the usual statement: the kernel may end such a process.
_FREE_BYTES_MIN: Final = 16 * _MIB
# A connection with a session: 18 KB, and the last 20 statements that its history remembers, shortened.
CONNECTION_BYTES: Final = 24 * 1024
# A statement while it is read, held and sent: the client's frame, the message, its text, the call that is made.
COPIES: Final = 4
# A wrapped reply while it is unwrapped: its token, what MIT's library makes of that, and python-gssapi's copy.
REPLY_COPIES: Final = 3

# Percents of the memory that is free above BASE_BYTES. The analysis gets most: a tree takes 600 bytes a character.
_ANALYSIS: Final = 40
_STATEMENTS: Final = 25
_CONNECTIONS: Final = 15
_HISTORY: Final = 7
_FALLBACKS: Final = 7
_KEYS: Final = 6
# More than all texts of a few dashboards.
_PLAN_BYTES_MAX: Final = 32 * _MIB
# Taken from the share for the analysis if backends wrap their replies: a wrapped reply is in memory as a whole.
_WRAPPED_REPLIES: Final = 20


@dataclass(frozen=True)
class MemoryShares:
    """Bytes that each may take at once, in one process."""

    # Trees of statements that are parsed, planned and checked.
    analysis_bytes: int
    # Calls that arrive, are held, or wait to be written.
    statement_bytes: int
    connection_bytes: int
    # Texts of statements that run, for the history.
    history_bytes: int
    # Calls that are kept for a fallback.
    fallback_bytes: int
    # Remembered keys.
    key_bytes: int
    # Long replies that come wrapped.
    reply_bytes: int

    @classmethod
    def of(cls, limit_bytes: int, *, wraps_replies: bool = False) -> MemoryShares:
        """The shares of a process that may use so much."""
        free = max(limit_bytes - BASE_BYTES, _FREE_BYTES_MIN)
        replies = _WRAPPED_REPLIES if wraps_replies else 0
        parts = (_ANALYSIS - replies, _STATEMENTS, _CONNECTIONS, _HISTORY, _FALLBACKS, _KEYS, replies)
        return cls(*(free * percent // 100 for percent in parts))

    @property
    def connections_max(self) -> int:
        """Connections that fit."""
        return self.connection_bytes // CONNECTION_BYTES

    @property
    def plan_bytes(self) -> int:
        """Trees that are kept for the next statement of the same text: a part of the bytes for the analysis."""
        return min(self.analysis_bytes // 10, _PLAN_BYTES_MAX)

    @property
    def request_bytes_max(self) -> int:
        """The longest call that fits, beside nothing else."""
        return self.statement_bytes // COPIES

    @property
    def wrapped_reply_bytes_max(self) -> int:
        """The longest wrapped reply that fits, beside no other long one."""
        return self.reply_bytes // REPLY_COPIES


# For a process whose memory nobody bounds, as in a test of one part.
AMPLE: Final = MemoryShares.of(1 << 40, wraps_replies=True)
