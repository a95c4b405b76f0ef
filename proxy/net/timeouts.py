"""When a connection has been silent, half-spoken or unread for too long: pure, told of the time and what was seen.

What a limit of 0 says is that there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proxy.config.serving import ProxySection

# Looked at so often within the shortest limit: a connection ends at most this part later.
_LOOKS: Final = 4
# A request that comes at this pace within the limit is a long one over a slow line, not one that was given up.
REQUEST_BYTES_MIN: Final = 64 * 1024


@dataclass(frozen=True)
class Activity:
    """A connection at one moment."""

    # When a byte last came from either side.
    last_activity: float
    # Whether a reply is awaited, or may be: then silence is the server's.
    awaits_replies: bool
    # Bytes that have come from the client, and whether they end within a request that we would read on.
    from_client_bytes: int
    is_within_request: bool
    # Bytes that wait for the client to read.
    unread_bytes: int


class IdleTimeouts:
    """What was seen of one connection at the last looks."""

    def __init__(self, settings: ProxySection) -> None:
        self._settings = settings
        # Since when a request makes no headway, and how far it had come.
        self._request_since: float | None = None
        self._request_bytes = 0
        # The same of replies.
        self._unread_since: float | None = None
        self._unread_bytes = 0

    @property
    def look_every_s(self) -> float | None:
        """How often to look; None for never."""
        settings = self._settings
        limits = (settings.idle_timeout_s, settings.request_timeout_s, settings.unread_timeout_s)
        return min((limit / _LOOKS for limit in limits if limit), default=None)

    def exhausted(self, now: float, seen: Activity) -> str | None:
        """Why the connection is to be ended; None while it is not."""
        return self._idle(now, seen) or self._within_request(now, seen) or self._unread(now, seen)

    def _idle(self, now: float, seen: Activity) -> str | None:
        limit = self._settings.idle_timeout_s
        if not limit or seen.awaits_replies or now - seen.last_activity < limit:
            return None
        return f"idle for {limit:g} s (proxy.idle_timeout_s)"

    def _within_request(self, now: float, seen: Activity) -> str | None:
        limit = self._settings.request_timeout_s
        if not limit or not seen.is_within_request:
            self._request_since = None
            return None
        since = self._request_since
        if since is None or seen.from_client_bytes - self._request_bytes >= REQUEST_BYTES_MIN:
            self._request_since, self._request_bytes = now, seen.from_client_bytes
            return None
        return (
            f"a request does not go on for {limit:g} s (proxy.request_timeout_s)" if now - since >= limit else None
        )

    def _unread(self, now: float, seen: Activity) -> str | None:
        limit = self._settings.unread_timeout_s
        if not limit or not seen.unread_bytes:
            self._unread_since = None
            return None
        since = self._unread_since
        if since is None or seen.unread_bytes != self._unread_bytes:
            self._unread_since, self._unread_bytes = now, seen.unread_bytes
            return None
        return (
            f"the client reads nothing for {limit:g} s (proxy.unread_timeout_s)" if now - since >= limit else None
        )
