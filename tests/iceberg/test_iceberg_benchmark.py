"""`benchmarks/table_formats.py` runs, and its report holds what it says. It starts servers of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from delta_server import delta_jars
from iceberg_server import runtime_jar, spark_for_formats
from support.maven import ClientMissingError, is_required
from support.profile import only_deep

ROOT = Path(__file__).parents[2]
FILES = 40
SECONDS_MAX = 1800


@only_deep("takes servers of its own")
@pytest.mark.parametrize(
    ("table_format", "jars", "files"),
    [("iceberg", runtime_jar, "files_planned"), ("delta", delta_jars, "files_read")],
)
def test_the_benchmark_counts_files_and_compares_answers_for_each_number_of_keys(
    table_format: str, jars: Callable[[], object], files: str, tmp_path: Path
) -> None:
    try:
        spark_for_formats()
        jars()
    except ClientMissingError as error:
        if is_required():
            raise
        pytest.skip(str(error))
    path = tmp_path / "report.json"
    options = ("--files", str(FILES), "--runs", "2", "--warm-ups", "0", "--memory", "1g", "--no-gate")
    where = ("--dir", str(tmp_path / "bench"), "--json", str(path))
    folders = [ROOT, *(ROOT / "tests" / folder for folder in ("", "layouts", "iceberg", "delta"))]
    done = subprocess.run(
        [sys.executable, "benchmarks/table_formats.py", table_format, *options, *where],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(path.read_text(encoding="utf-8"))["measured"]
    assert {one["question"]["table"] for one in measured} == {"by_key", "by_partition"}
    for one in measured:
        assert one["same_answer"]
        assert one["direct"]["fact"][files] == FILES
        if "near" in one["question"]["name"]:
            assert one["proxied"]["fact"][files] < FILES
        assert one["direct"]["bytes_read"] > 0
        assert one["verdict"]["ratio"] > 0
    assert f"{FILES} files" in done.stdout
