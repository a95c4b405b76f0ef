"""Exchanges whose rows a statement replaces meanwhile, at the temporary location or in the own directory."""

from __future__ import annotations

from dataclasses import replace

from pipeline.spark.errors import PipelineError
from pipeline.swap.locations import Clock, Locations, foreign_files, late_files
from pipeline.swap.record import IN_TEMPORARY, SWITCHED_BACK, PartitionExchange, write_next_record
from pipeline.tables.storage import Storage


def keep_temporary(storage: Storage, locations: Locations, exchange: PartitionExchange) -> PartitionExchange:
    """Keeps the rows by which a statement replaced ours at the temporary location, and drops all older ones.

    The statement may have read the catalog before the switch back and have ended after it; then the partition is
    switched to the temporary location once more. All files in the own directory are old.
    """
    if late := late_files(storage, exchange):
        raise PipelineError(
            f"{storage.absolute(exchange.temporary)}: a statement replaced rows there while the partition was "
            f"there for compaction, and another wrote {late[0].name} to {storage.absolute(exchange.directory)}. "
            f"{_by_hand(storage, exchange)}"
        )
    old = tuple(storage.stored(exchange.directory))
    if locations.location_of(exchange.directory) != exchange.temporary:
        locations.set_location(exchange.directory, exchange.temporary)
    given = replace(exchange, stage=IN_TEMPORARY, merged=old, kept=(), made=(), carried=())
    if exchange.stage != IN_TEMPORARY:
        # Statements have read the own directory meanwhile: the grace begins anew.
        given = replace(given, since_s=None)
    given = write_next_record(storage, given)
    storage.delete(f"{exchange.root}/ready")
    return given


def keep_own_directory(
    storage: Storage, locations: Locations, exchange: PartitionExchange, now: Clock
) -> PartitionExchange:
    """Keeps the rows of a statement that read the catalog before, and replaced our rows in the own directory."""
    if theirs := foreign_files(storage, exchange):
        raise PipelineError(
            f"{storage.absolute(exchange.directory)}: a statement replaced files there while the partition was "
            f"at {storage.absolute(exchange.temporary)} for compaction, and another appended {theirs[0].name} to "
            f"that. "
            f"{_by_hand(storage, exchange)}"
        )
    locations.set_location(exchange.directory, exchange.directory)
    return record_switched_back(storage, exchange, now)


def record_switched_back(storage: Storage, exchange: PartitionExchange, now: Clock) -> PartitionExchange:
    """Records that the partition is in its own directory; keeps the temporary location for the usual time."""
    return write_next_record(storage, replace(exchange, stage=SWITCHED_BACK, since_s=now()))


def unclear(storage: Storage, exchange: PartitionExchange) -> PipelineError:
    """The error that a statement replaced some rows at the temporary location, or is about to replace all."""
    gone = min(exchange.placed_names - set(storage.names(exchange.temporary)))
    return PipelineError(
        f"{storage.absolute(exchange.temporary)}: a statement is replacing rows there, where the partition is for "
        f"compaction, or replaced some of them ({gone} is gone). Run this again when it has ended. If none is "
        f"running and the partition is to be empty, make the directory. {_by_hand(storage, exchange)}"
    )


def _by_hand(storage: Storage, exchange: PartitionExchange) -> str:
    return (
        f"A program cannot know which rows are meant: make {storage.absolute(exchange.directory)} hold them, set "
        f"the partition's LOCATION to it, delete {storage.absolute(exchange.root)}, and run this again"
    )
