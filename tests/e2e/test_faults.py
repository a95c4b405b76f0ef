"""What happens when a side fails: nobody hangs, and everybody is told."""

import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from support.beeline_clients import Forwarder, breakable_session, nobody_listening, run_beeline
from support.clock import eventually
from support.metrics_of_proxy import own_session_count
from support.proxies import options
from support.server_statements import StatementPage
from thrift.transport.TTransport import TTransportException

from demo.child import Child
from demo.hive import Row, connect, run
from demo.java import Java
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

# Far more than any of this takes, on a busy machine too.
PROMPTLY_S = 120

SASL_START = 1
SASL_OK = 2
SASL_COMPLETE = 5

THREE_SECONDS = "SELECT id, reflect('java.lang.Thread', 'sleep', 1000L) FROM range(0, 3, 1, 1)"


def _answers(proxy: ProxyProcess) -> bool:
    with closing(connect(proxy.endpoint)) as connection:
        return run(connection, "SELECT 1") == [(1,)]


def _sasl(status: int, body: bytes) -> bytes:
    return struct.pack(">BI", status, len(body)) + body


def _receive_to_the_end(client: socket.socket) -> bytes:
    received = b""
    while chunk := client.recv(4096):
        received += chunk
    return received


def _sockets(child: Child) -> int:
    """How many sockets a process holds open."""
    count = 0
    for descriptor in Path(f"/proc/{child.process.pid}/fd").iterdir():
        # It may be closed between being listed and being looked at.
        with suppress(FileNotFoundError):
            count += str(descriptor.readlink()).startswith("socket:")
    return count


def _sockets_at_rest(child: Child) -> int:
    """How many it holds open once that of the last request to its admin port is closed."""
    counts = [0]

    def is_at_rest() -> bool:
        counts.append(_sockets(child))
        return counts[-20:] == [counts[-1]] * 20

    eventually(is_at_rest)
    return counts[-1]


def _until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PROMPTLY_S
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return met


@pytest.fixture
def forwarder(spark: ThriftServer) -> Iterator[Forwarder]:
    """The real server behind a connection that the test can cut."""
    forwarder = Forwarder(spark.endpoint)
    threading.Thread(target=forwarder.serve, daemon=True).start()
    yield forwarder
    forwarder.cut()


def test_a_backend_that_dies_mid_fetch_ends_the_clients_connection_and_leaves_a_log_line(
    forwarder: Forwarder, tmp_path: Path
) -> None:
    with proxy_process(forwarder.endpoint, tmp_path) as proxy:
        with breakable_session(proxy.endpoint) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT id FROM range(200000)")
            assert cursor.fetchone() == (0,)
            forwarder.cut()
            started = time.monotonic()
            with pytest.raises((TTransportException, OSError)):
                cursor.fetchall()
            assert time.monotonic() - started < PROMPTLY_S
        assert _until(lambda: "backend" in proxy.child.log.read_text().splitlines()[-1])
        assert proxy.child.exit_code is None


def test_a_backend_that_is_down_is_a_clear_error_in_pyhive_and_beeline(java: Java, tmp_path: Path) -> None:
    with nobody_listening() as backend, proxy_process(backend, tmp_path) as proxy:
        with pytest.raises(TTransportException) as caught:
            connect(proxy.endpoint)
        assert str(backend) in str(caught.value)
        assert str(backend) in run_beeline(java, proxy.endpoint, "SELECT 1;", tmp_path).stderr


@pytest.fixture
def own_proxy(spark: ThriftServer, tmp_path: Path) -> Iterator[ProxyProcess]:
    """A proxy that nobody else is connected to, and that probes its backend no more once it has started."""
    with proxy_process(spark.endpoint, tmp_path, options=options("health.interval_s=3600")) as process:
        eventually(lambda: own_session_count(process) == 0)
        yield process


def test_half_a_frame_and_goodbye_closes_both_sides(own_proxy: ProxyProcess) -> None:
    proxy, before = own_proxy, _sockets_at_rest(own_proxy.child)
    with socket.create_connection((proxy.endpoint.host, proxy.endpoint.port), PROMPTLY_S) as client:
        client.sendall(_sasl(SASL_START, b"PLAIN") + _sasl(SASL_OK, b"\0tester\0x"))
        status, length = struct.unpack(">BI", client.recv(5))
        assert (status, length) == (SASL_COMPLETE, 0)
        # Announces 1,000 bytes, sends three.
        client.sendall(struct.pack(">I", 1000) + b"\x80\x01\x00")
        assert _until(lambda: _sockets(proxy.child) == before + 2)
    assert _until(lambda: _sockets(proxy.child) == before)
    assert _answers(proxy)


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"\0" * 64, b"\xff" * 64],
    ids=["http", "tls", "zeros", "ones"],
)
def test_garbage_instead_of_sasl_ends_that_connection_only(proxy: ProxyProcess, garbage: bytes) -> None:
    with socket.create_connection((proxy.endpoint.host, proxy.endpoint.port), PROMPTLY_S) as client:
        client.sendall(garbage)
        client.shutdown(socket.SHUT_WR)
        assert len(_receive_to_the_end(client)) < 4096
    assert _answers(proxy)


def test_each_client_has_one_backend_connection_that_ends_with_it(own_proxy: ProxyProcess) -> None:
    before = _sockets_at_rest(own_proxy.child)
    connections = [connect(own_proxy.endpoint) for _ in range(5)]
    assert _sockets(own_proxy.child) == before + 2 * len(connections)
    for connection in connections:
        connection.close()
    assert _until(lambda: _sockets(own_proxy.child) == before)


def test_sigterm_lets_a_running_statement_finish_and_exits_with_0(spark: ThriftServer, tmp_path: Path) -> None:
    page = StatementPage(spark.ui_url)
    # Its first answer takes a busy machine longer than the statement.
    before = page.states(THREE_SECONDS)
    with proxy_process(spark.endpoint, tmp_path, options=options(f"proxy.drain_s={PROMPTLY_S}")) as proxy:
        rows: list[Row] = []
        with breakable_session(proxy.endpoint) as connection:
            client = threading.Thread(target=lambda: rows.extend(run(connection, THREE_SECONDS)))
            client.start()
            # It takes three: what the server has heard of is under way.
            assert _until(lambda: len(page.states(THREE_SECONDS)) > len(before))
            proxy.child.process.send_signal(signal.SIGTERM)
            client.join(PROMPTLY_S)
            assert [row[0] for row in rows] == [0, 1, 2]
        assert proxy.child.process.wait(PROMPTLY_S) == 0


def test_ctrl_c_ends_an_idle_proxy_with_0(spark: ThriftServer, tmp_path: Path) -> None:
    with proxy_process(spark.endpoint, tmp_path) as proxy:
        assert _answers(proxy)
        proxy.child.process.send_signal(signal.SIGINT)
        assert proxy.child.process.wait(PROMPTLY_S) == 0
