"""The commands of docs/deploy.md, run in a directory that stands for the root of a machine."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from support.guide import block, changed, guide
from support.helm_chart import CHART, ROOT, rendered

from demo.proxy_process import READY, starpruner_command
from proxy.config.config import Config, load

GUIDE = guide("deploy.md")
WAIT_S = 120


def run(commands: str, machine: Path) -> str:
    """Run commands with their directories below `machine`, and return what they say."""
    below = re.sub(r"(?<![\w.])/(?=opt/|etc/|usr/lib/|var/lib/)", f"{machine}/", commands)
    done = subprocess.run(["/bin/sh", "-exc", below], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine as the guide leaves it before the start.

    Our own command takes the place of the wheel's, since installing one needs an index of packages; `make
    wheel-demo` does that. There is no group to give a file to.
    """
    machine = tmp_path_factory.mktemp("machine")
    (machine / "etc" / "systemd" / "system").mkdir(parents=True)
    ours = machine / "ours"
    ours.write_text(f'#!/bin/sh\nexec {shlex.join(starpruner_command())} "$@"\n', encoding="utf-8")
    ours.chmod(0o755)
    sysusers = shutil.which("systemd-sysusers")
    changes = {
        "-m venv /opt": "-m venv --without-pip /opt",
        "/opt/starpruner/bin/pip install .": f"ln -s {ours} /opt/starpruner/bin/starpruner",
        "systemd-sysusers": "true" if sysusers is None else f"{sysusers} --root={machine}",
        "-g starpruner ": "",
    }
    run(changed(block(GUIDE, "install"), changes), machine)
    file = machine / "etc" / "starpruner" / "starpruner.toml"
    file.write_text(edited(file.read_text(encoding="utf-8"), block(GUIDE, "settings")), encoding="utf-8")
    return machine


def edited(sample: str, settings: str) -> str:
    """The sample with these keys, as an editor would change them: each in the place of its comment."""
    table = ""
    for line in settings.splitlines():
        if line.startswith("["):
            table = line
        elif line:
            key = line.partition(" = ")[0]
            head, found, rest = sample.partition(f"\n{table}\n")
            before, comment, after = rest.partition(f"\n#{key} = ")
            assert found
            assert comment
            sample = f"{head}{found}{before}\n{line}  # {after.partition('  # ')[2]}"
    return sample


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
    unit = (machine / "etc" / "systemd" / "system" / "starpruner.service").read_text(encoding="utf-8")
    commands = dict(re.findall(r"^(Exec\w+)=(.*)$", unit, re.MULTILINE))
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


def wait_for(pattern: str, log: Path) -> str:
    """The log, once it has a line like this."""
    deadline = time.monotonic() + WAIT_S
    while not re.search(pattern, text := log.read_text(), re.MULTILINE):
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
    return text


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
