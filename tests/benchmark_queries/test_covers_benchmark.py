"""`benchmarks/covers.py` runs, and its report holds what it says."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STEPS = {"store", "load", "key_set", "cover", "widen", "render"}


def test_the_covers_benchmark_reports_every_step_of_each_kind_of_key(tmp_path: Path) -> None:
    path = tmp_path / "covers.json"
    command = [sys.executable, "benchmarks/covers.py", "--largest", "10000", "--runs", "1", "--json", str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sizes = json.loads(path.read_text(encoding="utf-8"))["sizes"]
    assert {one["series"] for one in sizes} == {"int", "string", "date", "day x region", "own pairs"}
    for one in sizes:
        assert one["partitions"] == 10 * one["keys"]
        assert set(one["cost"]) == STEPS
        assert one["cost"]["store"] > 0
        assert one["chars"] > 0
        assert set(one["exponents"]) == (STEPS if one["partitions"] == 10_000 else set())
        assert one["memory"]["load"] >= one["memory"]["load_kept"] > 0
    assert "own pairs" in done.stdout
