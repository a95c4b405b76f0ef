"""The watchdog of a client connection: ends a handshake that takes too long, and a connection past a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from proxy.config.serving import ProxySection
from proxy.net.timeouts import Activity, IdleTimeouts


class Watchdog:
    """Two timers of one connection. `activity` tells its state, `close` ends it for a reason."""

    def __init__(
        self, settings: ProxySection, activity: Callable[[], Activity], close: Callable[[str], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._handshake_timeout_s = settings.handshake_timeout_s
        self._timeouts = IdleTimeouts(settings)
        self._activity = activity
        self._close = close
        self._handshake_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    def start(self, check_handshake: Callable[[], None]) -> None:
        """Watch the connection from now on; `check_handshake` is called once its handshake must be over."""
        self._handshake_timer = self._loop.call_later(self._handshake_timeout_s, check_handshake)
        self._check_again()

    def cancel(self) -> None:
        """Stop: the connection has ended."""
        for timer in (self._handshake_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()

    def _check_again(self) -> None:
        check_every_s = self._timeouts.check_every_s
        if check_every_s is not None:
            self._idle_timer = self._loop.call_later(check_every_s, self._check)

    def _check(self) -> None:
        reason = self._timeouts.why_expired(self._loop.time(), self._activity())
        if reason is not None:
            self._close(reason)
        else:
            self._check_again()
