"""A Docker engine of the tests' own, and the base image of ours: without a registry, and beside any other engine.

The engine leaves the machine's firewall alone, in one of two ways. Without a network namespace it has no network
of its own, and containers use the machine's: images are built so. In a network namespace it has networks as
anywhere, from which nothing leads out.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.child import Child

ROOT = Path(__file__).parents[2]
# The engine starts within a second.
START_S = 30.0
NSENTER = "/usr/bin/nsenter"
BASE = "starpruner-test-base"
# The name that deploy/compose has for it.
PROXY_IMAGE = "starpruner:0.1.0"
# The Dockerfiles' base images have the same: Python with its environments, and for the build `strip`.
BASE_PACKAGES = ("python3-venv", "binutils", "ca-certificates")
# As Debian's slim images: nobody reads them in a container.
UNREAD = ("usr/share/doc", "usr/share/locale", "usr/share/man")
# Another client that stands first on PATH may lack BuildKit.
DOCKER = "/usr/bin/docker"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
SUITE = "bookworm"
NO_NETWORK = ("--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false")


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
        assert done.returncode == 0, f"docker {arguments[0]}: {(done.stdout + done.stderr)[-2_000:]}"
        return done.stdout

    def build(
        self, dockerfile: Path, root: Path, tag: str, arguments: Mapping[str, str], target: str | None = None
    ) -> None:
        """Builds an image. Whatever names a host of this machine goes in as a secret."""
        pip, apt = self.directory / "pip.conf", self.directory / "sources.list"
        pip.write_text("\n".join(["[global]", "cert = /run/secrets/ca", *package_index()]) + "\n")
        # A mirror of the machine's own may be signed by a key that the base does not have.
        apt.write_text(f"deb [trusted=yes] {debian_mirror()} {SUITE} main\n")
        options = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        options += () if target is None else ("--target", target)
        files = {"pip": pip, "apt": apt, "ca": CERTIFICATES}
        secrets = [word for name, path in files.items() for word in ("--secret", f"id={name},src={path}")]
        self.docker(
            *("build", "--network", "host", *options, *secrets, "-f", str(dockerfile), "-t", tag, str(root)),
            DOCKER_BUILDKIT="1",
        )


@dataclass(frozen=True)
class Built:
    """A directory to start an engine on, and the images that were built there."""

    directory: Path
    base: str
    proxy: str = PROXY_IMAGE


def package_index() -> list[str]:
    """The lines of pip's configuration that say where packages come from; none for PyPI."""
    index = os.environ.get("PIP_INDEX_URL") or _done("pip", "config", "get", "global.index-url").stdout.strip()
    return [f"index-url = {index}"] if index else []


def debian_mirror() -> str:
    """The mirror that this machine's packages come from."""
    return _done("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").stdout.split()[0]


@contextmanager
def engine_directory() -> Iterator[Path]:
    """A directory for an engine's data, of gigabytes, which goes with the context."""
    # None of pytest's, which keeps them: an engine leaves mounts in it. And a socket's path is short.
    directory = Path(tempfile.mkdtemp(prefix="starpruner-engine-"))
    try:
        yield directory
    finally:
        for mounted in (directory / "exec/netns/default", directory / "data"):
            _done("umount", "--lazy", str(mounted))
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def engine(directory: Path, namespace: str | None = None) -> Iterator[Engine]:
    """An engine with its data in a directory, in a network namespace if one is named. Raises NoEngineError."""
    if os.geteuid() != 0:
        raise NoEngineError("only root can start a Docker engine")
    missing = [tool for tool in ("dockerd", "mmdebstrap", DOCKER) if shutil.which(tool) is None]
    if missing:
        raise NoEngineError(f"{' and '.join(missing)} is missing: apt-get install docker.io mmdebstrap")
    socket = directory / "docker.sock"
    # `ip netns exec` would hide the control groups.
    inside = () if namespace is None else (NSENTER, f"--net=/var/run/netns/{namespace}")
    command = [
        *(*inside, "dockerd", "-H", f"unix://{socket}", "--data-root", str(directory / "data")),
        *("--exec-root", str(directory / "exec"), "--pidfile", str(directory / "dockerd.pid")),
        *("--storage-driver", "overlay2", *(NO_NETWORK if namespace is None else ())),
    ]
    socket.unlink(missing_ok=True)
    with Child.start(command, log=directory / "dockerd.log", directory=directory, environment=os.environ) as child:
        deadline = time.monotonic() + START_S
        while not socket.exists():
            if child.exit_code is not None or time.monotonic() > deadline:
                raise NoEngineError(f"the Docker engine does not start: {child.log_tail()[-500:]}")
            time.sleep(0.05)
        yield Engine(f"unix://{socket}", directory)


@contextmanager
def network_namespace(name: str) -> Iterator[str]:
    """A network namespace with a loopback, from which nothing leads out. Raises NoEngineError."""
    missing = [tool for tool in ("ip", "iptables", NSENTER) if shutil.which(tool) is None]
    if missing:
        raise NoEngineError(f"{' and '.join(missing)} is missing: apt-get install iproute2 iptables util-linux")
    made = _done("ip", "netns", "add", name)
    if made.returncode != 0:
        raise NoEngineError(f"no network namespace can be made: {made.stderr}")
    try:
        raised = _done(NSENTER, f"--net=/var/run/netns/{name}", "ip", "link", "set", "lo", "up")
        assert raised.returncode == 0, raised.stderr
        yield name
    finally:
        _done("ip", "netns", "delete", name)


def import_base(engine: Engine) -> str:
    """Makes the base image of Debian's packages, and returns its name. Raises NoEngineError if it does not run."""
    archive = engine.directory / "base.tar"
    unread = [f"--dpkgopt=path-exclude=/{part}/*" for part in UNREAD]
    # The list of sources would name the mirror. One of the machine's own may be signed by a key that Debian lacks.
    made = _done(
        *("mmdebstrap", "--variant=apt", f"--include={','.join(BASE_PACKAGES)}", *unread),
        "--customize-hook=echo > $1/etc/apt/sources.list",
        *(SUITE, str(archive), f"deb [trusted=yes] {debian_mirror()} {SUITE} main"),
    )
    if made.returncode != 0:
        raise NoEngineError(f"no base image can be made of Debian's packages: {made.stderr[-500:]}")
    engine.docker("import", str(archive), BASE)
    host = {**os.environ, "DOCKER_HOST": engine.host}
    tried = subprocess.run(
        [DOCKER, "run", "--rm", "--network", "host", BASE, "true"],
        env=host,
        check=False,
        capture_output=True,
        text=True,
    )
    if tried.returncode != 0:
        raise NoEngineError(f"the engine runs no container here: {tried.stderr[-500:]}")
    return BASE


@contextmanager
def built_images() -> Iterator[Built]:
    """An engine's directory with the base image and the proxy's image in it. Raises NoEngineError."""
    with engine_directory() as directory:
        with engine(directory) as docker:
            base = import_base(docker)
            bases = {"BUILD_IMAGE": base, "BASE_IMAGE": base}
            docker.build(ROOT / "deploy/docker/proxy.Dockerfile", ROOT, PROXY_IMAGE, bases)
        yield Built(directory, base)


def are_required() -> bool:
    """True if tests with containers must not be skipped."""
    return bool(os.environ.get("STARPRUNER_CONTAINERS_REQUIRED"))


def _done(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, capture_output=True, text=True)
