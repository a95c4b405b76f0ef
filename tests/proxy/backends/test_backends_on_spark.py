"""Several backends as users have them: real clients, a backend that dies, a drain, and ZooKeeper."""

import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from pyhive import hive
from support.beeline_clients import breakable_session, way_to
from support.cheap_spark import QUICK_COMPILER
from support.zookeeper_server import zookeeper
from thrift.Thrift import TException

from demo.hive import Endpoint, connect, free_port, run
from demo.java import Java, beeline_command
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

PATIENCE_S = 120.0
BEELINE_SECONDS_MAX = 120


def asked(proxy: ProxyProcess, path: str, method: str = "GET") -> dict[str, Any]:
    with urlopen(Request(f"{proxy.admin_url}{path}", method=method), timeout=PATIENCE_S) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


def shown(proxy: ProxyProcess) -> dict[str, dict[str, Any]]:
    return {backend["name"]: backend for backend in asked(proxy, "/backends")["backends"]}


def until(what: str, proxy: ProxyProcess, **states: object) -> None:
    """Wait until the admin port shows a backend in these states."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = shown(proxy).get(what, {})
        if states.items() <= seen.items():
            return
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)


def the_used_and_the_unused(proxy: ProxyProcess) -> tuple[str, str]:
    """The names of two backends: the one on which two clients are, and the one that has none.

    The connections of probes are counted too, so that one waits for a moment without them.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        used = {name: seen["connections"] for name, seen in shown(proxy).items()}
        home, other = sorted(used, key=used.__getitem__, reverse=True)
        if (used[home], used[other]) == (2, 0):
            return home, other
        assert time.monotonic() < deadline, used
        time.sleep(0.05)


def select_one(session: hive.Connection) -> object:
    return run(session, "SELECT 1 AS one")


def test_a_backend_that_dies_is_drained_or_is_left_out_of_the_configuration_takes_no_session_with_it(
    spark: ThriftServer, tmp_path: Path
) -> None:
    configuration = tmp_path / "starpruner.toml"
    with way_to(spark.endpoint) as first, way_to(spark.endpoint) as second, ExitStack() as stack:
        ways = [str(first.endpoint), str(second.endpoint)]

        def configure(*backends: str) -> None:
            # A backend that is cut off refuses probes at once; one on a busy machine has all the time.
            probes = "user = 'health'\npassword = 'health'\ninterval_s = 0.2\nquery_interval_s = 1.0\n"
            waits = f"timeout_s = {PATIENCE_S}\nquery_timeout_s = {PATIENCE_S}\n"
            configuration.write_text(f"[proxy]\nbackends = {json.dumps(backends)}\n[health]\n{probes}{waits}")

        configure(*ways)
        options = ("--config", str(configuration))
        proxy = stack.enter_context(proxy_process(None, tmp_path / "proxy", options=options))
        # Two sessions of one login.
        ann, bob = (stack.enter_context(breakable_session(proxy.endpoint)) for _ in range(2))
        assert select_one(ann) == select_one(bob)
        home, other = the_used_and_the_unused(proxy)

        asked(proxy, f"/backends/{home}/drain", "POST")
        with closing(connect(proxy.endpoint, user="carl")) as carl:
            until(other, proxy, connections=1)
            assert select_one(carl) == select_one(ann)
        asked(proxy, f"/backends/{home}/undrain", "POST")

        configure(other)
        os.kill(proxy.child.process.pid, signal.SIGHUP)
        until(home, proxy, draining=True)
        assert select_one(bob), "its session stays"
        with closing(connect(proxy.endpoint)) as again:
            assert select_one(again)
            until(other, proxy, connections=1)
        configure(*ways)
        os.kill(proxy.child.process.pid, signal.SIGHUP)
        until(home, proxy, draining=False, healthy=True)

        {str(way.endpoint): way for way in (first, second)}[home].cut()
        until(home, proxy, probes="down", healthy=False)
        with pytest.raises((TException, OSError)):
            select_one(ann)
        for _ in range(3):
            with closing(connect(proxy.endpoint)) as survivor:
                assert select_one(survivor)
        assert asked(proxy, "/readyz") == {"status": "ok"}
    log = proxy.child.log.read_text()
    assert f"the backend {home} counts as down" in log
    assert "'health'" not in log.replace("user 'health'", "")


def test_a_server_that_is_stopped_is_found_without_a_login_and_its_log_says_nothing_of_probes(
    spark: ThriftServer, tmp_path: Path
) -> None:
    # Long enough for a busy machine: no probe may fail before the server is stopped.
    options = ("--set", "health.interval_s=0.1", "--set", "health.timeout_s=6")
    with proxy_process(spark.endpoint, tmp_path / "proxy", options=options) as proxy:
        logged = spark.child.log.stat().st_size
        # Some 30 probes.
        time.sleep(3)
        until(str(spark.endpoint), proxy, healthy=True, failures=0)
        assert spark.child.log.stat().st_size == logged, spark.child.log_tail()
        # Its kernel goes on accepting connections.
        os.kill(spark.child.process.pid, signal.SIGSTOP)
        try:
            until(str(spark.endpoint), proxy, healthy=False, probes="down")
            with pytest.raises(HTTPError, match="503"):
                asked(proxy, "/readyz")
        finally:
            os.kill(spark.child.process.pid, signal.SIGCONT)
        until(str(spark.endpoint), proxy, healthy=True)
        assert asked(proxy, "/readyz") == {"status": "ok"}
        with closing(connect(proxy.endpoint)) as connection:
            assert select_one(connection)


def test_beeline_finds_the_proxy_in_zookeeper(spark: ThriftServer, java: Java, tmp_path: Path) -> None:
    endpoint = Endpoint("127.0.0.1", free_port())
    options = ("--set", f"zookeeper.ensemble={endpoint}")
    with (
        zookeeper(java, endpoint, tmp_path / "zookeeper"),
        proxy_process(spark.endpoint, tmp_path / "proxy", options=options) as proxy,
    ):
        deadline = time.monotonic() + PATIENCE_S
        while "registered in ZooKeeper" not in proxy.child.log.read_text():
            assert time.monotonic() < deadline, proxy.child.log_tail()
            time.sleep(0.05)
        found = beeline(java, endpoint, tmp_path)
        assert "the answer\n42" in found.stdout, found.stderr
        assert "opened from" in proxy.child.log.read_text()
        proxy.child.process.terminate()
        proxy.child.process.wait(PATIENCE_S)
        gone = beeline(java, endpoint, tmp_path)
        assert "42" not in gone.stdout
        assert "Unable to read HiveServer2" in gone.stderr


def beeline(java: Java, ensemble: Endpoint, home: Path) -> subprocess.CompletedProcess[str]:
    url = f"jdbc:hive2://{ensemble}/;serviceDiscoveryMode=zooKeeper;zooKeeperNamespace=hiveserver2"
    options = ("-n", "tester", "--outputformat=tsv2", "--silent=true", "-e", "SELECT 42 AS `the answer`")
    command = beeline_command(java, url, *options)
    command[1:1] = [QUICK_COMPILER, f"-Duser.home={home}"]
    return subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        check=False,
        capture_output=True,
        text=True,
        timeout=BEELINE_SECONDS_MAX,
    )
