"""One command builds a release, checks it and writes its sums, and builds the same each time."""

import os
import shutil
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from support.helm_chart import CHART, run_helm

from tools.release import ROOT, packed

# The tests of what is compiled, and of whole connections and the proxy's own queries, which drive it.
COMPILED = [
    *("tests/proxy/access", "tests/proxy/operations", "tests/proxy/relay", "tests/proxy/wire", "tests/fuzz"),
    *("tests/proxy/http", "tests/proxy/upstream", "tests/proxy/test_server.py", "tests/proxy/test_stopping.py"),
]
HAS_COMPILER = shutil.which("cc") is not None
# In the place of the checkout, which `python -c` would find first.
RUN = """
import sys
import pytest
from proxy.relay import relay
assert relay.__file__.endswith(".so"), relay.__file__
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, as `make release` builds it, but for the image. Its wheels run with nothing else beside them."""
    to = tmp_path_factory.mktemp("release")
    (to / "README").write_text("another one's", encoding="utf-8")
    command = [sys.executable, "-m", "tools.release", "--no-images", "--compiled", "--to", str(to)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return to


def test_a_release_is_built_checked_and_summed_up(released: Path) -> None:
    lines = [line.split("  ") for line in (released / "SHA256SUMS").read_text().splitlines()]
    assert [digest for digest, _ in lines] == [
        sha256((released / name).read_bytes()).hexdigest() for _, name in lines
    ]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    ends = [name.replace(version, "V") for _, name in lines]
    if HAS_COMPILER:
        assert ends.pop(0).startswith(f"starpruner-V-cp{sys.version_info.major}{sys.version_info.minor}-")
    assert ends == ["starpruner-V-py3-none-any.whl", "starpruner-V.tar.gz", "starpruner-chart-V.tgz"]
    assert (released / "README").exists()
    assert not list((ROOT / "proxy").rglob("*.so")), "the checkout stays as it is"


@pytest.mark.skipif(not HAS_COMPILER, reason="a C compiler (cc) is missing")
def test_what_is_compiled_passes_the_tests_of_what_is_not(released: Path, tmp_path: Path) -> None:
    (wheel,) = released.glob("*-cp3*.whl")
    with ZipFile(wheel) as packed_wheel:
        packed_wheel.extractall(tmp_path)
    command = [sys.executable, "-P", "-c", RUN, "-q", "-n", "2", "-m", "not heavy", *COMPILED]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr


def test_the_chart_is_packed_the_same_way_each_time_and_helm_reads_it(tmp_path: Path) -> None:
    copied = shutil.copytree(CHART, tmp_path / CHART.name)
    for path in copied.rglob("*"):
        os.utime(path, (1, 1))
    package = tmp_path / "chart.tgz"
    package.write_bytes(packed(CHART))
    assert package.read_bytes() == packed(copied)
    told = run_helm("lint", "--strict", package)
    assert told.returncode == 0, told.stdout + told.stderr
