"""Exchange of a partition's files for others with the same rows, so that each reader sees all rows once.

No file system can exchange many files for one in one step. A catalog can, by a partition's LOCATION. So a
partition is switched to a temporary location that holds the new files, and back to its own directory when nobody
reads the old files any more:

- `<table>/.starpruner-compacted/<id>/place`: the temporary location, which readers see in the meantime
- `.../ready`: the new files once more, to be moved into the partition's own directory
- `.../record-<n>.json`: the stage of the exchange, and all that is needed to go on from there

Files that others write to the one directory because they read its name before a switch are copied to the other:
nothing that was appended is lost. Every step can be repeated, by the process that holds the table's lock next.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.swap.locations import (
    Clock,
    Locations,
    TemporaryRows,
    foreign_files,
    is_directory_unchanged,
    late_files,
    temporary_rows,
)
from pipeline.swap.overwritten import keep_own_directory, keep_temporary, unclear
from pipeline.swap.record import (
    IN_TEMPORARY,
    SWITCHED_BACK,
    SWITCHING_BACK,
    PartitionExchange,
    write_next_record,
    write_record,
)
from pipeline.tables.storage import Storage, StoredFile

# Rounds of copying arrived files. While files arrive faster than they are copied, there is no moment to switch.
ARRIVALS_MAX = 5


def switch_to_temporary(
    storage: Storage, locations: Locations, prepared: str, exchange: PartitionExchange, now: Clock
) -> bool:
    """Gives the partition the prepared temporary location; False if that is not allowed.

    It is not allowed where a merged file has gone or changed meanwhile: another writer has replaced the rows.
    """
    if (copied := _with_arrivals(storage, prepared, exchange)) is None:
        return False
    write_record(storage, prepared, copied)
    storage.move(prepared, copied.root)
    locations.set_location(copied.directory, copied.temporary)
    # The grace begins only now: readers may list the old files until the catalog has been changed.
    moved = write_next_record(storage, replace(copied, since_s=now()))
    if temporary_rows(storage, moved) is TemporaryRows.PRESENT and not is_directory_unchanged(storage, moved):
        keep_own_directory(storage, locations, moved, now)
        return False
    copy_late_files(storage, moved)
    return True


def switch_back(
    storage: Storage, locations: Locations, exchange: PartitionExchange, now: Clock
) -> PartitionExchange:
    """Moves the new files into the partition's own directory, which no reader looks at, and switches back.

    If a statement replaced the rows in either directory, its rows are kept. Returns the exchange that follows.
    """
    match temporary_rows(storage, exchange):
        case TemporaryRows.UNCLEAR:
            raise unclear(storage, exchange)
        case TemporaryRows.OVERWRITTEN:
            return keep_temporary(storage, locations, exchange)
        case TemporaryRows.PRESENT if exchange.stage == IN_TEMPORARY and not is_directory_unchanged(
            storage, exchange
        ):
            return keep_own_directory(storage, locations, exchange, now)
    if exchange.stage == IN_TEMPORARY:
        exchange = write_next_record(storage, replace(exchange, stage=SWITCHING_BACK))
    install_merged_files(storage, exchange)
    carried = _copy_home(storage, exchange)
    if temporary_rows(storage, exchange) is not TemporaryRows.PRESENT:
        # The rows were replaced in this moment; the next round handles it.
        return exchange
    if carried != exchange.carried:
        # Recorded before readers see the copies: a statement may replace them then, and they are not copied again.
        exchange = write_next_record(storage, replace(exchange, carried=carried))
    locations.set_location(exchange.directory, exchange.directory)
    return finish_switch_back(storage, locations, exchange, now)


def finish_switch_back(
    storage: Storage, locations: Locations, exchange: PartitionExchange, now: Clock
) -> PartitionExchange:
    """Records that the catalog has the partition in its own directory again, which others may change now."""
    if temporary_rows(storage, exchange) is TemporaryRows.OVERWRITTEN:
        return keep_temporary(storage, locations, exchange)
    return write_next_record(storage, replace(exchange, stage=SWITCHED_BACK, since_s=now()))


def install_merged_files(storage: Storage, exchange: PartitionExchange) -> None:
    """Puts the new files in place of the old ones, in the partition's own directory."""
    for file in exchange.merged:
        storage.delete(exchange.own_path(file.name))
    for name in exchange.made:
        ready, target = f"{exchange.root}/ready/{name}", exchange.own_path(name)
        if storage.exists(ready):
            storage.complete_move(ready, target)
        elif not storage.exists(target) and storage.exists(shown := f"{exchange.temporary}/{name}"):
            # The ready copy was deleted by a statement that replaces the rows, or by hand.
            storage.copy(shown, target)


def copy_late_files(storage: Storage, exchange: PartitionExchange) -> None:
    """Copies files that were written to the own directory after the switch, for readers to find; keeps both.

    Does nothing where a statement replaced rows: a copy would double them, or undo the replacement.
    """
    if temporary_rows(storage, exchange) is not TemporaryRows.PRESENT or not is_directory_unchanged(
        storage, exchange
    ):
        return
    for file in late_files(storage, exchange):
        if not storage.exists(target := f"{exchange.temporary}/{exchange.late(file)}"):
            storage.copy(exchange.own_path(file.name), target)


def move_late_files_back(storage: Storage, exchange: PartitionExchange) -> None:
    """Moves files that were written to the temporary location after the switch back into the own directory."""
    for file in foreign_files(storage, exchange):
        storage.complete_move(f"{exchange.temporary}/{file.name}", exchange.own_path(exchange.late(file)))


def _with_arrivals(storage: Storage, prepared: str, exchange: PartitionExchange) -> PartitionExchange | None:
    """The exchange with files copied that were appended since it was planned; None if it may not go on."""
    for _ in range(ARRIVALS_MAX):
        known = {*exchange.merged, *exchange.kept}
        now = set(storage.stored(exchange.directory))
        if known - now:
            return None
        if not (arrived := sorted(now - known, key=lambda file: file.name)):
            return exchange
        for file in arrived:
            storage.copy(exchange.own_path(file.name), f"{prepared}/place/{file.name}")
        exchange = replace(exchange, kept=(*exchange.kept, *arrived))
    return None


def _copy_home(storage: Storage, exchange: PartitionExchange) -> tuple[StoredFile, ...]:
    """Copies files that others wrote to the temporary location; deletes copies of files replaced there since."""
    theirs = tuple(foreign_files(storage, replace(exchange, carried=())))
    names = {exchange.late(file) for file in theirs}
    for file in storage.stored(exchange.directory):
        if exchange.is_copy(file.name) and file.name not in names:
            storage.delete(exchange.own_path(file.name))
    for file in theirs:
        if not storage.exists(target := exchange.own_path(exchange.late(file))):
            storage.copy(f"{exchange.temporary}/{file.name}", target)
    return theirs
