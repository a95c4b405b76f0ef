"""The systemd unit: systemd's own checks, times and limits, and the system calls of a proxy against its filter."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from math import ceil
from pathlib import Path

import pytest
from support.proxies import options

from demo.proxy_process import starpruner_command
from proxy.config.config import Config
from proxy.net import fd_limit
from proxy.workers.launch import CLOSE_S

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "systemd" / "starpruner.service"
INSTALLED = "/opt/starpruner/bin/starpruner"
# In tenths. Systemd 252 says 1.2 of 10, for the network, local sockets and the limit of open files.
EXPOSURE_MAX = "20"
SYSTEMD_ANALYZE, STRACE = shutil.which("systemd-analyze"), shutil.which("strace")
SLACK_S = 5
WAIT_S = 120

needs_systemd = pytest.mark.skipif(
    SYSTEMD_ANALYZE is None, reason="systemd-analyze is not here (Debian's package systemd)"
)


def settings() -> dict[str, list[str]]:
    """The values of each key, in order."""
    found = defaultdict(list)
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[key].append(value)
    return found


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    assert SYSTEMD_ANALYZE is not None
    return subprocess.run([SYSTEMD_ANALYZE, *words], capture_output=True, text=True, check=False)


@needs_systemd
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    program = Path(sys.executable).with_name("starpruner")
    copy.write_text(UNIT.read_text(encoding="utf-8").replace(INSTALLED, str(program)), encoding="utf-8")
    told = analyze("verify", "--man=no", copy)
    assert (told.returncode, told.stdout + told.stderr) == (0, "")


@needs_systemd
def test_the_service_is_exposed_to_little() -> None:
    told = analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", UNIT)
    assert told.returncode == 0, told.stdout


def test_the_service_has_the_time_to_drain_and_to_close() -> None:
    assert settings()["TimeoutStopSec"] == [str(ceil(Config().proxy.drain_s + CLOSE_S + SLACK_S))]


def test_the_service_may_open_the_files_of_as_many_clients_as_connect_by_default() -> None:
    per_client, others = fd_limit._PER_CLIENT, fd_limit._OTHERS  # noqa: SLF001 - nobody else asks for them
    assert int(settings()["LimitNOFILE"][0]) >= per_client * Config().proxy.connections_max + others


def test_a_check_precedes_each_start_and_each_reload() -> None:
    check, reload = settings()["ExecReload"]
    assert settings()["ExecStartPre"] == [check]
    assert settings()["ExecStart"] == [check.replace(" --check", "")]
    assert reload == "/bin/kill -HUP $MAINPID"


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The system calls of a proxy with two workers and a history, from its start to its end, with a reload."""
    # Some containers have strace and do not let it trace.
    if STRACE is None or subprocess.run([STRACE, "-qq", "-o", "/dev/null", STRACE, "-V"], check=False).returncode:
        pytest.skip("strace is not here, or may not trace")
    folder = tmp_path_factory.mktemp("traced")
    trace, log = folder / "trace", folder / "log"
    keys = ("proxy.listen=127.0.0.1:0", "proxy.backend=localhost:1", "proxy.workers=2", "admin.listen=127.0.0.1:0")
    command = [STRACE, "-f", "-qq", "-o", str(trace), *starpruner_command(), "serve"]
    command += options(*keys, f"history.path={folder / 'history'}")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, process_group=0)
    try:
        until(lambda: "starpruner: listening on" in log.read_text(), log)
        supervisor = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii"))
        os.kill(supervisor, signal.SIGHUP)
        until(lambda: log.read_text().count("the configuration was reloaded") == 2, log)
        os.kill(supervisor, signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return trace.read_text().splitlines()


def until(condition: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def calls_in(sets: dict[str, list[str]], name: str) -> set[str]:
    """All calls of a set, those of sets in it included."""
    if not name.startswith("@"):
        return {name}
    return {call for each in sets[name] for call in calls_in(sets, each)}


@needs_systemd
def test_the_proxy_makes_no_system_call_that_its_filter_refuses(calls: list[str]) -> None:
    sets = defaultdict[str, list[str]](list)
    name = ""
    for line in analyze("syscall-filter", "--no-pager").stdout.splitlines():
        if line.startswith("@"):
            name = line
        elif line.strip() and not line.strip().startswith("#"):
            sets[name].append(line.strip())
    let_through, refused = settings()["SystemCallFilter"]
    allowed = calls_in(sets, let_through) - calls_in(sets, refused.removeprefix("~"))
    made = {found[1] for line in calls if (found := re.match(r"\d+ +(\w+)\(", line))}
    # SQLite gives its files to the owner of the directory, where it runs as root.
    of_root = {"fchown"} if os.geteuid() == 0 else set()
    assert "listen" in made
    assert made - of_root <= allowed


def test_the_proxy_has_no_memory_that_it_could_write_and_run(calls: list[str]) -> None:
    assert settings()["MemoryDenyWriteExecute"] == ["yes"]
    made_executable = re.compile(r"mprotect\(.*PROT_EXEC|mmap\(.*PROT_WRITE\|PROT_EXEC|SHM_EXEC")
    assert [line for line in calls if made_executable.search(line)] == []


def test_the_proxy_opens_no_socket_of_another_kind(calls: list[str]) -> None:
    opened = {found[1] for line in calls if (found := re.search(r" socket\((AF_\w+)", line))}
    assert "AF_INET" in opened
    assert opened <= set(settings()["RestrictAddressFamilies"][0].split())
