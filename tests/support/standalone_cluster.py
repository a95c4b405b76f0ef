"""A standalone cluster of Spark on this machine: a master, two workers, and the metastore of all applications."""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.error import URLError
from urllib.request import urlopen

from demo.child import Child
from demo.hive import Endpoint, free_port
from demo.java import Java, spark_home
from support import cheap_spark
from support.cheap_spark import QUICK_JAVA

LOOPBACK = "127.0.0.1"
WORKERS = 2
# Two applications at once, each with a core of each worker: the Thrift Server, and a job of the pipeline.
CORES_OF_WORKER = 2
CORES_OF_APPLICATION = 2

START_SECONDS_MAX = 180
START_POLL_SECONDS = 0.1
ANSWER_SECONDS_MAX = 10

# Of Spark's event log.
Event: TypeAlias = Mapping[str, Any]

_METASTORE = "org.apache.hadoop.hive.metastore.HiveMetaStore"


@dataclass(frozen=True)
class StandaloneCluster:
    """A running cluster."""

    master: str
    directory: Path
    # For Spark's own scripts. Executors find no Python.
    environment: Mapping[str, str]

    def last_events(self) -> list[Event]:
        """The events of the application that began last, of those that have ended."""
        logs = [log for log in (self.directory / "events").iterdir() if log.suffix != ".inprogress"]
        # An application's number grows from one to the next.
        text = max(logs).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


@contextmanager
def standalone_cluster(directory: Path, java: Java, defaults: str) -> Iterator[StandaloneCluster]:
    """Runs a cluster as long as the context lasts; `defaults` are lines of spark-defaults.conf before our own."""
    for part in ("conf", "logs", "work", "events", "warehouse", "tmp"):
        (directory / part).mkdir(parents=True)
    environment = _environment(java, directory / "conf")
    # Not for the Thrift Server, whose memory it would be as well.
    of_daemons = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA}
    spark_class = str(spark_home() / "bin" / "spark-class")
    master, metastore = Endpoint(LOOPBACK, free_port()), Endpoint(LOOPBACK, free_port())
    pages = free_port()
    settings = _settings(directory, metastore)
    lines = [defaults, *(f"{name} {setting}" for name, setting in settings.items())]
    (directory / "conf" / "spark-defaults.conf").write_text("\n".join(lines), encoding="utf-8")
    with ExitStack() as stack:

        def start(name: str, *command: str) -> Child:
            log = directory / "logs" / f"{name}.log"
            own = {**environment, **of_daemons}
            child = Child.start(command, log=log, directory=directory / "work", environment=own)
            return stack.enter_context(child)

        of_metastore = start("metastore", *_metastore_command(java, directory, metastore))
        at = ("--host", LOOPBACK, "--port", str(master.port), "--webui-port", str(pages))
        of_master = start("master", spark_class, "org.apache.spark.deploy.master.Master", *at)
        # A worker that finds no master tries again after some ten seconds.
        _wait(of_master, master.listens)
        for number in range(WORKERS):
            size = ("--cores", str(CORES_OF_WORKER), "--memory", "2g", "--webui-port", "0")
            place = ("--host", LOOPBACK, "--work-dir", str(directory / "work" / f"worker{number}"))
            worker = "org.apache.spark.deploy.worker.Worker"
            start(f"worker{number}", spark_class, worker, *size, *place, f"spark://{master}")
        _wait(of_master, lambda: _workers(f"http://{LOOPBACK}:{pages}/json/") == WORKERS)
        _wait(of_metastore, metastore.listens)
        yield StandaloneCluster(f"spark://{master}", directory, environment)


def workers_at_work(events: Sequence[Event]) -> set[str]:
    """The workers, by the addresses of their pages, whose executors ended tasks."""
    places = {
        event["Executor ID"]: re.findall(r"http://([\d.:]+)/logPage", json.dumps(event["Executor Info"]))[0]
        for event in events
        if event["Event"] == "SparkListenerExecutorAdded"
    }
    ended = [event["Task Info"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
    return {places[task["Executor ID"]] for task in ended}


def bare_python() -> Path:
    """The Python that this environment was made with, in which its packages are not installed."""
    return Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


def _environment(java: Java, conf: Path) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TZ") if name in os.environ}
    return {
        **inherited,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_CONF_DIR": str(conf),
        # Without it Spark's interfaces listen on every network.
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_DRIVER_PYTHON": str(bare_python()),
        "PYSPARK_PYTHON": "/there/is/no/python",
    }


def _settings(directory: Path, metastore: Endpoint) -> dict[str, object]:
    return {
        "spark.hadoop.hive.metastore.uris": f"thrift://{metastore}",
        "spark.sql.warehouse.dir": directory / "warehouse",
        "spark.local.dir": directory / "tmp",
        "spark.hadoop.hive.exec.scratchdir": directory / "tmp" / "hive",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.ui.port": 0,
        "spark.log.level": "WARN",
        "spark.sql.shuffle.partitions": 2,
        # A job that began before the second executor is there might end without it.
        "spark.scheduler.minRegisteredResourcesRatio": 1.0,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": directory / "events",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        **cheap_spark.interpreted(),
    }


def _metastore_command(java: Java, directory: Path, metastore: Endpoint) -> list[str]:
    """The metastore's own service, on an empty database in memory; its jars come with Spark."""
    settings = {
        # Its classes do not come with Spark.
        "hive.async.log.enabled": "false",
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "None",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(directory / "warehouse"),
    }
    options = [*QUICK_JAVA.split(), "-Xmx256m", *(f"-D{name}={setting}" for name, setting in settings.items())]
    jars = f"{spark_home()}/jars/*"
    return [str(java.path), *options, "-cp", jars, _METASTORE, "-p", str(metastore.port)]


def _workers(url: str) -> int:
    """The workers that the master counts."""
    try:
        with urlopen(url, timeout=ANSWER_SECONDS_MAX) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (URLError, json.JSONDecodeError):
        # The master answers with its page until all of its paths are there.
        return 0


def _wait(child: Child, is_ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not is_ready():
        ended = child.exit_code is not None
        assert not ended, f"ended with exit code {child.exit_code}:\n{child.log_tail()}"
        assert time.monotonic() < deadline, f"not ready within {START_SECONDS_MAX} s:\n{child.log_tail()}"
        time.sleep(START_POLL_SECONDS)
