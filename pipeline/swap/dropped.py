"""What becomes of a partition's files where somebody dropped, renamed or moved it while they were exchanged."""

from __future__ import annotations

from dataclasses import replace

from pipeline.spark.errors import PipelineError
from pipeline.spark.session import Progress
from pipeline.swap.locations import Locations, Rows, foreign_files, rows_placed
from pipeline.swap.record import COMING_HOME, LEFT, OVER, Exchange, advance
from pipeline.swap.swap import bring_home, settle_files
from pipeline.tables.storage import Storage


def was_made_anew(storage: Storage, locations: Locations, exchange: Exchange) -> bool:
    """Whether the partition was dropped with all of its files, and another one of its name was made.

    Raises PipelineError where some of the files are still there: which rows went with it, no file tells.
    """
    born_ms = locations.born_ms(exchange.directory)
    if born_ms in {None, exchange.born_ms} or exchange.stage == OVER:
        return False
    has_foreign = bool(foreign_files(storage, exchange))
    if exchange.stage == LEFT and not has_foreign:
        return False
    old = [file.name for file in storage.stored(exchange.directory) if exchange.is_ours_at_home(file)]
    if not old and not has_foreign:
        return True
    raise PipelineError(
        f"{storage.absolute(exchange.directory)}: the partition was dropped and made anew while its files were "
        f"exchanged for compaction. Of the one that was dropped, {len(old)} files are still there, which readers "
        f"see{f': {min(old)} to {max(old)}' if old else ''}, and what is in {storage.absolute(exchange.place)}. "
        f"Delete of the first what went with the dropped one, move there from the second what did not, delete "
        f"{storage.absolute(exchange.root)}, and run this again"
    )


def abandon(storage: Storage, locations: Locations, exchange: Exchange, progress: Progress) -> None:
    """The partition was dropped, or somebody gave it a place of its own: its files are left as that would have."""
    if _is_read(locations, exchange, progress):
        return
    is_deleted = locations.place(exchange.directory) is None and locations.owns_files()
    if is_deleted or rows_placed(storage, exchange) is Rows.REPLACED:
        _delete_ours(storage, exchange)
    elif exchange.stage == COMING_HOME:
        settle_files(storage, exchange)
    if not is_deleted:
        bring_home(storage, exchange)
    discard(storage, locations, exchange, progress)


def discard(storage: Storage, locations: Locations, exchange: Exchange, progress: Progress) -> None:
    """Deletes the second place and the record, unless a partition is read from there."""
    if not _is_read(locations, exchange, progress):
        # Written down, since a directory is not deleted in one step, and half of it looks like replaced rows.
        advance(storage, replace(exchange, stage=OVER))
        storage.delete(exchange.root)


def _is_read(locations: Locations, exchange: Exchange, progress: Progress) -> bool:
    """Whether a partition has its files there, as one has that was renamed while it was away."""
    if readers := locations.readers(exchange.root):
        progress(
            f"{exchange.root} stays: the partition {readers[0]} is read from there. Move its files to a directory "
            f"of its own and set its LOCATION to that"
        )
    return bool(readers)


def _delete_ours(storage: Storage, exchange: Exchange) -> None:
    for file in storage.stored(exchange.directory):
        if exchange.is_ours_at_home(file):
            storage.delete(exchange.at_home(file.name))
