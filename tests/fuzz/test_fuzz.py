"""The fuzzer's targets with a few hundred inputs each, mutated from what real clients and servers sent.

STARPRUNER_DEEP=1 lets the coverage-guided fuzzer look for minutes; `campaign.py` for as long as one likes.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_targets import TARGETS, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from support.profile import only_deep

HERE = Path(__file__).parent
DEEP_SECONDS = 60
# Beyond its time it writes what it knows, and on a busy machine an input may take a while.
DEEP_GRACE_S = 120


@st.composite
def mutated(draw: st.DrawFn, found: list[bytes]) -> bytes:
    """A seed in which a few places are replaced by other bytes, parts of other seeds among them."""
    whole = bytearray(draw(st.sampled_from(found)))
    parts = st.one_of(st.binary(max_size=8), st.sampled_from(found).map(lambda seed: seed[len(seed) // 2 :]))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(whole)))
        whole[start : start + draw(st.integers(0, 8))] = draw(parts)
    return bytes(whole)


@pytest.mark.parametrize("name", TARGETS)
def test_what_clients_and_servers_send_holds_in_pieces_and_damaged(name: str) -> None:
    found = seeds(name)
    assert found

    @settings(max_examples=300)
    @given(st.one_of(st.binary(max_size=64), mutated(found)))
    def holds(data: bytes) -> None:
        TARGETS[name](data)

    for seed in found:
        TARGETS[name](seed)
    holds()


@pytest.mark.parametrize("path", sorted((HERE / "found").glob("*.hex")), ids=lambda path: path.stem)
def test_what_the_fuzzer_has_found_stays_mended(path: Path) -> None:
    """The part of the file's name up to the first dot is the target's."""
    TARGETS[path.name.partition(".")[0]](bytes.fromhex(path.read_text()))


def test_the_campaign_finds_its_targets_and_seeds_without_pytest(tmp_path: Path) -> None:
    (tmp_path / "atheris.py").write_text(
        "from contextlib import nullcontext\n"
        "def instrument_imports(include): return nullcontext()\n"
        "def Setup(arguments, target): print(target.__name__)\n"
        "def Fuzz(): pass\n"
    )
    command = [sys.executable, str(HERE / "campaign.py"), "rows", "--dir", str(tmp_path)]
    path = f"{tmp_path}{os.pathsep}{HERE.parent.parent}"
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "rows\n", done.stderr[-4_000:]
    assert list((tmp_path / "rows").glob("seed-*"))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs the extra `fuzz`")
@only_deep("takes minutes")
def test_a_minute_of_coverage_guided_inputs_breaks_nothing(name: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(HERE / "campaign.py"),
        name,
        "--seconds",
        str(DEEP_SECONDS),
        "--dir",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEEP_SECONDS + DEEP_GRACE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4_000:]
