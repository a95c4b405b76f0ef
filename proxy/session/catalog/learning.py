"""Learning: queries that no statement waits for, asked beside one statement for later ones.

Answers that change nothing but the number of a statement's tasks are not worth a delay. If they are not at hand,
the statement goes as it came, and a run on a connection of ours asks for them meanwhile. A turn is not kept in
`answers`, since it is taken and given back under one lock.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Final

from proxy.operations.query import Ask, Work
from proxy.session.consistency.asking import SessionChangedError, while_unchanged

# A run that was handed out may find no connection, or its statement is dropped, and nobody hears of that: it is
# not tried again at once, nor logged again and again.
_BEGUN_WITHIN_S: Final = 5.0
# A run that takes longer asks for a large list, which no second run fetches beside it.
_UNDER_WAY_S: Final = 60.0
# The pause after a run: the next one may fail to find out the same things.
_PAUSE_S: Final = 1.0


class Learning:
    """The turns to learn of the sessions of one state: one at a time. Any thread may use it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._until = clock()

    def turn(
        self,
        learn: Callable[[Ask], Coroutine[Any, Any, None]],
        ask: Ask,
        is_session_unchanged: Callable[[], bool],
    ) -> Work[None] | None:
        """The work to do beside a statement, as long as the session is as it was; None where others do it."""
        with self._lock:
            if self._until > self._clock():
                return None
            self._until = self._clock() + _BEGUN_WITHIN_S
        return partial(self._learn, learn, while_unchanged(ask, is_session_unchanged))

    async def _learn(self, learn: Callable[[Ask], Coroutine[Any, Any, None]], ask: Ask) -> None:
        with self._lock:
            self._until = self._clock() + _UNDER_WAY_S
        try:
            with suppress(SessionChangedError):
                await learn(ask)
        finally:
            with self._lock:
                self._until = self._clock() + _PAUSE_S
