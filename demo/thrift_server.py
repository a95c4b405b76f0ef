"""An embedded Spark Thrift Server: one Java process, with all of its files in one directory."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from thrift.Thrift import TException

from demo.child import Child
from demo.hive import Endpoint, connect, free_port
from demo.java import Java, launch_command
from demo.progress import Progress

MAIN_CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
LOOPBACK = "127.0.0.1"

# A first start on two busy cores takes about 20 seconds, most of it Derby making the metastore's tables.
START_SECONDS_MAX = 180
START_POLL_SECONDS = 0.2


class ThriftServerError(Exception):
    """The embedded server did not start; the message ends with the tail of its log."""


@dataclass(frozen=True)
class ServerOptions:
    """The settings of an embedded server."""

    directory: Path
    port: int | None = None  # None: a free one
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    # Planning over some thousand partitions needs a few hundred megabytes; small machines have little more.
    memory: str = "1g"
    java_options: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ThriftServer:
    """A server process and its addresses."""

    endpoint: Endpoint
    ui_url: str
    directory: Path
    child: Child


@contextmanager
def thrift_server(
    settings: ServerOptions, java: Java, progress: Progress, *, answers: Callable[[Endpoint], bool] | None = None
) -> Iterator[ThriftServer]:
    """Runs a server as long as the context lasts, or as long as this process does; yields once it answers.

    `answers` tells whether a server answers that does not speak PyHive's default protocol.
    """
    directory = settings.directory.resolve()
    for part in ("conf", "logs", "tmp"):
        (directory / part).mkdir(parents=True, exist_ok=True)
    endpoint = Endpoint(LOOPBACK, settings.port or free_port())
    ui_port = free_port()
    command = launch_command(java, _submit_arguments(settings, endpoint, ui_port), directory / "conf")
    # Derby puts its metastore_db and its log into the working directory.
    log = directory / "logs" / "spark.log"
    with (
        only_user(directory),
        Child.start(command, log=log, directory=directory, environment=_environment()) as child,
    ):
        server = ThriftServer(endpoint, f"http://{LOOPBACK}:{ui_port}", directory, child)
        progress("Starting Spark Thrift Server")
        wait_until_it_answers(server, answers or _answers)
        yield server


def _submit_arguments(settings: ServerOptions, endpoint: Endpoint, ui_port: int) -> list[str]:
    directory = settings.directory.resolve()
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "tmp"),
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        # The UI's REST API tells which partitions and files a query listed and read.
        "spark.ui.port": str(ui_port),
        # The last query's metrics are read right after it; a thousand kept executions would make every read slow.
        "spark.sql.ui.retainedExecutions": "100",
        "spark.log.level": "WARN",
        # One machine, small data: 200 shuffle partitions would cost more than they help, proxied or not.
        "spark.sql.shuffle.partitions": str(2 * settings.cores),
        # Cancelling a statement interrupts its thread, and Derby loses a connection that is interrupted: with a
        # pool of ten, the eleventh statement would wait for ever.
        "spark.hadoop.datanucleus.connectionPoolingType": "None",
        **settings.conf,
    }
    hiveconf = {
        "hive.server2.thrift.bind.host": endpoint.host,
        "hive.server2.thrift.port": str(endpoint.port),
        "hive.exec.scratchdir": str(directory / "tmp" / "hive"),
    }
    return [
        "org.apache.spark.deploy.SparkSubmit",
        *("--master", f"local[{settings.cores}]"),
        *("--driver-memory", settings.memory),
        *("--driver-java-options", f"-Djava.io.tmpdir={directory / 'tmp'} {settings.java_options}"),
        *(word for name, setting in conf.items() for word in ("--conf", f"{name}={setting}")),
        *("--class", MAIN_CLASS, "spark-internal"),
        *(word for name, setting in hiveconf.items() for word in ("--hiveconf", f"{name}={setting}")),
    ]


def _environment() -> dict[str, str]:
    """The variables that Hadoop's shell commands need, and no others of the caller's."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TZ") if name in os.environ}
    # Without it Spark's interface listens on every network.
    return inherited | {"SPARK_LOCAL_IP": LOOPBACK}


def _answers(endpoint: Endpoint) -> bool:
    """Tells whether a session can be opened; the port alone may be open before the server is ready."""
    if not endpoint.listens():
        return False
    try:
        connect(endpoint).close()
    except (TException, OSError):
        return False
    return True


def wait_until_it_answers(server: ThriftServer, answers: Callable[[Endpoint], bool] = _answers) -> None:
    """Returns once a session can be opened. Raises ThriftServerError."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if (code := server.child.exit_code) is not None:
            raise _failure(server, f"ended with exit code {code} before it answered")
        if answers(server.endpoint):
            return
        time.sleep(START_POLL_SECONDS)
    raise _failure(server, f"did not answer within {START_SECONDS_MAX} s")


def _failure(server: ThriftServer, what: str) -> ThriftServerError:
    return ThriftServerError(
        f"Spark Thrift Server on {server.endpoint} {what}. The end of {server.child.log}:\n"
        f"{server.child.log_tail()}"
    )


@contextmanager
def only_user(directory: Path) -> Iterator[None]:
    """Locks the directory: Derby lets one process at a time use a metastore, and says so in a stack trace."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ThriftServerError(
                f"another embedded server uses {directory}; stop it or pass another --dir"
            ) from None
        yield
