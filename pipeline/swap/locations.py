"""What the steps of an exchange ask of the catalog, and what they find at the partition's two places."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from pipeline.swap.record import Exchange
from pipeline.tables.storage import Storage, StoredFile

# Seconds since 1970.
Clock = Callable[[], float]

# A writer that has ended leaves this; every other hidden name belongs to one that is at work.
_DONE = frozenset({"_SUCCESS"})


class Locations(Protocol):
    """What the catalog says of where partitions are; a table without partitions is the one named ''."""

    def refresh(self) -> None:
        """Asks the catalog anew."""

    def place(self, directory: str) -> str | None:
        """The place of a partition, relative to the table's directory; None if there is no such partition."""

    def born_ms(self, directory: str) -> int | None:
        """When the catalog got the partition."""

    def readers(self, path: str) -> list[str]:
        """The partitions whose place is this path, or is below it."""

    def put(self, directory: str, place: str) -> None:
        """Says in one step that it is there."""

    def owns_files(self) -> bool:
        """Whether dropping a partition drops its files."""


class Rows(Enum):
    """What became of the rows that were put at the second place."""

    THERE = auto()
    # By a statement that has ended: what stands there now is all that the partition holds.
    REPLACED = auto()
    # Some are gone, or a statement is about to replace them all.
    UNCLEAR = auto()


def rows_placed(storage: Storage, exchange: Exchange) -> Rows:
    """Whether a statement has replaced the rows at the second place."""
    names = set(storage.names(exchange.place))
    if names >= exchange.placed:
        return Rows.THERE
    at_work = {name for name in names if name.startswith((".", "_"))} - _DONE
    is_replaced = not (names & exchange.placed) and not at_work and storage.exists(exchange.place)
    return Rows.REPLACED if is_replaced else Rows.UNCLEAR


def is_undisturbed(storage: Storage, exchange: Exchange) -> bool:
    """Whether nobody has replaced the rows at home, which a statement may that read the catalog before."""
    there = storage.stored(exchange.directory)
    if not exchange.placed and all(map(exchange.is_ours_at_home, there)):
        # All at home is old. INSERT OVERWRITE of one partition clears that as well, wherever it writes.
        return True
    return set(there) >= {*exchange.merged, *exchange.kept}


def late_files(storage: Storage, exchange: Exchange) -> list[StoredFile]:
    """What others have written at home since the partition went away."""
    return [file for file in storage.stored(exchange.directory) if not exchange.is_ours_at_home(file)]


def foreign_files(storage: Storage, exchange: Exchange) -> list[StoredFile]:
    """What others have written to the second place, and is not home yet."""
    return [file for file in storage.stored(exchange.place) if not exchange.is_ours(file)]
