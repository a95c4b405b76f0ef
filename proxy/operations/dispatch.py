"""The dispatch of a statement, which a session decides on and a connection carries out, and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from proxy.operations.key_check import KeyCheck
from proxy.operations.query import Work
from proxy.wire.hs2.calls import OperationHandle


class OutcomeKind(Enum):
    """The kinds of ends of a statement, as far as its connection could see."""

    FINISHED = "finished"
    FAILED = "failed"  # and was not run again: the client has this error
    RECOVERED = "failed rewritten, and finished as the original"
    OVERTAKEN = "was overtaken by a change of its session or its tables, and finished as the original"
    FAILED_TWICE = "failed rewritten and as the original: the client has the original's error"
    DECIDED_AGAIN = "was rewritten by remembered keys that could not be confirmed, and was decided about again"
    NOT_SENT = "its client left before it was sent"
    REFUSED = "was refused by a limit, and not sent"
    UNKNOWN = "cancelled or closed before its end, or its connection was closed"
    LOST = "its connection was closed while the server ran it within the call: it goes on there unseen"

    @property
    def is_fallback(self) -> bool:
        """True if the original was run after the rewritten text."""
        return self in {OutcomeKind.RECOVERED, OutcomeKind.OVERTAKEN, OutcomeKind.FAILED_TWICE}


@dataclass(frozen=True)
class Outcome:
    """The end of a statement."""

    kind: OutcomeKind
    # From its release to the backend until its end was seen there; of one that fell back, the first run alone.
    seconds: float
    # The server's message of the first failure. It may quote the statement.
    message: str = field(default="", repr=False)
    # The original was sent, although the dispatch has another text: that was too long, or could not fall back.
    original_instead: bool = False
    # From the end of the first run until the end of the original, of a statement that fell back and was followed.
    fallback_s: float | None = None
    # Spark's parser refused the whole text.
    is_unread: bool = False
    # The administrator who cancelled it, in words; empty for all other ends.
    cancelled_by: str = ""

    @property
    def did_nothing(self) -> bool:
        """True if no part of the statement can have run: it has written nothing, and changed no session."""
        return self.is_unread or self.kind in {OutcomeKind.NOT_SENT, OutcomeKind.REFUSED}


def ignore_operation(_: str) -> None:
    """An operation listener that does nothing."""


def ignore_outcome(_: Outcome) -> None:
    """An outcome listener that does nothing."""


def ignore_refusal() -> None:
    """A listener to refusals that does nothing."""


def never_own_fault(_: str) -> bool:
    """A test of failures that takes each for one that the rewrite may have caused."""
    return False


def never_unread(_: str) -> bool:
    """A test of failures that takes each for one before which a part of the statement may have run."""
    return False


def always() -> bool:
    """A premise that always holds."""
    return True


@dataclass(frozen=True)
class Premises:
    """The state for which a rewritten text is right. It is checked again before any of the answer is let out.

    A change counts from before its first byte goes to the backend. So if no change is seen once the backend has
    told of the answer, any change came after that answer was computed.
    """

    # True if names and settings of the session are those for which the statement was decided.
    is_session_unchanged: Callable[[], bool] = always
    # True if the tables from which keys were read have not been written since, and no table has got other columns.
    are_tables_unchanged: Callable[[], bool] = always


@dataclass(eq=False)
class WriteUnderWay:
    """A statement that writes and was rewritten, from its release to its end: it cannot be run a second time.

    Until its end nothing may change the session in which Spark analyses it.
    """

    # The operation on the backend, once the backend has named it.
    operation: OperationHandle | None = field(default=None, repr=False)
    is_over: bool = False


@dataclass(frozen=True)
class Refusal:
    """An error of the proxy's own, in the form of Spark's."""

    message: str
    sql_state: str


@dataclass(frozen=True)
class Dispatch:
    """The text to send for a statement, which may be the original, and the rules for its answer."""

    text: str = field(repr=False)
    # True if `text` is sent in place of the original, which may be run if `text` fails.
    may_fall_back: bool = False
    # A failure whose message holds these words means that `text` was out of date, and not that anything is wrong:
    # the statement falls back, however long the first run took.
    fall_back_on: str = ""
    # Once they no longer hold, the answer to `text` is dropped and the statement falls back.
    premises: Premises = Premises()
    # True for messages of failures that the original has too: the statement does not fall back, or run twice.
    is_own_fault: Callable[[str], bool] = never_own_fault
    # True for messages of failures by which Spark's parser refused the text: no part of it has run.
    is_unread: Callable[[str], bool] = never_unread
    # The check of the remembered keys in `text`: until it has ended, the client is not told of the operation.
    check: KeyCheck | None = None
    # Set if `text` writes and is not the original.
    write: WriteUnderWay | None = None
    # Called once with the outcome, on the event loop: it has to be quick, and must not raise.
    on_outcome: Callable[[Outcome], None] = ignore_outcome
    # Called with the id by which Spark's UI shows an operation of the statement, as soon as it has one; of a
    # statement that falls back, with two. On the event loop, as `on_outcome`.
    on_operation: Callable[[str], None] = ignore_operation
    # Names the statement in log lines and in the history.
    statement_id: str = "-"
    # The error that the client gets in place of an answer: then nothing is sent.
    refusal: Refusal | None = None
    # The error that the client gets in place of the original. If set, the original never runs instead of `text`.
    original_refusal: Refusal | None = None
    # Called if the client gets it and `text` was not sent.
    on_original_refused: Callable[[], None] = ignore_refusal
    # Queries that are asked meanwhile in the same session on a connection of our own, if there is room: those of a
    # shadow run, or those whose answers decide about later statements.
    beside: Work[None] | None = None

    def refused_as_original(self) -> Dispatch:
        """The dispatch if the original would have to go: refused, where a limit refuses that."""
        if self.original_refusal is None or self.refusal is not None:
            return self
        self.on_original_refused()
        return replace(self, refusal=self.original_refusal, beside=None)

    @property
    def refused(self) -> Outcome:
        """The outcome of one that is refused."""
        return Outcome(OutcomeKind.REFUSED, 0.0, self.refusal.message if self.refusal is not None else "")
