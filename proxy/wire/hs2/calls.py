"""Calls of HiveServer2's TCLIService that the proxy reads, and calls that it makes itself.

A handle is carried as the encoded bytes of its struct: the proxy compares it and sends it back, and never decodes
it. Handles are secrets (a handle works from any connection), so nothing here prints them.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NewType

from proxy.wire.hs2.handles import usual_first_handle, usual_handle_of_call, usual_identifier_of
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Reader
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

SessionHandle = NewType("SessionHandle", bytes)
OperationHandle = NewType("OperationHandle", bytes)
# The identifier in an operation's handle; the rest of the handle says what kind of operation it is.
OperationId = NewType("OperationId", bytes)

OPEN_SESSION: Final = "OpenSession"
CLOSE_SESSION: Final = "CloseSession"
EXECUTE_STATEMENT: Final = "ExecuteStatement"
GET_OPERATION_STATUS: Final = "GetOperationStatus"
GET_RESULT_SET_METADATA: Final = "GetResultSetMetadata"
FETCH_RESULTS: Final = "FetchResults"
CANCEL_OPERATION: Final = "CancelOperation"
CLOSE_OPERATION: Final = "CloseOperation"

# HIVE_CLI_SERVICE_PROTOCOL_V6 brought columnar results. V10 is the newest that Spark speaks.
PROTOCOL_V6: Final = 5
PROTOCOL_V10: Final = 9

# Drivers send a handful of settings. A map past these bounds is not read at all.
CONFIGURATION_ENTRIES_MAX: Final = 100
CONFIGURATION_BYTES_MAX: Final = 64 * 1024

_FETCH_NEXT: Final = 0
_STATUS_SUCCESS: Final = 0
_STATUS_ERROR: Final = 3
# A type of TApplicationException.
_INTERNAL_ERROR: Final = 6
_LENGTH = struct.Struct(">i")
_STATEMENT_FIELD: Final = b"\x0b\0\x02"
# An ExecuteStatement call from its statement on, as clients encode it: no settings, whether it runs in the
# background, its time limit. A call of another form is read field by field, with the same result.
_USUAL_OPTIONS: Final = re.compile(
    rb"(?:\x0d\0\x03\x0b\x0b\0{4})?(?:\x02\0\x04(?P<run_async>.))?(?:\x0a\0\x05.{8})?\0\0", re.DOTALL
)


class OperationState(IntEnum):
    """TOperationState; the misspelling of UNKNOWN in the original is not kept."""

    INITIALIZED = 0
    RUNNING = 1
    FINISHED = 2
    CANCELED = 3
    CLOSED = 4
    ERROR = 5
    UNKNOWN = 6
    PENDING = 7
    TIMEDOUT = 8


# States of an operation that still runs, or has not begun.
UNFINISHED: Final = frozenset({OperationState.INITIALIZED, OperationState.PENDING, OperationState.RUNNING})


@dataclass(frozen=True)
class StatementCall:
    """An ExecuteStatement call. `statement` is None if the bytes are not UTF-8."""

    session: SessionHandle = field(repr=False)
    statement: str | None = field(repr=False)
    # Position of the field's value in the message, its length prefix included.
    span: tuple[int, int]
    # If true the server replies at once, and reports the statement's end in a later GetOperationStatus.
    run_async: bool = False


def _field_span(raw: bytes, start: int, field_id: int, kind: Kind) -> tuple[int, int] | None:
    """Return the span of a field's value in the struct that begins at `start`.

    If the field occurs twice, its last value counts: all readers that Thrift generates do so, and the proxy has to
    read the value that the server acts on.
    """
    reader = Reader(raw, start)
    found = None
    for known, known_kind in reader.fields():
        begin = reader.position
        reader.skip(known_kind)
        if (known, known_kind) == (field_id, kind):
            found = begin, reader.position
    return found


def _bytes_at(raw: bytes, span: tuple[int, int]) -> bytes:
    start, stop = span
    return raw[start:stop]


def _argument_start(message: Message) -> int | None:
    """Return the start of the struct that every TCLIService call has as its field 1."""
    span = _field_span(message.raw, message.header.body_offset, 1, Kind.STRUCT)
    return None if span is None else span[0]


def _argument_field_span(message: Message, field_id: int, kind: Kind) -> tuple[int, int] | None:
    """Return the span of a field of the struct that every TCLIService call has as its field 1."""
    start = _argument_start(message)
    return None if start is None else _field_span(message.raw, start, field_id, kind)


def decode_statement_call(message: Message) -> StatementCall | None:
    """Decode an ExecuteStatement call. None if it has not exactly one session and one statement."""
    return _usual_statement_call(message) or _read_statement_call(message)


def _usual_statement_call(message: Message) -> StatementCall | None:
    raw, handle = message.raw, usual_first_handle(message)
    if handle is None or not raw.startswith(_STATEMENT_FIELD, handle[1]):
        return None
    start = handle[1] + len(_STATEMENT_FIELD)
    length = int.from_bytes(raw[start : start + _LENGTH.size], signed=True)
    span = start, start + _LENGTH.size + length
    options = None if length < 0 else _USUAL_OPTIONS.fullmatch(raw, span[1])
    if options is None:
        return None
    run_async = options["run_async"] not in (None, b"\0")
    return StatementCall(SessionHandle(raw[handle[0] : handle[1]]), _statement_text(raw, span), span, run_async)


def _read_statement_call(message: Message) -> StatementCall | None:
    start = _argument_start(message)
    if start is None:
        return None
    reader = Reader(message.raw, start)
    sessions: list[bytes] = []
    spans: list[tuple[int, int]] = []
    run_async = False
    for field_id, kind in reader.fields():
        start = reader.position
        encoded = reader.skip(kind)
        if (field_id, kind) == (4, Kind.BOOL):
            run_async = encoded[0] != 0
        elif (field_id, kind) == (1, Kind.STRUCT):
            sessions.append(bytes(encoded))
        elif (field_id, kind) == (2, Kind.STRING):
            spans.append((start, reader.position))
    if len(sessions) != 1 or len(spans) != 1:
        return None
    text = _statement_text(message.raw, spans[0])
    return StatementCall(SessionHandle(sessions[0]), text, spans[0], run_async)


def _statement_text(raw: bytes, span: tuple[int, int]) -> str | None:
    try:
        return raw[span[0] + _LENGTH.size : span[1]].decode()
    except UnicodeDecodeError:
        return None


def decode_statement_leniently(message: Message, call: StatementCall) -> str:
    """Return the statement as the server reads it: bytes that are not UTF-8 become replacement characters."""
    start, stop = call.span
    return message.raw[start + _LENGTH.size : stop].decode("utf-8", "replace")


def replace_statement(raw: bytes, span: tuple[int, int], statement: str) -> bytes:
    """Return the message with another statement; every other byte stays."""
    encoded = statement.encode()
    return b"".join((raw[: span[0]], _LENGTH.pack(len(encoded)), encoded, raw[span[1] :]))


def decode_session_of_call(message: Message) -> SessionHandle | None:
    """Return the session that a CloseSession call names."""
    span = _argument_field_span(message, 1, Kind.STRUCT)
    return None if span is None else SessionHandle(_bytes_at(message.raw, span))


def decode_operation_of_call(message: Message) -> tuple[OperationId, tuple[int, int]] | None:
    """Return the operation that a call names, and its span. Every call that names one has it in its first field.

    A session's handle looks the same and is found too. That does no harm: identifiers are random, so no operation
    has the identifier of a session.
    """
    usual = usual_handle_of_call(message)
    if usual is not None:
        span: tuple[int, int] | None = usual.identifier
    else:
        handle = _argument_field_span(message, 1, Kind.STRUCT)
        span = None if handle is None else _field_span(message.raw, handle[0], 1, Kind.STRUCT)
    return None if span is None else (OperationId(_bytes_at(message.raw, span)), span)


def has_result_set_of_call(message: Message) -> bool | None:
    """True if the operation that a call names has a result set, as its handle says; None if it does not say."""
    usual = usual_handle_of_call(message)
    if usual is not None:
        return usual.has_result_set
    handle = _argument_field_span(message, 1, Kind.STRUCT)
    span = None if handle is None else _field_span(message.raw, handle[0], 3, Kind.BOOL)
    return None if span is None else any(_bytes_at(message.raw, span))


def asks_for_rows(message: Message) -> bool:
    """True if a FetchResults call asks for the operation's rows, and not for its log."""
    start = _argument_start(message)
    if start is None:
        return False
    kind_of_rows = _field_span(message.raw, start, 4, Kind.I16)
    return kind_of_rows is None or not any(_bytes_at(message.raw, kind_of_rows))


def operation_id_of(operation: OperationHandle) -> OperationId | None:
    """Return the identifier in an operation's handle."""
    usual = usual_identifier_of(operation)
    if usual is not None:
        return OperationId(usual)
    span = _field_span(operation, 0, 1, Kind.STRUCT)
    return None if span is None else OperationId(_bytes_at(operation, span))


def replace_operation(message: Message, span: tuple[int, int], operation: OperationId) -> Message:
    """Return the call about another operation; every other byte stays."""
    return Message(message.header, message.raw[: span[0]] + operation + message.raw[span[1] :])


def decode_configuration(message: Message) -> dict[str, str] | None:
    """Return the settings that an OpenSession call asks for, or None if they are too many or too long."""
    if _argument_start(message) is None:
        return None
    span = _argument_field_span(message, 4, Kind.MAP)
    if span is None:
        return {}
    start, stop = span
    return _settings(Reader(message.raw, start)) if stop - start <= CONFIGURATION_BYTES_MAX else None


def _settings(reader: Reader) -> dict[str, str] | None:
    settings: dict[str, str] = {}
    for name in reader.map_keys(Kind.STRING):
        if len(settings) >= CONFIGURATION_ENTRIES_MAX:
            return None
        settings[name] = reader.text()
    return settings


def _call(name: str, seqid: int) -> Writer:
    return Writer().header(name, MessageType.CALL, seqid).struct(1)


