"""The commands of docs/deploy.md, run in a directory that stands for the root of a machine."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from support.guide import WAIT_S, block, changed, installed, page, run, unit_commands, wait_for
from support.helm_chart import CHART, ROOT, rendered

from demo.proxy_process import READY
from proxy.config.config import Config, load

GUIDE = page("deploy.md")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine as the guide leaves it before the start."""
    return installed(tmp_path_factory.mktemp("machine"))


def test_the_settings_of_the_guide_are_those_that_the_proxy_has_then(machine: Path) -> None:
    config = load(machine / "etc" / "starpruner" / "starpruner.toml")
    assert config.proxy.listen == "0.0.0.0:10001"
    assert config.history.path == "/var/lib/starpruner/history"
    assert config.rewrite.metastore == "postgresql"
    assert config.splits == Config().splits


def test_the_guide_checks_the_files_and_starts_the_service(machine: Path) -> None:
    told = run(changed(block(GUIDE, "start"), {"systemctl ": "echo systemctl "}), machine)
    assert told.splitlines() == [
        "starpruner: the settings are valid",
        "systemctl daemon-reload",
        "systemctl enable --now starpruner",
    ]


def test_the_secrets_are_for_the_group_of_the_proxy_alone(machine: Path) -> None:
    assert (machine / "etc" / "starpruner" / "secrets.toml").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="systemd-sysusers is not here")
def test_the_user_of_the_unit_is_made(machine: Path) -> None:
    (line,) = re.findall(r"^starpruner:.*$", (machine / "etc" / "passwd").read_text("utf-8"), re.MULTILINE)
    assert line.endswith("/var/lib/starpruner:/usr/sbin/nologin")


def test_the_service_is_started_reloaded_and_stopped_as_its_unit_says(machine: Path) -> None:
    commands = unit_commands(machine)
    run(commands["ExecStartPre"], machine)
    # Any ports, and a directory of the machine: others may use those of the guide.
    own = "--listen 127.0.0.1:0 --admin 127.0.0.1:0 --set history.path=/var/lib/starpruner/history"
    start = re.sub(r"/(?=opt/|etc/|var/lib/)", f"{machine}/", f"{commands['ExecStart']} {own}")
    log = machine / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            shlex.split(start), stdout=output, stderr=output, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
    try:
        ready = READY.search(wait_for(READY.pattern, log))
        assert ready is not None
        with urlopen(f"{ready['admin']}/healthz", timeout=WAIT_S) as answer:
            assert answer.status == 200
        run(commands["ExecReload"].replace("$MAINPID", str(process.pid)), machine)
        wait_for("the configuration was reloaded", log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()
    assert (machine / "var" / "lib" / "starpruner" / "history").is_dir()


def test_the_values_of_the_guide_are_taken_by_the_chart_and_by_the_proxy(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(block(GUIDE, "values"), encoding="utf-8")
    rendering = rendered(values)
    path = tmp_path / "starpruner.toml"
    path.write_text(rendering.toml, encoding="utf-8")
    asked = yaml.safe_load(block(GUIDE, "values"))["config"]
    assert load(path).proxy.drain_s == asked["proxy"]["drain_s"]
    assert rendering.pod["spec"]["terminationGracePeriodSeconds"] == 145


def test_the_guide_installs_the_chart_that_is_here() -> None:
    assert f"helm upgrade --install starpruner {CHART.relative_to(ROOT)} " in GUIDE
