"""Exchanges the files of a partition for others with the same rows, so that each reader sees all rows once.

No file system can exchange many files for one in one step. A catalog can: it says in one word where a partition
is. So a partition goes away to a second place that holds the new files, and comes home when nobody reads the old
ones:

- `<table>/.starpruner-compacted/<id>/place`: what readers see while it is away
- `.../ready`: the new files once more, to be moved home
- `.../away.json`, then `home.json`, then `left.json`: how far it is, and all that is needed to go on from there

What others write to the one place after they read the other's name is carried over: nothing that was appended is
lost. Every step can be made again, by whoever holds the table's lock next.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Protocol

from pipeline.errors import PipelineError
from pipeline.exchange_record import AWAY, COMING_HOME, LEFT, Exchange, write_record
from pipeline.storage import Storage

# While files arrive faster than they are copied there is no moment to switch.
ARRIVALS_MAX = 5


class Locations(Protocol):
    """What the catalog says of where partitions are; a table without partitions is the one named ''."""

    def refresh(self) -> None:
        """Asks the catalog anew."""

    def place(self, directory: str) -> str | None:
        """The place of a partition, relative to the table's directory; None if there is no such partition."""

    def put(self, directory: str, place: str) -> None:
        """Says in one step that it is there."""

    def owns_files(self) -> bool:
        """Whether dropping a partition drops its files."""


def go_away(
    storage: Storage, locations: Locations, prepared: str, exchange: Exchange, now_s: float
) -> Generator[str, None, bool]:
    """Lets readers see the prepared `place` instead, one step each time it is asked to go on; False if it may not.

    It may not where a file that was merged has gone or changed meanwhile: another writer has replaced the rows.
    """
    copied = _with_arrivals(storage, prepared, exchange)
    if copied is None:
        return False
    exchange = replace(copied, since_s=now_s)
    write_record(storage, f"{prepared}/{AWAY}", exchange)
    yield "recorded"
    storage.move(prepared, exchange.root)
    yield "placed"
    locations.put(exchange.directory, exchange.place)
    yield "away"
    if not is_undisturbed(storage, exchange):
        _stay_home(storage, locations, exchange, now_s)
        return False
    carry_late_files(storage, exchange)
    yield "carried"
    return True


def come_home(storage: Storage, locations: Locations, exchange: Exchange, now_s: float) -> Iterator[str]:
    """Moves the new files into the partition's own directory, which no reader looks at, and switches back."""
    _check_place(storage, exchange)
    if storage.exists(f"{exchange.root}/{AWAY}"):
        if not is_undisturbed(storage, exchange):
            _stay_home(storage, locations, exchange, now_s)
            return
        _advance(storage, exchange, AWAY, COMING_HOME)
        yield "coming home"
    for file in exchange.merged:
        storage.delete(exchange.at_home(file.name))
    yield "cleared"
    for name in exchange.made:
        if storage.exists(f"{exchange.root}/ready/{name}"):
            storage.move(f"{exchange.root}/ready/{name}", exchange.at_home(name))
            yield f"ready {name}"
    theirs = tuple(file for file in storage.stored(exchange.place) if not exchange.is_ours(file))
    for file in theirs:
        if not storage.exists(target := exchange.at_home(exchange.late(file))):
            storage.copy(f"{exchange.place}/{file.name}", target)
    yield "carried home"
    locations.put(exchange.directory, exchange.directory)
    yield "home"
    _advance(storage, replace(exchange, since_s=now_s, carried=theirs), COMING_HOME, LEFT)
    yield "left"


def carry_late_files(storage: Storage, exchange: Exchange) -> int:
    """Shows files that were written at home after the partition went away; they stay there too."""
    known = {*exchange.merged, *exchange.kept}
    late = [file for file in storage.stored(exchange.directory) if file not in known]
    missing = [file for file in late if not storage.exists(f"{exchange.place}/{exchange.late(file)}")]
    for file in missing:
        storage.copy(exchange.at_home(file.name), f"{exchange.place}/{exchange.late(file)}")
    return len(missing)


