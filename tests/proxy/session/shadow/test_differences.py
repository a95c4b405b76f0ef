"""What is kept of a difference, and what of it is told."""

import json
import logging
from pathlib import Path

import pytest

from proxy.session.shadow.checksum import Checksum
from proxy.session.shadow.compare import Comparison, Pair, ShadowVerdict
from proxy.session.shadow.differences import KEPT_MAX, DifferenceLog

PAIR = Pair("SELECT 'secret'", "SELECT 'another secret'")
DIFFERENT = Comparison(ShadowVerdict.DIFFERENT, "", Checksum(2, "7"), Checksum(1, "5"))


def test_a_difference_is_kept_with_both_texts_and_logged_without(caplog: pytest.LogCaptureFixture) -> None:
    differences = DifferenceLog(None, 0, lambda: 12.5)
    differences.add(PAIR, DIFFERENT)
    (kept,) = differences.newest()
    assert (kept.at, kept.original, kept.rewritten) == (12.5, PAIR.original, PAIR.rewritten)
    assert (kept.original_checksum, kept.rewritten_checksum) == (DIFFERENT.original, DIFFERENT.rewritten)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "secret" not in caplog.text + repr(kept) + repr(PAIR)


def test_only_the_newest_are_kept() -> None:
    numbers = iter(range(KEPT_MAX + 3))
    differences = DifferenceLog(None, 0, lambda: float(next(numbers)))
    for _ in range(KEPT_MAX + 3):
        differences.add(PAIR, DIFFERENT)
    assert [kept.at for kept in differences.newest()] == [float(n) for n in range(KEPT_MAX + 2, 2, -1)]


def test_the_file_has_a_line_for_each_until_it_is_full(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "differences.jsonl"
    differences = DifferenceLog(path, 600, lambda: 12.5)
    for _ in range(3):
        differences.add(PAIR, DIFFERENT)
    assert len(differences.newest()) == 3
    lines = path.read_text().splitlines()
    assert [json.loads(line)["rewritten"] for line in lines] == [PAIR.rewritten] * 2
    assert path.stat().st_size <= 600
    # Whoever may not read the tables shall not read their literals here.
    assert path.stat().st_mode & 0o077 == 0
    assert "is full" in caplog.messages[-1]


def test_a_file_that_cannot_be_written_loses_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    differences = DifferenceLog(tmp_path / "nowhere" / "file", 10_000)
    differences.add(PAIR, DIFFERENT)
    assert differences.newest()
    assert "could not be added" in caplog.text
