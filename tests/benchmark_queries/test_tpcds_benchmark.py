"""`benchmarks/tpcds_on_spark.py` runs, its report holds what it says, and it can be gone on with."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from delta_server import delta_jars
from support.maven import ClientMissingError, is_required
from support.profile import only_deep

from demo.thrift_server import ThriftServer

ROOT = Path(__file__).parents[2]
# A busy machine makes a rewrite slow, not absent.
PATIENT = ("--set", "rewrite.key_query_deadline_s=120", "--set", "catalog.query_deadline_s=120")


@only_deep("runs a benchmark twice")
def test_the_tpcds_benchmark_compares_both_sides_and_goes_on_where_it_ended(
    spark: ThriftServer, tmp_path: Path
) -> None:
    path = tmp_path / "tpcds.json"
    small = (
        "--scale",
        "0.01",
        "--days",
        "90",
        "--runs",
        "2",
        "--cold-runs",
        "2",
        "--backend",
        str(spark.endpoint),
    )
    places = (*PATIENT, "--dir", str(tmp_path), "--json", str(path))
    first = measured(*small, *places, "--query", "q3")
    assert [one["query"] for one in json.loads(path.read_text(encoding="utf-8"))["queries"]] == ["q3"]
    second = measured(*small, *places, "--resume", "--query", "q3", "--query", "q96")
    assert "Loading store_sales" in first
    assert "Loading time_dim" in second
    assert "Loading store_sales" not in second
    assert "Measuring q3" not in second
    report = json.loads(path.read_text(encoding="utf-8"))
    q3, q96 = report["queries"]
    assert_compared(q3)
    assert_compared(q96)
    assert [scan["table"] for scan in q3["narrowed"]] == ["store_sales"]
    assert 0 < q3["narrowed"][0]["kept"] < q3["narrowed"][0]["total"]
    assert not q96["narrowed"]
    assert (report["summaries"]["cold"]["queries"], report["summaries"]["cold"]["narrowed"]) == (2, 1)


@only_deep("takes a server of its own")
def test_a_star_join_is_measured_on_delta_tables_that_are_made_once(tmp_path: Path) -> None:
    try:
        delta_jars()
    except ClientMissingError as error:
        if is_required():
            raise
        pytest.skip(str(error))
    path = tmp_path / "tpcds.json"
    small = ("--format", "delta", "--scale", "0.01", "--days", "90", "--runs", "2", "--cold-runs", "2")
    # So little data is not worth a question.
    options = (*small, *PATIENT, "--set", "rewrite.cost_gate=false", "--dir", str(tmp_path), "--query", "q42")
    assert "Loading store_sales into tpcds_sf0_01_days90_delta" in measured(*options, "--json", str(path))
    (q42,) = json.loads(path.read_text(encoding="utf-8"))["queries"]
    assert q42["error"] is None
    assert q42["same_answer"]
    assert "store_sales" in {scan["table"] for scan in q42["narrowed"]}
    assert set(q42["verdicts"]) == {"cold", "warm"}
    # Each cold run on either side found a commit of its own.
    (log,) = tmp_path.glob("tables/*/store_sales/_delta_log")
    assert len(list(log.glob("*.json"))) == 1 + 2 * 2
    assert "Loading" not in measured(*options, "--listing", "warm")


def assert_compared(query: dict[str, Any]) -> None:
    assert query["error"] is None
    assert query["same_answer"]
    assert set(query["pairs"]) == set(query["verdicts"]) == {"cold", "warm"}
    for pair in query["pairs"].values():
        assert len(pair["direct"]["wall_s"]) == len(pair["proxied"]["wall_s"]) == 2
    for verdict in query["verdicts"].values():
        assert 0 < verdict["interval"]["low"] <= verdict["ratio"] <= verdict["interval"]["high"]
        assert verdict["standing"] in {"loss", "win", "neither"}
        # Of the server that the tests share, nobody says which process it is.
        assert verdict["direct_cpu_s"] is None
    # The proxy's metrics told the decision of each run, of those too before which the gate settled.
    warm = query["pairs"]["warm"]
    assert len(warm["narrowed"]) == 2
    assert len(warm["narrowed_before"]) >= 4


def measured(*options: str) -> str:
    """Run the benchmark, and return how it went on."""
    folders = (ROOT, *(ROOT / "tests" / name for name in ("", "benchmark_queries", "layouts", "iceberg", "delta")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "benchmarks/tpcds_on_spark.py", *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr
