"""Advice on TPC-DS from the history of a real proxy: an index of the dates of shipping, which then narrows q62.

In `make test-all` alone: the tables take a minute or more to load.
"""

import json
import shlex
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from known_benchmarks import benchmark
from pipeline_server import FILE_INDEX, PipelineServer
from spark_tables import load
from support.profile import only_deep
from support.proxies import patient
from test_benchmarks_on_spark import tables_of

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process, starpruner_command

pytestmark = only_deep("loads tables of TPC-DS")

NAME = "tpcds_coarse"
QUERIES = ("q62",)
# The facts are of some megabytes, in sixty partitions of a file each.
FILE_MB = 0.03
TOLERANCE = 0.05


@pytest.fixture(scope="module")
def history(pipeline_spark: PipelineServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of a proxy through which the queries ran."""
    made, directory = benchmark(NAME), tmp_path_factory.mktemp("advice_on_tpcds")
    with closing(connect(pipeline_spark.endpoint)) as direct:
        run(direct, "CREATE DATABASE tpcds")
        run(direct, "USE tpcds")
        load(made, direct, directory, tables_of(made, QUERIES))
    kept = directory / "history"
    options = patient(f"files.index={FILE_INDEX}", f"history.path={kept}", files=True)
    with (
        proxy_process(pipeline_spark.endpoint, directory / "proxy", options=options) as proxy,
        closing(connect(proxy.endpoint, database="tpcds", user="reader")) as session,
    ):
        for query in QUERIES:
            run(session, made.queries[query])
    return kept


def advice(server: PipelineServer, history: Path, *words: str) -> str:
    command = [
        *(*starpruner_command(), "advise", "--backend", str(server.endpoint), "--history", str(history)),
        *("--index", FILE_INDEX, "--file-mb", str(FILE_MB), *words),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_index_by_the_date_of_shipping_narrows_as_forecast(
    pipeline_spark: PipelineServer, history: Path, indexed_proxy: ProxyProcess
) -> None:
    proposals: list[Any] = json.loads(advice(pipeline_spark, history, "--json"))["proposals"]
    (proposal,) = (one for one in proposals if one["measured"]["table"] == "tpcds.web_sales")
    assert "ws_ship_date_sk" in {column["column"] for column in proposal["columns"]}
    (scan,) = proposal["scans"]
    for command in proposal["commands"]:
        assert command["kind"] == "shell"
        pipeline_spark.pipeline(*shlex.split(command["text"])[2:])
    with closing(connect(indexed_proxy.endpoint, database="tpcds", user="advised_on_tpcds")) as proxied:
        last = pipeline_spark.ui.last_execution()
        run(proxied, benchmark(NAME).queries["q62"])
        read = pipeline_spark.ui.scans_of("web_sales", after=last)
    assert read.files_read < proposal["measured"]["files"] / 2
    share = read.bytes_read / proposal["measured"]["bytes"]
    assert share == pytest.approx(scan["share_then"], abs=TOLERANCE)
