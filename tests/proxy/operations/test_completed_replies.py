"""Replies that get what hive-jdbc 4.0 misses in Spark's: a fetch size, and if there is a result set."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.relay_dialogue import Dialogue, open_session, session_opened
from support.wire_vectors import captured, in_sevens
from test_both_transports import TRANSPORTS, Client, World

from proxy.operations.events import SessionOpened
from proxy.relay.connection_profile import ConnectionProfile
from proxy.wire.hs2.calls import OperationHandle, OperationState, encode_operation_call
from proxy.wire.hs2.open_session import FETCH_SIZE, expects_fetch_size, with_fetch_size
from proxy.wire.hs2.replies import open_reply, with_has_result_set
from proxy.wire.sasl import SaslReader
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.frames import FrameReader, frame
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Reader, read_header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

V6, V10 = 5, 9
JDBC_4 = {"use:database": "default"}
JDBC_3 = {**JDBC_4, f"set:hiveconf:{FETCH_SIZE}": "1000"}
EMPTY = Writer().string_map(4, {}).to_bytes()[3:]

Side = Callable[[World], Client]
either = pytest.mark.parametrize("side", TRANSPORTS, ids=["binary", "HTTP"])


def opening(settings: dict[str, str], version: int = V10, seqid: int = 7) -> bytes:
    """OpenSession as hive-jdbc sends it."""
    call = Writer().header("OpenSession", MessageType.CALL, seqid).struct(1).i32(1, version)
    return call.string_map(4, settings).stop().stop().to_bytes()


def opened(configuration: bytes | None, seqid: int = 7, status: int = 0) -> bytes:
    """The reply of a server; Spark's has an empty configuration."""
    code = Writer().i32(1, status).stop().to_bytes()
    reply = (
        Writer().header("OpenSession", MessageType.REPLY, seqid).struct(0).raw(1, Kind.STRUCT, code).i32(2, V10)
    )
    if configuration is not None:
        reply.raw(4, Kind.MAP, configuration)
    return reply.stop().stop().to_bytes()


def configured(entries: dict[str, str]) -> bytes:
    return Writer().string_map(4, entries).to_bytes()[3:]


def message_of(raw: bytes) -> Message:
    return Message(read_header(raw), raw)


def called(side: Side, call: bytes, answer: bytes) -> bytes:
    """The client's reply; the backend gets the call as it is."""
    world = World(iter([lambda _seqid: frame(answer)]))
    got = side(world).call(call)
    assert world.calls == [call]
    return got


# --- the fetch size in the reply to OpenSession


@either
@pytest.mark.parametrize("configuration", [EMPTY, b"\0\0\0\0\0\0", None], ids=["Spark's", "no types", "none"])
def test_hive_jdbc_4_gets_a_fetch_size(side: Side, configuration: bytes | None) -> None:
    got = called(side, opening(JDBC_4), opened(configuration))
    assert got == opened(configured({FETCH_SIZE: "1000"}))


@either
def test_other_entries_of_the_configuration_stay(side: Side) -> None:
    got = called(side, opening(JDBC_4), opened(configured({"a": "é"})))
    assert got == opened(configured({FETCH_SIZE: "1000", "a": "é"}))


@either
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (opening(JDBC_3), opened(EMPTY)),
        (opening({}), opened(EMPTY)),
        (opening(JDBC_4, V6), opened(EMPTY)),
        (opening(JDBC_4), opened(configured({FETCH_SIZE: "500"}))),
        (opening(JDBC_4), opened(None, status=3)),
        (opening(JDBC_4), b"\x80\1\0\3\0\0\0\x0bOpenSession\0\0\0\7\0"),
        (opening(JDBC_4), opened(Writer().to_bytes() + b"\x08\x08\0\0\0\1\0\0\0\1\0\0\0\1")),
    ],
    ids=[
        "it asks for a size itself",
        "it is no hive-jdbc",
        "an old protocol, as PyHive's",
        "the server says its own",
        "no session is opened",
        "an exception",
        "a map of numbers",
    ],
)
def test_other_replies_pass_as_they_are(side: Side, call: bytes, answer: bytes) -> None:
    assert called(side, call, answer) == answer


@pytest.mark.parametrize("client", ["beeline", "pyhive"])
def test_captured_clients_expect_no_fetch_size(client: str) -> None:
    sasl, frames = SaslReader(), FrameReader(1 << 24)
    sasl.feed(captured(f"{client}_client"))
    while sasl.leftover()[:1] != b"\0":
        assert sasl.next_message() is not None
    frames.feed(sasl.leftover())
    first = frames.next_frame()
    assert first is not None
    assert read_header(first).name == "OpenSession"
    assert not expects_fetch_size(message_of(first))


