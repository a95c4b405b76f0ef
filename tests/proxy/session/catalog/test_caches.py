"""What was fetched at some cost: how much is kept, and that nobody fetches it twice at a time."""

from dataclasses import dataclass
from threading import Thread

from proxy.session.catalog.caches import WeightedLru


@dataclass(frozen=True)
class Weight:
    weight: int


def test_what_was_not_used_for_longest_goes_first() -> None:
    kept = WeightedLru[str, Weight](weight_max=3)
    for key in "ab":
        kept.put(key, Weight(1))
    assert kept.get("a") is not None
    kept.put("c", Weight(2))
    assert [key for key in "abc" if kept.get(key) is not None] == ["a", "c"]


def test_a_value_that_is_heavier_than_all_may_be_is_kept_alone() -> None:
    kept = WeightedLru[str, Weight](weight_max=3)
    kept.put("a", Weight(1))
    kept.put("b", Weight(9))
    assert [key for key in "ab" if kept.get(key) is not None] == ["b"]


def test_only_one_fetches_at_a_time() -> None:
    kept = WeightedLru[str, Weight](weight_max=3)
    with kept.alone("a") as first, kept.alone("a") as second, kept.alone("b") as other:
        assert (first, second, other) == (True, False, True)
    with kept.alone("a") as again:
        assert again


def test_who_has_fetched_says_so_under_the_lock() -> None:
    kept = WeightedLru[str, Weight](weight_max=3)
    fetching = kept.alone("a")
    assert fetching.__enter__()
    outcome = Thread(target=fetching.__exit__, args=(None, None, None))
    with kept._lock:  # noqa: SLF001 - nothing else shows it
        outcome.start()
        outcome.join(timeout=0.2)
        assert outcome.is_alive()
    outcome.join(timeout=60.0)
    assert not outcome.is_alive()
