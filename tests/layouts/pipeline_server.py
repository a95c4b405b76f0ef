"""One Java process that is both a Spark Thrift Server and the Spark that `starpruner pipeline` runs on.

An embedded metastore serves one process, so that neither could see the tables of the other from a second one. As a
program this is that process: it says where it listens, then runs one command of the pipeline for each line on its
standard input, and ends when that does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from demo.hive import Endpoint
from demo.java import find_java
from demo.metrics import SparkUi

LOOPBACK = "127.0.0.1"

# Where the tests keep theirs.
FILE_INDEX = "layouts.file_index"

# Spark's own hooks take two or three seconds, more on a busy machine.
STOP_SECONDS_MAX = 60
# The two halves of PySpark give one another 15 seconds, which a busy machine may need more than once.
ANSWER_SECONDS_MAX = 300
LOG_TAIL_CHARS = 4_000

_SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
    "spark.python.authenticate.socketTimeout": f"{ANSWER_SECONDS_MAX}s",
    "spark.hadoop.datanucleus.connectionPoolingType": "None",
    "spark.hadoop.hive.server2.thrift.port": "0",
    "spark.hadoop.hive.server2.thrift.bind.host": LOOPBACK,
}


class CommandError(Exception):
    """A command of the pipeline failed, or the server is gone; the message says why."""


@dataclass(frozen=True)
class PipelineServer:
    """A running server, and the way to have it run commands of the pipeline."""

    endpoint: Endpoint
    ui: SparkUi
    # Of the Java process, which does the work.
    pid: int
    process: subprocess.Popen[str]
    log: Path

    def pipeline(self, *arguments: str) -> str:
        """`starpruner pipeline` with these arguments; what it prints. Raises CommandError."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(arguments), file=self.process.stdin, flush=True)
        answer = _answer(self.process.stdout, self.log)
        if answer["error"] is not None:
            raise CommandError(f"pipeline {' '.join(arguments)}: {answer['error']}")
        return str(answer["printed"])


@contextmanager
def pipeline_server(  # noqa: PLR0913 - what may differ between one server and another
    directory: Path,
    *,
    cores: int = 2,
    memory: str = "1g",
    java_options: str = "",
    conf: Mapping[str, str] | None = None,
    pyspark: Path | None = None,
) -> Iterator[PipelineServer]:
    """Runs a server as long as the context lasts; all that it keeps is in the directory.

    `pyspark` is a folder with another PySpark than this environment's.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "spark.log"
    root = directory.resolve()
    settings = {
        **_SETTINGS,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": java_options,
        "spark.sql.warehouse.dir": str(root / "warehouse"),
        "spark.local.dir": str(root / "tmp"),
        **(conf or {}),
    }
    command = [sys.executable, str(Path(__file__)), str(cores), json.dumps(settings)]
    # The program finds our packages where this process does, from a working directory of its own.
    packages = [*([] if pyspark is None else [str(pyspark)]), *filter(None, sys.path)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(packages),
        "JAVA_HOME": str(find_java().home),
        # Without it Spark's interface listens on every network.
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ready = _answer(process.stdout, log)
        yield PipelineServer(
            Endpoint(LOOPBACK, ready["port"]), SparkUi(ready["ui_url"]), ready["pid"], process, log
        )
    finally:
        process.stdin.close()
        try:
            _ = process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            _ = process.wait()
        process.stdout.close()


def _answer(stream: IO[str], log: Path) -> dict[str, Any]:
    line = stream.readline()
    if not line:
        raise CommandError(f"the server has ended; the end of {log}:\n{log.read_text()[-LOG_TAIL_CHARS:]}")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _serve(cores: int, settings: Mapping[str, str]) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only this process needs it

    # What else prints goes to the log, so that each line of ours is an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    builder = SparkSession.builder.master(f"local[{cores}]").enableHiveSupport()
    for name, setting in settings.items():
        builder = builder.config(name, setting)
    spark: Any = builder.getOrCreate()
    thrift_server = spark._jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2  # noqa: SLF001
    services = thrift_server.startWithContext(spark._jsparkSession.sqlContext()).getServices()  # noqa: SLF001
    (port,) = (one.getPortNumber() for one in services if "ThriftBinary" in one.getName())
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001
    ready = {"port": port, "ui_url": spark.sparkContext.uiWebUrl, "pid": pid}
    print(json.dumps(ready), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), file=answers, flush=True)
    spark.stop()


def _run(arguments: Sequence[str]) -> dict[str, str | None]:
    from click.testing import CliRunner  # noqa: PLC0415 - only this process needs it

    from pipeline.cli import pipeline  # noqa: PLC0415 - only this process needs it

    result = CliRunner().invoke(pipeline, arguments)
    if result.exit_code == 0:
        return {"printed": result.output, "error": None}
    why = "" if result.exception is None or isinstance(result.exception, SystemExit) else repr(result.exception)
    return {"printed": None, "error": f"{result.output}{why}"}


if __name__ == "__main__":
    _serve(int(sys.argv[1]), json.loads(sys.argv[2]))
