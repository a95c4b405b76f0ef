"""deploy/compose, run: two proxies behind a balancer, Spark, its metastore and Prometheus, each in its container.

Where the public images are named, images of Debian's packages stand in (compose.debian.yaml). Clients run in a
container too. Takes some minutes, so it runs once a landing, where containers run, and in the deep run.
"""

import json
import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from support.container_engine import (
    DOCKER,
    PROXY_IMAGE,
    Built,
    Engine,
    NoEngineError,
    are_required,
    engine,
    network_namespace,
)

ROOT = Path(__file__).parents[2]
DOCKERFILES = ROOT / "deploy" / "docker"
STAND_INS = ROOT / "tests" / "containers"
CLIENT_PROGRAM = ROOT / "tests" / "support" / "container_client.py"
COMPOSE = shutil.which("docker-compose") or "docker-compose"
PROJECT = "starpruner"
NETWORK = f"{PROJECT}_default"
SPARK_IMAGE = "starpruner-spark:0.1.0"
# Grafana has no package in Debian.
SERVICES = ("sample", "proxy-1", "proxy-2", "balancer", "prometheus")
PROXIES = ("proxy-1", "proxy-2")
PROXY_PORT, ADMIN_PORT = 10_001, 10_080
BALANCER = ("balancer", 10_000)
# Spark that has just begun takes a minute for a first join where the machine does more beside it.
PATIENCE_S = 300.0
# As deploy/compose mounts them for a proxy.
CONFIGURATION = ROOT / "deploy" / "compose" / "starpruner.toml"

STAR_JOIN = """SELECT d.ds, count(*), sum(s.amount) FROM sales s JOIN dates d ON s.ds = d.ds
WHERE d.weekday = 'Sunday' AND d.month = 12 GROUP BY d.ds ORDER BY d.ds"""
NO_GATE = "SET starpruner.cost_gate=false"
# A row a second, each of which counts.
SLEEP = """SELECT count(*) FROM range(0, {seconds}, 1, 1)
WHERE coalesce(reflect('java.lang.Thread', 'sleep', 1000L), '') <> 'awake'"""

# With test_proxy_image.py, so that two engines never build at once. The first test waits for the images and for
# all of Compose, four minutes on a quiet machine.
pytestmark = [pytest.mark.xdist_group("containers"), pytest.mark.timeout(1800)]

Rows = list[list[Any]]


class RefusedError(Exception):
    """The statement, or the session, was refused; the message has what the client was told."""


class Client:
    """A session of PyHive in the client's container, on a proxy or on the server itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def close(self) -> None:
        """Ends the session."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def send(self, sql: str) -> None:
        """Sends a statement, without waiting for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(sql) + "\n")
        self._process.stdin.flush()

    def answer(self, within_s: float = PATIENCE_S) -> Rows:
        """The rows of the statement that was sent. Raises RefusedError, and queue.Empty if it takes longer."""
        line = self._lines.get(timeout=within_s)
        if not line:
            raise RefusedError("no session")
        answer = json.loads(line)
        if "error" in answer:
            raise RefusedError(answer["error"])
        rows: Rows = answer["rows"]
        return rows

    def run(self, sql: str, within_s: float = PATIENCE_S) -> Rows:
        """The rows of a statement."""
        self.send(sql)
        return self.answer(within_s)


@dataclass(frozen=True)
class Stack:
    """The services of Compose, and a container for clients beside them."""

    engine: Engine

    def compose(self, *arguments: str) -> str:
        """Runs Compose with the files of the repository and of the stand-ins."""
        files = ("-f", str(ROOT / "deploy/compose/compose.yaml"), "-f", str(STAND_INS / "compose.debian.yaml"))
        done = subprocess.run(
            [COMPOSE, "-p", PROJECT, *files, *arguments],
            env={**os.environ, "DOCKER_HOST": self.engine.host},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"docker-compose {arguments[0]}: {done.stdout}{done.stderr}"
        return done.stdout

    def container(self, service: str) -> str:
        """The container of a service."""
        return self.compose("ps", "-q", service).strip()

    def inspect(self, container: str, template: str) -> str:
        """A part of what the engine knows of a container."""
        return self.engine.docker("inspect", container, "-f", template).strip()

    def fetch(self, url: str) -> tuple[int, str]:
        """Status and body of a page, as the client sees it."""
        script = """
