"""Connections that have sent no request: few, and those that wait longest go first."""

import doctest
from dataclasses import dataclass, field

import pytest
from support.backend_farm import Clock

from proxy.net import newcomers
from proxy.net.newcomers import Newcomers, address_group


@dataclass(eq=False)
class Client:
    address: str
    ended: list[str] = field(default_factory=list)

    def end_waiting(self, reason: str) -> None:
        self.ended.append(reason)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_an_address_that_opens_too_many_ends_its_own_and_nobody_elses(clock: Clock) -> None:
    waiting = Newcomers(clock, 10, 3)
    other = Client("b")
    waiting.add(other)
    flood = [Client("a") for _ in range(20)]
    for one in flood:
        waiting.add(one)
    assert other.ended == []
    assert [bool(one.ended) for one in flood] == [True] * 17 + [False] * 3
    assert len(waiting) == 4


def test_a_port_with_too_many_ends_the_one_that_has_waited_longest(clock: Clock) -> None:
    waiting = Newcomers(clock, 10, 3)
    crowd = [Client(str(number)) for number in range(12)]
    for one in crowd:
        waiting.add(one)
    assert [bool(one.ended) for one in crowd] == [True] * 2 + [False] * 10


def test_one_whose_request_has_come_is_counted_no_more_and_waits_anew_behind_the_others(clock: Clock) -> None:
    waiting = Newcomers(clock, 2, 2)
    served, silent, third = Client("a"), Client("a"), Client("b")
    waiting.add(served)
    waiting.discard(served)
    waiting.discard(served)
    waiting.add(silent)
    assert served not in waiting
    waiting.add(served)
    waiting.add(third)
    assert (served.ended, bool(silent.ended), third.ended) == ([], True, [])


def test_one_makes_room_for_another_client_only_if_it_is_silent_for_a_while(clock: Clock) -> None:
    waiting = Newcomers(clock)
    first, second = Client("a"), Client("b")
    waiting.add(first)
    clock.now += 0.9
    waiting.add(second)
    assert not waiting.end_silent()
    clock.now += 0.2
    assert waiting.end_silent()
    assert not waiting.end_silent()
    assert (len(first.ended), len(second.ended)) == (1, 0)


def test_a_limit_of_one_holds(clock: Clock) -> None:
    waiting = Newcomers(clock, 1, 1)
    first, second = Client("a"), Client("a")
    waiting.add(first)
    waiting.add(second)
    waiting.discard(second)
    assert (len(first.ended), len(second.ended), len(waiting)) == (1, 0, 0)


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("fe80::1%eth0", "fe80::"),
        ("2001:db8:0:1::5", "2001:db8:0:1::"),
        ("/run/socket", "/run/socket"),
    ],
)
def test_addresses_that_one_machine_can_have_are_one(host: str, group: str) -> None:
    assert address_group(host) == group


def test_the_examples_hold() -> None:
    assert doctest.testmod(newcomers).failed == 0