def _finish(writer: Writer) -> bytes:
    return writer.stop().stop().to_bytes()


def encode_open_session(seqid: int, user: str, password: str, configuration: dict[str, str]) -> bytes:
    """Encode OpenSession at the newest protocol; the server answers with the protocol that it will speak."""
    call = _call(OPEN_SESSION, seqid).i32(1, PROTOCOL_V10)
    call.binary(2, user.encode()).binary(3, password.encode()).string_map(4, configuration)
    return _finish(call)


def encode_close_session(seqid: int, session: SessionHandle) -> bytes:
    """Encode CloseSession."""
    return _finish(_call(CLOSE_SESSION, seqid).raw(1, Kind.STRUCT, session))


def encode_execute(seqid: int, session: SessionHandle, statement: str, timeout_s: int) -> bytes:
    """Encode ExecuteStatement in the background; the server itself cancels the statement after `timeout_s`."""
    call = _call(EXECUTE_STATEMENT, seqid).raw(1, Kind.STRUCT, session).binary(2, statement.encode())
    return _finish(call.boolean(4, value=True).i64(5, timeout_s))


def encode_fetch(seqid: int, operation: OperationHandle, rows_max: int) -> bytes:
    """Encode FetchResults for the next batch."""
    call = _call(FETCH_RESULTS, seqid).raw(1, Kind.STRUCT, operation)
    return _finish(call.i32(2, _FETCH_NEXT).i64(3, rows_max))


def encode_failure(
    name: str, seqid: int, message: str, sql_state: str | None = None, error_code: int | None = None
) -> bytes:
    """Encode the reply to a call that failed: a status alone, which is valid for the reply of every call."""
    status = Writer().i32(1, _STATUS_ERROR).binary(3, (sql_state or "").encode())
    if error_code is not None:
        status.i32(4, error_code)
    status.binary(5, message.encode())
    reply = Writer().header(name, MessageType.REPLY, seqid).struct(0)
    return _finish(reply.raw(1, Kind.STRUCT, status.stop().to_bytes()))


def encode_still_running(seqid: int) -> bytes:
    """Encode the server's answer to GetOperationStatus while the operation runs."""
    status = Writer().i32(1, _STATUS_SUCCESS).stop().to_bytes()
    reply = Writer().header(GET_OPERATION_STATUS, MessageType.REPLY, seqid).struct(0)
    return _finish(reply.raw(1, Kind.STRUCT, status).i32(2, OperationState.RUNNING))


def encode_refusal(sentence: str) -> bytes:
    """Encode an exception whose sentence clients show, whatever call they wait for: they ignore the name in it."""
    return encode_exception(OPEN_SESSION, 0, sentence)


def encode_unknown_call() -> bytes:
    """Encode a call that no server knows: the server answers with an exception and does nothing."""
    return _finish(_call("Starpruner", 1))


def encode_exception(name: str, seqid: int, message: str) -> bytes:
    """Encode the answer to a call that gets no reply: an exception."""
    exception = Writer().header(name, MessageType.EXCEPTION, seqid).binary(1, message.encode())
    return exception.i32(2, _INTERNAL_ERROR).stop().to_bytes()


def encode_operation_call(name: str, seqid: int, operation: OperationHandle) -> bytes:
    """Encode a call whose only field is the operation: to get its status or metadata, to cancel or close it."""
    return _finish(_call(name, seqid).raw(1, Kind.STRUCT, operation))


def expect_operation_state(number: int) -> OperationState:
    """Return the state that a reply names, or raise RemoteProtocolError."""
    try:
        return OperationState(number)
    except ValueError:
        raise RemoteProtocolError(f"expected an operation state of 0 to 8, got {number}") from None
