"""The check of remembered keys: the proxy asks for them again while the statement rewritten by them runs.

Until the check has ended, the client is not told of the statement's operation, so nobody can ask for its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from proxy.operations.query import Work


class CheckVerdict(Enum):
    """The end of a check. Only HELD lets the statement's operation be known."""

    HELD = "every key that there is now was among the remembered ones"
    CHANGED = "there are other keys now"
    UNANSWERED = "a question got no answer in time"
    NOT_ASKED = "the session could not be asked on a second connection"


@dataclass(eq=False)
class KeyCheck:
    """One check, from before its statement is released. Used by the event loop alone."""

    # Asked in the client's session, on a connection of ours.
    work: Work[CheckVerdict] = field(repr=False)
    # Its beginning, by the clock of the sessions: keys that are asked for later are newer than the statement.
    began_at: float
    # Time for all of it.
    deadline_s: float
    # Called once, with the verdict.
    on_settled: Callable[[CheckVerdict], None] = lambda _: None
    verdict: CheckVerdict | None = None
    _waiting: list[Callable[[], None]] = field(default_factory=list, repr=False)

    def settle(self, verdict: CheckVerdict) -> None:
        """End the check. Only the first verdict counts."""
        if self.verdict is not None:
            return
        self.verdict = verdict
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()
        self.on_settled(verdict)

    def call_when_settled(self, callback: Callable[[], None]) -> None:
        """Call back once the check has ended: at once where it has."""
        if self.verdict is None:
            self._waiting.append(callback)
        else:
            callback()


@dataclass(frozen=True)
class KeyTerms:
    """The remembered keys that a decision may use, beside those that the configuration allows at any time."""

    # True if keys may be used that are asked for again while the statement runs.
    may_be_checked: bool = False
    # Keys that were asked for after this time, by the clock of the sessions, are as good as new ones: the
    # statement had come before. None if it comes now.
    asked_since: float | None = None
    # True if all statements of the session still come through this process: no other one has changed its state.
    is_session_here: Callable[[], bool] = lambda: True


# Keys are asked for first.
ASK_FIRST = KeyTerms()
