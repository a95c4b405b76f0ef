"""A relay between a client and a server that speaks SASL: bytes pass as they come, and calls are counted."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from demo.hive import Endpoint
from proxy.wire.sasl import SaslReader
from proxy.wire.thrift.frames import FrameReader
from proxy.wire.thrift.reader import read_header

_HOST = "127.0.0.1"
_READ_BYTES = 64 * 1024
_CALL_BYTES_MAX = 1 << 24


@dataclass
class CallCounter:
    """Calls by their names, of all clients so far. A client logs in with PLAIN, in two messages."""

    endpoint: Endpoint
    calls: Counter[str] = field(default_factory=Counter)

    def read(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the bytes of one client again, and count the calls in them."""
        sasl, frames, logged_in = SaslReader(), FrameReader(_CALL_BYTES_MAX), 0
        for piece in stream:
            if logged_in < 2:
                sasl.feed(piece)
                while logged_in < 2 and sasl.next_message() is not None:
                    logged_in += 1
                if logged_in == 2:
                    frames.feed(sasl.leftover())
            else:
                frames.feed(piece)
            while (body := frames.next_frame()) is not None:
                self.calls[read_header(body).name] += 1
            yield piece


@contextmanager
def call_counter(server: Endpoint) -> Iterator[CallCounter]:
    """Clients connect to `endpoint`, and are answered by the server."""
    with socket.create_server((_HOST, 0)) as listener:
        counter = CallCounter(Endpoint(_HOST, listener.getsockname()[1]))
        threading.Thread(target=_accept, args=(listener, server, counter), daemon=True).start()
        yield counter


def _accept(listener: socket.socket, server: Endpoint, counter: CallCounter) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            backend = socket.create_connection((server.host, server.port))
            forth = (counter.read(_received(client)), backend)
            for pieces, target in (forth, (_received(backend), client)):
                threading.Thread(target=_pass, args=(pieces, target), daemon=True).start()


def _received(source: socket.socket) -> Iterator[bytes]:
    with suppress(OSError):
        while piece := source.recv(_READ_BYTES):
            yield piece


def _pass(pieces: Iterator[bytes], target: socket.socket) -> None:
    with suppress(OSError):
        for piece in pieces:
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
