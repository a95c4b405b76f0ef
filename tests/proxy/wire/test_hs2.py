import struct

import pytest
from support.split_streams import split_client
from support.wire_vectors import captured, read_all

from proxy.wire.hs2.calls import (
    CONFIGURATION_BYTES_MAX,
    CONFIGURATION_ENTRIES_MAX,
    EXECUTE_STATEMENT,
    OperationId,
    SessionHandle,
    StatementCall,
    asks_for_rows,
    decode_configuration,
    decode_operation_of_call,
    decode_session_of_call,
    decode_statement_call,
    encode_close_session,
    encode_execute,
    encode_open_session,
    operation_id_of,
    replace_operation,
    replace_statement,
)
from proxy.wire.hs2.replies import (
    decode_operation_reply,
    decode_session_reply,
    decode_state_reply,
    decode_status_only,
    expect_reply,
    open_reply,
)
from proxy.wire.hs2.result_set import UnreadableError, decode_fetch_reply, decode_metadata_reply
from proxy.wire.sasl import SaslStatus, encode_sasl
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.frames import FrameReader
from proxy.wire.thrift.messages import FramedMessageReader, Message
from proxy.wire.thrift.reader import Reader, read_header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

# As servers encode it: two strings of sixteen bytes.
USUAL_SESSION = SessionHandle(
    Writer().struct(1).binary(1, bytes(16)).binary(2, b"s" * 16).stop().stop().to_bytes()
)
SESSION = SessionHandle(Writer().struct(1).binary(1, b"guid").binary(2, b"secret").stop().stop().to_bytes())

OTHER_SESSION = SessionHandle(
    Writer().struct(1).binary(1, b"another").binary(2, b"secret").stop().stop().to_bytes()
)


def calls(client: str, name: str) -> list[Message]:
    reader = FramedMessageReader(message_bytes_max=1000)
    messages = read_all(iter([split_client(client)[1]]), reader.feed, reader.next_message)
    return [message for message in messages if message.header.name == name]


def decoded(message: Message) -> StatementCall:
    found = decode_statement_call(message)
    assert found is not None
    return found


def replies(client: str, name: str) -> list[Reader]:
    frames = FrameReader(frame_bytes_max=1000)
    stream = captured(f"{client}_server").removeprefix(encode_sasl(SaslStatus.COMPLETE))
    found = read_all(iter([stream]), frames.feed, frames.next_frame)
    return [open_reply(raw, read_header(raw)) for raw in found if read_header(raw).name == name]


@pytest.mark.parametrize(
    ("client", "statements", "run_async"),
    [
        ("beeline", ["select id from range(3)"], True),
        ("pyhive", ["USE `default`", "SELECT id, if(id = 1"], False),
    ],
)
def test_statements_of_real_clients_are_found_in_the_session_that_was_opened(
    client: str, statements: list[str], *, run_async: bool
) -> None:
    (opened,) = [decode_session_reply(reader) for reader in replies(client, "OpenSession")]
    found = [decoded(message) for message in calls(client, EXECUTE_STATEMENT)]
    assert all(call.session == opened.session for call in found)
    assert all(call.run_async is run_async for call in found), "whether its reply is its end"
    texts = [call.statement or "" for call in found]
    assert [text[: len(start)] for text, start in zip(texts, statements, strict=True)] == statements


@pytest.mark.parametrize("client", ["beeline", "pyhive"])
@pytest.mark.parametrize("statement", ["", "SELECT 'é𝄞'", "x" * 5000])
def test_replacing_a_statement_leaves_every_other_byte(client: str, statement: str) -> None:
    for message in calls(client, EXECUTE_STATEMENT):
        call = decoded(message)
        assert call.statement is not None
        replaced = replace_statement(message.raw, call.span, statement)
        again = decoded(Message(message.header, replaced))
        assert again.statement == statement
        assert replace_statement(replaced, again.span, call.statement) == message.raw


def execute_call(*fields: tuple[int, Kind, bytes]) -> Message:
    writer = Writer().header(EXECUTE_STATEMENT, MessageType.CALL, 1).struct(1)
    for field_id, kind, encoded in fields:
        writer.raw(field_id, kind, encoded)
    raw = writer.stop().stop().to_bytes()
    return Message(read_header(raw), raw)


