"""The log of statements as sessions see it: they tell it of each statement's beginning and end.

The log reads a decision at once, so that the statement's tree is not kept until its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from proxy.limits.limits import Finding
from proxy.operations.dispatch import Outcome
from proxy.operations.session_port import SessionOpening
from proxy.session.decision import Decision
from proxy.session.shadow.compare import Comparison
from rewriter import SkipReason


class LoggedStatement(msgspec.Struct, frozen=True):
    """A statement as its own session is shown it; null is a time before its end, or a count that is not known."""

    id: str
    # Seconds since 1970.
    started_at: float
    outcome: str
    # From its arrival to its end, deciding included.
    seconds: float | None
    deciding_s: float
    partitions_kept: int | None
    partitions_total: int | None
    # Codes, separated by commas.
    reasons: str
    # The beginning of the original.
    statement: str


class StatementEntry(Protocol):
    """One statement of a session in the log."""

    @property
    def id(self) -> str:
        """Names the statement, in log lines as well."""
        ...

    def operation_opened(self, spark_id: str) -> None:
        """The backend runs it as an operation that Spark's UI shows by this id. Called on the event loop."""
        ...

    def limited(self, findings: Sequence[Finding]) -> None:
        """It met limits, told before its end."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """The statement has ended. Called on the event loop."""
        ...

    def compared(self, comparison: Comparison | None, decision: Decision) -> None:
        """Its rewritten text ran beside it, in shadow mode; without a comparison it was decided about alone."""
        ...


class SessionLog(Protocol):
    """The statements of one session in the log. No method may raise."""

    def labelled(self, label: str) -> None:
        """The label of the statements from now on; where it is empty, their comments give the labels."""
        ...

    def began(
        self,
        text: str,
        decision: Decision | None = None,
        reason: SkipReason | None = None,
        *,
        lists_files: bool | None = None,
    ) -> StatementEntry:
        """A statement is about to be released; without a decision `reason` says why, where that is known.

        `lists_files` tells if Spark has to list files for its original (`Gate.lists_files`).
        """
        ...

    def answered(self, text: str, deciding_s: float) -> StatementEntry:
        """A statement that the proxy answers itself is about to be released."""
        ...

    def last_statements(self) -> Sequence[LoggedStatement]:
        """The last statements of the session, the newest first."""
        ...

    def closed(self) -> None:
        """The session has ended."""
        ...


class StatementLog(Protocol):
    """The log of a process."""

    def session_opened(self, opening: SessionOpening) -> SessionLog:
        """A client has opened a session."""
        ...


class NoStatementLog:
    """A log that keeps nothing, and all its parts."""

    id: Final = "-"

    def session_opened(self, _opening: SessionOpening) -> NoStatementLog:
        """See StatementLog."""
        return self

    def labelled(self, _label: str) -> None:
        """See SessionLog."""

    def began(
        self,
        _text: str,
        _decision: Decision | None = None,
        _reason: SkipReason | None = None,
        *,
        lists_files: bool | None = None,  # noqa: ARG002 - a keyword of the protocol
    ) -> NoStatementLog:
        """See SessionLog."""
        return self

    def answered(self, _text: str, _deciding_s: float) -> NoStatementLog:
        """See SessionLog."""
        return self

    def last_statements(self) -> Sequence[LoggedStatement]:
        """See SessionLog."""
        return ()

    def closed(self) -> None:
        """See SessionLog."""

    def operation_opened(self, _spark_id: str) -> None:
        """See StatementEntry."""

    def limited(self, _findings: Sequence[Finding]) -> None:
        """See StatementEntry."""

    def ended(self, _outcome: Outcome) -> None:
        """See StatementEntry."""

    def compared(self, _comparison: Comparison | None, _decision: Decision) -> None:
        """See StatementEntry."""
