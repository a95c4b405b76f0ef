"""A backend that has every answer ready: what the wire itself does, without Spark's work and Spark's limits.

Runs as a process of its own (`python canned_backend.py`), prints the port that it listens on, and ends with its
standard input. Any login is accepted, statements finish at once, and `SELECT 7` has seven batches of a megabyte.
"""

import asyncio
import itertools
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import cast

import uvloop

from demo.hive import Endpoint
from proxy.wire.hs2 import calls as hs2_calls
from proxy.wire.hs2.calls import OperationState
from proxy.wire.sasl import SaslReader, SaslStatus, encode_sasl
from proxy.wire.thrift.frames import HEADER
from proxy.wire.thrift.messages import FramedMessageReader, Message
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

HOST = "127.0.0.1"
REQUEST_BYTES_MAX = 10_000_000
# A megabyte, about what ten thousand rows of a few columns take.
BATCH_VALUES = 128 * 1024
BATCH_BYTES = 8 * BATCH_VALUES

# A thousand clients may come in the same instant.
CONNECTIONS_AT_ONCE_MAX = 1_024

_numbers = itertools.count()


def _handle() -> bytes:
    """A handle that no session or operation has had before. Its strings are as long as the server's: two UUIDs."""
    name = b"%016d" % next(_numbers)
    return Writer().struct(1).binary(1, name).binary(2, b"sixteen secretly").stop().stop().to_bytes()


def _batch(values: int) -> bytes:
    """A TRowSet of one column of numbers."""
    numbers = struct.pack(">Bi", Kind.I64, values) + bytes(8 * values)
    column = Writer().struct(5).raw(1, Kind.LIST, numbers).binary(2, b"").stop().stop().to_bytes()
    return Writer().struct(3).raw(3, Kind.LIST, struct.pack(">Bi", Kind.STRUCT, 1) + column).stop().to_bytes()


_BATCH = _batch(BATCH_VALUES)
_NO_ROWS = _batch(0)
_SUCCESS = Writer().i32(1, 0).stop().to_bytes()
_FINISHED = Writer().i32(2, OperationState.FINISHED).to_bytes()


def _batches(call: Message) -> int:
    """The number that the statement ends with."""
    decoded = hs2_calls.decode_statement_call(call)
    last = "" if decoded is None or decoded.statement is None else decoded.statement.rpartition(" ")[2]
    return int(last) if last.isdecimal() else 1


class Backend(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._sasl: SaslReader | None = SaslReader()
        self._messages = FramedMessageReader(REQUEST_BYTES_MAX)
        # Of the last statement.
        self._batches_left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """The login, then calls."""
        if self._sasl is not None:
            data = self._log_in(self._sasl, data)
        self._messages.feed(data)
        while (message := self._messages.next_message()) is not None:
            if message.header.name == hs2_calls.EXECUTE_STATEMENT:
                self._batches_left = _batches(message)
            self._answer(message.header.name, message.header.seqid)

    def _log_in(self, reader: SaslReader, data: bytes) -> bytes:
        reader.feed(data)
        while (message := reader.next_message()) is not None:
            if message.status is not SaslStatus.START:
                self._transport.write(encode_sasl(SaslStatus.COMPLETE))
                self._sasl = None
                return reader.leftover()
        return b""

    def _answer(self, name: str, seqid: int) -> None:
        start = Writer().header(name, MessageType.REPLY, seqid).struct(0).raw(1, Kind.STRUCT, _SUCCESS).to_bytes()
        rest = self._result(name)
        self._transport.write(HEADER.pack(len(start) + len(rest) + 2) + start)
        self._transport.write(rest)
        self._transport.write(b"\0\0")

    def _result(self, name: str) -> bytes:
        match name:
            case hs2_calls.OPEN_SESSION:
                return Writer().i32(2, hs2_calls.PROTOCOL_V10).raw(3, Kind.STRUCT, _handle()).to_bytes()
            case hs2_calls.EXECUTE_STATEMENT:
                return Writer().raw(2, Kind.STRUCT, _handle()).to_bytes()
            case hs2_calls.GET_OPERATION_STATUS:
                return _FINISHED
            case hs2_calls.FETCH_RESULTS:
                self._batches_left -= 1
                return _BATCH if self._batches_left >= 0 else _NO_ROWS
        return b""


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Backend, HOST, 0, backlog=CONNECTIONS_AT_ONCE_MAX)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


@contextmanager
def canned_backend() -> Iterator[Endpoint]:
    """Runs one for as long as the context lasts, or as long as this process does."""
    command = [sys.executable, str(Path(__file__))]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Endpoint(HOST, int(process.stdout.readline()))
        finally:
            process.stdin.close()


if __name__ == "__main__":
    uvloop.run(_serve())
