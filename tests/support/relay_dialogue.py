"""Messages as a client and a backend write them, and a dialogue with a relay that has no sockets."""

from proxy.access.handle_access import HandleAccess
from proxy.access.handle_owners import HandleOwners, LocalHandleOwners
from proxy.operations.internal_call import Call
from proxy.operations.tracked_statements import TrackedStatements
from proxy.relay.commands import Command, SendBackend, SendClient
from proxy.relay.connection_profile import ConnectionProfile
from proxy.relay.relay import Relay
from proxy.wire.hs2.calls import (
    OperationHandle,
    OperationState,
    SessionHandle,
    encode_close_session,
    encode_execute,
    encode_fetch,
    encode_open_session,
    encode_operation_call,
)
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_start
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

LOGIN = plain_start("user", "password")
ACCEPTED = encode_sasl(SaslStatus.COMPLETE)


def _handle(name: bytes) -> bytes:
    return Writer().struct(1).binary(1, name).binary(2, b"secret").stop().stop().to_bytes()


SESSION = SessionHandle(_handle(b"session"))
OPERATION = OperationHandle(_handle(b"operation"))
# The one that a statement has when it falls back; nobody says that their lengths are the same.
AGAIN = OperationHandle(_handle(b"another operation"))
THIRD = OperationHandle(_handle(b"a third operation"))


def open_session(seqid: int = 1) -> bytes:
    return frame(encode_open_session(seqid, "user", "password", {}))


def close_session(seqid: int = 1, session: SessionHandle = SESSION) -> bytes:
    return frame(encode_close_session(seqid, session))


def execute(statement: str, seqid: int = 1, session: SessionHandle = SESSION) -> bytes:
    return frame(encode_execute(seqid, session, statement, 0))


def execute_and_wait(statement: str, seqid: int = 1) -> bytes:
    """The same without runAsync, as PyHive calls it."""
    call = Writer().header("ExecuteStatement", MessageType.CALL, seqid).struct(1)
    return frame(call.raw(1, Kind.STRUCT, SESSION).binary(2, statement.encode()).stop().stop().to_bytes())


def get_status(seqid: int = 1, operation: OperationHandle = OPERATION) -> bytes:
    return frame(encode_operation_call("GetOperationStatus", seqid, operation))


def operation_call(name: str, seqid: int = 1, operation: OperationHandle = OPERATION) -> bytes:
    return frame(encode_operation_call(name, seqid, operation))


def fetch(seqid: int = 1, operation: OperationHandle = OPERATION) -> bytes:
    return frame(encode_fetch(seqid, operation, 1000))


def fetch_log(seqid: int = 1, operation: OperationHandle = OPERATION) -> bytes:
    """The same call for the operation's log: a field more, before the two ends of structs."""
    message = encode_fetch(seqid, operation, 1000)
    return frame(message[:-2] + Writer().raw(4, Kind.I16, b"\0\1").to_bytes() + message[-2:])


# Spark sends 0 with each of its errors.
ERROR_CODE = 0


def reply(
    name: str, seqid: int = 1, fields: Writer | None = None, status: int = 0, message: str | None = None
) -> bytes:
    """A reply whose status has the code and the message, followed by the given fields."""
    body = (fields or Writer()).to_bytes()
    writer = Writer().header(name, MessageType.REPLY, seqid).struct(0)
    said = Writer().i32(1, status)
    if message is not None:
        said.i32(4, ERROR_CODE).binary(5, message.encode())
    return frame(writer.raw(1, Kind.STRUCT, said.stop().to_bytes()).to_bytes() + body + b"\0\0")


def refused_for(seqid: int, cause: str) -> bytes:
    """The refusal of a statement that ran within its call: Spark tells the cause among the lines of the trace."""
    lines = [f"*org.apache.spark.SparkException:{cause}:77:7".encode(), b"org.apache.spark.Any:run:Any.scala:1"]
    listed = bytes((Kind.STRING,)) + len(lines).to_bytes(4) + b"".join(len(x).to_bytes(4) + x for x in lines)
    said = Writer().i32(1, 3).raw(2, Kind.LIST, listed).i32(4, ERROR_CODE).binary(5, b"in awaitResult:").stop()
    writer = Writer().header("ExecuteStatement", MessageType.REPLY, seqid).struct(0)
    return frame(writer.raw(1, Kind.STRUCT, said.to_bytes()).stop().stop().to_bytes())


