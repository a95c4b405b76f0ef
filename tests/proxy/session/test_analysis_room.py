"""The room for analysis: how much may be taken, and when garbage is collected."""

from itertools import count
from threading import Thread, current_thread

import pytest

from proxy.session.analysis_room import BYTES_PER_CHARACTER, COLLECTING_EVERY_S, AnalysisRoom


def room_of(characters: int, collected: list[int] | None = None) -> AnalysisRoom:
    collections, seen = count(1), [] if collected is None else collected
    return AnalysisRoom(
        characters * BYTES_PER_CHARACTER, lambda: seen.append(next(collections)), may_collect=lambda: True
    )


def test_statements_take_room_until_none_is_left() -> None:
    room = room_of(100)
    assert room.take(60)
    assert room.take(40)
    assert not room.take(1)
    assert room.refused == 1


def test_a_statement_that_is_longer_than_all_of_the_room_is_refused_at_once() -> None:
    collected: list[int] = []
    assert not room_of(100, collected).take(101)
    assert collected == []


def test_room_that_was_given_back_is_collected_before_it_is_taken_again() -> None:
    collected: list[int] = []
    room = room_of(100, collected)
    assert room.take(60)
    room.give_back(60)
    assert room.take(40)
    assert collected == []
    assert room.take(40)
    assert collected == [1]
    # Trees in use count, and collected ones do not.
    assert room.take(20)
    assert collected == [1]
    assert not room.take(1)


def test_garbage_is_collected_no_more_often_than_every_few_seconds() -> None:
    collected, now = list[float](), [0.0]
    room = AnalysisRoom(
        100 * BYTES_PER_CHARACTER, lambda: collected.append(now[0]), lambda: now[0], may_collect=lambda: True
    )
    for step in range(11):
        now[0] = float(step)
        for _ in range(10):
            assert room.take(60)
            room.give_back(60)
    assert collected == [0, COLLECTING_EVERY_S, 2 * COLLECTING_EVERY_S]


def test_garbage_is_never_collected_by_the_thread_of_the_event_loop() -> None:
    collected: list[Thread] = []
    room = AnalysisRoom(100 * BYTES_PER_CHARACTER, lambda: collected.append(current_thread()))
    for _ in range(10):
        assert room.take(60)
        room.give_back(60)
    assert collected == []
    beside = Thread(target=lambda: room.take(60))
    beside.start()
    beside.join()
    assert collected == [beside]


@pytest.mark.parametrize("characters", [1, 7])
def test_threads_take_no_more_than_there_is(characters: int) -> None:
    room, taken = room_of(1_000), list[bool]()
    threads = [Thread(target=lambda: taken.extend(room.take(characters) for _ in range(400))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 1_000 // characters
    assert room.refused == taken.count(False)
