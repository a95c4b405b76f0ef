"""Commands of docs/clusters.md on a standalone cluster: the settings, the Thrift Server, the pipeline's jobs."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from urllib.request import urlopen
from zipfile import ZipFile

import click
import pytest
import sqlglot
from support.guide import block, changed, page
from support.maven import is_required
from support.profile import DEEP, only_deep
from support.proxies import patient
from support.standalone_cluster import (
    CORES_OF_APPLICATION,
    LOOPBACK,
    WORKERS,
    StandaloneCluster,
    standalone_cluster,
    workers_at_work,
)

from demo.child import Child
from demo.hive import Endpoint, connect, free_port, run, same_answer
from demo.java import Java
from demo.metrics import SparkUi
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer, wait_until_it_answers

ROOT = Path(__file__).parents[2]
GUIDE = page("clusters.md")

# A third of the clicks is customer 7's, a third customer 8's.
TABLES = """
CREATE DATABASE staging;
CREATE DATABASE shop;
CREATE DATABASE starpruner;
CREATE TABLE staging.clicks USING parquet AS SELECT /*+ REPARTITION(4) */ int(id) AS id,
  int(IF(id % 3 = 0, 100 + id, 6 + id % 3)) AS customer, '2026-11-20' AS ds FROM range(600);
CREATE TABLE shop.orders USING parquet PARTITIONED BY (ds) AS
  SELECT /*+ REPARTITION(8) */ int(id) AS id, '2026-11-19' AS ds FROM range(800);
CREATE TABLE shop.customers USING parquet AS SELECT * FROM VALUES (7, 'gold'), (100, 'blue') AS t(customer, card)
"""
JOIN = "SELECT count(*) FROM shop.clicks c JOIN shop.customers d ON c.customer = d.customer WHERE d.card = 'gold'"
# Of a task for each of its numbers, which sleeps: 20 seconds on two slots.
LONG = "SELECT count(*) FROM range(0, 200, 1, 200) WHERE reflect('java.lang.Thread', 'sleep', 200L) IS NULL"
SHORT = "SELECT id FROM range(0, 10, 1, 1) WHERE id < 3"
JOB_SECONDS_MAX = 500

# The guide's names for a cluster and a Spark.
MASTER = "spark://spark-master:7077"
SPARK_HOME_OF_OTHERS = {"export SPARK_HOME=/opt/spark\n": ""}


@pytest.fixture(scope="module")
def cluster(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A cluster with the settings of the guide, and beside them those that this machine needs."""
    if not java.runs_spark_scripts:
        pytest.skip("Spark's own scripts need the Java module jdk.incubator.vector")
    directory = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(directory, java, block(GUIDE, "spark-defaults")) as running:
        yield running


@pytest.fixture(scope="module")
def server(cluster: StandaloneCluster) -> Iterator[ThriftServer]:
    """The guide's Thrift Server, which runs its statements on the cluster."""
    endpoint, ui_port = Endpoint(LOOPBACK, free_port()), free_port()
    own = f"spark.cores.max={CORES_OF_APPLICATION} --conf spark.ui.port={ui_port}"
    changes = {
        MASTER: cluster.master,
        "spark.cores.max=16": own,
        "thrift.port=10000": f"thrift.port={endpoint.port} --hiveconf hive.server2.thrift.bind.host={LOOPBACK}",
    }
    command = ["/bin/bash", "-euc", f"exec {changed(block(GUIDE, 'thrift-server'), changes)}"]
    work, log = cluster.directory / "work", cluster.directory / "logs" / "server.log"
    with Child.start(command, log=log, directory=work, environment=cluster.environment) as child:
        server = ThriftServer(endpoint, f"http://{LOOPBACK}:{ui_port}", cluster.directory, child)
        wait_until_it_answers(server)
        with closing(connect(endpoint)) as connection:
            for statement in TABLES.split(";"):
                run(connection, statement)
        yield server


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the guide's commands are run, with the packages of the jobs."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "deploy").symlink_to(ROOT / "deploy")
    if DEEP:
        _built(folder)
    else:
        # Wheels need an index of packages, and are what the packages are in a zip.
        _packed(folder / "jobs" / "starpruner.whl", ROOT / "pipeline", ROOT / "rewriter")
        _packed(folder / "jobs" / "click.whl", Path(click.__file__).parent)
        _packed(folder / "jobs" / "sqlglot.whl", Path(sqlglot.__file__).parent)
    return folder


