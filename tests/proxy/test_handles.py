"""Whose a handle is, for how long that is known, and what is forgotten first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.handles import Digests, HandleKind, Handles, Holding, OwnHandles
from proxy.wire.handles import HandleId

SESSIONS_MAX, OPERATIONS_MAX = 3, 5
DIGESTS = Digests.new()
ALICE = Holding(DIGESTS.owner(b"alice"), "spark:10000")
BOB = Holding(DIGESTS.owner(b"bob"), "other:10000")


def handle(number: int) -> HandleId:
    return HandleId(number.to_bytes(32))


@pytest.fixture
def handles() -> Handles:
    return OwnHandles(DIGESTS, sessions_max=SESSIONS_MAX, operations_max=OPERATIONS_MAX)


def known(handles: Handles, *numbers: int) -> list[int]:
    return [number for number in numbers if handles.find(handle(number)) is not None]


def test_a_handle_belongs_to_whom_it_was_given_and_stays_so_once_closed(handles: Handles) -> None:
    handles.opened(HandleKind.SESSION, handle(1), ALICE)
    handles.opened(HandleKind.OPERATION, handle(2), BOB)
    assert (handles.find(handle(1)), handles.find(handle(2)), handles.find(handle(3))) == (ALICE, BOB, None)
    assert not handles.is_closed(handle(1))
    handles.closed([handle(1), handle(9)])
    assert handles.is_closed(handle(1))
    assert not handles.is_closed(handle(9))
    assert handles.find(handle(1)) == ALICE


def test_the_oldest_closed_one_is_forgotten_first_and_then_the_oldest(handles: Handles) -> None:
    for number in range(OPERATIONS_MAX):
        handles.opened(HandleKind.OPERATION, handle(number), ALICE)
    handles.closed([handle(3), handle(2)])
    handles.opened(HandleKind.OPERATION, handle(10), ALICE)
    assert known(handles, 0, 1, 2, 3, 4, 10) == [0, 1, 2, 4, 10]
    handles.opened(HandleKind.OPERATION, handle(11), ALICE)
    handles.opened(HandleKind.OPERATION, handle(12), ALICE)
    assert known(handles, 0, 1, 2, 4, 10, 11, 12) == [1, 4, 10, 11, 12]


def test_operations_push_out_no_session(handles: Handles) -> None:
    handles.opened(HandleKind.SESSION, handle(1), ALICE)
    for number in range(100, 200):
        handles.opened(HandleKind.OPERATION, handle(number), ALICE)
    assert handles.find(handle(1)) == ALICE


@given(
    st.lists(st.tuples(st.sampled_from(["session", "operation", "close"]), st.integers(0, 30)), max_size=60),
)
def test_what_is_known_is_bounded_whatever_happens(events: list[tuple[str, int]]) -> None:
    handles = OwnHandles(DIGESTS, sessions_max=SESSIONS_MAX, operations_max=OPERATIONS_MAX)
    for event, number in events:
        if event == "close":
            handles.closed([handle(number)])
        else:
            handles.opened(HandleKind[event.upper()], handle(number), ALICE)
            assert handles.find(handle(number)) == ALICE
        assert handles.count <= SESSIONS_MAX + OPERATIONS_MAX


def test_digests_tell_nothing_without_the_key_and_are_equal_with_it() -> None:
    again = Digests(b"k" * 32)
    assert Digests(b"k" * 32).of(handle(1)) == again.of(handle(1)) != DIGESTS.of(handle(1))
    assert again.owner(b"alice") != again.owner(b"Alice")
    assert bytes(again.owner(handle(1))) != bytes(again.of(handle(1)))
    assert "alice" not in repr(ALICE)