def session_opened(seqid: int = 1, version: int = 9, session: SessionHandle = SESSION) -> bytes:
    return reply("OpenSession", seqid, Writer().i32(2, version).raw(3, Kind.STRUCT, session))


def executed(seqid: int = 1, operation: OperationHandle = OPERATION) -> bytes:
    return reply("ExecuteStatement", seqid, Writer().raw(2, Kind.STRUCT, operation))


def status_is(state: OperationState, seqid: int = 1, message: str | None = None) -> bytes:
    status = Writer().i32(2, state)
    if message is not None:
        status.i32(4, ERROR_CODE).binary(5, message.encode())
    return reply("GetOperationStatus", seqid, status)


def _list(structs: list[bytes]) -> bytes:
    return bytes((Kind.STRUCT,)) + len(structs).to_bytes(4) + b"".join(structs)


# TTypeId.
_TYPE_IDS = {"int": 3, "string": 7}


def metadata_is(column: str, type_name: str, seqid: int = 1) -> bytes:
    """One column. A type that has no number here is left out."""
    entry = Writer().struct(1).i32(1, _TYPE_IDS.get(type_name, 0)).stop().stop().to_bytes()
    types = _list([entry] if type_name in _TYPE_IDS else [])
    described = Writer().raw(1, Kind.LIST, types).stop().to_bytes()
    columns = _list([Writer().binary(1, column.encode()).raw(2, Kind.STRUCT, described).stop().to_bytes()])
    return reply("GetResultSetMetadata", seqid, Writer().struct(2).raw(1, Kind.LIST, columns).stop())


OUR_CALL = Call("GetInfo", 77, encode_operation_call("GetInfo", 77, OPERATION), reply_bytes_max=1000)


SIDES = ConnectionProfile("backend:10000")


class Dialogue:
    """Plays both sides against a relay, and collects what it says."""

    def __init__(  # noqa: PLR0913 - what a test may want to be otherwise
        self,
        request_bytes_max: int = 10_000,
        tracked_statements: TrackedStatements | None = None,
        chunk_bytes: int | None = None,
        sides: ConnectionProfile = SIDES,
        handles: HandleOwners | None = None,
        *,
        passes_unknown: bool = True,
    ) -> None:
        self._chunk_bytes = chunk_bytes
        self.now = 0.0
        self.tracked_statements = tracked_statements or TrackedStatements()
        handle_access = HandleAccess(
            handles or LocalHandleOwners(), "backend:10000", passes_unknown=passes_unknown
        )
        self.relay = Relay(
            sides,
            self.tracked_statements,
            lambda: self.now,
            handle_access=handle_access,
            request_bytes_max=request_bytes_max,
        )
        self._to_client = b""
        self._to_backend = b""

    def client(self, data: bytes) -> list[Command]:
        return [c for chunk in self._chunks(data) for c in self.carry_out(self.relay.client_data(chunk))]

    def backend(self, data: bytes) -> list[Command]:
        return [c for chunk in self._chunks(data) for c in self.carry_out(self.relay.backend_data(chunk))]

    def _chunks(self, data: bytes) -> list[bytes]:
        size = self._chunk_bytes or max(1, len(data))
        return [data[start : start + size] for start in range(0, len(data), size)]

    def carry_out(self, commands: list[Command]) -> list[Command]:
        """Take the bytes out of commands, and return the rest."""
        others: list[Command] = []
        for command in commands:
            match command:
                case SendClient(data):
                    self._to_client += data
                case SendBackend(data):
                    self._to_backend += data
                case other:
                    others.append(other)
        return others

    def client_got(self) -> bytes:
        got, self._to_client = self._to_client, b""
        return got

    def backend_got(self) -> bytes:
        got, self._to_backend = self._to_backend, b""
        return got

    def log_in(self) -> "Dialogue":
        self.client(LOGIN)
        self.carry_out(self.relay.backend_connected())
        self.backend(ACCEPTED)
        assert (self.backend_got(), self.client_got()) == (LOGIN, ACCEPTED)
        return self

    def open_session(self) -> "Dialogue":
        self.log_in()
        self.client(open_session())
        self.backend(session_opened())
        self.client_got()
        self.backend_got()
        return self
