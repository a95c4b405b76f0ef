"""A PostgreSQL server of the tests' own, from Debian's packages, for a metastore that is not Derby."""

import os
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
# PostgreSQL refuses to run as root. Nobody owns nothing else on the machine, and exists everywhere.
UNPRIVILEGED = "nobody"

INITDB_OPTIONS = (
    *("--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-sync"),
    # The order of a dictionary ('a' before 'B', punctuation aside), as most installations have and Spark has not:
    # a range of strings means something else to such a metastore.
    *("--locale-provider", "icu", "--icu-locale", "en-US", "--locale", "C.UTF-8"),
)

# A minimal machine lacks some thirty libraries, together less than 100 MB.
DOWNLOAD_SECONDS_MAX = 300
COMMAND_SECONDS_MAX = 60
START_SECONDS_MAX = 30
START_POLL_SECONDS = 0.1

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
            # The tables of an empty metastore are made as they are needed, as in the embedded one.
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
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
        _answer(_unprivileged(programs / "initdb", "-D", cluster, *INITDB_OPTIONS), environment=environment)
        endpoint = Endpoint("127.0.0.1", free_port())
        command = _unprivileged(programs / "postgres", "-D", cluster, *_settings(endpoint))
        log = directory / "postgresql.log"
        with Child.start(command, log=log, directory=directory, environment=environment) as child:
            _wait_until_it_answers(child, endpoint, programs / "pg_isready", environment)
            yield Postgresql(endpoint, driver)


def _missing_packages() -> Sequence[str]:
    """Which packages apt would install, with all that they need; none where they are installed."""
    if shutil.which("apt-get") is None:
        raise PostgresqlMissingError(
            "a metastore in PostgreSQL needs Debian's packages, and there is no apt-get here"
        )
    simulated = ["apt-get", "install", "--simulate", "--no-upgrade", "--no-install-recommends", *PACKAGES]
    try:
        return TO_INSTALL.findall(_answer(simulated))
    except subprocess.CalledProcessError as error:
        raise PostgresqlMissingError(
            f"apt knows no {' and '.join(PACKAGES)}; `apt-get update` may help: {error.stderr.strip()}"
        ) from error


def _unpack(packages: Sequence[str], download_directory: Path, target: Path) -> None:
    """Unpacks packages without installing them, and keeps what was downloaded for the next time."""
    target.mkdir()
    for package in packages:
        if not (kept := list(download_directory.glob(f"{package}_*.deb"))):
            kept = _download(package, download_directory)
        _answer(["dpkg", "--extract", str(kept[0]), str(target)])


def _download(package: str, directory: Path) -> list[Path]:
    try:
        _answer(["apt-get", "download", package], directory=directory, seconds_max=DOWNLOAD_SECONDS_MAX)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise PostgresqlMissingError(f"apt-get could not download {package}: {error.stderr}") from error
    return list(directory.glob(f"{package}_*.deb"))


def _directory_of(pattern: str, unpacked: Path) -> Path:
    """Where a file of the packages is, unpacked or installed; of several versions the last."""
    found = sorted(unpacked.glob(pattern)) or sorted(Path("/").glob(pattern))
    if not found:
        raise PostgresqlMissingError(f"the packages {', '.join(PACKAGES)} hold no {pattern}")
    return found[-1].parent


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
    # The program replaces setpriv, so that the process that is started is the server itself.
    drop = ["setpriv", f"--reuid={UNPRIVILEGED}", "--clear-groups"] if os.geteuid() == 0 else []
    return [*drop, *map(str, words)]


def _environment(unpacked: Path) -> dict[str, str]:
    libraries = ":".join(map(str, unpacked.glob("usr/lib/*-linux-gnu*")))
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "LD_LIBRARY_PATH": libraries}


def _wait_until_it_answers(
    child: Child, endpoint: Endpoint, pg_isready: Path, environment: Mapping[str, str]
) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    ask = [str(pg_isready), "-q", "-h", endpoint.host, "-p", str(endpoint.port)]
    while child.exit_code is None and time.monotonic() < deadline:
        if subprocess.run(ask, env=environment, check=False, timeout=COMMAND_SECONDS_MAX).returncode == 0:
            return
        time.sleep(START_POLL_SECONDS)
    raise TimeoutError(f"PostgreSQL did not answer within {START_SECONDS_MAX} s:\n{child.log_tail()}")


def _answer(
    command: Sequence[str],
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    seconds_max: float = COMMAND_SECONDS_MAX,
) -> str:
    """What a command prints. Raises CalledProcessError or TimeoutExpired, which hold its standard error."""
    return subprocess.run(
        command, cwd=directory, env=environment, check=True, capture_output=True, text=True, timeout=seconds_max
    ).stdout
