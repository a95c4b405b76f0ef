"""When a connection has been silent for too long, and when its silence is somebody else's."""

import pytest

from proxy.config.serving import ProxySection
from proxy.net.timeouts import REQUEST_BYTES_MIN, Activity, IdleTimeouts

QUIET = Activity(
    last_activity=0.0, awaits_replies=False, from_client_bytes=100, is_within_request=False, unread_bytes=0
)


def seen(**differs: object) -> Activity:
    return Activity(**{**vars(QUIET), **differs})


def timeouts(**limits: float) -> IdleTimeouts:
    """These limits, and no other."""
    return IdleTimeouts(ProxySection(**{"request_timeout_s": 0.0, **limits}))  # type: ignore[arg-type]


def test_without_limits_nobody_looks_and_nothing_ends() -> None:
    patience = timeouts()
    assert patience.check_every_s is None
    for now in (0.0, 1e9):
        assert patience.why_expired(now, seen(is_within_request=True, unread_bytes=5)) is None


def test_the_shortest_limit_says_how_often_to_look() -> None:
    assert timeouts(idle_timeout_s=100.0, request_timeout_s=8.0).check_every_s == 2.0


def test_an_idle_client_is_ended_and_one_that_waits_is_not() -> None:
    patience = timeouts(idle_timeout_s=10.0)
    assert patience.why_expired(9.9, QUIET) is None
    assert patience.why_expired(1e6, seen(awaits_replies=True)) is None
    assert patience.why_expired(19.9, seen(last_activity=10.0)) is None
    reason = patience.why_expired(10.0, QUIET)
    assert reason is not None
    assert "idle_timeout_s" in reason


def test_a_request_that_does_not_go_on_is_ended() -> None:
    patience = timeouts(request_timeout_s=10.0)
    half = seen(is_within_request=True)
    assert patience.why_expired(0.0, half) is None
    assert patience.why_expired(9.9, half) is None
    assert patience.why_expired(10.0, half) is not None


def test_a_byte_now_and_then_does_not_keep_a_request_going() -> None:
    patience = timeouts(request_timeout_s=10.0)
    assert patience.why_expired(0.0, seen(is_within_request=True)) is None
    assert patience.why_expired(5.0, seen(is_within_request=True, from_client_bytes=101)) is None
    assert patience.why_expired(10.0, seen(is_within_request=True, from_client_bytes=102)) is not None


def test_a_long_request_over_a_slow_line_goes_on() -> None:
    patience = timeouts(request_timeout_s=10.0)
    for look in range(100):
        sent = look * REQUEST_BYTES_MIN
        assert patience.why_expired(look * 9.0, seen(is_within_request=True, from_client_bytes=sent)) is None


def test_a_request_that_ended_in_between_is_forgotten() -> None:
    patience = timeouts(request_timeout_s=10.0)
    assert patience.why_expired(0.0, seen(is_within_request=True)) is None
    assert patience.why_expired(8.0, QUIET) is None
    assert patience.why_expired(12.0, seen(is_within_request=True)) is None


@pytest.mark.parametrize(("later_bytes", "ends"), [(500, True), (499, False), (0, False)])
def test_a_client_that_takes_nothing_of_what_it_is_sent_is_ended(later_bytes: int, *, ends: bool) -> None:
    patience = timeouts(unread_timeout_s=10.0)
    assert patience.why_expired(0.0, seen(unread_bytes=500)) is None
    assert (patience.why_expired(10.0, seen(unread_bytes=later_bytes)) is not None) is ends
