"""A gateway of HBase in memory, for moments that a real one cannot be brought into: slow, cut, garbled answers."""

import re
import socketserver
import struct
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from proxy.session.layout import hbase_scans, open_store
from proxy.wire.thrift.messages import Message, UnframedMessageReader
from proxy.wire.thrift.reader import Reader
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

# The machine of the tests is busy: what is to be in time gets this long.
PATIENT_S = 30.0
# An answer that nobody lets go is given after so long: far later than whoever waits for it gives it up.
HELD_S_MAX = 120.0


@dataclass
class GatewayInMemory:
    """One table. Tests change how it answers while it runs."""

    port: int = 0
    # Cells by row and column.
    rows: dict[bytes, dict[bytes, bytes]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    # Those of the scans, in order.
    filters: list[bytes] = field(default_factory=list)
    # Seconds before each answer, or before those to calls of a name.
    delay_s: dict[str, float] = field(default_factory=dict)
    # Answers to calls of a name, or to all, wait until the test lets them go.
    held: dict[str, threading.Event] = field(default_factory=dict)
    # Answers to calls of a name: bytes in their place, or only so many of theirs.
    garbage: dict[str, bytes] = field(default_factory=dict)
    cut_bytes: dict[str, int] = field(default_factory=dict)
    # Calls of a name that are refused with IOError.
    refused: dict[str, str] = field(default_factory=dict)
    has_table: bool = False
    # Each scan begins anew once it has ended, as one of a growing table does.
    has_endless_scans: bool = False
    # Rows that each scan has yet to give, and whether it gives their keys alone.
    _scans: dict[int, list[bytes]] = field(default_factory=dict)
    _keys_only: set[int] = field(default_factory=set)

    def hold(self, name: str = "") -> threading.Event:
        """Let answers to calls of a name, or to all, wait for an event. Calls after `held.clear()` do not wait."""
        self.held[name] = threading.Event()
        return self.held[name]

    def answer(self, message: Message) -> bytes:
        """The reply to a call."""
        name = message.header.name
        # Before the call is seen: a test that waits for it may then hold the next ones no longer.
        let_go = self.held.get(name, self.held.get(""))
        self.calls.append(name)
        time.sleep(self.delay_s.get(name, self.delay_s.get("", 0.0)))
        if let_go:
            let_go.wait(HELD_S_MAX)
        if name in self.garbage:
            return self.garbage[name]
        arguments = _struct(Reader(message.raw, message.header.body_offset))
        writer = Writer().header(name, MessageType.REPLY, message.header.seqid)
        if name in self.refused:
            writer.struct(1).binary(1, self.refused[name].encode()).stop()
        else:
            getattr(self, f"_{name}")(writer, arguments)
        reply = writer.stop().to_bytes()
        return reply[: self.cut_bytes[name]] if name in self.cut_bytes else reply

    def _createTable(self, writer: Writer, _: Mapping[int, Any]) -> None:  # noqa: N802 - the call's name
        if self.has_table:
            writer.struct(3).binary(1, b"there is one").stop()
        self.has_table = True

    def _getRows(self, writer: Writer, arguments: Mapping[int, Any]) -> None:  # noqa: N802 - the call's name
        _write_rows(writer, {row: self.rows[row] for row in arguments[2] if row in self.rows})

    def _mutateRows(self, _: Writer, arguments: Mapping[int, Any]) -> None:  # noqa: N802 - the call's name
        for batch in arguments[2]:
            for mutation in batch[2]:
                if mutation.get(1):
                    self.rows.get(batch[1], {}).pop(mutation[2], None)
                else:
                    self.rows.setdefault(batch[1], {})[mutation[2]] = mutation[3]
            if not self.rows.get(batch[1]):
                self.rows.pop(batch[1], None)

    def _scannerOpenWithScan(self, writer: Writer, arguments: Mapping[int, Any]) -> None:  # noqa: N802
        rows = sorted(self.rows)
        scan = arguments[2]
        number = len(self._scans)
        filter_text = scan.get(6, b"")
        self.filters.append(filter_text)
        between = rows[bisect_left(rows, scan[1]) : bisect_left(rows, scan[2])]
        self._scans[number] = [row for row in between if passes(filter_text, row)]
        if b"KeyOnlyFilter" in filter_text:
            self._keys_only.add(number)
        writer.i32(0, number)

    def _scannerGetList(self, writer: Writer, arguments: Mapping[int, Any]) -> None:  # noqa: N802
        number, count = arguments[1], arguments[2]
        page, self._scans[number] = self._scans[number][:count], self._scans[number][count:]
        if self.has_endless_scans and page:
            # The next row is always one more.
            self._scans[number] = [page[-1] + b"\x00"]
            time.sleep(0.01)
        found = {row: self.rows.get(row, {}) for row in page}
        if number in self._keys_only:
            found = {row: dict.fromkeys(cells, b"") for row, cells in found.items()}
        _write_rows(writer, found)

    def _scannerClose(self, _: Writer, __: Mapping[int, Any]) -> None:  # noqa: N802
        pass


def allow_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the calls of stores that are opened from now on the time that a busy machine may take."""
    for module, limit in ((open_store, "_READ_S"), (open_store, "_SCANS_S"), (hbase_scans, "_ANSWER_S")):
        monkeypatch.setattr(module, limit, PATIENT_S)


@contextmanager
def gateway_in_memory(port: int = 0) -> Iterator[GatewayInMemory]:
    """Runs a gateway as long as the context lasts."""
    gateway = GatewayInMemory(port)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            reader = UnframedMessageReader(64 * 1024 * 1024)
            with suppress(OSError):
                while received := self.request.recv(65_536):
                    reader.feed(received)
                    while (message := reader.next_message()) is not None:
                        reply = gateway.answer(message)
                        self.request.sendall(reply)
                        if message.header.name in gateway.cut_bytes:
                            return

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", gateway.port), Handler) as server:
        gateway.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield gateway
        finally:
            server.shutdown()
            thread.join()


def passes(filter_text: bytes, row: bytes) -> bool:
    """Whether HBase hands on a row: it searches the expressions in the text of the key."""
    expressions = re.findall(r"RowFilter\(=, 'regexstring:([^']*)'\)", filter_text.decode("ascii"))
    return all(re.search(expression, row.decode("utf-8", "replace")) for expression in expressions)


def _write_rows(writer: Writer, rows: Mapping[bytes, Mapping[bytes, bytes]]) -> None:
    items = []
    for row, cells in rows.items():
        columns = Writer().map_header(Kind.STRING, Kind.STRUCT, len(cells)).to_bytes()
        for column, value in cells.items():
            cell = Writer().binary(1, value).i64(2, 1).stop().to_bytes()
            columns += struct.pack(">i", len(column)) + column + cell
        items.append(Writer().binary(1, row).raw(2, Kind.MAP, columns).stop().to_bytes())
    writer.raw(0, Kind.LIST, struct.pack(">Bi", Kind.STRUCT, len(items)) + b"".join(items))


def _struct(reader: Reader) -> dict[int, Any]:
    return {number: _value(reader, kind) for number, kind in reader.fields()}


def _value(reader: Reader, kind: Kind) -> Any:
    if kind is Kind.STRING:
        return bytes(reader.binary())
    if kind is Kind.I32:
        return reader.i32()
    if kind is Kind.BOOL:
        return reader.boolean()
    if kind is Kind.STRUCT:
        return _struct(reader)
    if kind is Kind.LIST:
        return [_value(reader, item) for item in reader.items()]
    reader.skip(kind)
    return None
