"""`benchmarks/tpcds_on_spark.py` runs, its report holds what it says, and it can be gone on with."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.profile import only_deep

from demo.thrift_server import ThriftServer

ROOT = Path(__file__).parents[2]


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
    # A busy machine makes a rewrite slow, not absent.
    patient = ("--set", "rewrite.key_query_deadline_s=120", "--set", "catalog.query_deadline_s=120")
    places = (*patient, "--dir", str(tmp_path), "--json", str(path))
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
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(__file__).parent)))}
    command = [sys.executable, "benchmarks/tpcds_on_spark.py", *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr
