"""Exchanges the files of a partition for others with the same rows, so that each reader sees all rows once.

No file system can exchange many files for one in one step. A catalog can: it says in one word where a partition
is. So a partition goes away to a second place that holds the new files, and comes home when nobody reads the old
ones:

- `<table>/.starpruner-compacted/<id>/place`: what readers see while it is away
- `.../ready`: the new files once more, to be moved home
- `.../record-<n>.json`: how far it is, and all that is needed to go on from there

What others write to the one place after they read the other's name is carried over: nothing that was appended is
lost. Every step can be made again, by whoever holds the table's lock next.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.swap.locations import Clock, Locations, Rows, foreign_files, is_undisturbed, late_files, rows_placed
from pipeline.swap.overwritten import give_way, put_back, unclear
from pipeline.swap.record import AWAY, COMING_HOME, LEFT, Exchange, advance, write_record
from pipeline.tables.storage import Storage, StoredFile

# While files arrive faster than they are copied there is no moment to switch.
ARRIVALS_MAX = 5


def go_away(storage: Storage, locations: Locations, prepared: str, exchange: Exchange, now: Clock) -> bool:
    """Lets readers see the prepared `place` instead; False if it may not.

    It may not where a file that was merged has gone or changed meanwhile: another writer has replaced the rows.
    """
    if (copied := _with_arrivals(storage, prepared, exchange)) is None:
        return False
    write_record(storage, prepared, copied)
    storage.move(prepared, copied.root)
    locations.put(copied.directory, copied.place)
    # Only now: readers may list the old files until the catalog has been told.
    away = advance(storage, replace(copied, since_s=now()))
    if rows_placed(storage, away) is Rows.THERE and not is_undisturbed(storage, away):
        put_back(storage, locations, away, now)
        return False
    carry_late_files(storage, away)
    return True


def come_home(storage: Storage, locations: Locations, exchange: Exchange, now: Clock) -> Exchange:
    """Moves the new files into the partition's own directory, which no reader looks at, and switches back.

    A statement that has replaced the rows has the last word, wherever it did: what has come of it is returned.
    """
    match rows_placed(storage, exchange):
        case Rows.UNCLEAR:
            raise unclear(storage, exchange)
        case Rows.REPLACED:
            return give_way(storage, locations, exchange)
        case Rows.THERE if exchange.stage == AWAY and not is_undisturbed(storage, exchange):
            return put_back(storage, locations, exchange, now)
    if exchange.stage == AWAY:
        exchange = advance(storage, replace(exchange, stage=COMING_HOME))
    settle_files(storage, exchange)
    carried = _copy_home(storage, exchange)
    if rows_placed(storage, exchange) is not Rows.THERE:
        # Replaced in this moment, which the next round sees to.
        return exchange
    if carried != exchange.carried:
        # Before readers see the copies, which a statement may then replace: they are not brought again.
        exchange = advance(storage, replace(exchange, carried=carried))
    locations.put(exchange.directory, exchange.directory)
    return arrive(storage, locations, exchange, now)


def arrive(storage: Storage, locations: Locations, exchange: Exchange, now: Clock) -> Exchange:
    """The catalog has been told that it is home: from now on its directory is for others to change."""
    if rows_placed(storage, exchange) is Rows.REPLACED:
        return give_way(storage, locations, exchange)
    return advance(storage, replace(exchange, stage=LEFT, since_s=now()))


def settle_files(storage: Storage, exchange: Exchange) -> None:
    """Puts the new files in place of the old ones, in the partition's own directory."""
    for file in exchange.merged:
        storage.delete(exchange.at_home(file.name))
    for name in exchange.made:
        ready, target = f"{exchange.root}/ready/{name}", exchange.at_home(name)
        if storage.exists(ready):
            storage.complete_move(ready, target)
        elif not storage.exists(target) and storage.exists(shown := f"{exchange.place}/{name}"):
            # Deleted by a statement that replaces the rows, or by hand.
            storage.copy(shown, target)


def carry_late_files(storage: Storage, exchange: Exchange) -> None:
    """Shows files that were written at home after the partition went away; they stay there too.

    Not beside rows that replaced others: that would double them, or undo the replacement.
    """
    if rows_placed(storage, exchange) is not Rows.THERE or not is_undisturbed(storage, exchange):
        return
    for file in late_files(storage, exchange):
        if not storage.exists(target := f"{exchange.place}/{exchange.late(file)}"):
            storage.copy(exchange.at_home(file.name), target)


def bring_home(storage: Storage, exchange: Exchange) -> None:
    """Moves home what was written to the second place after the partition had left it."""
    for file in foreign_files(storage, exchange):
        storage.complete_move(f"{exchange.place}/{file.name}", exchange.at_home(exchange.late(file)))


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


def _copy_home(storage: Storage, exchange: Exchange) -> tuple[StoredFile, ...]:
    """Copies what others wrote to the second place; and deletes copies of what was replaced there since."""
    theirs = tuple(foreign_files(storage, replace(exchange, carried=())))
    names = {exchange.late(file) for file in theirs}
    for file in storage.stored(exchange.directory):
        if exchange.is_copy(file.name) and file.name not in names:
            storage.delete(exchange.at_home(file.name))
    for file in theirs:
        if not storage.exists(target := exchange.at_home(exchange.late(file))):
            storage.copy(f"{exchange.place}/{file.name}", target)
    return theirs
