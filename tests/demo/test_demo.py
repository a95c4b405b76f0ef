"""`starpruner demo` and `starpruner sts`, as a newcomer types them."""

import json
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from support.profile import only_deep

from demo.hive import Endpoint, connect, run
from demo.proxy_process import starpruner_command
from demo.queries import SAMPLE_QUERIES
from demo.sample import REGIONS

DEMO_SECONDS_MAX = 300
DAYS = 14

QUERY_KEYS = {
    "name",
    "sql",
    "rewritten",
    "rows",
    "equal",
    "direct_cold_s",
    "proxied_cold_s",
    "direct_warm_s",
    "proxied_warm_s",
    "key_query_s",
    "partitions_total",
    "partitions_kept",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for one demo after another: the second finds the sample loaded."""
    return tmp_path_factory.mktemp("demo")


@only_deep("`make wheel-demo`, which every landing runs, has the demo run once too")
def test_demo_once_json_prints_one_object_with_every_query_measured_and_equal(directory: Path) -> None:
    options = ("--once", "--json", "--days", str(DAYS), "--runs", "1", "--dir", str(directory))
    done = subprocess.run(
        [*starpruner_command(), "demo", *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=DEMO_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr

    report = json.loads(done.stdout)
    assert set(report) == {"queries", "machine", "versions"}
    assert {"spark", "java", "starpruner"} <= set(report["versions"])
    assert [query["name"] for query in report["queries"]] == [query.name for query in SAMPLE_QUERIES]
    for query in report["queries"]:
        assert set(query) == QUERY_KEYS
        assert query["equal"] is True
        assert query["rows"] > 0
        assert query["direct_cold_s"] > 0
        assert query["proxied_warm_s"] > 0
    *rewritten, left_alone = report["queries"]
    for query in rewritten:
        assert query["rewritten"] != query["sql"]
        assert query["key_query_s"] > 0
        assert query["partitions_total"] == DAYS * len(REGIONS)
        assert 0 < query["partitions_kept"] <= query["partitions_total"]
    assert left_alone["rewritten"] is left_alone["key_query_s"] is left_alone["partitions_kept"] is None


def test_the_demo_shows_how_to_connect_after_the_first_line_and_ctrl_c_ends_it_with_0(directory: Path) -> None:
    command = [*starpruner_command(), "demo", "--days", str(DAYS), "--dir", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        shown: list[str] = []
        while not (shown and shown[-1].startswith("  Metrics")):
            shown.append(process.stdout.readline())
            assert shown[-1], shown
        assert shown[1].startswith(SAMPLE_QUERIES[0].name)
        assert shown[1].endswith(" yes\n")
        # The other queries are being measured now.
        endpoints = [Endpoint.parse(line.split("//")[1].split("/")[0]) for line in shown if "  JDBC " in line]
        for endpoint in endpoints:
            with closing(connect(endpoint)) as connection:
                assert run(connection, "SELECT 1") == [(1,)]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert len(endpoints) == 2
    assert not any(endpoint.listens() for endpoint in endpoints)


def test_sts_prints_one_line_when_it_answers_and_ends_with_0_on_sigterm(tmp_path: Path) -> None:
    command = [*starpruner_command(), "sts", "--dir", str(tmp_path), "--conf", "spark.sql.ansi.enabled=false"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("starpruner sts: listening on 127.0.0.1:")
        endpoint = Endpoint.parse(line.split()[4].rstrip(","))
        with closing(connect(endpoint)) as connection:
            assert run(connection, "SET spark.sql.ansi.enabled") == [("spark.sql.ansi.enabled", "false")]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == ""
    assert not endpoint.listens()
