"""`starpruner pipeline index` as a process of its own, with a metastore on disk: STARPRUNER_DEEP=1."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.profile import only_deep

from demo.java import find_java

pytestmark = only_deep("starts Spark four times")

FILES = 8
SPARK = ("--master", "local[1]", "--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=1g")
COMMAND = (
    "from pipeline.index import build; build.BATCH_FILES = 1; from pipeline.commands.index import index; index()"
)
TABLES = f"""
from pipeline.spark.session import spark_session
with spark_session("local[1]", {{"spark.ui.enabled": "false", "spark.driver.memory": "1g"}}) as spark:
    spark.sql("CREATE TABLE facts USING parquet PARTITIONED BY (p) AS SELECT id AS x, id AS p FROM range({FILES})")
    spark.sql("CREATE TABLE of_hive STORED AS TEXTFILE AS SELECT 1 AS x")
"""


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "JAVA_HOME": str(find_java().home), "PYTHONPATH": os.pathsep.join(sys.path)}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", COMMAND, "--index", "file_index", *arguments, *SPARK]


def test_the_command_is_killed_and_goes_on_and_says_what_it_cannot_do(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    subprocess.run([sys.executable, "-c", TABLES], cwd=tmp_path, env=environment, check=True)
    with subprocess.Popen(
        command("--table", "facts"), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if f"3 of {FILES} files done" in line)
        process.send_signal(signal.SIGKILL)
    # The metastore's lock is freed as the JVM notices that its parent is gone.
    done = ran("--table", "facts")
    assert done.returncode == 0, done.stderr
    known = int(done.stdout.split(" files known")[0].rsplit(maxsplit=1)[-1])
    assert f"{FILES - known} new or changed" in done.stdout
    assert known >= 2
    refused = ran("--table", "of_hive")
    assert refused.returncode == 1
    assert "of_hive is a Hive-format table (STORED AS ..)" in refused.stderr
    assert "CREATE TABLE .. USING parquet" in refused.stderr
