"""A real ZooKeeper, of the jars that Spark brings for its clients: they hold the server too."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.child import Child
from demo.hive import Endpoint
from demo.java import Java, spark_home

START_SECONDS_MAX = 60
START_POLL_SECONDS = 0.05

MAIN_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
JARS = ("zookeeper-*.jar", "slf4j-api-*.jar", "metrics-core-*.jar", "snappy-java-*.jar", "netty-*.jar")
# Sessions may last from two of them to twenty, and the tests wait for one to end.
TICK_MS = 500


class ZooKeeperError(Exception):
    """The server did not start; the message ends with the tail of its log."""


@contextmanager
def zookeeper(java: Java, endpoint: Endpoint, directory: Path) -> Iterator[None]:
    """Runs a server as long as the context lasts; yields once it serves."""
    directory.mkdir(parents=True, exist_ok=True)
    jars = [str(path) for pattern in JARS for path in (spark_home() / "jars").glob(pattern)]
    options = ("-Xmx64m", "-Dzookeeper.admin.enableServer=false", "-cp", ":".join(jars))
    arguments = (str(endpoint.port), str(directory / "state"), str(TICK_MS))
    command = [str(java.path), *options, MAIN_CLASS, *arguments]
    with Child.start(command, log=directory / "zookeeper.log", directory=directory, environment={}) as child:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _serves(endpoint):
            if child.exit_code is not None or time.monotonic() > deadline:
                raise ZooKeeperError(f"ZooKeeper did not start:\n{child.log_tail()}")
            time.sleep(START_POLL_SECONDS)
        yield


def _serves(endpoint: Endpoint) -> bool:
    """Whether it answers what its monitors ask: it listens some time before, and lets clients wait in vain."""
    try:
        with socket.create_connection((endpoint.host, endpoint.port), timeout=1.0) as connection:
            connection.sendall(b"srvr")
            return b"Mode: standalone" in connection.recv(4096)
    except OSError:
        return False
