"""Our readers of calls and replies beside Thrift's own library: they read the same, or one of them refuses.

HiveServer2 reads with what Thrift generates, so what we understand otherwise is understood wrongly.
"""

from collections.abc import Callable
from typing import Any

from TCLIService import TCLIService, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from proxy.wire.hs2 import calls as hs2_calls
from proxy.wire.hs2.replies import (
    Status,
    decode_operation_reply,
    decode_session_reply,
    decode_state_reply,
    decode_status_only,
    open_reply,
)
from proxy.wire.hs2.result_set import UnreadableError, decode_fetch_reply, decode_metadata_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Header, Reader, read_header
from proxy.wire.thrift.skip import ValueSkipper
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

# Far above what an input holds: Thrift's library is to refuse lengths before it allocates them.
LENGTH_MAX = 1 << 16

CALLS = (
    *("OpenSession", "CloseSession", "ExecuteStatement", "GetOperationStatus", "FetchResults"),
    *("CancelOperation", "CloseOperation", "GetResultSetMetadata", "GetInfo", "GetTypeInfo", "GetCatalogs"),
    *("GetSchemas", "GetTables", "GetTableTypes", "GetColumns", "GetFunctions", "GetPrimaryKeys"),
)
REPLIES = ("OpenSession", "ExecuteStatement", "GetOperationStatus", "FetchResults", "GetResultSetMetadata")

_SEQID = 7
# What Thrift's names for the types are in SQL, where that is not the same word.
_THRIFT_NAMES: dict[int, str] = ttypes.TTypeId._VALUES_TO_NAMES  # noqa: SLF001 - public in other languages
_SQL_NAMES = {"union": "uniontype", "null": "void"}


def header(data: bytes) -> None:
    """The start of a message."""
    try:
        ours = read_header(data)
    except (RemoteProtocolError, IncompleteError):
        return
    name, kind, seqid = _protocol(data, strict=True).readMessageBegin()
    assert (ours.type, ours.seqid) == (kind, seqid)
    # A name that no method has is only shown to people, by each in another way.
    assert ours.name == name or not name.isascii()


def calls(data: bytes) -> None:
    """A call of a client: the first byte says which, the rest is its arguments."""
    name, message = _message(CALLS, MessageType.CALL, data)
    if message is None:
        return
    theirs = _read_by_thrift(getattr(TCLIService, f"{name}_args")(), message)
    try:
        _compare_handles(message, theirs)
        if name == hs2_calls.EXECUTE_STATEMENT:
            _compare_statements(message, theirs)
        elif name == hs2_calls.FETCH_RESULTS:
            rows = hs2_calls.asks_for_rows(message)
            assert theirs is None or theirs.req is None or rows == (theirs.req.fetchType in (0, None))
        elif name == hs2_calls.OPEN_SESSION:
            settings = hs2_calls.decode_configuration(message)
            assert theirs is None or settings in (None, (theirs.req and theirs.req.configuration) or {})
    except RemoteProtocolError:
        return


def _compare_handles(message: Message, theirs: Any) -> None:
    session, operation = hs2_calls.decode_session_of_call(message), hs2_calls.decode_operation_of_call(message)
    if theirs is None:
        return
    request = theirs.req
    for name, kind in (("operationHandle", ttypes.TOperationHandle), ("sessionHandle", ttypes.TSessionHandle)):
        if hasattr(request, name):
            handle = getattr(request, name)
            assert _decoded(kind, session) == handle
            identifier = handle and (handle.operationId if name == "operationHandle" else handle.sessionId)
            assert _decoded(ttypes.THandleIdentifier, operation and operation[0]) == identifier
            if handle and name == "operationHandle":
                assert hs2_calls.has_result_set_of_call(message) == handle.hasResultSet
    if operation is not None:
        other = hs2_calls.OperationId(Writer().binary(1, b"other").stop().to_bytes())
        redirected = hs2_calls.replace_operation(message, operation[1], other)
        again = hs2_calls.decode_operation_of_call(redirected)
        assert again is not None
        assert again[0] == other
        assert hs2_calls.replace_operation(redirected, again[1], operation[0]) == message


