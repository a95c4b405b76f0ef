"""Replies of TCLIService that the proxy reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from proxy.wire.hs2.calls import OperationHandle, OperationState, SessionHandle, expect_operation_state
from proxy.wire.hs2.handles import USUAL_HANDLE
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.reader import Header, Reader, read_header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

_HAS_RESULT_SET = (9, Kind.BOOL)


class StatusCode(IntEnum):
    """TStatusCode."""

    SUCCESS = 0
    SUCCESS_WITH_INFO = 1
    STILL_EXECUTING = 2
    ERROR = 3
    INVALID_HANDLE = 4


@dataclass(frozen=True)
class Status:
    """TStatus: whether a call succeeded, with the server's own words if it failed."""

    code: int
    message: str | None = None
    sql_state: str | None = None
    error_code: int | None = None
    # The stack trace, line by line, with the messages of all causes.
    info: tuple[str, ...] = ()

    @property
    def all_words(self) -> str:
        """The message and those of its causes: a call waiting for its statement has the cause only in `info`."""
        return "\n".join((self.message or "", *self.info))

    @property
    def ok(self) -> bool:
        """True if the call succeeded."""
        return self.code in (StatusCode.SUCCESS, StatusCode.SUCCESS_WITH_INFO)


@dataclass(frozen=True)
class SessionReply:
    """The reply to OpenSession."""

    status: Status
    protocol_version: int
    session: SessionHandle | None = field(repr=False)


@dataclass(frozen=True)
class OperationReply:
    """The reply to ExecuteStatement."""

    status: Status
    operation: OperationHandle | None = field(repr=False)


@dataclass(frozen=True)
class StateReply:
    """The reply to GetOperationStatus: `status` is the call's own, the rest is the operation's."""

    status: Status
    state: OperationState | None
    message: str | None
    sql_state: str | None
    error_code: int | None


def expect_reply(raw: bytes, name: str, seqid: int) -> Header:
    """Return the header of a reply. Raises RemoteProtocolError if it does not answer that call."""
    header = read_header(raw)
    if header.type not in (MessageType.REPLY, MessageType.EXCEPTION):
        raise RemoteProtocolError(f"expected a reply to {name}, got a message of type {header.type.name}")
    if (header.name, header.seqid) != (name, seqid):
        raise RemoteProtocolError(
            f"expected the reply to {name} with seqid {seqid}, got {header.name} with seqid {header.seqid}"
        )
    return header


def open_reply(raw: bytes, header: Header) -> Reader:
    """Return a reader at the start of the reply's struct."""
    reader = Reader(raw, header.body_offset)
    if header.type is MessageType.EXCEPTION:
        raise RemoteProtocolError(f"{header.name} was answered with an exception: {_exception_text(reader)}")
    for field_id, kind in reader.fields():
        if (field_id, kind) == (0, Kind.STRUCT):
            return reader
        reader.skip(kind)
    raise RemoteProtocolError(f"the reply to {header.name} has no result")


def _exception_text(reader: Reader) -> str:
    for field_id, kind in reader.fields():
        if (field_id, kind) == (1, Kind.STRING):
            return reader.text()
        reader.skip(kind)
    return "no message"


def read_status(reader: Reader) -> Status:
    """Decode TStatus."""
    code, message, sql_state, error_code = -1, None, None, None
    info: tuple[str, ...] = ()
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.I32):
                code = reader.i32()
            case (2, Kind.LIST):
                info = tuple(_line(reader, item) for item in reader.items())
            case (3, Kind.STRING):
                sql_state = reader.text()
            case (4, Kind.I32):
                error_code = reader.i32()
            case (5, Kind.STRING):
                message = reader.text()
            case _:
                reader.skip(kind)
    return Status(code, message, sql_state, error_code, info)


def _line(reader: Reader, item: Kind) -> str:
    if item is Kind.STRING:
        return reader.text()
    reader.skip(item)
    return ""


_NO_STATUS = Status(-1, "the reply carries no status")


def decode_status_only(reader: Reader) -> Status:
    """Decode the status of a reply and ignore its other fields."""
    for field_id, kind in reader.fields():
        if (field_id, kind) == (1, Kind.STRUCT):
            return read_status(reader)
        reader.skip(kind)
    return _NO_STATUS


def decode_session_reply(reader: Reader) -> SessionReply:
    """Decode TOpenSessionResp."""
    status, version, session = _NO_STATUS, -1, None
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.STRUCT):
                status = read_status(reader)
            case (2, Kind.I32):
                version = reader.i32()
            case (3, Kind.STRUCT):
                session = SessionHandle(bytes(reader.skip(kind)))
            case _:
                reader.skip(kind)
    return SessionReply(status, version, session)


def decode_operation_reply(reader: Reader) -> OperationReply:
    """Decode TExecuteStatementResp."""
    status, operation = _NO_STATUS, None
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.STRUCT):
                status = read_status(reader)
            case (2, Kind.STRUCT):
                operation = OperationHandle(bytes(reader.skip_usual(kind, USUAL_HANDLE)))
            case _:
                reader.skip(kind)
    return OperationReply(status, operation)


def decode_state_reply(reader: Reader) -> StateReply:
    """Decode TGetOperationStatusResp."""
    status, state, message, sql_state, error_code = _NO_STATUS, None, None, None, None
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.STRUCT):
                status = read_status(reader)
            case (2, Kind.I32):
                state = expect_operation_state(reader.i32())
            case (3, Kind.STRING):
                sql_state = reader.text()
            case (4, Kind.I32):
                error_code = reader.i32()
            case (5, Kind.STRING):
                message = reader.text()
            case _:
                reader.skip(kind)
    return StateReply(status, state, message, sql_state, error_code)


def with_has_result_set(raw: bytes, header: Header, has_result_set: bool) -> bytes:  # noqa: FBT001 - a field's value
    """Return a reply to GetOperationStatus that says if there is a result set; unchanged if it says so itself."""
    reader = open_reply(raw, header)
    for found in reader.fields():
        reader.skip(found[1])
        if found == _HAS_RESULT_SET:
            return raw
    end = reader.position - 1
    return raw[:end] + Writer().boolean(_HAS_RESULT_SET[0], has_result_set).to_bytes() + raw[end:]
