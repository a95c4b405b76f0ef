"""When a backend that fails is left alone, and when it is tried again."""

import pytest

from proxy.backends.circuit_breaker import FAILURES_MAX, OPEN_S, OPEN_S_MAX, BreakerState, CircuitBreaker
from proxy.backends.health import Health, Thresholds


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def state_of(breaker: CircuitBreaker) -> BreakerState:
    """Asked anew: a type checker holds a property to stay what it was."""
    return breaker.state


def opened(clock: Clock) -> CircuitBreaker:
    breaker = CircuitBreaker(clock)
    for _ in range(FAILURES_MAX):
        breaker.record_failure()
    return breaker


def test_failures_with_a_success_between_them_open_nothing() -> None:
    breaker = CircuitBreaker(Clock())
    for _ in range(10 * FAILURES_MAX):
        for _ in range(FAILURES_MAX - 1):
            breaker.record_failure()
        breaker.record_success()
    assert state_of(breaker) is BreakerState.CLOSED


def test_failures_in_a_row_open_it_and_time_half_opens_it() -> None:
    clock = Clock()
    breaker = opened(clock)
    assert state_of(breaker) is BreakerState.OPEN
    assert not breaker.admits
    clock.now += OPEN_S - 0.01
    assert not breaker.admits
    clock.now += 0.01
    assert state_of(breaker) is BreakerState.HALF_OPEN
    assert breaker.admits


def test_half_open_it_admits_one_connection_until_that_has_shown_something() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += OPEN_S
    assert breaker.begin_connection()
    assert not breaker.admits
    assert not breaker.begin_connection(), "there is one trial"
    breaker.trial_ended()
    assert breaker.admits, "the trial showed nothing, and there may be another"


def test_a_trial_that_works_closes_it() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += OPEN_S
    breaker.begin_connection()
    breaker.trial_ended()
    breaker.record_success()
    assert state_of(breaker) is BreakerState.CLOSED
    breaker.record_failure()
    assert state_of(breaker) is BreakerState.CLOSED, "the failures before count no more"


def test_a_trial_that_fails_opens_it_for_twice_as_long_up_to_a_limit() -> None:
    clock = Clock()
    breaker = opened(clock)
    periods: list[float] = []
    wait = OPEN_S
    for _ in range(8):
        clock.now += wait
        assert state_of(breaker) is BreakerState.HALF_OPEN
        breaker.begin_connection()
        breaker.record_failure()
        breaker.trial_ended()
        wait = min(2 * wait, OPEN_S_MAX)
        clock.now += wait - 0.01
        assert state_of(breaker) is BreakerState.OPEN
        clock.now -= wait - 0.01
        periods.append(wait)
    assert periods[:4] == [10.0, 20.0, 40.0, OPEN_S_MAX]
    assert periods[-1] == OPEN_S_MAX


def test_a_probe_is_the_trial_where_one_is_due_and_the_next_failure_opens_it_for_twice_as_long() -> None:
    clock = Clock()
    breaker = opened(clock)
    breaker.record_probe_success()
    assert state_of(breaker) is BreakerState.OPEN
    for wait in (OPEN_S, 2 * OPEN_S, 4 * OPEN_S):
        clock.now += wait - 0.01
        breaker.record_probe_success()
        assert state_of(breaker) is BreakerState.OPEN
        clock.now += 0.01
        breaker.record_probe_success()
        assert state_of(breaker) is BreakerState.CLOSED
        breaker.record_failure()
        assert state_of(breaker) is BreakerState.OPEN
    breaker.record_success()
    breaker.record_probe_success()
    breaker.record_failure()
    assert state_of(breaker) is BreakerState.CLOSED, "a client has been answered"


def test_failures_while_it_is_open_change_nothing() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += OPEN_S / 2
    for _ in range(100):
        breaker.record_failure()
    clock.now += OPEN_S / 2
    assert state_of(breaker) is BreakerState.HALF_OPEN


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_a_backend_that_misses_fewer_probes_than_the_threshold_stays_up(failures: int) -> None:
    health = Health(Thresholds(failures_to_down=3, successes_to_up=2))
    assert not health.record_probe(answered=True)
    for _ in range(5):
        assert not any(health.record_probe(answered=False) for _ in range(failures))
        assert not health.record_probe(answered=True)
    assert health.is_up


def test_a_backend_goes_down_and_comes_up_after_as_many_probes_as_it_takes() -> None:
    health = Health(Thresholds(failures_to_down=3, successes_to_up=2))
    assert not health.record_probe(answered=True)
    assert [health.record_probe(answered=False) for _ in range(4)] == [False, False, True, False]
    assert not health.is_up
    assert [health.record_probe(answered=answered) for answered in (True, False, True, True)] == [
        *(False, False, False),
        True,
    ]
    assert health.is_up


def test_a_backend_that_has_never_answered_is_down_at_its_first_failure() -> None:
    health = Health(Thresholds(failures_to_down=3, successes_to_up=2))
    assert health.record_probe(answered=False)
    assert [health.record_probe(answered=True) for _ in range(2)] == [False, True]
    assert [health.record_probe(answered=False) for _ in range(3)] == [False, False, True]
