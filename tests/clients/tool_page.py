"""The steps of docs/tools/ by tool, and the folders in which they are followed as they are written.

A step is a fenced block behind a marker: `<!-- step: pandas query.py -->` says that the block is the file
`query.py` of a reader who sets up pandas. The blocks `install` and `run` are lines of a shell. Each tool has a
folder of its own, with an environment of Python that is empty at first.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from drivers import CACHE
from support.maven import ClientMissingError

from demo.hive import Endpoint

PAGES: Final = Path(__file__).parents[2] / "docs" / "tools"
_STEP: Final = re.compile(
    r"^<!-- step: (?P<tool>\S+) (?P<name>\S+) -->\n```\w*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
# The proxy as the pages name it.
HOST, PORT = "proxy-host", "10001"
SHELL_STEPS: Final = frozenset({"install", "run"})

# Superset's hundred packages from a registry that is far away, or Go's compiler on a busy machine.
INSTALL_SECONDS_MAX: Final = 1800
RUN_SECONDS_MAX: Final = 900


def steps_of_pages() -> dict[str, dict[str, str]]:
    """The blocks of each tool by their name."""
    steps: dict[str, dict[str, str]] = {}
    for page in sorted(PAGES.glob("*.md")):
        for found in _STEP.finditer(page.read_text(encoding="utf-8")):
            steps.setdefault(found["tool"], {})[found["name"]] = found["text"]
    return steps


def addressed(text: str, endpoint: Endpoint) -> str:
    """A block with the address of a real proxy in the place of the pages'."""
    return text.replace(HOST, endpoint.host).replace(PORT, str(endpoint.port))


@dataclass(frozen=True)
class ToolFolder:
    """The folder of one tool, in which its steps have been followed up to its installation."""

    path: Path

    def run(self, script: str, environment: Mapping[str, str], *, seconds: float = RUN_SECONDS_MAX) -> str:
        """The output of lines of a shell; an error if one of them fails."""
        done = _shell(script, self.path, environment, seconds)
        assert done.returncode == 0, f"{script}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout


def installed(tool: str, *, cache: Path = CACHE) -> ToolFolder:
    """The folder of a tool, made where its page has changed; raises ClientMissingError where it cannot be had."""
    steps = steps_of_pages()[tool]
    install = steps.get("install", "")
    kept = "\0".join([sys.version, install, steps.get("pom.xml", "")])
    folder = cache / "tools" / f"{tool}-{hashlib.sha256(kept.encode()).hexdigest()[:12]}"
    ready = folder / ".installed"
    if ready.exists():
        return ToolFolder(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if "pom.xml" in steps:
        (folder / "pom.xml").write_text(steps["pom.xml"], encoding="utf-8")
    if "pip install" in install:
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    try:
        done = _shell(install, folder, {}, INSTALL_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise ClientMissingError(f"{tool} was not installed within {INSTALL_SECONDS_MAX} s") from None
    if done.returncode:
        raise ClientMissingError(f"{tool} cannot be installed here: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    ready.touch()
    return ToolFolder(folder)


def _shell(
    script: str, folder: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    path = os.pathsep.join([str(folder / "env" / "bin"), str(folder / "bin"), own.get("PATH", "")])
    return subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**own, "PATH": path, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
