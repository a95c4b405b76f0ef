"""Statements that the proxy answers itself: EXPLAIN REWRITE, EXPLAIN PARTITIONS, SHOW STARPRUNER STATEMENTS.

Spark makes the result set, so that any client can read it: the proxy sends a query that holds the rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.session_port import KnownState, SessionPort
from proxy.session.decision import Decision
from proxy.session.explain.partition_plan import ListingSession, partition_plan, plan_lines
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from proxy.session.statement_log import LoggedStatement
from proxy.statements.statement_class import StatementClass
from rewriter.domains.literals import literal
from rewriter.sql.classify import COMMENT_OR_SPACE

# Comments may stand in front, as clients put them there.
_EXPLAIN_REWRITE: Final = re.compile(
    rf"(?:{COMMENT_OR_SPACE})*+EXPLAIN\s++REWRITE\s++(?P<json>JSON\s++)?(?=\S)", re.IGNORECASE | re.DOTALL
)
_EXPLAIN_PARTITIONS: Final = re.compile(
    rf"(?:{COMMENT_OR_SPACE})*+EXPLAIN\s++PARTITIONS\s++(?P<json>JSON\s++)?(?!WHERE\b)"
    r"(?P<table>(?:`[^`]++`|[^\s`;]++)++)(?:\s++WHERE\b(?P<filter>.*+)|\s*+;?\s*+)",
    re.IGNORECASE | re.DOTALL,
)
_SHOW_STATEMENTS: Final = re.compile(
    rf"(?:{COMMENT_OR_SPACE})*+SHOW\s++STARPRUNER\s++STATEMENTS(?:\s++LIMIT\s++(?P<rows>\d{{1,9}}))?\s*+;?\s*+",
    re.IGNORECASE | re.DOTALL,
)
# The columns of SHOW STARPRUNER STATEMENTS, as the fields of LoggedStatement. Seconds since 1970 become a time of
# the session's zone, whatever `spark.sql.timestampType`.
_COLUMNS: Final = {
    "id": "CAST(id AS STRING)",
    "started_at": "timestamp_seconds(started_at)",
    "outcome": "CAST(outcome AS STRING)",
    "seconds": "CAST(seconds AS DOUBLE)",
    "deciding_s": "CAST(deciding_s AS DOUBLE)",
    "partitions_kept": "CAST(partitions_kept AS BIGINT)",
    "partitions_total": "CAST(partitions_total AS BIGINT)",
    "reasons": "CAST(reasons AS STRING)",
    "statement": "CAST(statement AS STRING)",
}


class Deciding(SessionPort, ListingSession, Protocol):
    """A session that decides about statements, explains its decisions, and knows its last statements."""

    async def explain(self, sql: str, *, run_key_queries: bool) -> Decision:
        """Decide as `rewrite` does, and tell everything."""
        ...

    def last_statements(self) -> Sequence[LoggedStatement]:
        """The last statements, the newest first."""
        ...

    def answer(self, statement: StatementClass, query: str, deciding_s: float = 0.0) -> Dispatch:
        """Dispatch a query that holds the answer."""
        ...


class AnsweringSession:
    """A session that answers these statements itself, and leaves every other one to the session inside."""

    def __init__(self, session: Deciding) -> None:
        self._session = session

    async def rewrite(self, statement: StatementClass, keys: KeyTerms = ASK_FIRST) -> Dispatch:
        """Decide as the session inside; a statement that is answered here becomes a query for the answer."""
        if statement.first_word not in {"explain", "show"}:
            return await self._session.rewrite(statement, keys)
        explain = _EXPLAIN_REWRITE.match(statement.text)
        if explain is not None:
            decision = await self._session.explain(statement.text[explain.end() :], run_key_queries=True)
            explained = view(decision)
            lines = [msgspec.json.encode(explained).decode()] if explain["json"] else text(explained).splitlines()
            return self._session.answer(statement, lines_query(lines), decision.timings.total_s)
        partitions = _EXPLAIN_PARTITIONS.fullmatch(statement.text)
        if partitions is not None:
            plan = await partition_plan(self._session, partitions["table"], partitions["filter"])
            lines = [msgspec.json.encode(plan).decode()] if partitions["json"] else plan_lines(plan)
            return self._session.answer(statement, lines_query(lines, "plan"))
        show = _SHOW_STATEMENTS.fullmatch(statement.text)
        if show is not None:
            found = self._session.last_statements()
            rows = found if show["rows"] is None else found[: int(show["rows"])]
            return self._session.answer(statement, statements_query(rows))
        return await self._session.rewrite(statement, keys)

    def is_quick(self, statement: StatementClass) -> bool:
        """See SessionPort."""
        return self._session.is_quick(statement)

    def known_state(self) -> KnownState | None:
        """See SessionPort."""
        return self._session.known_state()

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        """See SessionPort."""
        return self._session.forward_unchanged(statement)

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:
        """See SessionPort."""
        return self._session.writes_before(statement)

    def used_elsewhere(self) -> None:
        """See SessionPort."""
        self._session.used_elsewhere()

    def closed(self, *, is_forgotten: bool = False) -> None:
        """See SessionPort."""
        self._session.closed(is_forgotten=is_forgotten)


def lines_query(lines: list[str], column: str = "rewrite") -> str:
    """A query that answers the lines, one a row and in order: Spark hands on a list of values as it stands.

    >>> lines_query(["a", "it's"])
    "SELECT rewrite FROM VALUES ('a'), (CAST(X'69742773' AS STRING)) AS explained(rewrite)"
    """
    rows = ", ".join(f"({literal('string', line)})" for line in lines)
    return f"SELECT {column} FROM VALUES {rows} AS explained({column})"  # noqa: S608 - literals without a quote


def statements_query(statements: Sequence[LoggedStatement]) -> str:
    """A query that answers the statements, one a row. The types of its columns do not depend on the rows."""
    casts = ", ".join(f"{expression} AS {name}" for name, expression in _COLUMNS.items())
    rows = [[_value(value) for value in msgspec.structs.astuple(one)] for one in statements]
    limit = "" if rows else " LIMIT 0"
    values = ", ".join(f"({', '.join(row)})" for row in rows or [["NULL"] * len(_COLUMNS)])
    return f"SELECT {casts} FROM VALUES {values} AS statements({', '.join(_COLUMNS)}){limit}"  # noqa: S608 - as above


def _value(value: str | float | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return literal("string", value)
    # A decimal, which becomes a time or a double alike.
    return str(value) if isinstance(value, int) else f"{value:.6f}"
