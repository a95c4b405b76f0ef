"""Answers that did not come in time: a busy server may give them soon, so their absence is soon forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from proxy.operations.query import FailureKind, QueryFailed, QueryResult
from proxy.session.catalog.answers import Answers
from rewriter import TableName

# Time until a question is repeated that got no answer in time: the snapshot of a name, the settings, the files of
# a table. A busy server may have recovered by then, and meanwhile not each statement waits for its deadline.
UNANSWERED_S: Final = 60.0

_LATE: Final = frozenset({FailureKind.DEADLINE, FailureKind.BUSY})


def is_late(answer: QueryResult) -> bool:
    """True if the server did not answer in time: any answer would have been possible."""
    return isinstance(answer, QueryFailed) and answer.kind in _LATE


def believed_s(answer: QueryResult, otherwise_s: float) -> float:
    """Seconds until an answer expires: `otherwise_s`, or less where it was late."""
    return min(otherwise_s, UNANSWERED_S) if is_late(answer) else otherwise_s


class LateNames:
    """Names that were not described in time. Used by several threads at once.

    The next statement asks again: a server that has just started takes 5 to 17 s for its first description, and a
    tenth of a second then. A name that is late once more is left alone for as long as it was waited for, then for
    twice as long, and so on: waiting for answers that never come takes at most half of the time.
    """

    def __init__(self, clock: Callable[[], float], waited_s: float, longest_s: float) -> None:
        self._waited_s = waited_s
        self._longest_s = longest_s
        # For each name the next pause, if it is late again. The answer is current while the present pause lasts.
        self._pauses_s = Answers[TableName, float](clock)

    def missed(self, name: TableName) -> None:
        """Count a name that was not described in time."""
        known = self._pauses_s.known(name)
        pause_s = known.value if known is not None else 0.0
        self._pauses_s.keep(name, min(2 * pause_s or self._waited_s, self._longest_s), pause_s)

    def came(self, name: TableName) -> None:
        """Forget a name that was described, or refused, in time."""
        if self._pauses_s.known(name) is not None:
            self._pauses_s.keep(name, 0.0, 0.0)

    def is_left_alone(self, name: TableName) -> bool:
        """True if a name is not to be described now."""
        return self._pauses_s.get(name) is not None
