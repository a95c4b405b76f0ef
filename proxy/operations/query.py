"""Queries of the proxy's own and their results: plain values, no I/O.

A session's code awaits the answer of an `Ask`. It never sees a socket or a frame.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar

from rewriter import TableName

# The tables of a query about the session itself.
NO_TABLES: Final = frozenset[TableName]()


@dataclass(frozen=True)
class Sharing:
    """The sessions that may use the answer to a query. No client's session answers such a query."""

    # The state of these sessions (`SessionState.digest`): the proxy's own session of that state is asked.
    state: bytes
    # Equal in sessions that the backend gives the same answer.
    key: Hashable
    # True as long as the answer to a query that was made with this still holds for one that is sent now.
    is_fresh: Callable[[], bool]


@dataclass(frozen=True)
class Query:
    """A statement of ours and the bounds within which its answer is worth having."""

    sql: str
    # One row past this ends the query with TOO_MANY_ROWS: a truncated answer is never handed on. With 0 the
    # statement is run for what it changes, and its result is not fetched.
    rows_max: int
    # Bounds the reply messages that are held in memory, all batches together.
    bytes_max: int
    deadline_s: float
    # True if it costs the backend something: only so many of these queries run at once. Waiting for a slot counts
    # against the deadline.
    needs_slot: bool = False
    # True if its answer counts only for the session in which the statement runs, and is asked for there.
    is_for_client: bool = False
    # The tables that its answer depends on; None if that is not known.
    reads: frozenset[TableName] | None = None
    sharing: Sharing | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ResultColumn:
    """A result column with its Spark SQL type name in lower case, such as `bigint` or `decimal(10,2)`."""

    name: str
    type_name: str


Value: TypeAlias = str | int | bool | float | bytes | None


@dataclass(frozen=True)
class Rows:
    """The whole answer. Dates, timestamps and decimals are the strings that the server wrote."""

    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[Value, ...], ...]
    seconds: float
    # The time between another session's query and this one, if the answer is that to the other query.
    asked_before_s: float = 0.0


class FailureKind(Enum):
    """Why a query has no answer."""

    REJECTED = "rejected"  # the server said no; the message is its own, with the SQLSTATE
    DEADLINE = "deadline"
    BUSY = "busy"  # it got no slot within its deadline, and was not sent
    TOO_MANY_ROWS = "too many rows"
    TOO_MANY_BYTES = "too many bytes"
    UNREADABLE = "unreadable"  # a protocol version or a column type that we do not read


@dataclass(frozen=True)
class QueryFailed:
    """No answer. The session it ran in stays usable."""

    kind: FailureKind
    message: str
    seconds: float


QueryResult: TypeAlias = Rows | QueryFailed

T = TypeVar("T")

# Gives the answer to a query. An Ask that times, shares or refuses queries wraps another one.
Ask: TypeAlias = Callable[[Query], Awaitable[QueryResult]]
# Begins work that asks by `ask_driver`: it is sent None at first, and then the answers.
Work: TypeAlias = Callable[[], Coroutine[Query, Any, T]]


class _Asked:
    """A query that a coroutine awaits: whoever drives it is given the query, and sends the answer.

    `types.coroutine` would be shorter, and cannot be awaited where mypyc has compiled this module.
    """

    def __init__(self, query: Query) -> None:
        self._query = query

    def __await__(self) -> Generator[Query, QueryResult, QueryResult]:
        return (yield self._query)


def ask_driver(query: Query) -> Awaitable[QueryResult]:
    """Ask whoever drives the coroutine, such as `proxy.upstream.query_driver.drive`."""
    return _Asked(query)
