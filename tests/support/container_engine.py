"""A Docker engine of the tests' own, and the base image of ours: without a registry, and beside any other engine.

The engine has no network of its own and leaves the machine's firewall alone: containers use the machine's network.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.child import Child

# The engine starts within a second.
START_S = 30.0
BASE = "starpruner-test-base"
# The Dockerfiles' base images have the same: Python with its environments, and for the build `strip`.
BASE_PACKAGES = ("python3-venv", "binutils", "ca-certificates")
# As Debian's slim images: nobody reads them in a container.
UNREAD = ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache/apt", "var/lib/apt/lists", "var/log")
# Another client that stands first on PATH may lack BuildKit.
DOCKER = "/usr/bin/docker"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


class NoEngineError(Exception):
    """No engine can be started here; the message says why."""


@dataclass(frozen=True)
class Engine:
    """A running engine."""

    host: str
    directory: Path

    def docker(self, *arguments: str, **environment: str) -> str:
        """Runs the client, and returns its output."""
        done = subprocess.run(
            [DOCKER, *arguments],
            env={**os.environ, "DOCKER_HOST": self.host, **environment},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"docker {arguments[0]}: {done.stdout}{done.stderr}"
        return done.stdout

    def build(self, dockerfile: Path, root: Path, tag: str, arguments: Mapping[str, str]) -> None:
        """Builds an image. Whatever names a host of this machine goes in as a secret."""
        pip = self.directory / "pip.conf"
        pip.write_text("\n".join(["[global]", "cert = /run/secrets/ca", *package_index()]) + "\n")
        options = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        secrets = ("--secret", f"id=pip,src={pip}", "--secret", f"id=ca,src={CERTIFICATES}")
        self.docker(
            *("build", "--network", "host", *options, *secrets, "-f", str(dockerfile), "-t", tag, str(root)),
            DOCKER_BUILDKIT="1",
        )


def package_index() -> list[str]:
    """The lines of pip's configuration that say where packages come from; none for PyPI."""
    index = os.environ.get("PIP_INDEX_URL") or _done("pip", "config", "get", "global.index-url").stdout.strip()
    return [f"index-url = {index}"] if index else []


def debian_mirror() -> str:
    """The mirror that this machine's packages come from."""
    return _done("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").stdout.split()[0]


@contextmanager
def engine(directory: Path) -> Iterator[Engine]:
    """An engine with its data in a directory. Raises NoEngineError."""
    if os.geteuid() != 0:
        raise NoEngineError("only root can start a Docker engine")
    missing = [tool for tool in ("dockerd", "debootstrap", DOCKER) if shutil.which(tool) is None]
    if missing:
        raise NoEngineError(f"{' and '.join(missing)} is missing: apt-get install docker.io debootstrap")
    host = f"unix://{directory}/docker.sock"
    command = [
        *("dockerd", "-H", host, "--data-root", str(directory / "data"), "--exec-root", str(directory / "exec")),
        *("--pidfile", str(directory / "dockerd.pid"), "--storage-driver", "overlay2"),
        *("--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"),
    ]
    with Child.start(command, log=directory / "dockerd.log", directory=directory, environment=os.environ) as child:
        deadline = time.monotonic() + START_S
        while not (directory / "docker.sock").exists():
            if child.exit_code is not None or time.monotonic() > deadline:
                raise NoEngineError(f"the Docker engine does not start: {child.log_tail()[-500:]}")
            time.sleep(0.05)
        yield Engine(host, directory)


def import_base(engine: Engine) -> str:
    """Makes the base image of Debian's packages, and returns its name."""
    root = engine.directory / "base"
    command = ("debootstrap", "--variant=minbase", f"--include={','.join(BASE_PACKAGES)}", "bookworm", str(root))
    made = _done(*command, debian_mirror())
    assert made.returncode == 0, made.stdout[-2_000:]
    for part in UNREAD:
        shutil.rmtree(root / part, ignore_errors=True)
    # It names the mirror.
    (root / "etc/apt/sources.list").write_text("")
    archive = engine.directory / "base.tar"
    assert _done("tar", "-C", str(root), "-cf", str(archive), ".").returncode == 0
    engine.docker("import", str(archive), BASE)
    return BASE


def _done(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, capture_output=True, text=True)
