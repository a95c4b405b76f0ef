"""The checker of answers allows values that were possible together, at one moment of the statement."""

from collections.abc import Callable

import pytest
from serial_orders import Register, is_serial


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def to(self, now: float) -> Callable[[], None]:
        def passes() -> None:
            self.now = now

        return passes


@pytest.fixture
def clock() -> Clock:
    return Clock()


def changing(clock: Clock, *changes: tuple[float, int, float], name: str = "r") -> Register:
    """A register that is 0 at first: each change is asked for, to a value, and confirmed."""
    register = Register(name, 0, clock)
    for begin, value, end in changes:
        clock.to(begin)()
        register.change(value, clock.to(end))
    return register


@pytest.mark.parametrize(
    ("since", "until", "values"),
    [
        (1, 2, {0}),
        (1, 10, {0, 1}),
        (15, 16, {0, 1}),
        (20, 21, {0, 1}),
        (21, 29, {1}),
        (21, 30, {1, 2}),
        (41, 50, {2}),
    ],
)
def test_a_value_is_possible_from_its_call_until_the_next_one_is_confirmed(
    clock: Clock, since: float, until: float, values: set[int]
) -> None:
    register = changing(clock, (10, 1, 20), (30, 2, 40))
    assert {value for value in range(3) if is_serial({register: [value]}, since, until)} == values
    assert is_serial({register: values}, since, until)


def test_values_of_two_registers_have_to_be_possible_at_one_moment(clock: Clock) -> None:
    one, other = changing(clock, (10, 1, 11)), changing(clock, (20, 1, 21), name="other")
    found = {(a, b) for a in (0, 1) for b in (0, 1) if is_serial({one: [a], other: [b]}, 0, 30)}
    assert found == {(0, 0), (1, 0), (1, 1)}, "the other one changed after the first one had"


def test_a_change_that_failed_may_have_taken_effect(clock: Clock) -> None:
    register = Register("r", 0, clock)

    def fails() -> None:
        clock.now = 5
        raise OSError("no answer")

    with pytest.raises(OSError, match="no answer"):
        register.change(1, fails)
    assert {value for value in (0, 1) if is_serial({register: [value]}, 6, 7)} == {0, 1}
    clock.now = 8
    register.change(2, clock.to(9))
    assert {value for value in range(3) if is_serial({register: [value]}, 10, 11)} == {2}
