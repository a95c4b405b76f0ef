"""The switch for all statements: a file that is looked for, made and removed."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.scripted_session import eventually

from proxy import off_switch as module
from proxy.off_switch import OffSwitch


@asynccontextmanager
async def watched(path: str) -> AsyncIterator[OffSwitch]:
    """A switch that looks for its file all the time."""
    switch = OffSwitch(path)
    watching = asyncio.create_task(switch.watch())
    yield switch
    watching.cancel()


async def turns(switch: OffSwitch, *, off: bool) -> None:
    """Wait until it is so."""
    await eventually(lambda: switch.is_off is off)


@pytest.fixture(autouse=True)
def _without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.0)


async def test_who_makes_the_file_switches_rewriting_off_and_who_removes_it_on(tmp_path: Path) -> None:
    file = tmp_path / "off"
    async with watched(str(file)) as switch:
        file.touch()
        await turns(switch, off=True)
        file.unlink()
        await turns(switch, off=False)


async def test_what_is_switched_by_the_admin_port_counts_at_once_and_is_seen_by_other_processes(
    tmp_path: Path,
) -> None:
    file = tmp_path / "off"
    async with watched(str(file)) as other:
        switch = OffSwitch(str(file))
        for off in (True, True, False, False):
            await switch.turn(off=off)
            assert switch.is_off is off
            await turns(other, off=off)


async def test_a_switch_that_is_off_at_the_start_is_off(tmp_path: Path) -> None:
    (tmp_path / "off").touch()
    async with watched(str(tmp_path / "off")) as switch:
        await turns(switch, off=True)


async def test_without_a_file_there_is_no_switch() -> None:
    switch = OffSwitch()
    await switch.watch()
    await switch.turn(off=True)
    assert not switch.is_off


async def test_a_file_system_that_hangs_takes_one_thread_and_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAIT_S", 0.05)
    answers = threading.Event()
    monkeypatch.setattr(Path, "touch", lambda _: answers.wait())
    switch = OffSwitch(str(tmp_path / "off"))
    first = asyncio.create_task(switch.turn(off=True))
    await asyncio.sleep(0)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await switch.turn(off=True)
    answers.set()
    await first
    assert switch.is_off


async def test_a_look_that_began_before_a_change_does_not_take_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looked, changing = threading.Event(), threading.Event()

    def exists(_: Path) -> bool:
        looked.set()
        changing.wait(0.2)
        return False

    monkeypatch.setattr(Path, "exists", exists)
    switch = OffSwitch(str(tmp_path / "off"))
    watching = asyncio.create_task(switch.watch())
    await asyncio.to_thread(looked.wait)
    turning = asyncio.create_task(switch.turn(off=True))
    await asyncio.sleep(0)
    monkeypatch.setattr(Path, "exists", lambda _: True)
    changing.set()
    await turning
    watching.cancel()
    assert switch.is_off
    assert "rewriting is on" not in caplog.text


async def test_a_file_that_cannot_be_looked_for_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = asyncio.Queue[None]()
    loop = asyncio.get_running_loop()

    def exists(_: Path) -> bool:
        loop.call_soon_threadsafe(looks.put_nowait, None)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", exists)
    async with watched(str(tmp_path / "off")):
        for _ in range(3):
            await looks.get()
    assert caplog.text.count("cannot be looked for, so it switches nothing: [Errno 13]") == 1
