"""Time saved: like is compared with like, losses are counted, and estimates stand beside what was measured."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.histories import history_in, left_alone, record, scan, until

from proxy.history.queries import DAY_S, Filter, HistoryReader, midnight, today
from proxy.history.recent_savings import EVERY_S, RecentSavings
from proxy.history.record import Record, new_id
from proxy.history.savings import Savings, total
from proxy.history.store import FILE_NAME, Store

AT = time.time() - 1_000
COLD, WARM = True, False


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, bytes_max=4_000_000)) as opened:
        yield opened


def rewritten(run_s: float, lists_files: bool | None, *, deciding_s: float = 0.0, **changes: Any) -> Record:  # noqa: FBT001
    return record(at=AT, run_s=run_s, deciding_s=deciding_s, lists_files=lists_files, **changes)


def originals(times: Sequence[float], lists_files: bool | None, **changes: Any) -> list[Record]:  # noqa: FBT001
    values: dict[str, Any] = {"fingerprint": "f1", "at": AT, "deciding_s": 0.0, **changes}
    return [left_alone(run_s=run_s, lists_files=lists_files, **values) for run_s in times]


def saved(path: Path, seen_by: str | None = None, since: float = AT - 1) -> Savings:
    found = HistoryReader(path / FILE_NAME).savings(since, seen_by)
    return total(found.values())


def test_cold_runs_are_compared_with_cold_originals_and_warm_with_warm(store: Store, tmp_path: Path) -> None:
    """Against the median of all, cold runs that had won 55 s were shown to have lost 40 s."""
    store.add(originals([12.0], COLD) + originals([0.9, 1.0, 1.1], WARM))
    store.add([rewritten(1.0, COLD), rewritten(1.5, COLD), rewritten(1.3, WARM)])
    found = saved(tmp_path)
    assert (found.runs, found.measured, found.estimated) == (3, 3, 0)
    assert found.measured_s == pytest.approx((12.0 - 1.0) + (12.0 - 1.5) + (1.0 - 1.3))


def test_the_savings_of_a_day_are_computed_beside_and_not_with_each_question(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([*originals([5.0, 6.0], WARM), rewritten(1.0, WARM), record(at=AT - DAY_S, lists_files=WARM)])
    recent = RecentSavings(history_in(tmp_path))
    assert tuple(recent.by_kind()) == (), "nobody waits for the first ones"
    until(lambda: bool(tuple(recent.by_kind())))
    assert dict(recent.by_kind()) == {"measured": 4.0, "estimated": 0.0, "spent": 0.0}
    monkeypatch.setattr(HistoryReader, "savings", lambda *_: {})
    assert dict(recent.by_kind())["measured"] == 4.0
    assert recent._due_at > time.monotonic() + EVERY_S / 2  # noqa: SLF001 - nobody waits for that
    monkeypatch.setattr(recent, "_due_at", 0.0)
    until(lambda: dict(recent.by_kind())["measured"] == 0.0)


def test_a_history_that_cannot_be_asked_tells_no_savings(tmp_path: Path) -> None:
    recent = RecentSavings(history_in(tmp_path))
    assert tuple(recent.by_kind()) == ()
    until(lambda: recent._due_at < math.inf)  # noqa: SLF001 - that it has tried
    assert tuple(recent.by_kind()) == tuple(RecentSavings(history_in(None)).by_kind()) == ()


def test_deciding_counts_as_time_of_rewritten_runs_alone(store: Store, tmp_path: Path) -> None:
    store.add(originals([5.0, 6.0], WARM, deciding_s=0.25))
    store.add([rewritten(1.0, WARM, deciding_s=0.5)])
    found = saved(tmp_path)
    assert found.spent_s == pytest.approx(0.5), "deciding about the originals was in vain"
    assert found.measured_s == pytest.approx(5.0 - 1.5 - 0.5)


def test_the_first_run_of_a_fallback_was_in_vain(store: Store, tmp_path: Path) -> None:
    store.add([rewritten(7.0, WARM, deciding_s=0.5, outcome="fallback", fallback_s=3.0)])
    found = saved(tmp_path)
    assert (found.runs, found.measured_s, found.spent_s) == (0, -7.5, 7.5)
    assert not found.is_known


@pytest.mark.parametrize(("times", "state"), [([3.0], WARM), ([], COLD), ([3.0, 3.0], None)])
def test_too_few_originals_of_its_kind_measure_nothing(
    store: Store,
    tmp_path: Path,
    times: list[float],
    state: bool | None,  # noqa: FBT001
) -> None:
    """A warm one alone may have been the first of all; of others nobody knows what they found."""
    store.add([*originals(times, state), rewritten(1.0, WARM if state is None else state)])
    assert saved(tmp_path).measured == 0


def test_a_cold_run_without_originals_has_saved_the_listing_by_an_estimate(store: Store, tmp_path: Path) -> None:
    store.add([rewritten(1.0, COLD, deciding_s=0.5), rewritten(1.0, WARM, fingerprint="f2")])
    found = saved(tmp_path)
    assert (found.measured, found.estimated) == (0, 1), "nobody knows what a warm one has saved"
    assert found.estimated_s == pytest.approx(2_800 * 0.0018 - 0.5)


def test_the_estimate_rests_on_what_listing_took_here(store: Store, tmp_path: Path) -> None:
    store.add(originals([30.24], COLD) + originals([1.0, 1.0], WARM) + [rewritten(0.5, WARM)])
    store.add([rewritten(1.0, COLD, fingerprint="f2")])
    assert saved(tmp_path).estimated_s == pytest.approx(2_800 * (29.24 / 2_924))


def test_a_statement_that_was_rewritten_in_vain_is_a_loss_by_an_estimate(store: Store, tmp_path: Path) -> None:
    """A filter by `year(now())` kept all partitions, and took five seconds to decide."""
    store.add([rewritten(1.0, WARM, deciding_s=5.0, scans=[scan(kept=2_924)])])
    assert saved(tmp_path).estimated_s == pytest.approx(-5.0)


def test_originals_of_before_count_and_savings_of_before_do_not(store: Store, tmp_path: Path) -> None:
    store.add([*originals([5.0, 5.0], WARM, at=AT - 90_000), rewritten(1.0, WARM), rewritten(2.0, WARM)])
    assert saved(tmp_path).measured_s == pytest.approx(7.0)
    assert saved(tmp_path, since=AT + 1).runs == 0


def test_nobody_is_told_of_originals_of_others(store: Store, tmp_path: Path) -> None:
    store.add([*originals([5.0, 5.0], WARM, user="bob"), rewritten(1.0, WARM)])
    assert saved(tmp_path).measured == 1
    assert saved(tmp_path, seen_by="ann").measured == 0


def test_an_original_that_was_not_parsed_is_one_of_the_statement_with_its_text(
    store: Store, tmp_path: Path
) -> None:
    """With rewriting switched off nothing is parsed: before and after the text has become known."""
    text = "SELECT sum(x) FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.month = '{}'"
    store.add(originals([5.0], WARM, fingerprint=None, original=text.format("may")))
    store.add([rewritten(1.0, WARM, original=text.format("june"))])
    store.add(originals([6.0], WARM, fingerprint=None, original=text.format("july")))
    assert saved(tmp_path).measured_s == pytest.approx(4.0)


def test_savings_are_told_by_hour_and_by_day_and_the_last_day_is_the_sum_of_today(
    store: Store, tmp_path: Path
) -> None:
    def sent(at: float, run_s: float, deciding_s: float = 0.0) -> Record:
        return rewritten(run_s, WARM, deciding_s=deciding_s, id=new_id(at), started_at=at - deciding_s)

    now = time.time()
    first, yesterday = (midnight(date.today(), -back) for back in (2, 1))  # noqa: DTZ011 - of this machine
    store.add(originals([4.0, 4.0], WARM, at=yesterday))
    store.add(
        [sent(now, 5.0), sent(now - 7_200, 3.0), sent(yesterday, 1.0, deciding_s=100.0), sent(first - 1, 1.0)]
    )
    store.add([rewritten(1.0, WARM, user="bob"), rewritten(9.0, WARM, fingerprint="f2")])
    hours, days = HistoryReader(tmp_path / FILE_NAME).savings_over_time(Filter(seen_by="ann"), 3)
    assert (len(hours), list(days)) == (24, [first, yesterday, today()])
    by_hour = [one.measured_s for one in hours.values()]
    assert by_hour[-1] == pytest.approx(-1.0), "a loss is a loss"
    assert by_hour[-3] == pytest.approx(1.0)
    assert max(hours) <= now < max(hours) + 3_600
    assert days[today()] == saved(tmp_path, "ann", today())
    assert days[yesterday].measured_s < -90.0, "it was sent as the day began"
    assert days[first].runs == 0
