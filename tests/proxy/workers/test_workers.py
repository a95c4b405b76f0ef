"""Several worker processes on one port: they serve together, fall and come back one by one, and end together."""

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from support.clock import eventually

from demo.hive import Endpoint
from demo.proxy_process import ProxyError, ProxyProcess, proxy_process
from proxy.backends.circuit_breaker import FAILURES_MAX
from proxy.backends.pool import BackendPool
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.session.metrics import Metrics
from proxy.wire.hs2.calls import encode_open_session
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_start
from proxy.wire.thrift.frames import frame
from proxy.workers.backoff import FIRST_S, LIVED_S, LONGEST_S, Backoff
from proxy.workers.listening_ports import PortReservations
from proxy.workers.metrics_exchange import summed

ACCEPTED = encode_sasl(SaslStatus.COMPLETE)
WORKERS = 2
LISTENS = "proxy.server: listening on"
RELOADED = "the configuration was reloaded"
CONNECTIONS_MAX = 6
TWO_WORKERS = ("--set", f"proxy.workers={WORKERS}", "--set", "proxy.drain_s=1")
# Longer than anything here takes on a busy machine.
PATIENCE_S = 60.0


@contextmanager
def backend() -> Iterator[Endpoint]:
    """One that accepts every login, and says nothing more."""
    listener = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                accepted.append(connection)
                connection.recv(1024)
                connection.sendall(ACCEPTED)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Endpoint(*listener.getsockname())
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for connection in accepted:
            connection.close()


@contextmanager
def workers(directory: Path, *options: str) -> Iterator[ProxyProcess]:
    with backend() as endpoint, proxy_process(endpoint, directory, options=(*TWO_WORKERS, *options)) as proxy:
        yield proxy


@contextmanager
def client(proxy: ProxyProcess) -> Iterator[bytes]:
    """Logs in, stays connected, and gives what it was answered."""
    with socket.create_connection((proxy.endpoint.host, proxy.endpoint.port), PATIENCE_S) as connection:
        connection.sendall(plain_start("user", "password"))
        yield connection.recv(1024)