def _compare_statements(message: Message, theirs: Any) -> None:
    call = hs2_calls.decode_statement_call(message)
    if call is None or call.statement is None:
        return
    text = "SELECT 'another'"
    replaced = Message(message.header, hs2_calls.replace_statement(message.raw, call.span, text))
    again = hs2_calls.decode_statement_call(replaced)
    assert again is not None
    assert (again.statement, again.session, again.run_async) == (text, call.session, call.run_async)
    assert hs2_calls.replace_statement(replaced.raw, again.span, call.statement) == message.raw
    if theirs is not None:
        request = theirs.req
        assert (call.statement, call.run_async) == (request.statement, bool(request.runAsync))
        request.statement = text
        assert _read_by_thrift(TCLIService.ExecuteStatement_args(), replaced) == theirs


def replies(data: bytes) -> None:
    """A reply of a server: the first byte says to which call, the rest is its result.

    Compared is what Thrift writes of it again: of a field that stands twice we read the first one or the last one,
    as is easiest, because no server sends such a reply.
    """
    name, message = _message(REPLIES, MessageType.REPLY, data)
    if message is None:
        return
    _ = _read_by_us(name, message)
    theirs = _read_by_thrift(getattr(TCLIService, f"{name}_result")(), message)
    if theirs is not None and theirs.success is not None and (again := _written(theirs)) is not None:
        ours = _read_by_us(name, _with_header(name, MessageType.REPLY, again))
        assert ours is None or repr(ours) == repr(_OF_THRIFT[name](theirs.success))


def _read_by_us(name: str, message: Message) -> tuple[object, ...] | None:
    try:
        reply = open_reply(message.raw, message.header)
        assert decode_status_only(Reader(message.raw, reply.position)).code is not None
        return _OURS[name](reply)
    except (RemoteProtocolError, IncompleteError, UnreadableError):
        return None


def _our_status(status: Status) -> tuple[object, ...]:
    return status.code, status.message, status.sql_state


def _our_session(reader: Reader) -> tuple[object, ...]:
    reply = decode_session_reply(reader)
    return _our_status(reply.status), reply.protocol_version, _decoded(ttypes.TSessionHandle, reply.session)


def _our_operation(reader: Reader) -> tuple[object, ...]:
    reply = decode_operation_reply(reader)
    return _our_status(reply.status), _decoded(ttypes.TOperationHandle, reply.operation)


def _our_state(reader: Reader) -> tuple[object, ...]:
    reply = decode_state_reply(reader)
    state = None if reply.state is None else int(reply.state)
    return _our_status(reply.status), state, reply.message, reply.sql_state


def _our_rows(reader: Reader) -> tuple[object, ...]:
    reply = decode_fetch_reply(reader)
    return _our_status(reply.status), [list(column) for column in reply.columns]


def _our_columns(reader: Reader) -> tuple[object, ...]:
    reply = decode_metadata_reply(reader)
    return _our_status(reply.status), [(column.name, column.type_name) for column in reply.columns]


def _status(status: Any) -> tuple[object, ...]:
    if status is None:
        return -1, "the reply carries no status", None
    return -1 if status.statusCode is None else status.statusCode, status.errorMessage, status.sqlState


def _session(reply: Any) -> tuple[object, ...]:
    version = -1 if reply.serverProtocolVersion is None else reply.serverProtocolVersion
    return _status(reply.status), version, reply.sessionHandle


def _operation(reply: Any) -> tuple[object, ...]:
    return _status(reply.status), reply.operationHandle


def _state(reply: Any) -> tuple[object, ...]:
    return _status(reply.status), reply.operationState, reply.errorMessage, reply.sqlState


