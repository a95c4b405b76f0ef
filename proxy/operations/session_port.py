"""The session as connections see it: how it was opened, and the decisions about its statements."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.query import Query, QueryResult
from proxy.statements.statement_class import StatementClass


@dataclass(frozen=True)
class SessionOpening:
    """The settings and the owner with which a client opened its session."""

    # The settings of the session. They may hold passwords.
    configuration: Mapping[str, str] = field(default_factory=dict, repr=False)
    # A digest of whom it logged in as: equal for equal credentials, for as long as the process lives.
    owner: str = field(default="", repr=False)
    # The name that the client logged in by, or that the call gives where the backend asks for no login.
    user: str = ""
    # The host that the client connects from, and the program, where it says which one it is.
    client: str = ""
    # The address of the backend that has the session.
    backend: str = ""


class SessionPort(Protocol):
    """Decides about the statements of one session."""

    def rewrite(
        self, statement: StatementClass, keys: KeyTerms = ASK_FIRST
    ) -> Generator[Query, QueryResult, Dispatch]:
        """Yield queries for the session, be sent their results, return the dispatch."""
        ...

    def is_quick(self, statement: StatementClass) -> bool:
        """Whether a decision takes no more than a look at the text. Called from the event loop."""
        ...

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        """Dispatch the original, and ask nothing."""
        ...

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:
        """Rewritten statements that have to end before this one, which may change the session, is released."""
        ...

    def closed(self) -> None:
        """The session has ended. Called from the event loop: to be quick."""
        ...
