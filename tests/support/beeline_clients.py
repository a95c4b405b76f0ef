"""Clients as users have them, their answers, and a backend that can be cut off."""

import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyhive import exc, hive
from thrift.Thrift import TException

from demo.hive import Endpoint, connect, fetch_all
from demo.java import Java, beeline_command
from support.cheap_spark import QUICK_COMPILER

# Two hundred thousand rows take it half a minute on a busy machine.
BEELINE_SECONDS_MAX = 180

FORWARD_BYTES = 64 * 1024

Answer = tuple[Any, ...]
# Spark numbers the columns of a plan (ds#123), its own classes ($Lambda/0x..), stages and tasks anew in every run,
# and a stack trace says which of several call paths a thread took. Java compiles what is called often by
# reflection: the trace that HiveServer2 sends along then has other frames, and says before them how many.
PER_RUN = re.compile(
    r"#\d+L?|\n\s*at .*|\$Lambda\S*|\bstage \d+\.\d+|\bTID \d+"
    r"|'jdk\.internal\.reflect\.[^']*', |:\d+:\d+(?=['\"], '\w+\.)"
)


def comparable_message(message: str) -> str:
    """An error message without what differs between two runs of one statement on one server."""
    return PER_RUN.sub("", message)


def answer(connection: hive.Connection, sql: str) -> Answer:
    """All that a client sees of a statement: columns and rows, or the error."""
    with closing(connection.cursor()) as cursor:
        try:
            cursor.execute(sql)
            return ("rows", cursor.description, fetch_all(cursor) if cursor.description else None)
        except exc.OperationalError as error:
            status = error.args[0].status
            return ("error", status.sqlState, status.errorCode, comparable_message(status.errorMessage))


def run_beeline(
    java: Java, endpoint: Endpoint, script: str, home: Path, *, url_options: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a script in Spark's own beeline, to its end in spite of errors."""
    path = home / "script.sql"
    path.write_text(script, encoding="utf-8")
    options = ("-n", "tester", "--outputformat=tsv2", "--force=true", "--silent=true", "-f", str(path))
    command = beeline_command(java, endpoint.jdbc_url + url_options, *options)
    # Beeline keeps its history in the home directory, and takes its encoding from the locale.
    command[1:1] = [QUICK_COMPILER, f"-Duser.home={home}", "-Dstdout.encoding=UTF-8", "-Dfile.encoding=UTF-8"]
    return subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"},
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=BEELINE_SECONDS_MAX,
    )


@contextmanager
def breakable_session(
    endpoint: Endpoint, user: str = "demo", database: str = "default"
) -> Iterator[hive.Connection]:
    """A session that may break or be closed by others: PyHive leaves its socket open when closing it fails."""
    connection = connect(endpoint, user=user, database=database)
    try:
        yield connection
    finally:
        with suppress(TException, OSError, exc.Error):
            connection.close()
        connection._transport.close()  # noqa: SLF001 - it offers no other way


@contextmanager
def nobody_listening() -> Iterator[Endpoint]:
    """An address that refuses connections, and that nobody else can listen on meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield Endpoint(*held.getsockname())


@dataclass
class Forwarder:
    """A backend that can be cut off: forwards connections until told to drop them."""

    target: Endpoint
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    connections: list[socket.socket] = field(default_factory=list)
    is_cut: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(*self.listener.getsockname())

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection((self.target.host, self.target.port))
            with self.lock:
                self.connections += [client, server]
                if self.is_cut:
                    # It was accepted before, and has been on its way since.
                    self._end()
                    return
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()

    def cut(self) -> None:
        """What the death of the backend's process does: its sockets close and nobody listens any more."""
        with self.lock:
            self.is_cut = True
            self._end()

    def _end(self) -> None:
        for connection in (self.listener, *self.connections):
            # A blocked accept or recv ends only when the socket is shut down, not when it is closed.
            _shut_down(connection)
            connection.close()


@contextmanager
def way_to(target: Endpoint) -> Iterator[Forwarder]:
    """Another address of the same server, which can be cut off."""
    forwarder = Forwarder(target)
    threading.Thread(target=forwarder.serve, daemon=True).start()
    try:
        yield forwarder
    finally:
        with suppress(OSError):
            forwarder.cut()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(FORWARD_BYTES):
            sink.sendall(chunk)
    _shut_down(sink)


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
