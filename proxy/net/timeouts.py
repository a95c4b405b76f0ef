"""Timeouts of a connection that is idle, stuck within a request, or not read by its client. Pure.

The caller hands in the time. A limit of 0 means no limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proxy.config.serving import ProxySection

# Checks within the shortest limit: a connection ends at most a quarter of that limit late.
_LOOKS: Final = 4
# A request that grows by this many bytes within the limit is a long one over a slow line, not an abandoned one.
REQUEST_BYTES_MIN: Final = 64 * 1024


@dataclass(frozen=True)
class Activity:
    """The state of a connection at one moment."""

    # The time at which a byte last came from either side.
    last_activity: float
    # True if the client awaits a reply, or may await one: then the server is the silent side.
    awaits_replies: bool
    # Bytes that have come from the client, and whether they end within a request that the proxy would read on.
    from_client_bytes: int
    is_within_request: bool
    # Bytes that wait for the client to read.
    unread_bytes: int


class IdleTimeouts:
    """Checks one connection against its limits. Remembers the progress seen at the last checks."""

    def __init__(self, settings: ProxySection) -> None:
        self._settings = settings
        # The time since which a request makes no progress, and its bytes at that time.
        self._request_since: float | None = None
        self._request_bytes = 0
        # The same of unread replies.
        self._unread_since: float | None = None
        self._unread_bytes = 0

    @property
    def check_every_s(self) -> float | None:
        """The time between two checks; None if there are no limits."""
        settings = self._settings
        limits = (settings.idle_timeout_s, settings.request_timeout_s, settings.unread_timeout_s)
        return min((limit / _LOOKS for limit in limits if limit), default=None)

    def why_expired(self, now: float, seen: Activity) -> str | None:
        """Return why the connection is to be closed, or None if it may stay."""
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
