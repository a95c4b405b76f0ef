"""Backends whose own settings may let a plain write add columns to its table."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from proxy.session.catalog.answers import Answer


class EvolvingBackends:
    """The settings that backends have told, by address. Used by any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        # True if writes may evolve their tables.
        self._told: dict[str, Answer[bool]] = {}

    def told(self, backend: str, answer: Answer[bool]) -> None:
        """Remember an answer, unless a later one is known."""
        with self._lock:
            known = self._told.get(backend)
            if known is None or known.came_at <= answer.came_at:
                self._told[backend] = answer

    def evolves(self, backend: str, opened_at: float) -> bool | None:
        """True if writes of a session that was opened then may add columns; None where nobody knows.

        Settings that the server has told since then hold as long as the session lives. An earlier answer may be
        from before a restart of the server.
        """
        answer = self._told.get(backend)
        if answer is None or (answer.came_at < opened_at and answer.until <= self._clock()):
            return None
        return answer.value
