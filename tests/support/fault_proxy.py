"""A man in the middle: forwards HiveServer2 connections call by call, and does to a call what its script says.

Each connection has a thread of its own, in lock step: one call, its reply, the next call. As a server does, it
ends both sides as soon as either leaves.
"""

import re
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from demo.hive import Endpoint
from proxy.wire.hs2.calls import EXECUTE_STATEMENT, decode_session_of_call, decode_statement_call
from proxy.wire.hs2.replies import decode_operation_reply, open_reply
from proxy.wire.sasl import SaslReader, SaslStatus
from proxy.wire.thrift.frames import HEADER_BYTES, frame, frame_length
from proxy.wire.thrift.messages import FramedMessageReader, Message
from proxy.wire.thrift.reader import read_header

_READ_BYTES: Final = 64 * 1024
_REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
# A handle begins with its operation's 16 bytes, behind two field headers and a length.
_OPERATION_BYTES: Final = 3 + 3 + 4 + 16


class CutError(Exception):
    """The script or one of the sides ends this connection."""


@dataclass(frozen=True)
class Seen:
    """A call, as the script sees it."""

    user: str
    name: str
    # What ExecuteStatement executes, or what the operation executes that the call is about.
    statement: str


class Exchange:
    """One call on its way to the server, and its reply on the way back."""

    def __init__(self, seen: Seen, message: Message, client: socket.socket, server: socket.socket) -> None:
        self.seen = seen
        self.message = message
        self.client = client
        self.server = server

    def forward(self) -> bytes:
        """Let the server have the call, and return its reply."""
        self.server.sendall(frame(self.message.raw))
        header = self._receive(HEADER_BYTES)
        return self._receive(frame_length(header))

    def answer(self, reply: bytes) -> None:
        """Let the client have a reply."""
        self.client.sendall(frame(reply))

    def wait(self, seconds: float) -> None:
        """Do nothing for a while, unless the client leaves."""
        if select.select([self.client], [], [], seconds)[0] and not self.client.recv(1, socket.MSG_PEEK):
            raise CutError("the client left")

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        watched = [self.server, self.client]
        while len(received) < count:
            ready = select.select(watched, [], [])[0]
            if self.server in ready:
                chunk = self.server.recv(min(count - len(received), _READ_BYTES))
                if not chunk:
                    raise CutError("the server left")
                received += chunk
            elif not self.client.recv(1, socket.MSG_PEEK):
                raise CutError("the client left")
            else:
                # Its next call waits; to look again would only turn in circles.
                watched.remove(self.client)
        return bytes(received)


class Act:
    """What is done to a call. This one does nothing to it."""

    def __call__(self, exchange: Exchange) -> None:
        exchange.answer(exchange.forward())


@dataclass
class Fault:
    """Which calls an act is done to. `done` counts them: a fault that never came proves nothing."""

    act: Act
    name: str = ""
    pattern: str = ""
    user: str = ""
    skip: int = 0
    times: int = 1_000_000
    done: int = 0

    def takes(self, seen: Seen) -> bool:
        """Whether this call is the fault's, which is then counted."""
        matches = (
            self.name in ("", seen.name)
            and self.user in ("", seen.user)
            and re.search(self.pattern, seen.statement, re.IGNORECASE | re.DOTALL) is not None
        )
        if not matches or self.done >= self.times:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.done += 1
        return True


