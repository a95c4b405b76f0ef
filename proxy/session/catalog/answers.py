"""Answers that the sessions of one state were given, each with the time until which it counts.

Until then an answer is current. For a while after that it is due: it may be used where it is asked for again while
the statement runs, or beside it for those that follow (`due_s` says for how long). Then it is gone.

An answer to a question from before all was forgotten is not kept: names and settings may mean something else
since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

from proxy.operations.dispatch import always

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Of the sessions of one state. Dashboards have some dozens of key queries, and these read some dozens of tables.
ANSWERS_MAX: Final = 1_000


@dataclass(frozen=True)
class Answer(Generic[V]):
    """An answer, when it came, and until when it counts, in seconds of the sessions' clock."""

    value: V
    came_at: float
    until: float


class Answers(Generic[K, V]):
    """Answers by their questions, those kept last. Any thread may use them."""

    def __init__(self, clock: Callable[[], float], answers_max: int = ANSWERS_MAX) -> None:
        self._clock = clock
        self._answers_max = answers_max
        self._lock = Lock()
        self._answers: OrderedDict[K, Answer[V]] = OrderedDict()
        # Counts how often all was forgotten.
        self._generation = 0

    def known(self, question: K) -> Answer[V] | None:
        """The last answer, whatever its age."""
        with self._lock:
            return self._answers.get(question)

    def get(self, question: K, due_s: float = 0.0) -> Answer[V] | None:
        """The last answer, if it is current, or has been due for less than that."""
        found = self.known(question)
        return found if found is not None and found.until + due_s > self._clock() else None

    def keep(self, question: K, value: V, counts_s: float, generation: int | None = None) -> None:
        """Keep an answer that counts for so long, to a question from a generation or from now."""
        now = self._clock()
        with self._lock:
            if generation is not None and generation != self._generation:
                return
            self._answers[question] = Answer(value, now, now + counts_s)
            self._answers.move_to_end(question)
            if len(self._answers) > self._answers_max:
                _ = self._answers.popitem(last=False)

    async def get_or_ask(
        self,
        question: K,
        ask: Callable[[], Awaitable[tuple[V, float]]],
        due_s: float = 0.0,
        *,
        may_keep: Callable[[], bool] = always,
    ) -> V:
        """The answer that `get` has, or else the one that `ask` gives, with the seconds for which it counts."""
        found = self.get(question, due_s)
        if found is not None:
            return found.value
        generation = self._generation
        value, counts_s = await ask()
        if may_keep():
            self.keep(question, value, counts_s, generation)
        return value

    def forget(self) -> None:
        """Forget all answers, and those on their way."""
        with self._lock:
            self._answers.clear()
            self._generation += 1