def children(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def lines(proxy: ProxyProcess, pattern: str) -> list[str]:
    return re.findall(pattern, proxy.child.log.read_text())


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    limit = f"proxy.connections_max={CONNECTIONS_MAX}"
    with workers(tmp_path_factory.mktemp("workers"), "--set", limit) as process:
        yield process


def processes(proxy: ProxyProcess) -> set[int]:
    """The workers that are there and listen, once they are all."""
    supervisor = proxy.child.process.pid
    eventually(lambda: len(children(supervisor)) == WORKERS)
    return children(supervisor)


def test_workers_serve_one_port_and_the_ready_line_comes_once(proxy: ProxyProcess) -> None:
    assert len(processes(proxy)) == WORKERS
    # Until one has come to each.
    slots: set[str] = set()
    for _ in range(64):
        with client(proxy) as answer:
            assert answer == ACCEPTED
        slots = set(lines(proxy, r"worker (\d) proxy.frontend.connection: connection \d+: opened"))
        if len(slots) == WORKERS:
            break
    assert slots == {"0", "1"}
    assert len(lines(proxy, "(?m)^starpruner: listening on")) == 1


def test_metrics_and_the_limit_of_connections_are_of_all_workers(proxy: ProxyProcess) -> None:
    eventually(lambda: connected(proxy) == 0)
    with ExitStack() as clients:
        for count in range(CONNECTIONS_MAX):
            assert clients.enter_context(client(proxy)) == ACCEPTED
            assert connected(proxy) == count + 1
        for _ in range(4):
            with client(proxy) as refused:
                assert b"serves 6 connections already" in refused


def connected(proxy: ProxyProcess) -> float:
    with urlopen(f"{proxy.admin_url}/metrics", timeout=PATIENCE_S) as reply:
        found = re.search(r"^starpruner_connections_open (\S+)$", reply.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_a_killed_worker_comes_back_and_the_others_serve_on_meanwhile(proxy: ProxyProcess) -> None:
    before, starts = processes(proxy), len(lines(proxy, LISTENS))
    victim = min(before)
    eventually(lambda: connected(proxy) == 0)
    os.kill(victim, signal.SIGKILL)
    # Its first thread may have ended and the others not yet, and then its socket is open.
    eventually(lambda: bool(lines(proxy, rf"process {victim}\) ended with SIGKILL")))
    with ExitStack() as clients:
        for _ in range(CONNECTIONS_MAX):
            assert clients.enter_context(client(proxy)) == ACCEPTED
    eventually(lambda: len(lines(proxy, LISTENS)) == starts + 1)
    assert len(lines(proxy, rf"process {victim}\) ended with SIGKILL")) == 1
    assert processes(proxy) & before == before - {victim}, "the other one is the same"


def test_a_new_configuration_reaches_all_workers_also_one_that_comes_later(proxy: ProxyProcess) -> None:
    before = len(lines(proxy, RELOADED))
    workers_now = processes(proxy)
    os.kill(proxy.child.process.pid, signal.SIGHUP)
    eventually(lambda: len(lines(proxy, RELOADED)) == before + WORKERS)
    os.kill(min(workers_now), signal.SIGKILL)
    eventually(lambda: len(lines(proxy, RELOADED)) == before + WORKERS + 1)
    assert not lines(proxy, "take effect after a restart only"), "the ports that were taken are no change"


def test_all_end_with_the_supervisor_and_leave_nothing_behind(tmp_path: Path) -> None:
    with workers(tmp_path) as proxy:
        running = processes(proxy)
        directories = {path.parent for path in open_files(min(running)) if "starpruner-" in str(path)}
        assert directories
        assert proxy.child.stop() == 0
        assert not any(is_alive(pid) for pid in running)
        assert not any(directory.exists() for directory in directories)


def test_a_second_signal_ends_workers_that_wait_for_their_clients(tmp_path: Path) -> None:
    with workers(tmp_path, "--set", "proxy.drain_s=600") as proxy:
        client = socket.create_connection((proxy.endpoint.host, proxy.endpoint.port))
        client.sendall(plain_start("ann", "secret"))
        assert client.recv(len(ACCEPTED)) == ACCEPTED
        client.sendall(frame(encode_open_session(1, "ann", "secret", {})))
        proxy.child.process.send_signal(signal.SIGTERM)
        eventually(lambda: len(lines(proxy, "draining")) == WORKERS)
        # The same signal within a second would count as the first one.
        time.sleep(1.5)
        assert proxy.child.exit_code is None
        proxy.child.process.send_signal(signal.SIGTERM)
        assert proxy.child.process.wait(PATIENCE_S) == 0
        client.close()


def open_files(pid: int) -> list[Path]:
    return [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()]


def test_workers_end_where_their_supervisor_was_killed(tmp_path: Path) -> None:
    with workers(tmp_path) as proxy:
        running = processes(proxy)
        proxy.child.process.kill()
        eventually(lambda: not any(is_alive(pid) for pid in running))


def test_workers_that_cannot_start_are_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(ProxyError, match=r"exit code 1[^$]*cannot be made"):
        workers(tmp_path, "--set", "catalog.store_path=/proc/nowhere").__enter__()


def test_a_worker_that_falls_again_and_again_comes_back_ever_later() -> None:
    backoff = Backoff()
    waits = [backoff.next_wait_s(0.0) for _ in range(20)]
    assert waits[:3] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S]
    assert waits[-1] == LONGEST_S
    assert backoff.next_wait_s(LIVED_S) == FIRST_S


def test_a_port_that_somebody_listens_on_is_not_shared_with_them() -> None:
    with (
        socket.create_server(("127.0.0.1", 0), reuse_port=True) as listener,
        PortReservations() as ports,
        pytest.raises(OSError, match="in use"),
    ):
        ports.reserve(Address(*listener.getsockname()))


def test_a_port_that_is_held_can_be_listened_on_by_several_and_gets_no_connections() -> None:
    with PortReservations() as ports:
        held = ports.reserve(Address("127.0.0.1", 0))
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((held.host, held.port))
        with (
            socket.create_server((held.host, held.port), reuse_port=True),
            socket.create_server((held.host, held.port), reuse_port=True),
            socket.create_connection((held.host, held.port)),
        ):
            pass


def test_what_processes_say_of_themselves_is_added_up() -> None:
    one, other = Metrics(), Metrics()
    one.watch_connections(lambda: 2, 9)
    other.watch_connections(lambda: 5, 9)
    one.decided(None, None, 0.002)
    one.watch_certificates(lambda: [("h:1", 1_000.0)])
    other.watch_certificates(lambda: [("h:1", 0.0)])
    for each in (one, other):
        each.reloaded("refused")
    said = summed([one.exposition(), other.exposition()]).decode()
    assert "\nstarpruner_connections_open 7.0\n" in said
    assert "\nstarpruner_connections_max 9.0\n" in said, "the limit is of all"
    assert re.search(r"^starpruner_build_info\{.*\} 1\.0$", said, re.MULTILINE)
    assert '\nstarpruner_decision_seconds_bucket{le="0.005"} 1.0\n' in said
    assert "\nstarpruner_decision_seconds_count 1.0\n" in said
    left = re.search(r"^starpruner_certificate_left_seconds.* (\S+)$", said, re.MULTILINE)
    assert left is not None
    assert float(left[1]) == pytest.approx(-time.time(), abs=60), "one process still shows the old one"
    reloaded = re.search(r'^starpruner_config_reload_timestamp_seconds.*"refused".* (\S+)$', said, re.MULTILINE)
    assert reloaded is not None
    assert float(reloaded[1]) == pytest.approx(time.time(), abs=60)
    start = re.search(r"^process_start_time_seconds (\S+)$", one.exposition().decode(), re.MULTILINE)
    assert start is not None
    assert start[0] in said, "when the first one began"


@pytest.mark.parametrize(("failures", "healthy", "left_alone"), [(0, "1.0", "0.0"), (FAILURES_MAX, "0.0", "1.0")])
def test_a_backend_is_healthy_where_every_process_finds_it_so(
    failures: int, healthy: str, left_alone: str
) -> None:
    one, other = Metrics(), Metrics()
    for metrics, failed in ((one, 0), (other, failures)):
        backends = BackendPool([PoolMember(Address("spark", 10_000))], time.monotonic)
        for _ in range(failed):
            backends.configured[0].breaker.record_failure()
        metrics.watch_backends(backends.views)
    said = summed([one.exposition(), other.exposition()]).decode()
    assert f'\nstarpruner_backend_healthy{{backend="spark:10000"}} {healthy}\n' in said
    assert f'\nstarpruner_backend_breaker_open{{backend="spark:10000"}} {left_alone}\n' in said
