"""A process of sessions that are given statements as texts, and classify them themselves, as connections do."""

from collections.abc import Coroutine, Sequence
from math import inf
from typing import Any

from proxy.config.config import Config
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.session_port import KnownState, SessionOpening
from proxy.session.catalog.answers import Answer
from proxy.session.decision import Decision
from proxy.session.session import Session
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass

FINISHED = Outcome(OutcomeKind.FINISHED, 1.0)


class OpenStates:
    """A session of the proxy's own in each state that a session was in when it decided."""

    def __init__(self) -> None:
        self._open: dict[bytes, KnownState] = {}

    def prepare(self, state: KnownState | None) -> None:
        """Have a session in that state, as the rewrite service does before each decision."""
        if state is not None:
            self._open[state.digest] = state

    def renew(self, digest: bytes) -> None:
        """There is nothing that could be old."""

    def state_of(self, digest: bytes) -> KnownState | None:
        return self._open.get(digest)


class TextSession:
    """A session whose methods take the texts of statements.

    A client's login is known where its opening says so: then the proxy has a session of its own in each state.
    """

    def __init__(self, shared: SharedState, opening: SessionOpening | None = None) -> None:
        if not isinstance(shared.own_sessions, OpenStates):
            shared.own_sessions = OpenStates()
        self._own_sessions = shared.own_sessions
        self.inner = Session(shared, opening)

    def rewrite(self, sql: str, keys: KeyTerms = ASK_FIRST) -> Coroutine[Any, Any, Dispatch]:
        self._own_sessions.prepare(self.inner.known_state())
        return self.inner.rewrite(StatementClass(sql), keys)

    def explain(self, sql: str, *, run_key_queries: bool) -> Coroutine[Any, Any, Decision]:
        self._own_sessions.prepare(self.inner.known_state())
        return self.inner.explain(sql, run_key_queries=run_key_queries)

    def is_quick(self, sql: str) -> bool:
        return self.inner.is_quick(StatementClass(sql))

    def forward_unchanged(self, sql: str) -> Dispatch:
        return self.inner.forward_unchanged(StatementClass(sql))

    def writes_before(self, sql: str) -> Sequence[WriteUnderWay]:
        return self.inner.writes_before(StatementClass(sql))

    def closed(self, *, is_forgotten: bool = False) -> None:
        self.inner.closed(is_forgotten=is_forgotten)


class Stage:
    """A process with these sections of the configuration, and a clock that the test sets."""

    def __init__(self, **sections: Any) -> None:
        self.now = 0.0
        self.shared = SharedState.of(Config(**sections), lambda: self.now)
        # Some statement has asked for the server's settings before.
        self.shared.evolving.told("", Answer(value=False, came_at=0.0, until=inf))

    def session(self, owner: str = "ann") -> TextSession:
        return TextSession(self.shared, SessionOpening(owner=owner, login=owner, user=owner))

    def stranger(self) -> TextSession:
        """A session of whose client no login is known."""
        return TextSession(self.shared)
