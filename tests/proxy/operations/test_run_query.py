"""A query of the proxy's own, as the calls that it takes. Each way to fail is an answer, and it is closed."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.relay_dialogue import SESSION, executed, metadata_is, reply, status_is

from proxy.operations.internal_call import Reply
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, ResultColumn, Rows
from proxy.operations.run_query import run_query
from proxy.wire.hs2.calls import OperationState
from proxy.wire.thrift.types import Kind
from proxy.wire.thrift.writer import Writer

QUERY = Query("SELECT k FROM d", rows_max=2, bytes_max=10_000, deadline_s=5.0)
EXECUTE, STATUS, COLUMNS, FETCH, CLOSE = (
    *("ExecuteStatement", "GetOperationStatus", "GetResultSetMetadata", "FetchResults", "CloseOperation"),
)
# Makes the reply to the call with that number, framed; None for one that is longer than the bytes left.
Answer = Callable[[int], bytes | None]


def status(state: OperationState, message: str | None = None) -> Answer:
    return lambda seqid: status_is(state, seqid, message)


def batch(*values: str) -> Answer:
    """A batch of one column of strings."""
    listed = bytes((Kind.STRING,)) + len(values).to_bytes(4)
    listed += b"".join(len(value).to_bytes(4) + value.encode() for value in values)
    column = Writer().struct(7).raw(1, Kind.LIST, listed).binary(2, b"").stop().stop().to_bytes()
    columns = bytes((Kind.STRUCT,)) + (1).to_bytes(4) + column
    return lambda seqid: reply(FETCH, seqid, Writer().struct(3).raw(3, Kind.LIST, columns).stop())


def no_columns(seqid: int) -> bytes:
    return reply(FETCH, seqid, Writer().struct(3).stop())


def cut_off(seqid: int) -> bytes:
    return (batch("a")(seqid) or b"")[:-9]


def columns(seqid: int) -> bytes:
    return metadata_is("k", "string", seqid)


BEGUN: tuple[Answer, ...] = (executed, status(OperationState.RUNNING), status(OperationState.FINISHED), columns)


def asked(answers: Sequence[Answer], seconds_per_call: float = 0.0) -> tuple[QueryResult, list[str]]:
    """The answer to the query, and the calls that were made. Any call behind these answers is to close it."""
    made: list[str] = []
    steps = run_query(QUERY, SESSION, lambda: len(made) * seconds_per_call)
    raw: Reply = None
    try:
        while True:
            # As the driver takes some steps: an exception that is being handled belongs to a thread.
            with ThreadPoolExecutor(1) as thread:
                # None starts a generator; its type knows no way to say so.
                call = thread.submit(steps.send, raw).result()
            made.append(call.name)
            if len(made) <= len(answers):
                framed = answers[len(made) - 1](call.seqid)
                raw = None if framed is None else framed[4:]
            else:
                assert call.name == CLOSE
                raw = reply(CLOSE, call.seqid)[4:]
    except StopIteration as end:
        result: QueryResult = end.value
        return result, made


def test_its_answer_is_fetched_until_a_batch_is_empty_and_it_is_closed() -> None:
    answer, made = asked([*BEGUN, batch("a"), batch("b"), batch()])
    assert answer == Rows((ResultColumn("k", "string"),), (("a",), ("b",)), 0.0)
    assert made == [EXECUTE, STATUS, STATUS, COLUMNS, FETCH, FETCH, FETCH, CLOSE]


@pytest.mark.parametrize(
    ("answers", "kind", "words"),
    [
        ([executed, status(OperationState.ERROR, "no d\n\tat a.B")], FailureKind.REJECTED, "no d"),
        ([executed, status(OperationState.CANCELED)], FailureKind.REJECTED, "the query ended in state CANCELED"),
        (
            [executed, status(OperationState.TIMEDOUT)],
            FailureKind.DEADLINE,
            "the server cancelled the query at its timeout",
        ),
        ([*BEGUN, batch("a", "b", "c")], FailureKind.TOO_MANY_ROWS, "more than 2 rows"),
        ([*BEGUN, no_columns], FailureKind.UNREADABLE, "a batch has 0 columns where the answer has 1"),
        (
            [*BEGUN, lambda _: None],
            FailureKind.TOO_MANY_BYTES,
            "a reply to FetchResults is longer than the 10000 bytes left",
        ),
        ([*BEGUN, cut_off], FailureKind.UNREADABLE, "the reply to FetchResults ends"),
    ],
)
def test_one_that_fails_is_closed_too(answers: list[Answer], kind: FailureKind, words: str) -> None:
    answer, made = asked(answers)
    assert isinstance(answer, QueryFailed)
    assert answer.kind is kind
    assert answer.message.startswith(words)
    assert made[-1] == CLOSE


def test_one_that_takes_longer_than_its_deadline_is_given_up_and_closed() -> None:
    answer, made = asked([executed, *[status(OperationState.RUNNING)] * 9], seconds_per_call=2.0)
    assert answer == QueryFailed(FailureKind.DEADLINE, "no answer within 5.0 s", 8.0)
    assert made == [EXECUTE, STATUS, STATUS, CLOSE]


def test_one_that_the_server_does_not_begin_has_no_operation_to_close() -> None:
    answer, made = asked([lambda seqid: reply(EXECUTE, seqid, status=3, message="no such table")])
    assert isinstance(answer, QueryFailed)
    assert (answer.kind, answer.message) == (FailureKind.REJECTED, "no such table")
    assert made == [EXECUTE]