def text(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def test_a_statement_that_is_not_utf8_is_left_alone() -> None:
    call = decoded(execute_call((1, Kind.STRUCT, SESSION), (2, Kind.STRING, text(b"\xff"))))
    assert call.statement is None


@pytest.mark.parametrize(
    "fields",
    [
        [(2, Kind.STRING, text(b"SELECT 1"))],
        [(1, Kind.STRUCT, SESSION)],
        [(1, Kind.STRUCT, SESSION), (2, Kind.STRING, text(b"a")), (2, Kind.STRING, text(b"b"))],
        [(1, Kind.STRUCT, SESSION), (2, Kind.I32, bytes(4))],
    ],
)
def test_a_call_without_one_session_and_one_statement_is_left_alone(
    fields: list[tuple[int, Kind, bytes]],
) -> None:
    assert decode_statement_call(execute_call(*fields)) is None


def test_of_an_argument_that_stands_twice_the_one_counts_that_the_server_acts_on() -> None:
    decoy, acted_on = (execute_call((1, Kind.STRUCT, handle)) for handle in (SESSION, OTHER_SESSION))
    argument = slice(decoy.header.body_offset, -1)
    raw = decoy.raw[:-1] + acted_on.raw[argument] + b"\0"
    assert decode_session_of_call(Message(decoy.header, raw)) == OTHER_SESSION
    twice = execute_call((1, Kind.STRUCT, SESSION), (1, Kind.STRUCT, OTHER_SESSION))
    assert decode_session_of_call(twice) == OTHER_SESSION


def test_unknown_fields_of_a_newer_protocol_are_passed_over() -> None:
    call = decoded(execute_call((99, Kind.I64, bytes(8)), (1, Kind.STRUCT, SESSION), (2, Kind.STRING, text(b"S"))))
    assert call.statement == "S"
    status = Writer().i32(1, 0).i64(99, 8).stop().to_bytes()
    assert decode_status_only(Reader(Writer().raw(1, Kind.STRUCT, status).stop().to_bytes())).ok


@pytest.mark.parametrize("settings", [b"", struct.pack(">BBi", Kind.STRING, Kind.STRING, 0)])
@pytest.mark.parametrize("run_async", [b"", b"\0", b"\1"])
@pytest.mark.parametrize("timeout", [b"", struct.pack(">q", 5)])
@pytest.mark.parametrize("statement", [b"", b"SELECT 1", b"\xff", b"\0\0"])
def test_a_statement_is_read_alike_in_the_usual_form_and_field_by_field(
    settings: bytes, run_async: bytes, timeout: bytes, statement: bytes
) -> None:
    options = ((3, Kind.MAP, settings), (4, Kind.BOOL, run_async), (5, Kind.I64, timeout))
    fields = [
        (1, Kind.STRUCT, USUAL_SESSION),
        (2, Kind.STRING, text(statement)),
        *(each for each in options if each[2]),
    ]
    usual = decode_statement_call(execute_call(*fields))
    by_field = decode_statement_call(execute_call(*fields, (99, Kind.I64, bytes(8))))
    assert usual == by_field
    assert usual is not None
    assert (usual.session, usual.run_async) == (USUAL_SESSION, run_async == b"\1")


@pytest.mark.parametrize("length", [-1, 9, 1_000_000])
def test_a_statement_that_announces_another_length_than_it_has_is_an_error(length: int) -> None:
    call = execute_call((1, Kind.STRUCT, USUAL_SESSION), (2, Kind.STRING, struct.pack(">i", length) + b"SELECT 1"))
    with pytest.raises((RemoteProtocolError, IncompleteError)):
        decode_statement_call(call)


def test_our_own_execute_is_read_as_a_clients() -> None:
    raw = encode_execute(1, SESSION, "SELECT 1", 5)
    call = decoded(Message(read_header(raw), raw))
    assert (call.session, call.statement) == (SESSION, "SELECT 1")


def test_the_session_of_a_close_is_found() -> None:
    raw = encode_close_session(1, SESSION)
    assert decode_session_of_call(Message(read_header(raw), raw)) == SESSION


def test_handles_and_statements_do_not_show_in_logs() -> None:
    call = decode_statement_call(execute_call((1, Kind.STRUCT, SESSION), (2, Kind.STRING, text(b"SELECT 1"))))
    assert "SELECT" not in repr(call)
    assert "secret" not in repr(call)


def test_replies_of_a_real_server_are_read() -> None:
    (execute,) = [decode_operation_reply(reader) for reader in replies("beeline", "ExecuteStatement")]
    assert execute.status.ok
    assert execute.operation is not None
    states = [decode_state_reply(reader) for reader in replies("beeline", "GetOperationStatus")]
    assert {state.state.name for state in states if state.state is not None} == {"FINISHED"}


def test_columns_and_rows_of_a_real_result_are_read() -> None:
    (metadata,) = [decode_metadata_reply(reader) for reader in replies("pyhive", "GetResultSetMetadata")]
    assert [(column.name, column.type_name) for column in metadata.columns] == [
        *(("id", "bigint"), ("s", "string"), ("d", "decimal(10,2)"), ("b", "boolean"), ("t", "tinyint")),
        *(("m", "smallint"), ("i", "int"), ("f", "double"), ("x", "binary"), ("dt", "date"), ("n", "void")),
    ]
    first, last = [decode_fetch_reply(reader) for reader in replies("pyhive", "FetchResults")]
    same = (True, 1, 2, 3, 2.5, b"\x00\xff", "2020-01-01", None)
    assert list(zip(*first.columns, strict=True)) == [
        *((0, "é", "0.00", *same), (1, None, "1.00", *same), (2, "é", "2.00", *same)),
    ]
    assert last.row_count == 0


def batch(*columns: bytes) -> Reader:
    encoded = struct.pack(">Bi", Kind.STRUCT, len(columns)) + b"".join(columns)
    status = Writer().i32(1, 0).stop().to_bytes()
    writer = Writer().raw(1, Kind.STRUCT, status).struct(3).raw(3, Kind.LIST, encoded).stop().stop()
    return Reader(writer.to_bytes())


def column(field_id: int, item: Kind, values: bytes, count: int, nulls: bytes = b"") -> bytes:
    body = Writer().raw(1, Kind.LIST, struct.pack(">Bi", item, count) + values).binary(2, nulls).stop()
    return Writer().raw(field_id, Kind.STRUCT, body.to_bytes()).stop().to_bytes()


def test_the_nulls_bitmap_counts_from_the_lowest_bit_and_may_be_short() -> None:
    values = struct.pack(">10i", *range(10))
    reply = decode_fetch_reply(batch(column(4, Kind.I32, values, 10, b"\x81")))
    assert reply.columns == ((None, 1, 2, 3, 4, 5, 6, None, 8, 9),)
    reply = decode_fetch_reply(batch(column(4, Kind.I32, values, 10, b"\x00\x02")))
    assert reply.columns == ((0, 1, 2, 3, 4, 5, 6, 7, 8, None),)


def test_columns_of_unequal_length_are_refused() -> None:
    short, long = (column(2, Kind.BYTE, bytes(count), count) for count in (1, 2))
    with pytest.raises(RemoteProtocolError, match="differ in length"):
        decode_fetch_reply(batch(short, long))


def test_a_string_that_is_not_utf8_is_unreadable_rather_than_altered() -> None:
    with pytest.raises(UnreadableError, match="not UTF-8"):
        decode_fetch_reply(batch(column(7, Kind.STRING, text(b"\xff"), 1)))


def test_a_column_of_an_unknown_kind_is_unreadable() -> None:
    with pytest.raises(UnreadableError, match="unknown kind 9"):
        decode_fetch_reply(batch(column(9, Kind.I32, bytes(4), 1)))


def test_a_reply_to_another_call_is_refused() -> None:
    raw = Writer().header("GetInfo", MessageType.REPLY, 3).stop().to_bytes()
    with pytest.raises(RemoteProtocolError, match="expected the reply to FetchResults with seqid 3, got GetInfo"):
        expect_reply(raw, "FetchResults", 3)


@pytest.mark.parametrize("client", ["beeline", "pyhive"])
@pytest.mark.parametrize("name", ["GetOperationStatus", "FetchResults", "CloseOperation"])
def test_the_calls_of_real_clients_name_the_operation_that_was_made(client: str, name: str) -> None:
    made = [decode_operation_reply(reader).operation for reader in replies(client, EXECUTE_STATEMENT)]
    known = [operation_id_of(operation) for operation in made if operation is not None]
    other = OperationId(Writer().binary(1, b"other").stop().to_bytes())
    named = calls(client, name)
    assert known
    for message in named:
        found = decode_operation_of_call(message)
        assert found is not None
        identifier, span = found
        assert identifier in known
        redirected = replace_operation(message, span, other)
        again = decode_operation_of_call(redirected)
        assert again is not None
        assert again[0] == other
        assert replace_operation(redirected, again[1], identifier) == message


@pytest.mark.parametrize("client", ["beeline", "pyhive"])
def test_real_clients_fetch_rows_and_say_so(client: str) -> None:
    assert all(asks_for_rows(message) for message in calls(client, "FetchResults"))


def open_call(configuration: dict[str, str]) -> Message:
    raw = encode_open_session(1, "user", "password", configuration)
    return Message(read_header(raw), raw)


@pytest.mark.parametrize("configuration", [{}, {"use:database": "é"}, {str(i): "" for i in range(100)}])
def test_the_settings_of_a_session_are_read(configuration: dict[str, str]) -> None:
    assert decode_configuration(open_call(configuration)) == configuration


@pytest.mark.parametrize(
    "configuration",
    [{str(i): "" for i in range(CONFIGURATION_ENTRIES_MAX + 1)}, {"a": "x" * CONFIGURATION_BYTES_MAX}],
    ids=["too many", "too long"],
)
def test_settings_past_their_bounds_are_not_read_at_all(configuration: dict[str, str]) -> None:
    assert decode_configuration(open_call(configuration)) is None