def bring_home(storage: Storage, exchange: Exchange) -> int:
    """Moves home what was written to the second place after the partition had left it."""
    found = [file for file in storage.stored(exchange.place) if not exchange.is_ours(file)]
    for file in found:
        target = exchange.at_home(exchange.late(file))
        if storage.exists(target):
            # A store whose rename copies was stopped between the copy and the deletion.
            storage.delete(f"{exchange.place}/{file.name}")
        else:
            storage.move(f"{exchange.place}/{file.name}", target)
    return len(found)


def abandon(storage: Storage, locations: Locations, exchange: Exchange, stage: str) -> None:
    """The partition was dropped, or somebody gave it a place of its own: its files are left as that would have."""
    if stage == COMING_HOME:
        for file in exchange.merged:
            storage.delete(exchange.at_home(file.name))
        for name in exchange.made:
            if storage.exists(f"{exchange.root}/ready/{name}"):
                storage.move(f"{exchange.root}/ready/{name}", exchange.at_home(name))
    if locations.place(exchange.directory) is None and locations.owns_files():
        for name in (*exchange.made, *(file.name for file in (*exchange.merged, *exchange.kept))):
            storage.delete(exchange.at_home(name))
    else:
        bring_home(storage, exchange)
    storage.delete(exchange.root)


def stay_home(storage: Storage, exchange: Exchange, now_s: float) -> None:
    """It never left, or was put back: what stands in the second place is kept for a while, as after a journey."""
    _advance(storage, replace(exchange, since_s=now_s), AWAY, LEFT)


def _with_arrivals(storage: Storage, prepared: str, exchange: Exchange) -> Exchange | None:
    """The exchange with what was appended since it was planned, copied as it is; None if it may not go on."""
    for _ in range(ARRIVALS_MAX):
        known = {*exchange.merged, *exchange.kept}
        now = set(storage.stored(exchange.directory))
        if known - now:
            return None
        if not (arrived := sorted(now - known, key=lambda file: file.name)):
            return exchange
        for file in arrived:
            storage.copy(exchange.at_home(file.name), f"{prepared}/place/{file.name}")
        exchange = replace(exchange, kept=(*exchange.kept, *arrived))
    return None


def is_undisturbed(storage: Storage, exchange: Exchange) -> bool:
    """Whether nobody has replaced the rows at home, which a statement may that read the catalog before."""
    return set(storage.stored(exchange.directory)) >= {*exchange.merged, *exchange.kept}


def _check_place(storage: Storage, exchange: Exchange) -> None:
    """Raises PipelineError where a statement has replaced the rows at the second place, to undo nothing of it."""
    there = {file.name for file in storage.stored(exchange.place)}
    if gone := sorted({*exchange.made, *(file.name for file in exchange.kept)} - there):
        raise PipelineError(
            f"{storage.absolute(exchange.place)}: a statement replaced rows there while the partition was there "
            f"for compaction ({gone[0]} is gone). Readers see what it wrote. Move that to "
            f"{storage.absolute(exchange.directory)} in place of all files there, set the partition's LOCATION to "
            f"it, delete {storage.absolute(exchange.root)}, and run this again"
        )


def _stay_home(storage: Storage, locations: Locations, exchange: Exchange, now_s: float) -> None:
    """Gives way to a writer that replaced the rows at home, having read the catalog before the partition left."""
    if theirs := [file for file in storage.stored(exchange.place) if not exchange.is_ours(file)]:
        raise PipelineError(
            f"{storage.absolute(exchange.directory)}: a statement replaced files there while the partition was at "
            f"{storage.absolute(exchange.place)} for compaction, and another appended {theirs[0].name} to that. "
            f"Which rows are to be is not for a program to say: make the first of the two directories hold them, "
            f"set the partition's LOCATION to it, delete {storage.absolute(exchange.root)}, and run this again"
        )
    locations.put(exchange.directory, exchange.directory)
    stay_home(storage, exchange, now_s)


def _advance(storage: Storage, exchange: Exchange, stage: str, following: str) -> None:
    write_record(storage, f"{exchange.root}/{following}", exchange)
    storage.delete(f"{exchange.root}/{stage}")
