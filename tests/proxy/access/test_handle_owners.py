"""Whose a handle is, for how long that is known, and what is forgotten first."""

from collections.abc import Iterator

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shared_state import DIGESTS, Beside, ledger

from proxy.access.handle_owners import Digests, HandleKind, HandleOwner, HandleOwners, LocalHandleOwners
from proxy.wire.hs2.handles import HandleId
from proxy.workers.shared_handle_owners import SharedHandleOwners

SESSIONS_MAX, OPERATIONS_MAX = 3, 5
ALICE = HandleOwner(DIGESTS.user_digest(b"alice"), "spark:10000")
BOB = HandleOwner(DIGESTS.user_digest(b"bob"), "other:10000")


def handle(number: int) -> HandleId:
    return HandleId(number.to_bytes(32))


@pytest.fixture(params=["one process", "several"])
def handles(request: pytest.FixtureRequest) -> Iterator[HandleOwners]:
    if request.param == "one process":
        yield LocalHandleOwners(DIGESTS, sessions_max=SESSIONS_MAX, operations_max=OPERATIONS_MAX)
        return
    with ledger() as opened:
        yield SharedHandleOwners(opened, DIGESTS, sessions_max=SESSIONS_MAX, operations_max=OPERATIONS_MAX)


def known(handles: HandleOwners, *numbers: int) -> list[int]:
    return [number for number in numbers if handles.find_owner(handle(number)) is not None]


def test_a_handle_belongs_to_whom_it_was_given_and_stays_so_once_closed(handles: HandleOwners) -> None:
    handles.handle_opened(HandleKind.SESSION, handle(1), ALICE)
    handles.handle_opened(HandleKind.OPERATION, handle(2), BOB)
    assert (handles.find_owner(handle(1)), handles.find_owner(handle(2)), handles.find_owner(handle(3))) == (
        ALICE,
        BOB,
        None,
    )
    assert not handles.is_closed(handle(1))
    handles.handles_closed([handle(1), handle(9)])
    assert handles.is_closed(handle(1))
    assert not handles.is_closed(handle(9))
    assert handles.find_owner(handle(1)) == ALICE


def test_the_oldest_closed_one_is_forgotten_first_and_then_the_oldest(handles: HandleOwners) -> None:
    for number in range(OPERATIONS_MAX):
        handles.handle_opened(HandleKind.OPERATION, handle(number), ALICE)
    handles.handles_closed([handle(3), handle(2)])
    handles.handle_opened(HandleKind.OPERATION, handle(10), ALICE)
    assert known(handles, 0, 1, 2, 3, 4, 10) == [0, 1, 2, 4, 10]
    handles.handle_opened(HandleKind.OPERATION, handle(11), ALICE)
    handles.handle_opened(HandleKind.OPERATION, handle(12), ALICE)
    assert known(handles, 0, 1, 2, 4, 10, 11, 12) == [1, 4, 10, 11, 12]


def test_operations_push_out_no_session(handles: HandleOwners) -> None:
    handles.handle_opened(HandleKind.SESSION, handle(1), ALICE)
    for number in range(100, 200):
        handles.handle_opened(HandleKind.OPERATION, handle(number), ALICE)
    assert handles.find_owner(handle(1)) == ALICE


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from(["session", "operation", "close"]), st.booleans()), max_size=60), st.data()
)
def test_what_is_known_is_bounded_whatever_happens_and_the_same_for_one_process_and_for_several(
    events: list[tuple[str, bool]], data: st.DataObject
) -> None:
    own = LocalHandleOwners(DIGESTS, sessions_max=SESSIONS_MAX, operations_max=OPERATIONS_MAX)
    with ledger() as opened:
        shared = SharedHandleOwners(opened, DIGESTS, sessions_max=SESSIONS_MAX, operations_max=OPERATIONS_MAX)
        for number, (event, is_bobs) in enumerate(events):
            closed = handle(data.draw(st.integers(0, number)))
            for handles in (own, shared):
                if event == "close":
                    handles.handles_closed([closed])
                else:
                    handle_owner = BOB if is_bobs else ALICE
                    handles.handle_opened(HandleKind[event.upper()], handle(number), handle_owner)
                    assert handles.find_owner(handle(number)) == handle_owner
            assert own.count == shared.count <= SESSIONS_MAX + OPERATIONS_MAX
        for number in range(len(events)):
            assert own.find_owner(handle(number)) == shared.find_owner(handle(number))
            assert own.is_closed(handle(number)) == shared.is_closed(handle(number))


def test_a_session_stays_until_a_statement_of_it_comes_to_another_worker() -> None:
    with ledger(0) as opened:
        here, there = SharedHandleOwners(opened, DIGESTS), SharedHandleOwners(Beside(opened, 1), DIGESTS)
        here.handle_opened(HandleKind.SESSION, handle(1), ALICE)
        here.handle_opened(HandleKind.SESSION, handle(2), ALICE)
        assert here.is_local(handle(1))
        assert not there.is_local(handle(1))
        assert not here.used_elsewhere(handle(1)), "it is its own"
        assert there.used_elsewhere(handle(1))
        assert not here.is_local(handle(1))
        assert here.is_local(handle(2))
        assert there.find_owner(handle(1)) == ALICE
        here.handles_closed([handle(1)])
        assert not here.is_local(handle(1))
        assert there.is_closed(handle(1))
        assert not there.used_elsewhere(handle(3)), "nobody has opened it here"
        assert not here.is_local(handle(3)), "of one that is forgotten nobody could tell whether it roams"


def test_nothing_stays_where_the_workers_cannot_tell_one_another() -> None:
    with ledger(0) as opened:
        here = SharedHandleOwners(opened, DIGESTS)
        here.handle_opened(HandleKind.SESSION, handle(1), ALICE)
        Beside(opened, 1).mark_failed(lmdb.Error("no space left"))
        assert not here.is_local(handle(1))
        assert here.find_owner(handle(1)) == ALICE


def test_a_ledger_that_is_full_forgets_handles_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with ledger() as opened:
        handles = SharedHandleOwners(opened, DIGESTS)
        opened.environment.set_mapsize(64 * 1024)
        for number in range(1_000):
            handles.handle_opened(HandleKind.OPERATION, handle(number), ALICE)
        assert handles.find_owner(handle(0)) == ALICE
        assert handles.find_owner(handle(999)) is None
    assert any("the owner of a handle cannot be stored" in message for message in caplog.messages)


def test_workers_know_how_many_clients_the_others_have() -> None:
    with ledger(0) as opened:
        beside = Beside(opened, 3)
        opened.set_connection_count(5)
        beside.set_connection_count(7)
        assert (opened.connections_elsewhere, beside.connections_elsewhere) == (7, 5)


def test_digests_tell_nothing_without_the_key_and_are_equal_with_it() -> None:
    again = Digests(b"k" * 32)
    assert (
        DIGESTS.handle_digest(handle(1))
        == again.handle_digest(handle(1))
        != Digests.new().handle_digest(handle(1))
    )
    assert again.user_digest(b"alice") != again.user_digest(b"Alice")
    assert bytes(again.user_digest(handle(1))) != bytes(again.handle_digest(handle(1)))
    assert "alice" not in repr(ALICE)
