"""One command builds a release, checks it and writes its sums, and builds the same each time."""

import os
import shutil
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

from support.helm_chart import CHART, run_helm

from tools.release import ROOT, packed


def test_a_release_is_built_checked_and_summed_up(tmp_path: Path) -> None:
    """As `make release` does it, but for the image. The wheel runs in an environment with nothing else."""
    others = tmp_path / "README"
    others.write_text("another one's", encoding="utf-8")
    command = [sys.executable, "-m", "tools.release", "--no-images", "--to", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split("  ") for line in (tmp_path / "SHA256SUMS").read_text().splitlines()]
    assert [digest for digest, _ in lines] == [
        sha256((tmp_path / name).read_bytes()).hexdigest() for _, name in lines
    ]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    ends = [name.replace(version, "V") for _, name in lines]
    assert ends == ["starpruner-V-py3-none-any.whl", "starpruner-V.tar.gz", "starpruner-chart-V.tgz"]
    assert others.exists()


def test_the_chart_is_packed_the_same_way_each_time_and_helm_reads_it(tmp_path: Path) -> None:
    copied = shutil.copytree(CHART, tmp_path / CHART.name)
    for path in copied.rglob("*"):
        os.utime(path, (1, 1))
    package = tmp_path / "chart.tgz"
    package.write_bytes(packed(CHART))
    assert package.read_bytes() == packed(copied)
    told = run_helm("lint", "--strict", package)
    assert told.returncode == 0, told.stdout + told.stderr
