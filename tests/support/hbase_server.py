"""A real HBase of one process, and its Thrift gateway beside it, of the jars that Maven brings."""

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

from demo.child import Child
from demo.hive import Endpoint, free_port
from demo.java import Java, find_java
from proxy.config.address import Address
from proxy.hbase import errors as proxy_errors
from proxy.hbase.connection import GatewayConnection
from proxy.hbase.table import HBaseTable
from support.maven import ClientMissingError, fetch_with_dependencies, is_required

CACHE = Path(__file__).parents[2] / ".starpruner"
VERSION = "2.6.1"
ARTIFACTS = (
    f"org.apache.hbase:hbase-server:{VERSION}",
    f"org.apache.hbase:hbase-thrift:{VERSION}",
    "org.slf4j:slf4j-reload4j:1.7.36",
)
# Classes of another version of an interface that other jars bring too: the server does not start with both.
UNWANTED = ("servlet-api-2.5.jar",)

# The server takes 21 to 24 s on an idle machine of two cores, and tests share that.
START_SECONDS_MAX = 240
START_POLL_SECONDS = 0.1

# What HBase's own script opens for Java 17.
OPENED = (
    "java.lang",
    "java.lang.reflect",
    "java.io",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "sun.nio.ch",
)
EXPORTED = ("jdk.internal.misc", "sun.net.dns", "sun.net.util")
LOG4J = """log4j.rootLogger=WARN,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d{ISO8601} %-5p %c{2} - %m%n
"""


class HBaseError(Exception):
    """The server did not start; the message ends with the tail of its log."""


@dataclass
class HBase:
    """A running HBase. Its gateway can be killed and started again."""

    java: Java
    directory: Path
    jars: Path
    server: Child
    gateway_endpoint: Endpoint
    gateway: Child | None = None

    def start_gateway(self) -> None:
        """Starts the Thrift gateway, and waits until it listens."""
        arguments = ("org.apache.hadoop.hbase.thrift.ThriftServer", "-p", str(self.gateway_endpoint.port))
        self.gateway = self._start("gateway", "256m", *arguments, "-b", "127.0.0.1", "--infoport", "-1", "start")
        _wait_for(self.gateway, self.gateway_endpoint)

    def wait_for_master(self) -> None:
        """Waits until tables can be made."""
        table = self.table("ready")
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                table.create(3_600)
            except proxy_errors.HBaseError as error:
                if time.monotonic() > deadline:
                    raise HBaseError(f"HBase makes no table: {error}\n{self.server.log_tail()}") from error
                time.sleep(START_POLL_SECONDS)
            else:
                table.close()
                return

    def table(self, name: str) -> HBaseTable:
        """A table, by a connection of its own."""
        address = Address(self.gateway_endpoint.host, self.gateway_endpoint.port)
        return HBaseTable(GatewayConnection(address, time.monotonic), name, 60.0, pages_s=600.0)

    def kill_gateway(self) -> None:
        """Ends the gateway as a crash would."""
        assert self.gateway is not None
        self.gateway.process.kill()
        self.gateway.stop()
        self.gateway = None

    def _start(self, name: str, memory: str, *arguments: str) -> Child:
        return _start(self.java, self.directory, self.jars, name, memory, *arguments)


def hbase_jars(cache: Path = CACHE) -> Path:
    """The folder of HBase's jars, fetched by Maven on first use; raises ClientMissingError."""
    folder = cache / f"hbase-{VERSION}"
    if not folder.exists():
        cache.mkdir(exist_ok=True)
        # Two runs may fetch at once, and one that was interrupted must not leave half of it.
        unfinished = Path(mkdtemp(prefix="hbase-", dir=cache))
        try:
            fetch_with_dependencies(ARTIFACTS, unfinished)
            for name in UNWANTED:
                (unfinished / name).unlink(missing_ok=True)
            if not folder.exists():
                unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder


@contextmanager
def hbase(java: Java, directory: Path, *, memory: str = "512m") -> Iterator[HBase]:
    """Runs a server and a gateway as long as the context lasts. Raises ClientMissingError, HBaseError."""
    jars = hbase_jars()
    ports = {name: free_port() for name in ("zookeeper", "master", "region")}
    conf = directory / "conf"
    conf.mkdir(parents=True)
    (conf / "hbase-site.xml").write_text(_site(directory, ports), encoding="utf-8")
    (conf / "log4j.properties").write_text(LOG4J, encoding="utf-8")
    with _start(
        java, directory, jars, "server", memory, "org.apache.hadoop.hbase.master.HMaster", "start"
    ) as server:
        running = HBase(java, directory, jars, server, Endpoint("127.0.0.1", free_port()))
        _wait_for(server, Endpoint("127.0.0.1", ports["region"]))
        try:
            running.start_gateway()
            running.wait_for_master()
            yield running
        finally:
            if running.gateway is not None:
                running.kill_gateway()
            # It would write all that it holds to disk first, and nothing of that is read again.
            server.process.kill()


@contextmanager
def hbase_or_skip(directory: Path) -> Iterator[HBase]:
    """The same for tests, which are skipped on a machine without Maven, unless that is required."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(hbase(find_java(), directory))
        except ClientMissingError as error:
            if is_required():
                raise
            pytest.skip(str(error))
        yield server


def _start(java: Java, directory: Path, jars: Path, name: str, memory: str, *arguments: str) -> Child:
    options = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    options += [f"--add-exports=java.base/{package}=ALL-UNNAMED" for package in EXPORTED]
    command = [str(java.path), f"-Xmx{memory}", *options, "-cp", f"{directory / 'conf'}:{jars}/*", *arguments]
    environment = {"PATH": os.environ["PATH"]}
    return Child.start(command, log=directory / f"{name}.log", directory=directory, environment=environment)


def _site(directory: Path, ports: dict[str, int]) -> str:
    settings = {
        "hbase.rootdir": f"file://{directory}/data",
        "hbase.tmp.dir": str(directory / "tmp"),
        # A local disk cannot do what HBase wants of its log. Here nothing outlives the test.
        "hbase.unsafe.stream.capability.enforce": "false",
        "hbase.wal.provider": "filesystem",
        "hbase.zookeeper.quorum": "127.0.0.1",
        "hbase.zookeeper.property.clientPort": str(ports["zookeeper"]),
        "hbase.zookeeper.property.dataDir": str(directory / "zookeeper"),
        "hbase.localcluster.assign.random.ports": "false",
        "hbase.master.hostname": "127.0.0.1",
        "hbase.master.port": str(ports["master"]),
        "hbase.master.info.port": "-1",
        "hbase.regionserver.hostname": "127.0.0.1",
        "hbase.regionserver.port": str(ports["region"]),
        "hbase.regionserver.info.port": "-1",
    }
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    return f"<configuration>{properties}</configuration>"


def _wait_for(child: Child, endpoint: Endpoint) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not _listens(endpoint):
        if child.exit_code is not None or time.monotonic() > deadline:
            raise HBaseError(f"HBase did not start:\n{child.log_tail()}")
        time.sleep(START_POLL_SECONDS)


def _listens(endpoint: Endpoint) -> bool:
    try:
        socket.create_connection((endpoint.host, endpoint.port), timeout=1.0).close()
    except OSError:
        return False
    return True
