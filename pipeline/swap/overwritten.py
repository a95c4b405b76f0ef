"""What becomes of a partition that is away where a statement replaces its rows, at the one place or the other."""

from __future__ import annotations

from dataclasses import replace

from pipeline.spark.errors import PipelineError
from pipeline.swap.locations import Clock, Locations, foreign_files, late_files
from pipeline.swap.record import AWAY, LEFT, Exchange, advance
from pipeline.tables.storage import Storage


def give_way(storage: Storage, locations: Locations, exchange: Exchange) -> Exchange:
    """Lets a statement have the last word that replaced the rows at the second place: the partition holds those.

    It may have read the catalog while the partition was away and have ended when it was home again; then it goes
    away once more. At home all is old.
    """
    if late := late_files(storage, exchange):
        raise PipelineError(
            f"{storage.absolute(exchange.place)}: a statement replaced rows there while the partition was there "
            f"for compaction, and another wrote {late[0].name} to {storage.absolute(exchange.directory)}. "
            f"{_by_hand(storage, exchange)}"
        )
    old = tuple(storage.stored(exchange.directory))
    if locations.place(exchange.directory) != exchange.place:
        locations.put(exchange.directory, exchange.place)
    given = replace(exchange, stage=AWAY, merged=old, kept=(), made=(), carried=())
    if exchange.stage != AWAY:
        # Home has been read meanwhile: the grace begins anew.
        given = replace(given, since_s=None)
    given = advance(storage, given)
    storage.delete(f"{exchange.root}/ready")
    return given


def put_back(storage: Storage, locations: Locations, exchange: Exchange, now: Clock) -> Exchange:
    """Gives way to a writer that replaced the rows at home, having read the catalog before the partition left."""
    if theirs := foreign_files(storage, exchange):
        raise PipelineError(
            f"{storage.absolute(exchange.directory)}: a statement replaced files there while the partition was at "
            f"{storage.absolute(exchange.place)} for compaction, and another appended {theirs[0].name} to that. "
            f"{_by_hand(storage, exchange)}"
        )
    locations.put(exchange.directory, exchange.directory)
    return stay_home(storage, exchange, now)


def stay_home(storage: Storage, exchange: Exchange, now: Clock) -> Exchange:
    """It never left, or was put back: what stands in the second place is kept for a while, as after a journey."""
    return advance(storage, replace(exchange, stage=LEFT, since_s=now()))


def unclear(storage: Storage, exchange: Exchange) -> PipelineError:
    """Says that a statement has replaced a part of the rows at the second place, or is about to replace all."""
    gone = min(exchange.placed - set(storage.names(exchange.place)))
    return PipelineError(
        f"{storage.absolute(exchange.place)}: a statement is replacing rows there, where the partition is for "
        f"compaction, or replaced some of them ({gone} is gone). Run this again when it has ended. If none is "
        f"running and the partition is to be empty, make the directory. {_by_hand(storage, exchange)}"
    )


def _by_hand(storage: Storage, exchange: Exchange) -> str:
    return (
        f"Which rows are to be is then not for a program to say: make {storage.absolute(exchange.directory)} hold "
        f"them, set the partition's LOCATION to it, delete {storage.absolute(exchange.root)}, and run this again"
    )
