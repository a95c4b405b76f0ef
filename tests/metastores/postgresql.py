"""A PostgreSQL server of the tests' own, from Debian's packages, for a metastore that is not Derby."""

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

from demo.child import Child
from demo.hive import Endpoint, free_port

PACKAGES = ("postgresql", "libpostgresql-jdbc-java")
USER = "hive"
# PostgreSQL refuses to run as root. This user exists everywhere and owns nothing.
UNPRIVILEGED = "nobody"

INITDB_OPTIONS = (
    *("--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-sync"),
    # The order of a dictionary ('a' before 'B', punctuation aside), as most installations have and Spark has not:
    # a range of strings means something else to such a metastore.
    *("--locale-provider", "icu", "--icu-locale", "en-US", "--locale", "C.UTF-8"),
)

# An empty metastore makes its tables as it comes to need them: from a second connection, in the middle of a
# transaction, and the foreign keys of the second then wait for the first for ever. So these are made before.
MODEL = "org.apache.hadoop.hive.metastore.model"
MADE_AT_START = """
    MDatabase MTable MPartition MStorageDescriptor MColumnDescriptor MSerDeInfo MConstraint MIndex
    MTablePrivilege MPartitionPrivilege MTableColumnPrivilege MPartitionColumnPrivilege
    MTableColumnStatistics MPartitionColumnStatistics
""".split()

# A minimal machine lacks some thirty libraries, together less than 100 MB.
DOWNLOAD_SECONDS_MAX = 300
COMMAND_SECONDS_MAX = 60
START_SECONDS_MAX = 30
START_POLL_SECONDS = 0.1
READY = "database system is ready to accept connections"

TO_INSTALL = re.compile(r"^Inst (\S+)", re.MULTILINE)


class PostgresqlMissingError(Exception):
    """PostgreSQL or its JDBC driver cannot be had on this machine."""


@dataclass(frozen=True)
class Postgresql:
    """A running server with an empty database."""

    endpoint: Endpoint
    driver: Path

    @property
    def spark_conf(self) -> dict[str, str]:
        """What makes a Spark Thrift Server keep its metastore here."""
        jdo = {
            "ConnectionURL": f"jdbc:postgresql://{self.endpoint}/postgres",
            "ConnectionDriverName": "org.postgresql.Driver",
            "ConnectionUserName": USER,
            # Anything: this server asks for none, and the metastore's connection pool must be given one.
            "ConnectionPassword": USER,
        }
        return {
            "spark.driver.extraClassPath": str(self.driver),
            **{f"spark.hadoop.javax.jdo.option.{name}": setting for name, setting in jdo.items()},
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
            "spark.hadoop.datanucleus.autoStartMechanism": "Classes",
            "spark.hadoop.datanucleus.autoStartClassNames": ",".join(f"{MODEL}.{name}" for name in MADE_AT_START),
            "spark.hadoop.hive.metastore.schema.verification": "false",
        }


@contextmanager
def postgresql(download_directory: Path) -> Iterator[Postgresql]:
    """Runs a server as long as the context lasts. Raises PostgresqlMissingError."""
    with tempfile.TemporaryDirectory(prefix="starpruner-postgresql-") as name:
        directory = Path(name)
        unpacked = directory / "packages"
        _unpack(_missing_packages(), download_directory, unpacked)
        programs = _directory_of("usr/lib/postgresql/*/bin/postgres", unpacked)
        driver = _directory_of("usr/share/java/postgresql.jar", unpacked) / "postgresql.jar"
        _give_away(directory)
        environment = _environment(unpacked)
        cluster = directory / "cluster"
        _run(_unprivileged(programs / "initdb", "-D", cluster, *INITDB_OPTIONS), environment)
        endpoint = Endpoint("127.0.0.1", free_port())
        command = _unprivileged(programs / "postgres", "-D", cluster, *_settings(endpoint))
        log = directory / "postgresql.log"
        with Child.start(command, log=log, directory=directory, environment=environment) as child:
            _wait_until_ready(child)
            yield Postgresql(endpoint, driver)


def _missing_packages() -> Sequence[str]:
    """Which packages apt would install, with all that they need; none where they are installed."""
    if shutil.which("apt-get") is None:
        raise PostgresqlMissingError(
            "a metastore in PostgreSQL needs Debian's packages, and there is no apt-get here"
        )
    simulated = _apt_get("install", "--simulate", "--no-upgrade", "--no-install-recommends", *PACKAGES)
    return TO_INSTALL.findall(simulated)


def _unpack(packages: Sequence[str], download_directory: Path, target: Path) -> None:
    """Unpacks packages without installing them, and keeps what was downloaded for the next time."""
    target.mkdir()
    for package in packages:
        if not (kept := list(download_directory.glob(f"{package}_*.deb"))):
            _apt_get("download", package, directory=download_directory)
            kept = list(download_directory.glob(f"{package}_*.deb"))
        _run(["dpkg", "--extract", str(kept[0]), str(target)])


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
        raise PostgresqlMissingError(
            f"`apt-get {' '.join(words)}` failed, and `apt-get update` may help: {done.stderr.strip()}"
        )
    return done.stdout


def _directory_of(pattern: str, unpacked: Path) -> Path:
    """Where a file of the packages is, unpacked or installed; of several versions the last."""
    found = sorted(unpacked.glob(pattern)) or sorted(Path("/").glob(pattern))
    if not found:
        raise PostgresqlMissingError(f"the packages {', '.join(PACKAGES)} hold no {pattern}")
    return found[-1].parent


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Runs one of the packages' own commands to its end; what it prints shows when a test fails."""
    subprocess.run(command, env=environment, check=True, timeout=COMMAND_SECONDS_MAX)


def _settings(endpoint: Endpoint) -> Iterator[str]:
    settings = {
        "listen_addresses": endpoint.host,
        "port": str(endpoint.port),
        # The default directory for sockets belongs to the installed package's user.
        "unix_socket_directories": "",
        # Nothing here outlives the tests.
        "fsync": "off",
    }
    for name, setting in settings.items():
        yield from ("-c", f"{name}={setting}")


def _give_away(directory: Path) -> None:
    """To the user who will run the server; what is unpacked inside needs only be read."""
    if os.geteuid() == 0:
        shutil.chown(directory, UNPRIVILEGED)


def _unprivileged(*words: str | Path) -> list[str]:
    """The command as somebody else where we are root."""
    if os.geteuid() != 0:
        return list(map(str, words))
    user = pwd.getpwnam(UNPRIVILEGED)
    # The program replaces setpriv: the process that is started, and later ended, is the server itself.
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *map(str, words)]


def _environment(unpacked: Path) -> dict[str, str]:
    libraries = ":".join(map(str, unpacked.glob("usr/lib/*-linux-gnu*")))
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "LD_LIBRARY_PATH": libraries}


def _wait_until_ready(child: Child) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while child.exit_code is None and time.monotonic() < deadline:
        if READY in child.log.read_text():
            return
        time.sleep(START_POLL_SECONDS)
    raise TimeoutError(f"PostgreSQL was not ready within {START_SECONDS_MAX} s:\n{child.log_tail()}")