def _built(folder: Path) -> None:
    changes = {"python3 ": f"{shlex.quote(sys.executable)} ", "jobs .": f"{folder / 'jobs'} ."}
    script = changed(block(GUIDE, "wheels"), changes)
    done = subprocess.run(["/bin/bash", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode and not is_required():
        pytest.skip(f"no wheels: {done.stderr[-1000:]}")
    assert done.returncode == 0, done.stderr


def _packed(wheel: Path, *packages: Path) -> None:
    wheel.parent.mkdir(exist_ok=True)
    with ZipFile(wheel, "w") as archive:
        for package in packages:
            for module in package.rglob("*.py"):
                archive.write(module, module.relative_to(package.parent))


Job = Callable[[str, dict[str, str]], str]


@pytest.fixture
def job(cluster: StandaloneCluster, server: ThriftServer, checkout: Path) -> Job:
    """Runs a block of the guide that sends a job, and returns what it prints."""
    _ = server

    def run_block(name: str, changes: dict[str, str]) -> str:
        master = {MASTER: cluster.master, "max=8": f"max={CORES_OF_APPLICATION}"}
        function = changed(block(GUIDE, "submit"), {**SPARK_HOME_OF_OTHERS, **master})
        script = function + changed(block(GUIDE, name), changes)
        done = _bash(script, checkout, cluster)
        assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
        return done.stdout

    return run_block


def _bash(script: str, checkout: Path, cluster: StandaloneCluster) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        cwd=checkout,
        env=dict(cluster.environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=JOB_SECONDS_MAX,
    )


@pytest.fixture
def proxy(server: ThriftServer, tmp_path: Path) -> Iterator[ProxyProcess]:
    options = patient("files.index=starpruner.file_index", files=True)
    with proxy_process(server.endpoint, tmp_path, options=options) as process:
        yield process


def test_a_load_runs_on_both_workers_and_the_proxy_skips_its_files(
    job: Job, cluster: StandaloneCluster, server: ThriftServer, proxy: ProxyProcess
) -> None:
    told = job("load", {})
    assert re.search(r"^shop\.clicks: 600 rows in 3 files, 2 of them of one skewed value each", told, re.MULTILINE)
    assert len(workers_at_work(cluster.last_events())) == WORKERS
    with closing(connect(proxy.endpoint)) as proxied, closing(connect(server.endpoint)) as direct:
        before = SparkUi(server.ui_url).last_execution()
        answer = run(proxied, JOIN)
        assert SparkUi(server.ui_url).scans_of("clicks", after=before).files_read == 1
        assert same_answer(answer, run(direct, JOIN))


def test_a_compaction_runs_on_the_cluster(job: Job, server: ThriftServer) -> None:
    told = job("compact", {"compact ": "compact --grace-minutes 0 "})
    assert "\nshop.orders: 8 files of 1 partitions became 1, " in told
    with closing(connect(server.endpoint)) as connection:
        run(connection, "REFRESH TABLE shop.orders")
        assert run(connection, "SELECT count(*), count(DISTINCT id) FROM shop.orders") == [(800, 800)]


def test_files_are_indexed_on_the_cluster(job: Job, server: ThriftServer) -> None:
    job("index", {})
    with closing(connect(server.endpoint)) as connection:
        run(connection, "REFRESH TABLE starpruner.file_index")
        asked = "SELECT sum(rows) FROM starpruner.file_index WHERE table_name = 'spark_catalog.shop.orders'"
        assert run(connection, asked) == [(800,)]


@only_deep("a job more")
def test_a_job_that_fails_says_why_and_ends_with_a_code(
    server: ThriftServer, cluster: StandaloneCluster, checkout: Path
) -> None:
    _ = server
    changes = {**SPARK_HOME_OF_OTHERS, MASTER: cluster.master, "max=8": f"max={CORES_OF_APPLICATION}"}
    script = (
        changed(block(GUIDE, "submit"), changes) + "submit index --table shop.none --index starpruner.file_index"
    )
    done = _bash(script, checkout, cluster)
    assert done.returncode == 1
    assert "shop.none" in done.stdout
    assert "Traceback" not in done.stdout


def test_the_thrift_server_works_on_both_workers(server: ThriftServer) -> None:
    applications = f"{server.ui_url}/api/v1/applications"
    with urlopen(applications) as answer:
        (application,) = json.load(answer)
    with urlopen(f"{applications}/{application['id']}/executors") as answer:
        executors = [executor for executor in json.load(answer) if executor["id"] != "driver"]
    assert len({executor["executorLogs"]["stdout"].split("/logPage")[0] for executor in executors}) == WORKERS
    assert all(executor["completedTasks"] for executor in executors)


@only_deep("a statement of 20 seconds")
def test_a_short_statement_does_not_wait_for_a_long_one(server: ThriftServer) -> None:
    with closing(connect(server.endpoint)) as one, closing(connect(server.endpoint)) as other:
        run(other, SHORT)
        ui = SparkUi(server.ui_url)
        before = ui.last_execution()
        long = Thread(target=run, args=(one, LONG))
        long.start()
        while ui.last_execution() == before:
            assert long.is_alive()
        run(other, SHORT)
        was_first = long.is_alive()
        long.join()
    assert was_first


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("thrift-server", {"--class": "--deploy-mode cluster --class"}, "not applicable to Spark Thrift server"),
        (
            "submit",
            {**SPARK_HOME_OF_OTHERS, "--conf": "--deploy-mode cluster --conf", "\n}": "\n}\nsubmit index"},
            "not supported for python applications",
        ),
    ],
)
def test_cluster_mode_is_refused(
    name: str, changes: dict[str, str], reason: str, cluster: StandaloneCluster, checkout: Path
) -> None:
    script = changed(block(GUIDE, name), {MASTER: cluster.master, **changes})
    done = _bash(script, checkout, cluster)
    assert done.returncode
    assert reason in done.stderr
