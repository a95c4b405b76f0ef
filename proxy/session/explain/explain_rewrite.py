"""EXPLAIN REWRITE SELECT ..: the lines of `starpruner explain`, as a result set that any client can show."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Protocol

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.query import Query, QueryResult
from proxy.operations.session_port import SessionPort
from proxy.session.decision import Decision
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from proxy.statements.statement_class import StatementClass
from rewriter.domains.literals import literal
from rewriter.sql.classify import COMMENT_OR_SPACE

# Comments may stand in front, as clients put them there.
_EXPLAIN_REWRITE = re.compile(rf"(?:{COMMENT_OR_SPACE})*+EXPLAIN\s++REWRITE\s++(?=\S)", re.IGNORECASE | re.DOTALL)


class Deciding(SessionPort, Protocol):
    """A session that decides about statements, and explains its decisions."""

    def explain(self, sql: str, *, run_key_queries: bool) -> Generator[Query, QueryResult, Decision]:
        """Decide as `rewrite` does, and tell everything."""
        ...


class ExplainingSession:
    """A session that understands EXPLAIN REWRITE itself, and leaves every other statement to the one inside."""

    def __init__(self, session: Deciding) -> None:
        self._session = session

    def rewrite(
        self, statement: StatementClass, keys: KeyTerms = ASK_FIRST
    ) -> Generator[Query, QueryResult, Dispatch]:
        """Decide as the session inside; EXPLAIN REWRITE becomes a query whose rows are the explanation's lines."""
        found = _EXPLAIN_REWRITE.match(statement.text)
        if found is None:
            return (yield from self._session.rewrite(statement, keys))
        decision = yield from self._session.explain(statement.text[found.end() :], run_key_queries=True)
        return Dispatch(lines_query(text(view(decision)).splitlines()))

    def is_quick(self, statement: StatementClass) -> bool:
        """See SessionPort."""
        return self._session.is_quick(statement)

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        """See SessionPort."""
        return self._session.forward_unchanged(statement)

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:
        """See SessionPort."""
        return self._session.writes_before(statement)

    def closed(self) -> None:
        """The session has ended."""
        self._session.closed()


def lines_query(lines: list[str]) -> str:
    """A query that answers the lines, one a row and in order: Spark hands on a list of values as it stands.

    >>> lines_query(["a", "it's"])
    "SELECT rewrite FROM VALUES ('a'), (CAST(X'69742773' AS STRING)) AS explained(rewrite)"
    """
    rows = ", ".join(f"({literal('string', line)})" for line in lines)
    return f"SELECT rewrite FROM VALUES {rows} AS explained(rewrite)"  # noqa: S608 - literals without a quote
