"""Learning: questions that no statement waits for, asked beside one for those that follow.

Answers that change nothing but the number of a statement's tasks are not worth a delay. Where they are not at
hand, the statement goes as it came, and a run on a connection of ours asks for them meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from threading import Lock
from typing import Final, TypeVar

from proxy.operations.query import Query, QueryResult

T = TypeVar("T")

# A run that was handed out may find no connection, or its statement is dropped, and nobody hears of that: it is
# not tried again at once, nor logged again and again.
_BEGUN_WITHIN_S: Final = 5.0
# A run that takes longer asks for a large list, which no second run fetches beside it.
_UNDER_WAY_S: Final = 60.0
# The pause behind a run: the next one may not find out either what this one did not.
_PAUSE_S: Final = 1.0


def at_hand(asking: Generator[Query, QueryResult, T]) -> tuple[T] | None:
    """The result where it takes no query; None where it does, and the query is not asked."""
    try:
        _ = next(asking)
    except StopIteration as end:
        found: T = end.value
        return (found,)
    asking.close()
    return None


class Learning:
    """The turns to learn of the sessions of one state: one at a time. Any thread may use it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._until = clock()

    def turn(
        self, asking: Generator[Query, QueryResult, object], is_session_unchanged: Callable[[], bool]
    ) -> Generator[Query, QueryResult, None] | None:
        """The queries to ask beside a statement, as long as the session is as it was; None where others ask.

        An answer that came after a change of the session is not one of its former state, and is dropped.
        """
        with self._lock:
            if self._until > self._clock():
                return None
            self._until = self._clock() + _BEGUN_WITHIN_S
        return self._while_unchanged(asking, is_session_unchanged)

    def _while_unchanged(
        self, asking: Generator[Query, QueryResult, object], is_session_unchanged: Callable[[], bool]
    ) -> Generator[Query, QueryResult, None]:
        with self._lock:
            self._until = self._clock() + _UNDER_WAY_S
        try:
            query = next(asking)
            while True:
                answer = yield query
                if not is_session_unchanged():
                    return
                query = asking.send(answer)
        except StopIteration:
            return
        finally:
            asking.close()
            with self._lock:
                self._until = self._clock() + _PAUSE_S
