"""Two proxies behind a balancer are restarted one after the other, while clients work: no statement is lost."""

import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from thrift.transport.TTransport import TTransportException

from demo.child import Child
from demo.hive import Endpoint, Session, connect, free_port, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

CLIENTS = 20
STATEMENTS_PER_SESSION = 4
# Longer than anything here takes on a busy machine.
PATIENCE_S = 120.0
# A third of a second in the backend, so that some run whenever a proxy stops.
STATEMENT = "SELECT sum(id), reflect('java.lang.Thread', 'sleep', 300L) FROM range({})"

HAPROXY = shutil.which("haproxy")
needs_haproxy = pytest.mark.skipif(HAPROXY is None, reason="needs Debian's package haproxy as the balancer")


@dataclass(frozen=True)
class Place:
    """The ports of one replica, which each of its processes uses."""

    endpoint: Endpoint
    admin: Endpoint

    @contextmanager
    def running(self, backend: Endpoint, directory: Path) -> Iterator[ProxyProcess]:
        options = ("--admin", str(self.admin), "--set", f"proxy.drain_s={PATIENCE_S}")
        # The balancer may hold connections to the port that has just been left.
        with proxy_process(backend, directory, port=self.endpoint.port, options=options) as proxy:
            yield proxy

    def status(self) -> int | None:
        try:
            with urlopen(f"http://{self.admin}/readyz") as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code
        except URLError:
            return None


def place() -> Place:
    return Place(Endpoint("127.0.0.1", free_port()), Endpoint("127.0.0.1", free_port()))


@contextmanager
def balancer(places: tuple[Place, ...], directory: Path) -> Iterator[Endpoint]:
    """The balancer as docs/serving.md configures it."""
    endpoint = Endpoint("127.0.0.1", free_port())
    servers = "\n".join(
        f"    server proxy{number} {one.endpoint} check port {one.admin.port} inter 200ms fall 1 rise 1"
        for number, one in enumerate(places)
    )
    configuration = directory / "haproxy.cfg"
    configuration.write_text(
        f"""
global
    maxconn 1000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    retries 5
    option redispatch 1
listen hiveserver2
    bind {endpoint}
    balance leastconn
    option httpchk GET /readyz
{servers}
"""
    )
    assert HAPROXY is not None
    command = [HAPROXY, "-db", "-f", str(configuration)]
    with Child.start(command, log=directory / "haproxy.log", directory=directory, environment={}):
        yield endpoint


@dataclass
class Clients:
    """Sessions of a few statements, one after the other, until the test has seen enough."""

    endpoint: Endpoint
    enough: threading.Event = field(default_factory=threading.Event)
    seen: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def work(self) -> None:
        while not self.enough.is_set():
            try:
                connection = connect(self.endpoint)
            except (TTransportException, OSError):
                # A client may connect at the very moment at which a proxy stops to listen; it tries again.
                self.seen["connections refused"] += 1
                time.sleep(0.1)
                continue
            with closing(connection):
                for number in range(STATEMENTS_PER_SESSION):
                    self._run_one(connection, number)

    def _run_one(self, connection: Session, number: int) -> None:
        rows_count = 1_000 + number
        try:
            ((total, _),) = run(connection, STATEMENT.format(rows_count))
        except Exception as error:  # noqa: BLE001 - each is what the test looks for
            self.failures.append(f"{type(error).__name__}: {error}"[:500])
            return
        assert total == rows_count * (rows_count - 1) // 2
        self.seen["statements"] += 1

    def have_run(self, count: int) -> bool:
        return self.seen["statements"] >= count

    @contextmanager
    def working(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.work) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.enough.set()
            for thread in threads:
                thread.join(PATIENCE_S)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def serves_clients(proxy: ProxyProcess) -> bool:
    return "opened from" in proxy.child.log.read_text()


def restart(old: ProxyProcess, at: Place) -> None:
    old.child.process.send_signal(signal.SIGTERM)
    until(lambda: at.status() != HTTPStatus.OK)
    assert old.child.process.wait(PATIENCE_S) == 0
    assert "0 sessions are ended, with 0 statements in flight" in old.child.log.read_text()


@needs_haproxy
def test_a_rolling_restart_loses_no_statement(spark: ThriftServer, tmp_path: Path) -> None:
    places = (place(), place())
    with ExitStack() as stack:
        running = [
            stack.enter_context(one.running(spark.endpoint, tmp_path / f"old{number}"))
            for number, one in enumerate(places)
        ]
        clients = Clients(stack.enter_context(balancer(places, tmp_path)))
        with clients.working():
            until(partial(clients.have_run, CLIENTS))
            for number, (old, one) in enumerate(zip(running, places, strict=True)):
                restart(old, one)
                new = stack.enter_context(one.running(spark.endpoint, tmp_path / f"new{number}"))
                until(partial(serves_clients, new))
        assert clients.failures == []
