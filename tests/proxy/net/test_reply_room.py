"""The room of long wrapped replies: who gets it and when, and who loses it."""

import asyncio
from collections.abc import Callable

import pytest

from proxy.config.memory_shares import REPLY_COPIES
from proxy.net import reply_room
from proxy.net.reply_room import SHORT_BYTES_MAX, NoReplyRoomError, ReplyPlace, ReplyRoom

MB = 1024 * 1024
# For three replies of a megabyte.
ROOM = 3 * REPLY_COPIES * MB
PATIENCE_S = 30.0


class Connection:
    """Keeps what it is told."""

    def __init__(self, room: ReplyRoom) -> None:
        self.place = ReplyPlace(room, lambda: self.told.append("room"), self._end)
        self.told: list[str] = []

    def _end(self, error: NoReplyRoomError) -> None:
        self.told.append(str(error))

    def may_come(self, count: int = MB) -> bool:
        return self.place.has_room_for(count)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_room, "STALLED_S", 0.3)
    monkeypatch.setattr(reply_room, "LOOK_S", 0.01)


def crowd(room: ReplyRoom, count: int) -> list[Connection]:
    return [Connection(room) for _ in range(count)]


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.001)


async def test_replies_beyond_the_room_wait_in_their_order() -> None:
    room = ReplyRoom(ROOM)
    first, second, third, fourth, fifth = crowd(room, 5)
    assert [each.may_come() for each in (first, second, third, fourth, fifth)] == [True] * 3 + [False] * 2
    assert room.held_bytes == ROOM
    second.place.leave()
    assert (fourth.may_come(), fifth.may_come()) == (True, False)
    assert (fourth.told, fifth.told) == (["room"], [])
    assert room.waited == 2
    for each in (first, third, fourth, fifth):
        each.place.leave()
    assert room.held_bytes == 0


async def test_a_reply_that_is_unwrapped_leaves_room_for_another() -> None:
    room = ReplyRoom(ROOM)
    first, second, third, fourth = crowd(room, 4)
    for each in (first, second, third, fourth):
        each.may_come()
    first.place.unwrapped()
    assert not fourth.may_come()
    second.place.unwrapped()
    assert fourth.may_come()
    assert room.held_bytes == (2 + 2 * REPLY_COPIES) * MB


async def test_a_short_one_does_not_overtake_a_long_one_that_waits() -> None:
    room = ReplyRoom(ROOM)
    first, longest, short = crowd(room, 3)
    assert first.may_come(2 * MB)
    assert not longest.may_come(3 * MB)
    assert not short.may_come(MB)
    first.place.leave()
    assert longest.may_come(3 * MB)
    longest.place.leave()
    assert short.may_come(MB)


async def test_short_replies_need_no_room() -> None:
    room = ReplyRoom(ROOM)
    full, short = crowd(room, 2)
    assert full.may_come(3 * MB)
    assert short.may_come(SHORT_BYTES_MAX)
    short.place.unwrapped()
    short.place.leave()
    assert room.held_bytes == ROOM


async def test_a_reply_that_can_never_fit_is_refused_with_a_sentence() -> None:
    room = ReplyRoom(ROOM)
    (one,) = crowd(room, 1)
    with pytest.raises(NoReplyRoomError, match=r"no memory for a reply of 4 MB \(memory_bytes_max\): fetch fewer"):
        one.may_come(4 * MB)
    assert (room.refused, room.held_bytes) == (1, 0)
    assert one.may_come(3 * MB), "nothing of the refused one is left"


async def test_one_that_waits_may_leave() -> None:
    room = ReplyRoom(ROOM)
    first, leaving, last = crowd(room, 3)
    first.may_come(2 * MB)
    leaving.may_come(3 * MB)
    last.may_come(MB)
    leaving.place.leave()
    assert last.may_come(MB)
    assert leaving.told == []
    assert room.held_bytes == ROOM


@pytest.mark.usefixtures("impatient")
async def test_a_reply_may_stand_still_while_nobody_waits() -> None:
    room = ReplyRoom(ROOM)
    slow, other = crowd(room, 2)
    slow.may_come(2 * MB)
    other.may_come(MB)
    await asyncio.sleep(0.5)
    assert slow.told == ["room"]
    assert room.refused == 0


@pytest.mark.usefixtures("impatient")
async def test_one_that_has_stood_still_gives_its_room_to_others_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    room = ReplyRoom(ROOM)
    slow, slower, waiting = crowd(room, 3)
    slower.may_come(MB)
    await asyncio.sleep(0.01)
    slow.may_come(2 * MB)
    await asyncio.sleep(0.4)
    monkeypatch.setattr(reply_room, "LOOK_S", PATIENCE_S)
    assert not waiting.may_come(MB)
    await until(lambda: waiting.may_come(MB))
    assert "a reply stood still for 0.3 s while memory was short" in slower.told[-1]
    assert slow.told == ["room"], "one was enough"
    assert room.refused == 1


@pytest.mark.usefixtures("impatient")
async def test_one_that_goes_on_keeps_its_room() -> None:
    room = ReplyRoom(ROOM)
    going, waiting = crowd(room, 2)
    going.may_come(3 * MB)
    waiting.may_come(MB)
    for _ in range(40):
        await asyncio.sleep(0.02)
        going.place.moved()
    assert (going.told, waiting.told) == (["room"], [])
    await until(lambda: waiting.told == ["room"])
    assert "stood still" in going.told[-1]


@pytest.mark.usefixtures("impatient")
async def test_one_that_waits_for_a_thread_of_ours_does_not_stand_still() -> None:
    room = ReplyRoom(ROOM)
    unwrapping, waiting = crowd(room, 2)
    unwrapping.may_come(2 * MB)
    unwrapping.place.rests_with_us()
    waiting.may_come(2 * MB)
    await asyncio.sleep(0.5)
    assert (unwrapping.told, waiting.told) == (["room"], [])
    unwrapping.place.unwrapped()
    assert waiting.told == ["room"]
