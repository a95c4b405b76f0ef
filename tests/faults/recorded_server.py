"""A HiveServer2 in this process that answers from a recording of Spark, so that faults cost milliseconds.

It logs anyone in, and knows the statements that the tests of faults come to, with the columns, rows or error that
Spark answered. `record` makes the recording; a test on Spark holds it to what Spark says.
"""

import itertools
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pyhive import hive
from server_state import Held, KnownState
from TCLIService import TCLIService, ttypes
from thrift.protocol import TBinaryProtocol
from thrift.transport import TTransport

from demo.hive import Endpoint

RECORDING: Final = Path(__file__).with_name("recorded_answers.json")

# Statements that run until somebody ends them.
ENDLESS: Final = "'sleep'"

_HOST: Final = "127.0.0.1"
_READ_BYTES: Final = 64 * 1024
# How TCLIService calls the values of a column.
_VALUES: Final = {
    "bool": "TBoolColumn",
    "byte": "TByteColumn",
    "i16": "TI16Column",
    "i32": "TI32Column",
    "i64": "TI64Column",
    "double": "TDoubleColumn",
    "string": "TStringColumn",
    "binary": "TBinaryColumn",
}
_PATH: Final = re.compile(r"(?<![\w.])/{0,2}(?:/[\w.+-]+){2,}")

_SASL_OK: Final = b"\x05\0\0\0\0"
_SASL_HEADER_BYTES: Final = 5
_FETCH_MAX: Final = 100_000

_OK: Final = ttypes.TStatus(statusCode=ttypes.TStatusCode.SUCCESS_STATUS)
_FINISHED, _RUNNING = ttypes.TOperationState.FINISHED_STATE, ttypes.TOperationState.RUNNING_STATE
_FAILED, _CANCELED = ttypes.TOperationState.ERROR_STATE, ttypes.TOperationState.CANCELED_STATE


@dataclass(frozen=True)
class RecordedColumn:
    """A column of an answer: its name, and its values as they lie in a TRowSet."""

    name: str
    type_id: int
    kind: str
    values: Sequence[Any]
    # A bit for each value, in hexadecimal digits.
    nulls: str


@dataclass(frozen=True)
class Recorded:
    """The end of a statement: columns, or an error."""

    columns: Sequence[RecordedColumn] = ()
    message: str = ""
    sql_state: str = ""

    @property
    def schema(self) -> Any:
        """The columns as GetResultSetMetadata tells them."""
        return ttypes.TTableSchema([_described(place, one) for place, one in enumerate(self.columns, 1)])

    def rows(self, *, empty: bool = False) -> Any:
        """The columns as FetchResults gives them."""
        columns = []
        for one in self.columns:
            values_of = getattr(ttypes, _VALUES[one.kind])
            values = values_of([], b"") if empty else values_of(list(one.values), bytes.fromhex(one.nulls))
            columns.append(ttypes.TColumn(**{f"{one.kind}Val": values}))
        return ttypes.TRowSet(startRowOffset=0, rows=[], columns=columns)


def _described(place: int, column: RecordedColumn) -> Any:
    entry = ttypes.TTypeEntry(primitiveEntry=ttypes.TPrimitiveTypeEntry(column.type_id))
    return ttypes.TColumnDesc(column.name, ttypes.TTypeDesc([entry]), place, "")