def test_a_reply_that_comes_in_pieces_is_completed_and_announced_once() -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000")).log_in()
    dialogue.client(frame(opening(JDBC_4, seqid=1)))
    announced = [command for piece in in_sevens(session_opened(1)) for command in dialogue.backend(piece)]
    assert [type(command) for command in announced] == [SessionOpened]
    got = dialogue.client_got()
    assert got[:4] == len(got[4:]).to_bytes(4)
    assert FETCH_SIZE.encode() in got


@given(st.binary(min_size=1, max_size=8), st.integers(min_value=0, max_value=120))
def test_a_damaged_reply_is_completed_or_refused_and_never_raises_otherwise(damage: bytes, place: int) -> None:
    for complete, raw in (
        (with_fetch_size, opened(EMPTY)),
        (partial(with_has_result_set, has_result_set=True), shown(OperationState.FINISHED, 1)),
    ):
        stream = bytearray(raw)
        stream[place : place + len(damage)] = damage
        with suppress(RemoteProtocolError, IncompleteError):
            header = read_header(bytes(stream))
            completed = complete(bytes(stream), header)
            assert len(completed) >= len(stream)


def test_calls_behind_it_are_answered_behind_it() -> None:
    dialogue = Dialogue().log_in()
    dialogue.client(frame(opening(JDBC_4, seqid=1)) + open_session(2))
    dialogue.backend(session_opened(1) + session_opened(2))
    got = dialogue.client_got()
    assert got.endswith(session_opened(2))
    assert got.count(FETCH_SIZE.encode()) == 1


# --- the result set in the status of an operation


def handle(*, has_result_set: bool | None) -> OperationHandle:
    writer = Writer().struct(1).binary(1, b"o" * 16).binary(2, b"s" * 16).stop().i32(2, 0)
    if has_result_set is not None:
        writer.boolean(3, has_result_set)
    return OperationHandle(writer.stop().to_bytes())


def asked(operation: OperationHandle, seqid: int) -> bytes:
    return encode_operation_call("GetOperationStatus", seqid, operation)


def shown(state: OperationState, seqid: int, *, says: bool | None = None) -> bytes:
    code = Writer().i32(1, 0).stop().to_bytes()
    reply = Writer().header("GetOperationStatus", MessageType.REPLY, seqid).struct(0).raw(1, Kind.STRUCT, code)
    reply.i32(2, state)
    if says is not None:
        reply.boolean(9, says)
    return reply.stop().stop().to_bytes()


def says_result_set(raw: bytes) -> bool | None:
    reader, found = open_reply(raw, read_header(raw)), None
    for field in reader.fields():
        start = reader.position
        reader.skip(field[1])
        if field == (9, Kind.BOOL):
            found = Reader(raw, start).boolean()
    return found


def polled(side: Side, operation: OperationHandle, *answers: Callable[[int], bytes]) -> list[bytes]:
    """Replies to one poll more than the backend answers."""
    waiting = iter(answers)
    client = side(World(iter([lambda seqid: frame(next(waiting)(seqid))] * len(answers))))
    return [client.call(asked(operation, seqid)) for seqid in range(1, len(answers) + 2)]


@either
@pytest.mark.parametrize("has_result_set", [True, False, None])
def test_a_finished_status_says_from_memory_what_the_handle_says(
    side: Side, *, has_result_set: bool | None
) -> None:
    running, finished, remembered = polled(
        side,
        handle(has_result_set=has_result_set),
        lambda seqid: shown(OperationState.RUNNING, seqid),
        lambda seqid: shown(OperationState.FINISHED, seqid),
    )
    # As the backend says it, as long as the backend is asked.
    assert (running, finished) == (shown(OperationState.RUNNING, 1), shown(OperationState.FINISHED, 2))
    assert remembered == shown(OperationState.FINISHED, 3, says=has_result_set)
    assert says_result_set(remembered) is has_result_set


@either
def test_a_status_that_speaks_of_the_result_set_itself_is_left_as_it_is(side: Side) -> None:
    _, remembered = polled(
        side, handle(has_result_set=True), lambda seqid: shown(OperationState.FINISHED, seqid, says=False)
    )
    assert remembered == shown(OperationState.FINISHED, 2, says=False)
