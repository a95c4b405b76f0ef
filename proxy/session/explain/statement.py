"""EXPLAIN REWRITE SELECT ..: what `starpruner explain` says, as a result set that any client can show."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Protocol

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.query import Query, QueryResult
from proxy.session.decision import Decision
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from rewriter.domains.literals import literal
from rewriter.sql.classify import COMMENT_OR_SPACE

# Comments may stand in front, as clients put them there.
_EXPLAIN_REWRITE = re.compile(rf"(?:{COMMENT_OR_SPACE})*+EXPLAIN\s++REWRITE\s++(?=\S)", re.IGNORECASE | re.DOTALL)


class Deciding(Protocol):
    """A session that decides about statements, and explains what it would do."""

    def rewrite(self, sql: str) -> Generator[Query, QueryResult, Dispatch]:
        """Decide what to send for a statement."""
        ...

    def explain(self, sql: str, *, run_key_queries: bool) -> Generator[Query, QueryResult, Decision]:
        """Decide as `rewrite` does, and tell everything."""
        ...

    def is_quick(self, sql: str) -> bool:
        """Whether to decide about a statement takes no more than a look at it."""
        ...

    def forward_unchanged(self, sql: str) -> Dispatch:
        """The statement goes on as it came."""
        ...

    def writes_before(self, sql: str) -> Sequence[WriteUnderWay]:
        """Rewritten statements that have to end before this one."""
        ...

    def closed(self) -> None:
        """The session has ended."""
        ...


class ExplainingSession:
    """A session that understands EXPLAIN REWRITE itself, and leaves every other statement to the one inside."""

    def __init__(self, session: Deciding) -> None:
        self._session = session

    def rewrite(self, sql: str) -> Generator[Query, QueryResult, Dispatch]:
        """What to send: for EXPLAIN REWRITE, a query whose rows are the lines of the explanation."""
        found = _EXPLAIN_REWRITE.match(sql)
        if found is None:
            return (yield from self._session.rewrite(sql))
        decision = yield from self._session.explain(sql[found.end() :], run_key_queries=True)
        return Dispatch(lines_query(text(view(decision)).splitlines()))

    def is_quick(self, sql: str) -> bool:
        """Whether to rule on a statement takes no more than a look at it."""
        return self._session.is_quick(sql)

    def forward_unchanged(self, sql: str) -> Dispatch:
        """The statement goes on as it came."""
        return self._session.forward_unchanged(sql)

    def writes_before(self, sql: str) -> Sequence[WriteUnderWay]:
        """Rewritten statements that have to end before this one."""
        return self._session.writes_before(sql)

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