def _rows(reply: Any) -> tuple[object, ...]:
    columns = (reply.results and reply.results.columns) or []
    return _status(reply.status), [_values(column) for column in columns]


def _values(column: Any) -> list[object]:
    typed = [value for value in vars(column).values() if value is not None][-1]
    nulls = typed.nulls or b""
    bits = "".join(f"{byte:08b}"[::-1] for byte in nulls).ljust(len(typed.values or ()), "0")
    return [None if bit == "1" else value for value, bit in zip(typed.values or (), bits, strict=False)]


def _columns(reply: Any) -> tuple[object, ...]:
    columns = (reply.schema and reply.schema.columns) or []
    return _status(reply.status), [(column.columnName or "", _type_name(column.typeDesc)) for column in columns]


def _type_name(described: Any) -> str:
    if described is None:
        return ""
    primitive = described.types[0].primitiveEntry
    words = None if primitive is None else _THRIFT_NAMES.get(primitive.type)
    if primitive is None or words is None:
        return "unknown"
    name = words.removesuffix("_TYPE").lower()
    found = (primitive.typeQualifiers and primitive.typeQualifiers.qualifiers) or {}
    numbers = [found[key].i32Value for key in ("precision", "scale") if key in found]
    if name == "decimal" and len(numbers) == 2 and None not in numbers:
        return f"decimal({numbers[0]},{numbers[1]})"
    return _SQL_NAMES.get(name, name)


_OURS: dict[str, Callable[[Reader], tuple[object, ...]]] = dict(
    zip(REPLIES, (_our_session, _our_operation, _our_state, _our_rows, _our_columns), strict=True)
)
_OF_THRIFT: dict[str, Callable[[Any], tuple[object, ...]]] = dict(
    zip(REPLIES, (_session, _operation, _state, _rows, _columns), strict=True)
)


def _message(names: tuple[str, ...], kind: MessageType, data: bytes) -> tuple[str, Message | None]:
    """A message of the name that the first byte says, where the rest begins with a whole struct."""
    name, body = names[data[0] % len(names)] if data else names[0], data[1:]
    try:
        end = ValueSkipper(Kind.STRUCT, 0).advance(body)
    except RemoteProtocolError:
        end = None
    return name, None if end is None else _with_header(name, kind, body[:end])


def _with_header(name: str, kind: MessageType, body: bytes) -> Message:
    raw = Writer().header(name, kind, _SEQID).to_bytes() + body
    found: Header = read_header(raw)
    return Message(found, raw)


class _Protocol(TBinaryProtocol):  # type: ignore[misc]
    """Python's own refuses text that is not UTF-8 even where it skips it, which Java's does not."""

    def readString(self) -> str:  # noqa: N802 - Thrift's name
        text: str = self.readBinary().decode("utf-8", "replace")
        return text


def _protocol(data: bytes, *, strict: bool = False) -> TBinaryProtocol:
    limits = {"string_length_limit": LENGTH_MAX, "container_length_limit": LENGTH_MAX}
    return _Protocol(TMemoryBuffer(data), strict, **limits)


def _read_by_thrift(struct: Any, message: Message) -> Any:
    """The arguments or the result as Thrift reads them, or None where it does not."""
    try:
        struct.read(_protocol(message.raw[message.header.body_offset :]))
    except Exception:  # noqa: BLE001 - it refuses in many ways
        return None
    return struct


def _written(struct: Any) -> bytes | None:
    protocol = _protocol(b"")
    try:
        struct.write(protocol)
    except Exception:  # noqa: BLE001 - it reads structs that it then cannot write
        return None
    written: bytes = protocol.trans.getvalue()
    return written


def _decoded(kind: Any, encoded: bytes | None) -> Any:
    if encoded is None:
        return None
    struct = kind()
    try:
        struct.read(_protocol(encoded))
    except Exception:  # noqa: BLE001 - it refuses in many ways
        return "refused"
    return struct
