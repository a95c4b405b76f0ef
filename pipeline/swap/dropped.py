"""Exchanges of partitions that somebody drops, renames or moves meanwhile."""

from __future__ import annotations

from dataclasses import replace

from pipeline.spark.errors import PipelineError
from pipeline.spark.session import Progress
from pipeline.swap.locations import Locations, TemporaryRows, foreign_files, temporary_rows
from pipeline.swap.record import DELETING, SWITCHED_BACK, SWITCHING_BACK, PartitionExchange, write_next_record
from pipeline.swap.swap import install_merged_files, move_late_files_back
from pipeline.tables.storage import Storage


def was_recreated(storage: Storage, locations: Locations, exchange: PartitionExchange) -> bool:
    """Tells whether the partition was dropped with all of its files, and another one of its name was made.

    Raises PipelineError where some of the files are still there: no file tells which rows were dropped.
    """
    born_ms = locations.born_ms(exchange.directory)
    if born_ms in {None, exchange.born_ms} or exchange.stage == DELETING:
        return False
    has_foreign = bool(foreign_files(storage, exchange))
    if exchange.stage == SWITCHED_BACK and not has_foreign:
        return False
    old = [file.name for file in storage.stored(exchange.directory) if exchange.is_known_in_directory(file)]
    if not old and not has_foreign:
        return True
    raise PipelineError(
        f"{storage.absolute(exchange.directory)}: the partition was dropped and made anew while its files were "
        f"exchanged for compaction. Of the one that was dropped, {len(old)} files are still there, which readers "
        f"see{f': {min(old)} to {max(old)}' if old else ''}, and all files in "
        f"{storage.absolute(exchange.temporary)}. Delete those of the former whose rows were dropped, move there "
        f"those of the latter whose rows were not, delete {storage.absolute(exchange.root)}, and run this again"
    )


def give_up(storage: Storage, locations: Locations, exchange: PartitionExchange, progress: Progress) -> None:
    """Ends the exchange of a partition that was dropped or got another LOCATION; deletes or keeps its files."""
    if _is_read(locations, exchange, progress):
        return
    is_deleted = locations.location_of(exchange.directory) is None and locations.owns_files()
    if is_deleted or temporary_rows(storage, exchange) is TemporaryRows.OVERWRITTEN:
        _delete_ours(storage, exchange)
    elif exchange.stage == SWITCHING_BACK:
        install_merged_files(storage, exchange)
    if not is_deleted:
        move_late_files_back(storage, exchange)
    delete_exchange(storage, locations, exchange, progress)


def delete_exchange(
    storage: Storage, locations: Locations, exchange: PartitionExchange, progress: Progress
) -> None:
    """Deletes the temporary location and the record, unless a partition is read from there."""
    if not _is_read(locations, exchange, progress):
        # The record comes first: a directory is not deleted in one step, and half of it looks like replaced rows.
        write_next_record(storage, replace(exchange, stage=DELETING))
        storage.delete(exchange.root)


def _is_read(locations: Locations, exchange: PartitionExchange, progress: Progress) -> bool:
    """Tells whether a partition is read from the temporary location, as after a rename before the switch back."""
    if readers := locations.partitions_at(exchange.root):
        progress(
            f"{exchange.root} stays: the partition {readers[0]} is read from there. Move its files to a directory "
            f"of its own and set its LOCATION to that"
        )
    return bool(readers)


def _delete_ours(storage: Storage, exchange: PartitionExchange) -> None:
    for file in storage.stored(exchange.directory):
        if exchange.is_known_in_directory(file):
            storage.delete(exchange.own_path(file.name))
