"""The two directories of an exchanged partition: the location in the catalog, and the files found in each."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from pipeline.swap.record import PartitionExchange
from pipeline.tables.storage import Storage, StoredFile

# Seconds since 1970.
Clock = Callable[[], float]

# A writer that has ended leaves this file; every other hidden name belongs to a writer at work.
_DONE = frozenset({"_SUCCESS"})


class Locations(Protocol):
    """The locations of partitions in the catalog; a table without partitions is the one named ''."""

    def refresh(self) -> None:
        """Asks the catalog anew."""

    def location_of(self, directory: str) -> str | None:
        """The location of a partition, relative to the table's directory; None if there is no such partition."""

    def born_ms(self, directory: str) -> int | None:
        """The time at which the partition was added to the catalog."""

    def partitions_at(self, path: str) -> list[str]:
        """The partitions whose location is this path, or is below it."""

    def set_location(self, directory: str, location: str) -> None:
        """Changes the location of a partition in one step."""

    def owns_files(self) -> bool:
        """Tells whether DROP PARTITION deletes the files, as it does in a managed table."""


class TemporaryRows(Enum):
    """The state of the rows that the exchange put at the temporary location."""

    PRESENT = auto()
    # Replaced by a statement that has ended: the files there now are all that the partition holds.
    OVERWRITTEN = auto()
    # Some are gone, or a statement is about to replace them all.
    UNCLEAR = auto()


def temporary_rows(storage: Storage, exchange: PartitionExchange) -> TemporaryRows:
    """The state of the rows that the exchange put at the temporary location, by the names of the files there."""
    names = set(storage.names(exchange.temporary))
    if names >= exchange.placed_names:
        return TemporaryRows.PRESENT
    at_work = {name for name in names if name.startswith((".", "_"))} - _DONE
    is_replaced = not (names & exchange.placed_names) and not at_work and storage.exists(exchange.temporary)
    return TemporaryRows.OVERWRITTEN if is_replaced else TemporaryRows.UNCLEAR


def is_directory_unchanged(storage: Storage, exchange: PartitionExchange) -> bool:
    """Tells whether the own directory's rows are still there.

    A statement that read the catalog before the switch may have replaced them.
    """
    there = storage.stored(exchange.directory)
    if not exchange.placed_names and all(map(exchange.is_known_in_directory, there)):
        # All files there are old. INSERT OVERWRITE of one partition clears them as well, wherever it writes.
        return True
    return set(there) >= {*exchange.merged, *exchange.kept}


def late_files(storage: Storage, exchange: PartitionExchange) -> list[StoredFile]:
    """Files that others wrote to the own directory since the switch to the temporary location."""
    return [file for file in storage.stored(exchange.directory) if not exchange.is_known_in_directory(file)]


def foreign_files(storage: Storage, exchange: PartitionExchange) -> list[StoredFile]:
    """Files that others wrote to the temporary location, and that are not in the own directory yet."""
    return [file for file in storage.stored(exchange.temporary) if not exchange.is_known_in_temporary(file)]
