"""A client that counts the bytes of its results instead of decoding them, so that the wire is what is measured."""

import socket
import ssl
import struct
from types import TracebackType
from typing import Final, Self

from demo.hive import Endpoint
from proxy.wire.hs2 import calls as hs2_calls
from proxy.wire.hs2.calls import OperationHandle, OperationState, SessionHandle
from proxy.wire.hs2.replies import decode_operation_reply, decode_session_reply, decode_state_reply, open_reply
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_start
from proxy.wire.thrift.frames import HEADER, frame
from proxy.wire.thrift.reader import Reader, read_header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

SECONDS_MAX: Final = 120.0
FETCH_ROWS: Final = 10_000
# A batch without rows has a few bytes for each of its columns.
EMPTY_BATCH_BYTES_MAX: Final = 1_000
RECEIVE_BYTES: Final = 1 << 20
# CLI_DBMS_NAME, which clients ask for.
_INFO_TYPE: Final = struct.pack(">i", 17)
_COMPLETE: Final = encode_sasl(SaslStatus.COMPLETE)


class CountingClient:
    """A session on a connection of its own."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None = None) -> None:
        plain = socket.create_connection((endpoint.host, endpoint.port), SECONDS_MAX)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = plain if tls is None else tls.wrap_socket(plain, server_hostname=endpoint.host)
        self._buffer = bytearray(RECEIVE_BYTES)
        self._seqid = 0
        self._socket.sendall(plain_start("bench", "bench"))
        answer = self._receive(len(_COMPLETE))
        if answer != _COMPLETE:
            raise ConnectionError(f"the login was answered with {answer!r}")
        reply = decode_session_reply(self._ask(hs2_calls.encode_open_session(self._next(), "bench", "bench", {})))
        if reply.session is None:
            raise ConnectionError(f"no session was opened: {reply.status.message}")
        self.session: SessionHandle = reply.session

    def get_info(self) -> None:
        """The cheapest call: one round trip, answered out of the server's head."""
        call = Writer().header("GetInfo", MessageType.CALL, self._next()).struct(1)
        call.raw(1, Kind.STRUCT, self.session).raw(2, Kind.I32, _INFO_TYPE)
        _ = self._ask(call.stop().stop().to_bytes())

    def execute(self, sql: str) -> OperationHandle:
        """Run a statement to its end."""
        reply = decode_operation_reply(self._ask(hs2_calls.encode_execute(self._next(), self.session, sql, 0)))
        if reply.operation is None:
            raise ConnectionError(f"not executed: {reply.status.message}")
        while not self.has_finished(reply.operation):
            pass
        return reply.operation

    def has_finished(self, operation: OperationHandle) -> bool:
        """Asks once."""
        call = hs2_calls.encode_operation_call(hs2_calls.GET_OPERATION_STATUS, self._next(), operation)
        state = decode_state_reply(self._ask(call)).state
        if state in (OperationState.ERROR, OperationState.CANCELED, OperationState.CLOSED):
            raise ConnectionError(f"the statement ended in state {state.name}")
        return state is OperationState.FINISHED

    def fetch(self, operation: OperationHandle) -> int:
        """How many bytes the reply with the next batch has."""
        self._socket.sendall(frame(hs2_calls.encode_fetch(self._next(), operation, FETCH_ROWS)))
        length: int = HEADER.unpack(self._receive(HEADER.size))[0]
        left = length
        while left:
            left -= self._socket.recv_into(self._buffer, min(left, RECEIVE_BYTES)) or self._ended()
        return length

    def fetch_all(self, sql: str) -> int:
        """Run a statement and fetch all its rows; how many bytes they came in."""
        operation = self.execute(sql)
        total = 0
        while (length := self.fetch(operation)) > EMPTY_BATCH_BYTES_MAX:
            total += length
        _ = self._ask(hs2_calls.encode_operation_call(hs2_calls.CLOSE_OPERATION, self._next(), operation))
        return total

    def close(self) -> None:
        """End session and connection."""
        _ = self._ask(hs2_calls.encode_close_session(self._next(), self.session))
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def _next(self) -> int:
        self._seqid += 1
        return self._seqid

    def _ask(self, call: bytes) -> Reader:
        self._socket.sendall(frame(call))
        raw = self._receive(HEADER.unpack(self._receive(HEADER.size))[0])
        return open_reply(raw, read_header(raw))

    def _receive(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._socket.recv(min(count, RECEIVE_BYTES))
            count -= len(part) or self._ended()
            parts.append(part)
        return b"".join(parts)

    def _ended(self) -> int:
        raise ConnectionError("the connection ended within a reply")
