"""Servers from Debian's packages, unpacked without being installed, and run as a user who owns nothing."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.child import Child

# The servers refuse to run as root. This user exists everywhere and owns nothing.
UNPRIVILEGED = "nobody"

# A minimal machine lacks some thirty libraries, together less than 100 MB.
DOWNLOAD_SECONDS_MAX = 300
COMMAND_SECONDS_MAX = 60
START_SECONDS_MAX = 30
START_POLL_SECONDS = 0.1

TO_INSTALL = re.compile(r"^Inst (\S+)", re.MULTILINE)


class PackageMissingError(Exception):
    """A server or its JDBC driver cannot be had on this machine."""


@dataclass(frozen=True)
class Packages:
    """Packages in a directory that the unprivileged user owns."""

    directory: Path

    @property
    def _unpacked(self) -> Path:
        return self.directory / "packages"

    def find(self, pattern: str) -> Path:
        """Where a file of the packages is, unpacked or installed; of several versions the last."""
        found = sorted(self._unpacked.glob(pattern)) or sorted(Path("/").glob(pattern))
        if not found:
            raise PackageMissingError(f"the packages hold no {pattern}")
        return found[-1]

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which programs of the packages find their libraries."""
        libraries = ":".join(map(str, self._unpacked.glob("usr/lib/*-linux-gnu*")))
        return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "LD_LIBRARY_PATH": libraries}

    def run(self, *words: str | Path) -> None:
        """Runs one of the packages' own commands to its end; what it prints shows when a test fails."""
        _run(_unprivileged(*words), self.environment)

    @contextmanager
    def serving(self, ready: str, *words: str | Path) -> Iterator[None]:
        """Runs a server as long as the context lasts, from when its log says that it is ready."""
        log = self.directory / "server.log"
        command = _unprivileged(*words)
        with Child.start(command, log=log, directory=self.directory, environment=self.environment) as child:
            deadline = time.monotonic() + START_SECONDS_MAX
            while ready not in log.read_text():
                if child.exit_code is not None or time.monotonic() > deadline:
                    raise TimeoutError(f"not ready within {START_SECONDS_MAX} s: {command}\n{child.log_tail()}")
                time.sleep(START_POLL_SECONDS)
            yield


@contextmanager
def unpacked(packages: Sequence[str], download_directory: Path) -> Iterator[Packages]:
    """Unpacks packages, with all that they need, where these are not installed. Raises PackageMissingError.

    Downloads are kept for the next time.
    """
    with tempfile.TemporaryDirectory(prefix=f"starpruner-{packages[0]}-") as name:
        directory = Path(name)
        target = directory / "packages"
        target.mkdir()
        for package in _missing(packages):
            if not (kept := list(download_directory.glob(f"{package}_*.deb"))):
                _apt_get("download", package, directory=download_directory)
                kept = list(download_directory.glob(f"{package}_*.deb"))
            _run(["dpkg", "--extract", str(kept[0]), str(target)])
        if os.geteuid() == 0:
            # What is unpacked inside needs only be read.
            shutil.chown(directory, UNPRIVILEGED)
        yield Packages(directory)


def downloads(config: pytest.Config) -> Path:
    """The directory in which downloads are kept from one run to the next."""
    assert config.cache is not None, "run with pytest's cache: Debian's packages are kept there"
    return config.cache.mkdir("debian-packages")


def _missing(packages: Sequence[str]) -> Sequence[str]:
    """Which packages apt would install, with all that they need; none where they are installed."""
    if shutil.which("apt-get") is None:
        raise PackageMissingError(f"{packages[0]} needs Debian's packages, and there is no apt-get here")
    simulated = _apt_get("install", "--simulate", "--no-upgrade", "--no-install-recommends", *packages)
    return TO_INSTALL.findall(simulated)


def _apt_get(*words: str, directory: Path | None = None) -> str:
    """What apt-get prints. Neither simulating nor downloading needs to be root."""
    done = subprocess.run(
        ["apt-get", *words],  # noqa: S607 - wherever Debian's is
        cwd=directory,
        check=False,
        capture_output=True,
        text=True,
        timeout=DOWNLOAD_SECONDS_MAX,
    )
    if done.returncode != 0:
        raise PackageMissingError(
            f"`apt-get {' '.join(words)}` failed, and `apt-get update` may help: {done.stderr.strip()}"
        )
    return done.stdout


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, env=environment, check=True, timeout=COMMAND_SECONDS_MAX)


def _unprivileged(*words: str | Path) -> list[str]:
    """The command as somebody else where we are root."""
    if os.geteuid() != 0:
        return list(map(str, words))
    user = pwd.getpwnam(UNPRIVILEGED)
    # The program replaces setpriv: the process that is started, and later ended, is the server itself.
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *map(str, words)]
