"""Versions of hive-jdbc differ: 4.0.0 works through the proxy alone, and 4.0.1 asks less often through it."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from call_counter import call_counter
from drivers import Driver, hive_driver, spark_driver
from support.beeline_clients import comparable_message
from support.maven import ClientMissingError, is_required, require_compiler
from support.profile import only_deep
from support.proxies import options, patient
from support.spark_over_http import URL_OPTIONS, proxy_with_http

from demo.hive import Endpoint
from demo.java import Java
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

PROGRAM = Path(__file__).with_name("JdbcVersions.java")
STEPS = Path(__file__).with_name("JdbcSteps.java")
PROGRAM_SECONDS_MAX = 500
ROWS = 1_000
# Two for each of three results, and more while a statement takes longer than the server waits with its answer.
STATUSES_MAX = 100

# Answers by step.
Answers = dict[str, str]


@dataclass(frozen=True)
class Servers:
    """URLs of the server itself and of proxies in front of it, and the database's."""

    direct: Endpoint
    binary: Endpoint
    # Two workers.
    http: Endpoint


@pytest.fixture(scope="module")
def servers(
    spark: ThriftServer, proxy: ProxyProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    more = (*patient(), *options("proxy.workers=2"))
    with proxy_with_http(spark.endpoint, tmp_path_factory.mktemp("http"), "sasl", options=more) as (_, http):
        yield Servers(spark.endpoint, proxy.endpoint, http)


def driver(version: str) -> Driver:
    try:
        return hive_driver(version)
    except ClientMissingError as error:
        if is_required():
            raise
        pytest.skip(str(error))


def run(java: Java, found: Driver, *urls: str) -> list[Answers]:
    """The program's answers by URL."""
    require_compiler(java)
    command = [str(java.path), "-cp", found.class_path, str(PROGRAM), *urls]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PROGRAM_SECONDS_MAX)
    assert done.returncode == 0, done.stderr
    answers: list[Answers] = [{} for _ in urls]
    for line in done.stdout.splitlines():
        number, step, answer = line.split("\t")
        answers[int(number)][step] = answer
    return answers


def test_hive_jdbc_4_0_0_works_through_the_proxy_and_not_directly(java: Java, servers: Servers) -> None:
    over_http = servers.http.jdbc_url + URL_OPTIONS
    urls = (servers.direct.jdbc_url, f"async {servers.binary.jdbc_url}", f"async {over_http}")
    direct, *proxied = run(java, driver("4.0.0"), *urls)
    # Once Spark says a fetch size, or has learned of HIVE-28399 in another way, the proxy need not any more.
    assert direct.keys() == {"failed"}
    assert "Server returned a null default fetch size" in direct["failed"]
    for answers in proxied:
        assert "failed" not in answers, answers["failed"]
        assert answers["a thousand rows"].startswith(f"{ROWS} rows 0 / 1 / 2 / ")
        assert answers["fetch size"] == "1000"
        assert answers["prepared"] == "1 rows it's,7"
        assert answers["schemas"].startswith("1 rows default,")
        assert answers["async"] == "true 1 rows in the background"
    assert proxied[0] == proxied[1]


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("2.3", marks=only_deep("a driver that is as it is directly")),
        pytest.param("3.1.3", marks=only_deep("a driver that is as it is directly")),
        "4.0.1",
        pytest.param("4.1.0", marks=only_deep("a driver that is as it is directly")),
    ],
)
def test_a_driver_asks_for_the_status_once_per_row_or_a_few_times(
    java: Java, servers: Servers, version: str
) -> None:
    found = spark_driver() if version == "2.3" else driver(version)
    with call_counter(servers.direct) as direct, call_counter(servers.binary) as proxied:
        answers = run(java, found, direct.endpoint.jdbc_url, proxied.endpoint.jdbc_url)
    assert answers[0] == answers[1]
    assert answers[0]["a thousand rows"].startswith(f"{ROWS} rows")
    directly, through_proxy = (way.calls["GetOperationStatus"] for way in (direct, proxied))
    if version == "2.3":
        # Spark's own driver: how often it asks depends on the Spark that it comes with.
        assert (through_proxy <= STATUSES_MAX) == (directly <= STATUSES_MAX)
    else:
        # Once the server says that there is a result set, 4.0.1 asks it no more than it asks the proxy.
        assert through_proxy <= STATUSES_MAX
        assert directly >= ROWS if version == "4.0.1" else directly <= STATUSES_MAX


@only_deep("a minute of all steps")
@pytest.mark.usefixtures("small_star")
def test_hive_jdbc_4_0_0_gets_in_every_step_what_4_0_1_gets_directly(
    java: Java, servers: Servers, tmp_path: Path
) -> None:
    newer, older = driver("4.0.1"), driver("4.0.0")
    direct = all_steps(java, newer, servers.direct, tmp_path)
    proxied = all_steps(java, older, servers.binary, tmp_path)
    assert proxied.keys() == direct.keys()
    # It names the driver's version and the server's address.
    proxied.pop("what the server is")
    for step, lines in proxied.items():
        assert [line.replace(str(servers.binary), str(servers.direct)) for line in lines] == direct[step], step


def all_steps(java: Java, found: Driver, endpoint: Endpoint, home: Path) -> dict[str, list[str]]:
    settings = ["-Xmx1g", "-Dstdout.encoding=UTF-8", "-Dfile.encoding=UTF-8", f"-Djava.io.tmpdir={home}"]
    command = [
        str(java.path),
        *settings,
        "-cp",
        found.class_path,
        str(STEPS),
        "clients_versions",
        endpoint.jdbc_url,
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PROGRAM_SECONDS_MAX)
    answers: dict[str, list[str]] = json.loads(done.stdout)
    return {step: list(map(comparable_message, lines)) for step, lines in answers.items()}
