"""The report of shadow mode: what it counts, whose statements, and in which words."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.histories import left_alone, record

from proxy.admin.shadow_view import sentences
from proxy.history import shadow_report
from proxy.history.queries import Filter, HistoryReader
from proxy.history.record import Record, ShadowRecord
from proxy.history.shadow_report import ShadowReport, ShadowTimes
from proxy.history.store import FILE_NAME, Store

AT = time.time() - 100


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, bytes_max=4_000_000)) as opened:
        yield opened


def shadow(verdict: str = "equal", why: str = "", **changes: Any) -> Record:
    values = {"original_s": 10.0, "rewritten_s": 1.0, "deciding_s": 0.5, "tables": ["sales"], **changes}
    user = values.pop("user", "ann")
    kept = ShadowRecord(verdict, why, 12.0, "f1", **values)
    return left_alone(at=values.pop("at", AT), skip_reason="IN_SHADOW", scans=[], user=user, shadow=kept)


def told(directory: Path, seen_by: str | None = None, since: float = AT - 0.5) -> ShadowReport:
    return HistoryReader(directory / FILE_NAME).shadows(Filter(seen_by=seen_by, since=since))


def test_pairs_with_equal_answers_are_added_up_by_table_and_by_user(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(
        [shadow(), shadow(tables=["returns", "sales"], original_s=100.0), shadow(user="bob", original_s=None)]
    )
    store.add([record(at=AT), shadow("different"), shadow("unstable", rewritten_s=0.1)])
    report = told(tmp_path)
    both = ShadowTimes(2, 110.0, 3.0)
    assert (report.statements, report.equal, report.times) == (5, 3, both)
    assert list(report.tables.items()) == [("sales", both), ("returns", ShadowTimes(1, 100.0, 1.5))]
    assert report.users == {"ann": both}
    monkeypatch.setattr(shadow_report, "_PARTS_MAX", 1)
    assert list(told(tmp_path).tables) == ["sales"]


def test_others_are_counted_by_what_is_known_of_them(store: Store, tmp_path: Path) -> None:
    wrong = [shadow("different"), shadow("failed")]
    unknown = left_alone(at=AT, skip_reason="IN_SHADOW", scans=[])
    unchanged = [shadow("unchanged", reasons=["NO_EQUALITY", "TYPES_DIFFER"]), shadow("unchanged", reasons=[])]
    store.add(
        [*wrong, unknown, *unchanged, shadow("refused", "a"), shadow("unstable", "a"), shadow("uncomparable")]
    )
    report = told(tmp_path)
    assert (report.wrong, sorted(report.wrong_ids)) == (2, [one.id for one in wrong])
    assert (report.unknown, report.unchanged, report.reasons) == (1, 2, {"NO_EQUALITY": 1, "TYPES_DIFFER": 1})
    assert (report.not_compared, report.causes) == (3, {"a": 2, "": 1})
    assert report.times.statements == 0


def test_a_report_is_of_the_own_statements_since_a_time_and_of_so_many(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([left_alone(at=AT - n, user="bob", skip_reason="IN_SHADOW", scans=[]) for n in range(3)])
    assert [told(tmp_path, "ann").statements, told(tmp_path, "bob").statements] == [0, 1]
    assert [told(tmp_path, since=0.0).statements, told(tmp_path, since=AT + 1).statements] == [3, 0]
    assert not told(tmp_path, since=0.0).is_cut
    monkeypatch.setattr(shadow_report, "STATEMENTS_MAX", 2)
    assert (told(tmp_path, since=0.0).statements, told(tmp_path, since=0.0).is_cut) == (2, True)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (ShadowReport(since=0), "No statement has run in shadow mode in the last 7 days."),
        (
            ShadowReport(
                since=0, statements=1_000, equal=900, unchanged=100, times=ShadowTimes(890, 7_200.0, 720.0)
            ),
            (
                "In the last 7 days 1,000 statements ran in shadow mode; 900 of them ran a second time, rewritten,"
                " and none gave another answer. Rewritten, 890 of them would have taken 12 min 0 s in place of"
                " 2 h 0 min, which is 90% less. Of the others, 100 would have gone as they came."
            ),
        ),
        (
            ShadowReport(since=0, statements=3, equal=1, wrong=2, is_cut=True, times=ShadowTimes(1, 1.0, 2.0)),
            (
                "In the last 7 days 3 statements ran in shadow mode, the newest that are kept; 3 of them ran a"
                " second time, rewritten, and 2 gave another answer or failed. Rewritten, 1 of them would have"
                " taken 2.0 s in place of 1.0 s, which is no less."
            ),
        ),
        (
            ShadowReport(since=0, statements=3, not_compared=1, unknown=2),
            (
                "In the last 7 days 3 statements ran in shadow mode; none of them had two answers to compare. How"
                " long they would have taken when rewritten is not known. Of the others, 1 could not be compared,"
                " 2 are not known: their second run had not ended, or found no room."
            ),
        ),
    ],
)
def test_the_report_says_what_is_known_and_what_is_not(report: ShadowReport, words: str) -> None:
    assert " ".join(sentences(report, 7)) == words
