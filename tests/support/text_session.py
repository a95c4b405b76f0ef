"""A session that is given statements as texts, and classifies them itself, as connections do."""

from collections.abc import Sequence

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.session_port import SessionOpening
from proxy.session.decision import Decision
from proxy.session.session import Session
from proxy.session.session_catalog import Queries
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass
from support.own_session_states import OpenStates


class TextSession:
    """A session whose methods take the texts of statements.

    A client's login is known where its opening says so: then the proxy has a session of its own in each state.
    """

    def __init__(self, shared: SharedState, opening: SessionOpening | None = None) -> None:
        if not isinstance(shared.own_sessions, OpenStates):
            shared.own_sessions = OpenStates()
        self._own_sessions = shared.own_sessions
        self.inner = Session(shared, opening)

    def rewrite(self, sql: str, keys: KeyTerms = ASK_FIRST) -> Queries[Dispatch]:
        self._own_sessions.prepare(self.inner.known_state())
        return self.inner.rewrite(StatementClass(sql), keys)

    def explain(self, sql: str, *, run_key_queries: bool) -> Queries[Decision]:
        self._own_sessions.prepare(self.inner.known_state())
        return self.inner.explain(sql, run_key_queries=run_key_queries)

    def is_quick(self, sql: str) -> bool:
        return self.inner.is_quick(StatementClass(sql))

    def forward_unchanged(self, sql: str) -> Dispatch:
        return self.inner.forward_unchanged(StatementClass(sql))

    def writes_before(self, sql: str) -> Sequence[WriteUnderWay]:
        return self.inner.writes_before(StatementClass(sql))

    def closed(self) -> None:
        self.inner.closed()
