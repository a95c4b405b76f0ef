"""Backends whose own settings may let a plain write add columns to its table."""

from __future__ import annotations

from collections.abc import Callable


class EvolvingBackends:
    """What backends have told of their settings, by address. Used by any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # Until when an answer counts, and whether writes may evolve.
        self._told: dict[str, tuple[float, bool]] = {}

    def told(self, backend: str, *, evolves: bool, until: float) -> None:
        """Remember an answer, which counts until then, unless a later one is known."""
        known = self._told.get(backend)
        if known is None or known[0] <= until:
            self._told[backend] = until, evolves

    def may_evolve(self, backend: str) -> bool:
        """Whether writes at a backend may add columns: also where it has told nothing for a while."""
        until, evolves = self._told.get(backend, (self._clock(), True))
        return evolves or until <= self._clock()