import json, sys
from urllib.error import HTTPError
from urllib.request import urlopen
try:
    with urlopen(sys.argv[1], timeout=20) as page:
        print(json.dumps([page.status, page.read().decode()]))
except HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
except OSError as error:
    print(json.dumps([0, str(error)]))"""
        status, body = json.loads(self.engine.docker("exec", "client", "python", "-c", script, url))
        return status, body

    def ready(self, host: str) -> int:
        """The status of a proxy's /readyz; 0 where nobody answers."""
        return self.fetch(f"http://{host}:{ADMIN_PORT}/readyz")[0]

    def wait_ready(self, host: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Waits until a proxy's /readyz answers so."""
        until(lambda: self.ready(host) == status, f"{host} answers {status}")

    def metric(self, host: str, name: str) -> float:
        """The sum of a proxy's series of a name, labels and all."""
        lines = self.fetch(f"http://{host}:{ADMIN_PORT}/metrics")[1].splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    @contextmanager
    def session(self, host: str, port: int, within_s: float = PATIENCE_S) -> Iterator[Client]:
        """A session of a client. Raises RefusedError where there is none."""
        process = subprocess.Popen(
            [DOCKER, "exec", "-i", "client", "python", "/container_client.py", host, str(port)],
            env={**os.environ, "DOCKER_HOST": self.engine.host},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        client = Client(process)
        try:
            client.answer(within_s)
            yield client
        finally:
            client.close()

    def start_client(self) -> None:
        """Starts the client's container."""
        self.engine.docker(
            *("run", "-d", "--name", "client", "--network", NETWORK, "--no-healthcheck", "--entrypoint", "sleep"),
            *("-v", f"{CLIENT_PROGRAM}:/container_client.py:ro", SPARK_IMAGE, "infinity"),
        )

    @contextmanager
    def proxy(self, name: str, *options: str, configuration: Path = CONFIGURATION) -> Iterator[str]:
        """A third proxy, run as the other two, with options of its own."""
        command = [
            *("run", "-d", "--name", name, "--hostname", name, "--network", NETWORK),
            *("--read-only", "--cap-drop", "ALL"),
            *("--tmpfs", "/tmp", "-v", f"{configuration}:/etc/starpruner/starpruner.toml:ro"),  # noqa: S108 - in it
        ]
        self.engine.docker(*command, *options, PROXY_IMAGE)
        try:
            self.wait_ready(name)
            yield name
        finally:
            self.engine.docker("rm", "-f", name)


def until(holds: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def build_others(docker: Engine, base: str) -> None:
    """Builds Spark's image and the stand-ins, beside that of the proxy."""
    docker.build(DOCKERFILES / "spark.Dockerfile", ROOT, SPARK_IMAGE, {"BASE_IMAGE": base})
    for name in ("postgres", "haproxy", "prometheus"):
        arguments = {"BASE_IMAGE": base}
        docker.build(STAND_INS / "debian.Dockerfile", STAND_INS, f"starpruner-test-{name}", arguments, target=name)


@pytest.fixture(scope="module")
def stack(built: Built) -> Iterator[Stack]:
    """Everything up, and the sample loaded; required where STARPRUNER_CONTAINERS_REQUIRED is set."""
    try:
        if shutil.which(COMPOSE) is None:
            raise NoEngineError("docker-compose is missing: apt-get install docker-compose")  # noqa: TRY301
        with engine(built.directory) as docker:
            build_others(docker, built.base)
        # Only an engine in the machine's network can build, and only one in a namespace has networks.
        with (
            network_namespace(f"starpruner-{os.getpid()}") as namespace,
            engine(built.directory, namespace) as docker,
        ):
            running = Stack(docker)
            try:
                running.compose("up", "-d", "--no-build", *SERVICES)
                running.start_client()
                assert docker.docker("wait", running.container("sample")) == "0\n"
                yield running
            finally:
                docker.docker("rm", "-f", "client")
                running.compose("down", "-v", "-t", "1")
    except NoEngineError as error:
        if are_required():
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def expected(stack: Stack) -> Rows:
    """The star join's answer from Spark itself."""
    with stack.session("spark", 10_000) as direct:
        rows = direct.run(STAR_JOIN)
    assert len(rows) == 5
    return rows


def test_beeline_gets_the_answers_of_spark_through_the_balancer(stack: Stack) -> None:
    def beeline(address: str, *statements: str) -> list[str]:
        options = [word for statement in statements for word in ("-e", statement)]
        output = stack.engine.docker(
            *(
                "exec",
                "client",
                "/opt/spark/home/bin/beeline",
                "-u",
                f"jdbc:hive2://{address}/default",
                "-n",
                "demo",
            ),
            *("--outputformat=tsv2", "--silent=true", "--showHeader=false", *options),
        )
        return [line for line in output.splitlines() if line.startswith("2024-")]

    def rewritten() -> float:
        return sum(stack.metric(proxy, "starpruner_rule_statements_total") for proxy in PROXIES)

    before = rewritten()
    through = beeline("balancer:10000", f"{NO_GATE};", f"{STAR_JOIN};")
    assert len(through) == 5
    assert through == beeline("spark:10000", f"{STAR_JOIN};")
    assert rewritten() > before


def test_prometheus_sees_both_proxies_and_takes_every_alert_rule(stack: Stack) -> None:
    def asked(path: str) -> Any:
        return json.loads(stack.fetch(f"http://prometheus:9090/api/v1/{path}")[1])["data"]

    def targets() -> dict[str, str]:
        return {target["labels"]["instance"]: target["health"] for target in asked("targets")["activeTargets"]}

    up = {f"{proxy}:{ADMIN_PORT}": "up" for proxy in PROXIES}
    until(lambda: targets() == up, "Prometheus has scraped both")
    rules = [rule for group in asked("rules")["groups"] for rule in group["rules"]]
    written = (ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8").count("- alert: ")
    assert len(rules) == written > 0
    until(
        lambda: all(rule["health"] == "ok" for group in asked("rules")["groups"] for rule in group["rules"]),
        "every rule was evaluated",
    )


def test_sessions_on_the_other_proxy_outlive_one_that_is_killed(stack: Stack, expected: Rows) -> None:
    killed = stack.container("proxy-1")
    with stack.session("proxy-2", PROXY_PORT) as other, stack.session("proxy-1", PROXY_PORT) as own:
        assert own.run(STAR_JOIN) == other.run(STAR_JOIN) == expected
        stack.engine.docker("kill", killed)
        with pytest.raises(RefusedError):
            own.run(STAR_JOIN)
        assert other.run(STAR_JOIN) == expected
        for _ in range(3):
            with stack.session(*BALANCER) as new:
                assert new.run(STAR_JOIN) == expected
    stack.engine.docker("start", killed)
    stack.wait_ready("proxy-1")
    takes_sessions_of_the_balancer(stack, "proxy-1")


def takes_sessions_of_the_balancer(stack: Stack, proxy: str) -> None:
    """Opens two sessions at once until one of them is on the proxy."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with stack.session(*BALANCER), stack.session(*BALANCER):
            if stack.metric(proxy, "starpruner_sessions_open") > 0:
                return
        assert time.monotonic() < deadline, f"{proxy} gets no session"


def test_a_statement_outlives_the_roll_of_its_proxy(stack: Stack, expected: Rows) -> None:
    rolled = stack.container("proxy-2")
    stopping = threading.Thread(target=stack.engine.docker, args=("stop", "-t", "40", rolled))
    with stack.session("proxy-2", PROXY_PORT) as client:
        client.send(SLEEP.format(seconds=6))
        until(lambda: stack.metric("proxy-2", "starpruner_statements_running") == 1, "the statement runs")
        stopping.start()
        until(lambda: stack.ready("proxy-2") != HTTPStatus.OK, "the proxy stops")
        with stack.session(*BALANCER) as new:
            assert new.run(STAR_JOIN) == expected
        assert client.answer() == [[6]]
    stopping.join()
    assert stack.inspect(rolled, "{{.State.ExitCode}}") == "0"
    stack.engine.docker("start", rolled)
    stack.wait_ready("proxy-2")
    takes_sessions_of_the_balancer(stack, "proxy-2")


def test_a_proxy_without_its_backend_says_so_and_serves_when_it_is_back(stack: Stack, expected: Rows) -> None:
    spark = stack.container("spark")
    stack.engine.docker("network", "disconnect", NETWORK, spark)
    try:
        for proxy in PROXIES:
            stack.wait_ready(proxy, HTTPStatus.SERVICE_UNAVAILABLE)
        with pytest.raises(RefusedError), stack.session("proxy-1", PROXY_PORT, within_s=30.0):
            pytest.fail("a session without a backend")
    finally:
        stack.engine.docker("network", "connect", "--alias", "spark", NETWORK, spark)
    for proxy in PROXIES:
        stack.wait_ready(proxy)
        with stack.session(proxy, PROXY_PORT) as client:
            assert client.run(STAR_JOIN) == expected


def test_a_metastore_that_pauses_leads_to_no_wrong_answer(stack: Stack, expected: Rows) -> None:
    metastore = stack.container("metastore")
    with stack.session("proxy-1", PROXY_PORT) as client, stack.session("proxy-2", PROXY_PORT) as other:
        assert client.run(NO_GATE) is not None
        stack.engine.docker("pause", metastore)
        try:
            client.send(STAR_JOIN)
            other.send("SELECT count(*) FROM sales WHERE region = 'north'")
            time.sleep(5.0)
        finally:
            stack.engine.docker("unpause", metastore)
        assert client.answer() == expected
        assert other.answer() == [[184 * 40]]
        assert client.run(STAR_JOIN) == expected


HISTORY = "/var/lib/starpruner"
OF_THE_PROXY = "uid=10001,gid=10001,mode=0700"


def test_statements_go_on_where_the_disk_of_the_history_is_full(stack: Stack, expected: Rows) -> None:
    with (
        stack.proxy("full", "--tmpfs", f"{HISTORY}:{OF_THE_PROXY},size=2m") as proxy,
        stack.session(proxy, PROXY_PORT) as client,
    ):
        fill = f"dd if=/dev/zero of={HISTORY}/filler bs=4k || true"
        stack.engine.docker("exec", proxy, "sh", "-c", fill)
        # The proxy holds 64 MB of statements that wait to be written.
        for number in range(300):
            assert client.run(f"SELECT {number} /* {'x' * 250_000} */") == [[number]]
        lost = stack.metric(proxy, "starpruner_history_lost_total")
        assert lost > 0
        assert client.run(STAR_JOIN) == expected
        stack.engine.docker("exec", proxy, "rm", f"{HISTORY}/filler")
        assert client.run(STAR_JOIN) == expected


# Sessions as many as there may be and some more, each with a statement of 200 kB at once.
MANY_SESSIONS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from demo.hive import Endpoint, connect, run
sessions, refused = [], []
for _ in range(int(sys.argv[2])):
    try:
        sessions.append(connect(Endpoint(sys.argv[1], 10001)))
    except Exception as error:
        refused.append(str(error))
sql = "SELECT 7 /* " + "x" * 200_000 + " */"
with ThreadPoolExecutor(len(sessions)) as pool:
    answers = list(pool.map(lambda session: run(session, sql), sessions))
answered = sum(answer == [(7,)] for answer in answers)
print(len(sessions), answered, sum("connections_max" in text for text in refused))
for session in sessions:
    session.close()
"""


def test_a_proxy_with_little_memory_refuses_sessions_and_lives(stack: Stack, tmp_path: Path) -> None:
    configuration = tmp_path / "starpruner.toml"
    # The folders above it are root's alone, which the mount does not mind.
    text = CONFIGURATION.read_text(encoding="utf-8")
    configuration.write_text(text.replace("[proxy]\n", "[proxy]\nconnections_max = 40\n", 1), encoding="utf-8")
    options = ("--memory", "160m", "--memory-swap", "160m", "--tmpfs", f"{HISTORY}:{OF_THE_PROXY}")
    with stack.proxy("small", *options, configuration=configuration) as proxy:
        counted = stack.engine.docker("exec", "client", "python", "-c", MANY_SESSIONS, proxy, "60")
        assert counted.split() == ["40", "40", "20"]
        assert stack.inspect(proxy, "{{.State.Status}} {{.State.OOMKilled}}") == "running false"
        with stack.session(proxy, PROXY_PORT) as client:
            assert client.run("SELECT 1") == [[1]]
