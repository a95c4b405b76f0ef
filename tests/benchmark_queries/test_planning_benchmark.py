"""`benchmarks/planning.py` runs, and its report holds what it says."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PHASES = {"tokenize", "parse", "plan", "apply"}


def test_the_planning_benchmark_reports_every_phase_and_how_statements_grow(tmp_path: Path) -> None:
    path = tmp_path / "planning.json"
    small = ("--queries", "2", "--largest", "100", "--runs", "1", "--json", str(path))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(__file__).parent)))}
    command = [sys.executable, "benchmarks/planning.py", *small]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(path.read_text(encoding="utf-8"))
    assert set(report["tpcds"]) == set(report["nothing_to_do"]) == PHASES
    assert report["tpcds"]["parse"]["median"] > 0
    grown = {(one["series"], one["size"]): one["cost"]["outcome"] for one in report["growth"]}
    assert grown["joins", 100] == grown["ORed terms", 100] == grown["nested parentheses", 10] == "1 narrowed"
    assert "TPC-DS, 2 texts" in done.stdout
