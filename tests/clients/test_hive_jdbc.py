"""JDBC programs, on the drivers of Hive 2.3, Hive 4 and Kyuubi, cannot tell the proxy from the server."""

import json
import re
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from drivers import Driver, hive_4_driver, kyuubi_driver, spark_driver
from support.beeline_clients import comparable_message
from support.maven import ClientMissingError, is_required, require_compiler
from support.metrics_of_proxy import rewritten_count
from support.profile import DEEP

from demo.hive import Endpoint
from demo.java import Java
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

PROGRAM = Path(__file__).with_name("JdbcSteps.java")
# It takes half a minute, ten seconds of them asleep; on a busy machine, many times that.
PROGRAM_SECONDS_MAX = 500
# A batch of sixty megabytes is held as bytes, as a message and as strings.
HEAP = "-Xmx1g"

# By step, what a program saw: lines of columns, rows and errors.
Answers = dict[str, list[str]]
DRIVERS = {"hive-jdbc 2.3": spark_driver, "hive-jdbc 4": hive_4_driver}
if DEEP:
    DRIVERS["Kyuubi's JDBC"] = kyuubi_driver


@dataclass(frozen=True)
class Sides:
    """What the same program saw of the server itself and of the proxy."""

    direct: Answers
    proxied: Answers


@dataclass(frozen=True)
class Runs:
    """The program's answers by driver, and why a driver is missing."""

    sides: dict[str, Sides]
    missing: dict[str, str]
    narrowed: float

    def of(self, driver: str) -> Sides:
        if driver in self.missing:
            pytest.skip(self.missing[driver])
        return self.sides[driver]


@pytest.fixture(scope="module")
def runs(
    spark: ThriftServer,
    proxy: ProxyProcess,
    java: Java,
    small_star: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Runs:
    """One process for each driver, both at once: most of their time they wait."""
    assert small_star is None
    require_compiler(java)
    found, missing = _drivers()
    endpoints = (spark.endpoint, proxy.endpoint)
    before = rewritten_count(proxy)
    home = tmp_path_factory.mktemp("jdbc")
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(_start(java, driver, f"clients_jdbc_{number}", endpoints, home))
            for number, (name, driver) in enumerate(found.items())
        }
        sides = {name: _sides(process) for name, process in started.items()}
    return Runs(sides, missing, rewritten_count(proxy) - before)


def _drivers() -> tuple[dict[str, Driver], dict[str, str]]:
    found, missing = {}, {}
    for name, driver in DRIVERS.items():
        try:
            found[name] = driver()
        except ClientMissingError as error:
            if is_required():
                raise
            missing[name] = str(error)
    return found, missing


def _start(
    java: Java, driver: Driver, database: str, endpoints: tuple[Endpoint, ...], home: Path
) -> subprocess.Popen[str]:
    urls = [driver.url_of(endpoint) for endpoint in endpoints]
    options = [HEAP, "-Dstdout.encoding=UTF-8", "-Dfile.encoding=UTF-8", f"-Djava.io.tmpdir={home}"]
    command = [str(java.path), *options, "-cp", driver.class_path, str(PROGRAM), database, *urls]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")


def _sides(process: subprocess.Popen[str]) -> Sides:
    output, errors = process.communicate(timeout=PROGRAM_SECONDS_MAX)
    assert process.returncode == 0, errors
    direct, proxied = (_comparable(json.loads(line)) for line in output.splitlines())
    return Sides(direct, proxied)


def _comparable(answers: Answers) -> Answers:
    # Some errors name the server's address.
    return {
        step: [comparable_message(re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", line)) for line in lines]
        for step, lines in answers.items()
    }


@pytest.fixture(params=DRIVERS)
def sides(runs: Runs, request: pytest.FixtureRequest) -> Sides:
    return runs.of(request.param)


def test_every_step_is_answered_as_by_the_server(sides: Sides) -> None:
    assert sides.proxied.keys() == sides.direct.keys()
    for step, lines in sides.direct.items():
        assert sides.proxied[step] == lines, step


@pytest.mark.parametrize(("size", "rows"), [(1, 40), (7, 280), (1_000, 40_000), (100_000, 100_001)])
def test_all_rows_come_whatever_the_fetch_size(sides: Sides, size: int, rows: int) -> None:
    (line,) = sides.proxied[f"fetch size {size}"]
    assert line.startswith(f"{rows} rows")


def test_sixty_megabytes_come_in_one_batch(sides: Sides) -> None:
    (line,) = sides.proxied["sixty megabytes in a batch"]
    assert line.startswith("60 rows")


def test_a_statement_ends_when_it_is_cancelled_or_out_of_time(sides: Sides) -> None:
    assert "cancelled" in sides.proxied["cancelled from another thread"][0]
    assert "used again" in sides.proxied["cancelled from another thread"]
    assert "timed out" in sides.proxied["out of time"][-1]


def test_the_catalog_is_browsed(sides: Sides) -> None:
    assert any("some_facts" in line for line in sides.proxied["tables that are views"])
    assert sum("| facts |" in line for line in sides.proxied["columns"]) == 5
    assert len(sides.proxied["what the server is"]) > 170


def test_errors_are_the_servers_own(sides: Sides) -> None:
    states = {"no_such_table": "42P01", "SELEC 1": "42601", "no_such_column": "42703", "raise_error": "P0001"}
    for words, state in states.items():
        (lines,) = (lines for step, lines in sides.proxied.items() if step.startswith("error") and words in step)
        assert state in lines[0]


def test_the_star_join_of_each_driver_was_narrowed(runs: Runs) -> None:
    assert runs.narrowed == len(runs.sides)
