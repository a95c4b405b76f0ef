"""The session as connections see it: how it was opened, and who rules on its statements."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.query import Query, QueryResult


@dataclass(frozen=True)
class SessionOpening:
    """How a client opened its session."""

    # What it set for it. It may hold passwords.
    configuration: Mapping[str, str] = field(default_factory=dict, repr=False)
    # A digest of whom it logged in as: equal for equal credentials, for as long as the process lives.
    owner: str = field(default="", repr=False)


class SessionPort(Protocol):
    """What decides about the statements of one session."""

    def rewrite(self, sql: str) -> Generator[Query, QueryResult, Dispatch]:
        """Yield queries for the session, be sent their results, return what to send on."""
        ...

    def is_quick(self, sql: str) -> bool:
        """Whether to rule on a statement takes no more than a look at it. Called from the event loop."""
        ...

    def forward_unchanged(self, sql: str) -> Dispatch:
        """The statement goes on as it came, and nothing is asked."""
        ...

    def writes_before(self, sql: str) -> Sequence[WriteUnderWay]:
        """Rewritten statements that have to end before this one, which may change the session, is released."""
        ...

    def closed(self) -> None:
        """The session has ended. Called from the event loop: to be quick."""
        ...
