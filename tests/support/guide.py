"""Commands of a page of docs/, run in a directory that stands for the root of a machine.

A block of a page stands behind a marker, `<!-- guide: name -->`.
"""

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from demo.proxy_process import starpruner_command

ROOT = Path(__file__).parents[2]
WAIT_S = 120


def page(name: str) -> str:
    """The text of a page."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def block(guide: str, name: str) -> str:
    """A block of a page, without the indentation that it has in a list."""
    found = re.search(rf"^( *)<!-- guide: {name} -->\n *```\w*\n(.*?)^ *```", guide, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the guide has no block {name}"
    return re.sub(rf"^{found[1]}", "", found[2], flags=re.MULTILINE)


def changed(commands: str, changes: Mapping[str, str]) -> str:
    """The commands with other words, each of which they have to have."""
    for before, after in changes.items():
        assert before in commands, f"the guide no longer has what is run otherwise here: {before}"
        commands = commands.replace(before, after)
    return commands


def run(commands: str, machine: Path) -> str:
    """Run commands with their directories below `machine`, and return what they say."""
    below = re.sub(r"(?<![\w.])/(?=opt/|etc/|usr/lib/|var/lib/)", f"{machine}/", commands)
    done = subprocess.run(["/bin/sh", "-exc", below], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed(machine: Path) -> Path:
    """The machine as docs/deploy.md leaves it before the start.

    Our own command takes the place of the wheel's, since installing one needs an index of packages; `make
    wheel-demo` does that. There is no group to give a file to.
    """
    guide = page("deploy.md")
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
    run(changed(block(guide, "install"), changes), machine)
    file = machine / "etc" / "starpruner" / "starpruner.toml"
    file.write_text(_edited(file.read_text(encoding="utf-8"), block(guide, "settings")), encoding="utf-8")
    return machine


def unit_commands(machine: Path) -> dict[str, str]:
    """The commands of the installed unit, by their keys; of several, the last one."""
    unit = (machine / "etc" / "systemd" / "system" / "starpruner.service").read_text(encoding="utf-8")
    return dict(re.findall(r"^(Exec\w+)=(.*)$", unit, re.MULTILINE))


def wait_for(pattern: str, log: Path) -> str:
    """The log, once it has a line like this."""
    deadline = time.monotonic() + WAIT_S
    while not re.search(pattern, text := log.read_text(), re.MULTILINE):
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
    return text


def _edited(sample: str, settings: str) -> str:
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
