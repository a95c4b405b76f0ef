"""Threads are shared fairly by owners, here by threads that a test moves by hand."""

import gc
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import ref

import pytest

from proxy.upstream.fair_threads import FairThreads, ThreadsBusyError

P = ParamSpec("P")
T = TypeVar("T")


class ByHand(Executor):
    """Threads that run what they were given when they are told."""

    def __init__(self) -> None:
        self.given: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        self.given.append(partial(fn, *args, **kwargs))
        return Future()

    def run_next(self) -> None:
        self.given.pop(0)()


class Stage:
    """Fair threads, the order in which work was run, and a clock."""

    def __init__(self, count: int) -> None:
        self.threads = ByHand()
        self.ran: list[str] = []
        self.timers: list[Callable[[], None]] = []
        self.waits_s: list[float] = []
        self.now = 0.0
        self.fair = FairThreads(self.threads, count, self._later, lambda: self.now)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self.waits_s.append(seconds)
        self.timers.append(call)

    def give(self, owner: str, name: str, within_s: float | None = None) -> Future[None]:
        return self.fair.of(owner, within_s).submit(self.ran.append, name)

    def run_all(self) -> list[str]:
        while self.threads.given:
            self.threads.run_next()
        return self.ran


def test_an_owner_has_one_thread_and_others_the_rest() -> None:
    stage = Stage(2)
    for name in ("a1", "a2", "a3"):
        _ = stage.give("a", name)
    assert len(stage.threads.given) == 1, "the second thread is free for another owner"

    _ = stage.give("b", "b1")
    assert len(stage.threads.given) == 2
    assert stage.run_all() == ["a1", "b1", "a2", "a3"]


def test_owners_that_wait_take_turns() -> None:
    stage = Stage(1)
    for name in ("a1", "a2", "a3"):
        _ = stage.give("a", name)
    for owner in ("b", "c"):
        _ = stage.give(owner, f"{owner}1")

    assert stage.run_all() == ["a1", "b1", "c1", "a2", "a3"]


def test_work_that_waits_too_long_is_given_up_and_work_that_runs_is_not() -> None:
    stage = Stage(1)
    first, second = stage.give("a", "a1", 3.0), stage.give("b", "b1", 3.0)
    assert len(stage.timers) == 1, "the first has its thread at once"
    stage.timers.pop()()

    with pytest.raises(ThreadsBusyError):
        second.result(0)
    assert stage.run_all() == ["a1"]
    assert first.result(0) is None


def test_work_that_got_its_thread_in_time_is_not_given_up_later() -> None:
    stage = Stage(1)
    _, second = stage.give("a", "a1"), stage.give("b", "b1", 3.0)
    assert stage.run_all() == ["a1", "b1"]
    stage.timers.pop()()

    assert second.result(0) is None


def test_work_that_has_ended_is_not_kept_until_its_wait_would_end() -> None:
    class Held:
        """All that a decision holds."""

        def __call__(self) -> None:
            """Do nothing."""

    stage, held = Stage(1), Held()
    kept = ref(held)
    _ = stage.give("a", "a1")
    _ = stage.fair.submit("b", held, 3.0)
    del held
    _ = gc.collect()
    assert kept() is not None, "it waits"
    _ = stage.run_all()
    _ = gc.collect()
    assert stage.timers
    assert kept() is None


def test_the_steps_of_a_decision_wait_no_longer_together_than_one_may() -> None:
    stage = Stage(1)
    decision = stage.fair.of("b", 3.0)
    steps = []
    for _ in range(2):
        _ = stage.give("a", "a")
        steps.append(decision.submit(stage.ran.append, "b"))
        stage.now += 2.0
        stage.threads.run_next()
        if stage.threads.given:
            stage.threads.run_next()
            stage.now += 10.0  # work is no wait
    assert stage.waits_s == [3.0, 1.0]
    _ = stage.give("a", "a")
    steps.append(decision.submit(stage.ran.append, "b"))
    assert stage.waits_s == [3.0, 1.0, 0.0]
    stage.timers[-1]()
    with pytest.raises(ThreadsBusyError):
        steps[-1].result(0)


def test_a_decision_whose_wait_was_given_up_does_not_wait_again() -> None:
    stage = Stage(1)
    decision = stage.fair.of("b", 3.0)
    for seconds in (3.0, 0.0):
        _ = stage.give("a", "a")
        step = decision.submit(stage.ran.append, "b")
        assert stage.waits_s[-1] == seconds
        stage.timers.pop()()
        assert isinstance(step.exception(0), ThreadsBusyError)


def test_a_caller_that_waits_no_longer_costs_no_thread() -> None:
    stage = Stage(1)
    _, second, third = stage.give("a", "a1"), stage.give("b", "b1", 3.0), stage.give("b", "b2")
    assert second.cancel()
    stage.timers.pop()()

    assert stage.run_all() == ["a1", "b2"]
    assert third.done()


def test_work_that_fails_frees_its_thread() -> None:
    stage = Stage(1)

    def fails() -> None:
        raise LookupError("no such thing")

    failing = stage.fair.of("a").submit(fails)
    _ = stage.give("a", "a2")

    assert stage.run_all() == ["a2"]
    with pytest.raises(LookupError):
        failing.result(0)


def test_what_waits_at_the_end_is_cancelled() -> None:
    stage = Stage(1)
    _, second = stage.give("a", "a1"), stage.give("b", "b1")
    stage.fair.shutdown()

    assert second.cancelled()
