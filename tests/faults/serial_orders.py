"""The answers that some serial order of statements allows, by when the statements ran.

Everything that may change is a register: it has one value at a time, and one writer at a time. A change takes
effect at some moment between its call and its reply. So a value is possible from the moment at which it was asked
for until the next one was confirmed, and an answer is right if there is a moment between the statement's call and
its answer at which every register that it read may have had the value that it shows.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

Value = int

# Changes are looked up by the time of a statement, which takes seconds: older ones are of no use to any.
SPANS_KEPT: Final = 1_000


@dataclass
class Span:
    """When a register may have had a value."""

    value: Value
    since: float
    until: float = math.inf

    def within(self, since: float, until: float) -> Span | None:
        """The part of it that lies between these moments."""
        start, end = max(self.since, since), min(self.until, until)
        return Span(self.value, start, end) if start <= end else None


@dataclass(eq=False)
class Register:
    """Something with one value at a time."""

    name: str
    first: Value
    clock: Callable[[], float] = time.monotonic
    _spans: list[Span] = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._spans = [Span(self.first, -math.inf)]

    @property
    def latest(self) -> Value:
        """The value that was asked for last."""
        return self._spans[-1].value

    def change(self, value: Value, act: Callable[[], object]) -> None:
        """Change it. A change that fails may have taken effect all the same: both values stay possible."""
        with self._lock:
            before = list(self._spans)
            self._spans = [*before[-SPANS_KEPT:], Span(value, self.clock())]
            _ = act()
            now = self.clock()
            for span in before:
                span.until = min(span.until, now)

    def possible(self, since: float, until: float) -> list[Span]:
        """The values that it may have had between these moments, and when."""
        found = (span.within(since, until) for span in self._spans)
        return [span for span in found if span is not None]


def is_serial(shown: Mapping[Register, Collection[Value]], since: float, until: float) -> bool:
    """Whether at some moment between these every register may have had one of the values that an answer shows."""
    spans = [
        [span for span in register.possible(since, until) if span.value in values]
        for register, values in shown.items()
    ]
    return any(
        max(span.since for span in chosen) <= min(span.until for span in chosen) for chosen in product(*spans)
    )