@dataclass
class Middle:
    """A backend between the proxy and the real one. Its script may change while connections are open."""

    target: Endpoint
    faults: list[Fault] = field(default_factory=list)
    # Every call that came, in order, until somebody clears it.
    calls: list[Seen] = field(default_factory=list)
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    # True if new connections are closed without a word.
    refuses_connections: bool = False
    _sockets: set[socket.socket] = field(default_factory=set)
    _operations: dict[bytes, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(*self.listener.getsockname())

    def executed(self, pattern: str) -> list[str]:
        """The statements of that pattern that came to be executed since the calls were cleared."""
        statements = (call.statement for call in self.calls if call.name == EXECUTE_STATEMENT)
        return [statement for statement in statements if re.search(pattern, statement)]

    def serve(self) -> None:
        """Accept until closed."""
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._connection, args=(client,), daemon=True).start()

    def close(self) -> None:
        """End everything at once, as the death of the server's process does."""
        with self._lock:
            sockets = [self.listener, *self._sockets]
        for end in sockets:
            _shut_down(end)
        self.listener.close()

    @contextmanager
    def faulty(self, *faults: Fault) -> Iterator[None]:
        """Another script, as long as the context lasts."""
        before, self.faults = self.faults, [*faults]
        try:
            yield
        finally:
            self.faults = before

    def _connection(self, client: socket.socket) -> None:
        if self.refuses_connections:
            client.close()
            return
        try:
            server = socket.create_connection((self.target.host, self.target.port))
        except OSError:
            client.close()
            return
        with self._lock:
            self._sockets |= {client, server}
        # Whatever ends a connection ends both of its sides, and none but it.
        with suppress(OSError, CutError):
            self._relay(client, server)
        with self._lock:
            self._sockets -= {client, server}
        for end in (client, server):
            _shut_down(end)
            end.close()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        user = _negotiate(client, server)
        messages = FramedMessageReader(_REQUEST_BYTES_MAX)
        while True:
            while (message := messages.next_message()) is not None:
                seen = self._look_at(user, message)
                exchange = _Remembering(seen, message, client, server, self._operations)
                fault = self._fault(seen)
                (fault.act if fault is not None else Act())(exchange)
            data = client.recv(_READ_BYTES)
            if not data:
                return
            messages.feed(data)

    def _look_at(self, user: str, message: Message) -> Seen:
        name, statement = message.header.name, ""
        if name == EXECUTE_STATEMENT:
            call = decode_statement_call(message)
            statement = (call.statement or "") if call is not None else ""
        else:
            handle = decode_session_of_call(message) or b""
            statement = self._operations.get(handle[:_OPERATION_BYTES], "")
        return Seen(user, name, statement)

    def _fault(self, seen: Seen) -> Fault | None:
        with self._lock:
            self.calls.append(seen)
            return next((fault for fault in self.faults if fault.takes(seen)), None)


class _Remembering(Exchange):
    """Remembers which statement each operation executes."""

    def __init__(
        self,
        seen: Seen,
        message: Message,
        client: socket.socket,
        server: socket.socket,
        operations: dict[bytes, str],
    ) -> None:
        super().__init__(seen, message, client, server)
        self._operations = operations

    def forward(self) -> bytes:
        reply = super().forward()
        if self.seen.name == EXECUTE_STATEMENT:
            operation = decode_operation_reply(open_reply(reply, read_header(reply))).operation
            if operation is not None:
                self._operations[operation[:_OPERATION_BYTES]] = self.seen.statement
        return reply


def _negotiate(client: socket.socket, server: socket.socket) -> str:
    """Pass the login on, and return who logged in. Both sides write one whole message at a time here."""
    said, answered = SaslReader(), SaslReader()
    user = ""
    while True:
        data = client.recv(_READ_BYTES)
        if not data:
            raise CutError("the client left during the login")
        server.sendall(data)
        said.feed(data)
        while (message := said.next_message()) is not None:
            if message.status is not SaslStatus.START:
                user = message.body.split(b"\0")[1].decode()
        if not user:
            continue
        answered.feed(server.recv(_READ_BYTES))
        answer = answered.next_message()
        if answer is None:
            raise CutError("the server left during the login")
        client.sendall(bytes([answer.status]) + len(answer.body).to_bytes(4) + answer.body)
        return user


def _shut_down(end: socket.socket) -> None:
    # A blocked accept or recv ends only when the socket is shut down, not when it is closed.
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