def read_recording(path: Path = RECORDING) -> dict[str, Recorded]:
    """The recorded ends by the text of the statement."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {
        text: Recorded(tuple(RecordedColumn(*column) for column in columns), *error)
        for text, (columns, error) in stored.items()
    }


def write_recording(ends: Mapping[str, Recorded], path: Path = RECORDING) -> None:
    """Write them, for `--update-goldens`."""
    stored = {
        text: [[list(asdict(column).values()) for column in end.columns], [end.message, end.sql_state]]
        for text, end in sorted(ends.items())
    }
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def record(session: hive.Connection, text: str) -> Recorded:
    """The end of a statement on Spark."""
    client, handle = session._client, session._sessionHandle  # noqa: SLF001 - PyHive shows no bytes
    request = ttypes.TExecuteStatementReq(sessionHandle=handle, statement=text, runAsync=False)
    done = client.ExecuteStatement(request)
    if done.status.statusCode == ttypes.TStatusCode.ERROR_STATUS:
        return Recorded(message=done.status.errorMessage, sql_state=done.status.sqlState or "")
    operation = done.operationHandle
    metadata = client.GetResultSetMetadata(ttypes.TGetResultSetMetadataReq(operationHandle=operation))
    fetched = client.FetchResults(
        ttypes.TFetchResultsReq(operation, ttypes.TFetchOrientation.FETCH_NEXT, _FETCH_MAX)
    )
    client.CloseOperation(ttypes.TCloseOperationReq(operationHandle=operation))
    described = metadata.schema.columns
    return Recorded(
        tuple(_recorded_column(*both) for both in zip(described, fetched.results.columns, strict=False))
    )


def _recorded_column(described: Any, column: Any) -> RecordedColumn:
    kind, values = next((kind, found) for kind in _VALUES if (found := getattr(column, f"{kind}Val")) is not None)
    type_id = described.typeDesc.types[0].primitiveEntry.type
    plain = [without_paths(value) if isinstance(value, str) else value for value in values.values]
    return RecordedColumn(described.columnName, type_id, kind, plain, values.nulls.hex())


def without_paths(value: str) -> str:
    """A text in which no directory of this machine stands."""
    return _PATH.sub("/somewhere", value)


@dataclass
class _Operation:
    session: bytes
    statement: str
    state: int
    end: Recorded
    batches: Iterator[Any]


@dataclass
class _Handler:
    """The calls of all connections."""

    recording: Mapping[str, Recorded]
    sessions: dict[bytes, None] = field(default_factory=dict)
    operations: dict[bytes, _Operation] = field(default_factory=dict)
    # Statements that came and are not recorded.
    unknown: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def _name(self) -> bytes:
        return next(self._numbers).to_bytes(16)

    def OpenSession(self, request: Any) -> Any:  # noqa: N802 - Thrift's name, as are those below
        name = self._name()
        self.sessions[name] = None
        handle = ttypes.TSessionHandle(sessionId=ttypes.THandleIdentifier(guid=name, secret=name))
        version = min(request.client_protocol, ttypes.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V10)
        return ttypes.TOpenSessionResp(
            status=_OK, serverProtocolVersion=version, sessionHandle=handle, configuration={}
        )

    def CloseSession(self, request: Any) -> Any:  # noqa: N802
        self.ended(request.sessionHandle.sessionId.guid)
        return ttypes.TCloseSessionResp(status=_OK)

    def GetInfo(self, request: Any) -> Any:  # noqa: N802, ARG002 - it says the same of everything
        value = ttypes.TGetInfoValue(stringValue="Spark SQL")
        return ttypes.TGetInfoResp(status=_OK, infoValue=value)

    def ExecuteStatement(self, request: Any) -> Any:  # noqa: N802
        text = request.statement
        end, state = self.recording.get(text), _FINISHED
        if ENDLESS in text:
            end, state = Recorded(), _RUNNING
        elif end is None:
            self.unknown.append(text)
            end = Recorded(message=f"not recorded: {text}", sql_state="XX000")
        if end.message:
            if not request.runAsync:
                return ttypes.TExecuteStatementResp(status=_error(end))
            state = _FAILED
        name = self._name()
        session = request.sessionHandle.sessionId.guid
        self.operations[name] = _Operation(session, text, state, end, _batches(end))
        handle = ttypes.TOperationHandle(
            operationId=ttypes.THandleIdentifier(guid=name, secret=name),
            operationType=ttypes.TOperationType.EXECUTE_STATEMENT,
            hasResultSet=True,
        )
        return ttypes.TExecuteStatementResp(status=_OK, operationHandle=handle)

    def GetOperationStatus(self, request: Any) -> Any:  # noqa: N802
        operation = self._operation(request)
        if operation is None:
            return ttypes.TGetOperationStatusResp(status=_GONE)
        end = operation.end
        failed = {"sqlState": end.sql_state, "errorCode": 0, "errorMessage": end.message} if end.message else {}
        return ttypes.TGetOperationStatusResp(
            status=_OK, operationState=operation.state, hasResultSet=True, **failed
        )

    def GetResultSetMetadata(self, request: Any) -> Any:  # noqa: N802
        operation = self._operation(request)
        if operation is None:
            return ttypes.TGetResultSetMetadataResp(status=_GONE)
        return ttypes.TGetResultSetMetadataResp(status=_OK, schema=operation.end.schema)

    def FetchResults(self, request: Any) -> Any:  # noqa: N802
        operation = self._operation(request)
        if operation is None:
            return ttypes.TFetchResultsResp(status=_GONE)
        return ttypes.TFetchResultsResp(status=_OK, hasMoreRows=False, results=next(operation.batches))

    def CancelOperation(self, request: Any) -> Any:  # noqa: N802
        if (operation := self._operation(request)) is not None:
            operation.state = _CANCELED
        return ttypes.TCancelOperationResp(status=_OK)

    def CloseOperation(self, request: Any) -> Any:  # noqa: N802
        self.operations.pop(request.operationHandle.operationId.guid, None)
        return ttypes.TCloseOperationResp(status=_OK)

    def ended(self, session: bytes) -> None:
        """A session ends, and its operations with it."""
        self.sessions.pop(session, None)
        for name, operation in list(self.operations.items()):
            if operation.session == session:
                self.operations.pop(name, None)

    def _operation(self, request: Any) -> _Operation | None:
        return self.operations.get(request.operationHandle.operationId.guid)


def _error(end: Recorded) -> Any:
    return ttypes.TStatus(
        statusCode=ttypes.TStatusCode.ERROR_STATUS,
        errorMessage=end.message,
        sqlState=end.sql_state,
        errorCode=0,
    )


_GONE: Final = _error(Recorded(message="Invalid OperationHandle", sql_state="HY000"))


def _batches(end: Recorded) -> Iterator[Any]:
    """The rows at once, then batches without one."""
    yield end.rows()
    while True:
        yield end.rows(empty=True)


@dataclass(eq=False)
class RecordedServer(KnownState):
    """A listener with a thread for each connection."""

    handler: _Handler
    listener: socket.socket
    _connections: set[socket.socket] = field(default_factory=set)

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint that it listens on."""
        return Endpoint(*self.listener.getsockname())

    def held(self) -> Held:
        """The sessions, and the statements that are not closed."""
        operations = list(self.handler.operations.items())
        return Held(
            frozenset(name.hex() for name in list(self.handler.sessions)),
            frozenset((name.hex(), str(one.state), one.statement) for name, one in operations),
        )

    def serve(self) -> None:
        """Accept until closed."""
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self._connections.add(connection)
                threading.Thread(target=self._connection, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """End it with all connections."""
        for end in (self.listener, *self._connections):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _connection(self, connection: socket.socket) -> None:
        opened = _OwnSessions(self.handler)
        with closing(connection), suppress(OSError, EOFError):
            read = connection.makefile("rb").read
            _log_in(read, connection.sendall)
            processor = TCLIService.Processor(opened)
            while True:
                size = int.from_bytes(_exactly(read, 4))
                asked = TTransport.TMemoryBuffer(_exactly(read, size))
                reply = TTransport.TMemoryBuffer()
                processor.process(TBinaryProtocol.TBinaryProtocol(asked), TBinaryProtocol.TBinaryProtocol(reply))
                answered = reply.getvalue()
                connection.sendall(len(answered).to_bytes(4) + answered)
        # As HiveServer2 does, a session ends with the connection that opened it.
        for session in opened.sessions:
            self.handler.ended(session)
        self._connections.discard(connection)


class _OwnSessions:
    """The calls of one connection, which remembers the sessions that it opened."""

    def __init__(self, handler: _Handler) -> None:
        self.sessions: list[bytes] = []
        self._handler = handler

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        called: Callable[[Any], Any] = getattr(self._handler, name)
        return called

    def OpenSession(self, request: Any) -> Any:  # noqa: N802
        answered = self._handler.OpenSession(request)
        self.sessions.append(answered.sessionHandle.sessionId.guid)
        return answered


def _log_in(read: Callable[[int], bytes], send: Callable[[bytes], object]) -> None:
    """SASL's PLAIN: the name of the mechanism, then who it is."""
    for _ in range(2):
        header = _exactly(read, _SASL_HEADER_BYTES)
        _ = _exactly(read, int.from_bytes(header[1:]))
    send(_SASL_OK)


def _exactly(read: Callable[[int], bytes], count: int) -> bytes:
    data = read(count)
    if len(data) < count:
        raise EOFError
    return data


@contextmanager
def recorded_server(recording: Mapping[str, Recorded]) -> Iterator[RecordedServer]:
    """A server as long as the context lasts."""
    listener = socket.create_server((_HOST, 0))
    with closing(RecordedServer(_Handler(recording), listener)) as server:
        threading.Thread(target=server.serve, daemon=True).start()
        yield server
