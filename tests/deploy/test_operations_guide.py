"""docs/operations.md: its commands, run on a proxy in front of a backend with answers ready, and its tables."""

import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from canned_backend import canned_backend
from counting_client import CountingClient
from support.guide import ROOT, WAIT_S, block, changed, installed, page, run, unit_commands, wait_for

from demo.hive import Endpoint
from demo.proxy_process import READY
from proxy.config.config import Config, load
from proxy.config.memory_shares import MemoryShares
from proxy.session.analysis_room import BYTES_PER_CHARACTER

GUIDE = page("operations.md")
JOIN = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 0"
MIB = 1024 * 1024


class Service:
    """A proxy that was started as the unit says, on ports of its own."""

    def __init__(self, machine: Path, process: subprocess.Popen[bytes], log: Path) -> None:
        ready = READY.search(wait_for(READY.pattern, log))
        assert ready is not None
        self.machine = machine
        self.pid = process.pid
        self.log = log
        self.endpoint, self.admin = Endpoint.parse(ready["endpoint"]), ready["admin"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    machine = installed(tmp_path_factory.mktemp("machine"))
    log = machine / "log"
    with canned_backend() as backend, log.open("w") as output:
        state = "/var/lib/starpruner"
        files = f"history.path={state}/history", f"rewrite.off_file={state}/off"
        settings = *files, "admin.open=true", "log.level=debug"
        own = f"--listen 127.0.0.1:0 --admin 127.0.0.1:0 --backend {backend} {shlex.join(options(settings))}"
        command = f"{unit_commands(machine)['ExecStart']} {own}"
        start = re.sub(r"/(?=opt/|etc/|var/lib/)", f"{machine}/", command)
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(shlex.split(start), stdout=output, stderr=output, env=environment)
        try:
            yield Service(machine, process, log)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()
            process.wait()


def options(settings: tuple[str, ...]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def test_the_commands_of_an_upgrade_are_there(service: Service) -> None:
    commands = {
        "/opt/starpruner/bin/pip install --upgrade .": "echo installed",
        "systemctl ": "echo systemctl ",
    }
    told = run(changed(block(GUIDE, "upgrade"), commands), service.machine)
    assert told.splitlines() == ["installed", "starpruner: the settings are valid", "systemctl restart starpruner"]


def test_the_proxy_is_watched_by_the_commands_of_the_guide(service: Service) -> None:
    told = run(changed(block(GUIDE, "watch"), {"http://127.0.0.1:10080": service.admin}), service.machine)
    named = {line.split("{")[0].split(" ")[0] for line in told.splitlines()}
    assert {
        "starpruner_connections_open",
        "starpruner_memory_short_total",
        "starpruner_statements_total",
        "process_resident_memory_bytes",
    } <= named


def test_rewriting_is_switched_off_without_the_end_of_a_session(service: Service) -> None:
    with CountingClient(service.endpoint) as client:
        client.fetch_all(JOIN)
        reload = unit_commands(service.machine)["ExecReload"].replace("$MAINPID", str(service.pid))
        commands = changed(block(GUIDE, "off"), {"systemctl reload starpruner": reload})
        run(commands, service.machine)
        wait_for("the configuration was reloaded", service.log)
        assert not load(service.machine / "etc" / "starpruner" / "starpruner.toml").rewrite.enabled
        client.fetch_all(JOIN)
        reasons = shown_reasons(service)
    assert reasons[0] == "SWITCHED_OFF"
    assert reasons[1] != "SWITCHED_OFF"


def test_rewriting_is_switched_off_at_once_in_the_middle_of_statements(service: Service) -> None:
    commands = block(GUIDE, "off at once").replace("/var/lib/", f"{service.machine}/var/lib/")
    with CountingClient(service.endpoint) as client, ThreadPoolExecutor(1) as pool:
        is_over = threading.Event()

        def ask() -> set[str]:
            answers = set()
            while not is_over.is_set():
                answers.add(repr(client.fetch_all(JOIN)))
            return answers

        asking = pool.submit(ask)
        run(commands, service.machine)
        wait_for("rewriting is switched off", service.log)
        shown = run(f"curl --fail --silent {service.admin}/rewriting", service.machine)
        reasons = shown_reasons(service)
        run(f"curl --fail --silent -X POST {service.admin}/rewriting/on", service.machine)
        wait_for("rewriting is on", service.log)
        is_over.set()
        assert len(asking.result(WAIT_S)) == 1
    assert '"on":false' in shown
    assert "SWITCHED_OFF" in reasons
    assert not (service.machine / "var/lib/starpruner/off").exists()


def shown_reasons(service: Service) -> list[str]:
    """The reasons of the last two statements, the last one first, once the history has them."""
    script = f"""
    until curl --fail --silent '{service.admin}/statements?limit=2' | grep -q SWITCHED_OFF; do sleep 0.2; done
    curl --fail --silent '{service.admin}/statements?limit=2'"""
    return re.findall(r'"skip_reason": ?"?(\w+)', run(script, service.machine))


def test_the_table_of_memory_is_what_the_proxy_reckons_with() -> None:
    rows = re.findall(r"^\| ([\d,]+) MB \| ([\d,]+)[^|]* \| (\d+) MB[^|]* \| ([\d,]+) \|$", GUIDE, re.MULTILINE)
    assert len(rows) == 5
    settings = Config().proxy
    for limit, *written in rows:
        shares = MemoryShares.of(number(limit) * MIB)
        characters = (shares.analysis_bytes - shares.plan_bytes) // BYTES_PER_CHARACTER // 1_000 * 1_000
        reckoned = (
            min(settings.connections_max, shares.connections_max),
            min(settings.request_bytes_max, shares.request_bytes_max) // MIB,
            characters,
        )
        assert tuple(map(number, written)) == reckoned


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_the_guide_has_a_line_for_each_alert_in_their_order() -> None:
    alerts = re.findall(r"alert: (\w+)", (ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8"))
    assert re.findall(r"^\| `(Starpruner\w+)` \|", GUIDE, re.MULTILINE) == alerts


def test_every_key_that_the_guide_names_is_there() -> None:
    sections = {name: getattr(Config(), name) for name in Config.__struct_fields__}
    named = re.findall(r"`(\w+)\.(\w+)`", GUIDE)
    assert named
    known = [(section, key) for section, key in named if section in sections]
    assert [f"{section}.{key}" for section, key in known if not hasattr(sections[section], key)] == []
