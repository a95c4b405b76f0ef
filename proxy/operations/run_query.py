"""Runs one `Query` as the HiveServer2 calls it takes: a generator of calls that is sent their replies.

The server bounds the query itself (`queryTimeout` in ExecuteStatement), in whole seconds, because a call
that waits on the server cannot be interrupted over the same connection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Final, TypeAlias, TypeVar

from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call, Reply
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, ResultColumn, Rows, Value
from proxy.wire.hs2.calls import (
    CLOSE_OPERATION,
    EXECUTE_STATEMENT,
    FETCH_RESULTS,
    GET_OPERATION_STATUS,
    GET_RESULT_SET_METADATA,
    UNFINISHED,
    OperationHandle,
    OperationState,
    SessionHandle,
    encode_execute,
    encode_fetch,
    encode_operation_call,
)
from proxy.wire.hs2.replies import (
    StateReply,
    Status,
    decode_operation_reply,
    decode_state_reply,
    expect_reply,
    open_reply,
)
from proxy.wire.hs2.result_set import UnreadableError, decode_fetch_reply, decode_metadata_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.reader import Reader

# Rows asked for at once. Spark's own clients ask for 1,000 to 10,000.
FETCH_ROWS: Final = 5_000

# The first line or two of an error say what it is; the plan that follows may be of any length.
ERROR_CHARACTERS_MAX: Final = 2_000


Clock: TypeAlias = Callable[[], float]
_Decoded = TypeVar("_Decoded")


class _FailedError(Exception):
    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def run_query(query: Query, session: SessionHandle, clock: Clock) -> Generator[Call, Reply, QueryResult]:
    """Yield the calls that answer the query in the session. Any failure is returned as a QueryFailed."""
    started = clock()
    run = _Run(query, session, clock, started + query.deadline_s)
    try:
        operation = yield from run.execute()
        try:
            columns, rows = yield from run.answer(operation)
        except _FailedError as failure:
            yield from run.close(operation)
            # Compiled by mypyc, a bare raise behind a yield has lost its exception.
            raise failure  # noqa: TRY201
        yield from run.close(operation)
    except _FailedError as failure:
        return QueryFailed(failure.kind, failure.message, clock() - started)
    return Rows(columns, rows, clock() - started)


class _Run:
    """One query on its way."""

    def __init__(self, query: Query, session: SessionHandle, clock: Clock, deadline: float) -> None:
        self._query = query
        self._session = session
        self._clock = clock
        self._deadline = deadline
        self._bytes_left = query.bytes_max
        self._seqid = 0

    def execute(self) -> Generator[Call, Reply, OperationHandle]:
        timeout_s = max(1, math.ceil(self._query.deadline_s))
        message = encode_execute(self._next(), self._session, self._query.sql, timeout_s)
        reply = yield from self._call(EXECUTE_STATEMENT, message, CONTROL_REPLY_BYTES_MAX, decode_operation_reply)
        _check(reply.status)
        if reply.operation is None:
            raise _FailedError(FailureKind.UNREADABLE, "the server gave the query no operation handle")
        return reply.operation

    def answer(
        self, operation: OperationHandle
    ) -> Generator[Call, Reply, tuple[tuple[ResultColumn, ...], tuple[tuple[Value, ...], ...]]]:
        yield from self._wait(operation)
        if not self._query.rows_max:
            # For a USE, Spark describes one column and sends none.
            return (), ()
        columns = yield from self._columns(operation)
        rows = yield from self._rows(operation, len(columns))
        return columns, rows

    def close(self, operation: OperationHandle) -> Generator[Call, Reply, None]:
        """Close the operation, and so cancel one that still runs. The server's answer does not matter."""
        message = encode_operation_call(CLOSE_OPERATION, self._next(), operation)
        yield Call(CLOSE_OPERATION, self._seqid, message, CONTROL_REPLY_BYTES_MAX)

    def _wait(self, operation: OperationHandle) -> Generator[Call, Reply, None]:
        """Wait until the query has finished. The server holds each call back for up to five seconds."""
        while True:
            message = encode_operation_call(GET_OPERATION_STATUS, self._next(), operation)
            reply = yield from self._call(
                GET_OPERATION_STATUS, message, CONTROL_REPLY_BYTES_MAX, decode_state_reply
            )
            _check(reply.status)
            if reply.state is OperationState.FINISHED:
                return
            if reply.state not in UNFINISHED:
                raise _ending(reply)
            self._check_deadline()

    def _columns(self, operation: OperationHandle) -> Generator[Call, Reply, tuple[ResultColumn, ...]]:
        message = encode_operation_call(GET_RESULT_SET_METADATA, self._next(), operation)
        reply = yield from self._call(
            GET_RESULT_SET_METADATA, message, CONTROL_REPLY_BYTES_MAX, decode_metadata_reply
        )
        _check(reply.status)
        return tuple(ResultColumn(column.name, column.type_name) for column in reply.columns)

    def _rows(
        self, operation: OperationHandle, width: int
    ) -> Generator[Call, Reply, tuple[tuple[Value, ...], ...]]:
        """Fetch until an empty batch: a short one may come before the end, and hasMoreRows is always false.

        The empty batch has its columns too: a batch without any is not the end.
        """
        rows: list[tuple[Value, ...]] = []
        while True:
            wanted = min(FETCH_ROWS, self._query.rows_max + 1 - len(rows))
            message = encode_fetch(self._next(), operation, wanted)
            reply = yield from self._call(FETCH_RESULTS, message, self._bytes_left, decode_fetch_reply)
            _check(reply.status)
            if len(reply.columns) != width:
                kind, found = FailureKind.UNREADABLE, len(reply.columns)
                raise _FailedError(kind, f"a batch has {found} columns where the answer has {width}")
            if not reply.row_count:
                return tuple(rows)
            rows += zip(*reply.columns, strict=True)
            if len(rows) > self._query.rows_max:
                raise _FailedError(FailureKind.TOO_MANY_ROWS, f"more than {self._query.rows_max} rows")
            self._check_deadline()

    def _call(
        self, name: str, message: bytes, bytes_max: int, decode: Callable[[Reader], _Decoded]
    ) -> Generator[Call, Reply, _Decoded]:
        raw = yield Call(name, self._seqid, message, bytes_max)
        if raw is None:
            raise _FailedError(
                FailureKind.TOO_MANY_BYTES, f"a reply to {name} is longer than the {bytes_max} bytes left"
            )
        if name == FETCH_RESULTS:
            self._bytes_left -= len(raw)
        try:
            return decode(open_reply(raw, expect_reply(raw, name, self._seqid)))
        except (RemoteProtocolError, UnreadableError) as error:
            raise _FailedError(FailureKind.UNREADABLE, str(error)) from None
        except IncompleteError:
            raise _FailedError(FailureKind.UNREADABLE, f"the reply to {name} ends too early") from None

    def _next(self) -> int:
        self._seqid += 1
        return self._seqid

    def _check_deadline(self) -> None:
        if self._clock() > self._deadline:
            raise _FailedError(FailureKind.DEADLINE, f"no answer within {self._query.deadline_s} s")


def _check(status: Status) -> None:
    if not status.ok:
        raise _rejected(status.message, status.sql_state)


def _ending(reply: StateReply) -> _FailedError:
    """The end of an operation that did not finish."""
    if reply.state is OperationState.TIMEDOUT:
        return _FailedError(FailureKind.DEADLINE, "the server cancelled the query at its timeout")
    if reply.state is OperationState.ERROR:
        return _rejected(reply.message, reply.sql_state)
    state = "no known state" if reply.state is None else reply.state.name
    return _FailedError(FailureKind.REJECTED, f"the query ended in state {state}")


def _rejected(message: str | None, sql_state: str | None) -> _FailedError:
    # Spark appends the stack trace, several times over.
    words = (message or "the server gave no reason").split("\n\tat ", 1)[0][:ERROR_CHARACTERS_MAX].rstrip()
    return _FailedError(FailureKind.REJECTED, f"{words} (SQLSTATE {sql_state})" if sql_state else words)
