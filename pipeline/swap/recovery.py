"""Completion of exchanges: partitions get back to their own directories once nobody reads their old files.

The exchanges are those of this process, and those that an earlier process left when it was killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pipeline.spark.errors import PipelineError
from pipeline.spark.session import Progress
from pipeline.swap.dropped import delete_exchange, give_up, was_recreated
from pipeline.swap.locations import Clock, Locations, TemporaryRows, foreign_files, temporary_rows
from pipeline.swap.overwritten import keep_temporary, record_switched_back
from pipeline.swap.record import (
    DELETING,
    IN_TEMPORARY,
    SWITCHED_BACK,
    SWITCHING_BACK,
    PartitionExchange,
    exchanges,
    write_next_record,
)
from pipeline.swap.swap import copy_late_files, finish_switch_back, move_late_files_back, switch_back
from pipeline.tables.storage import Storage

# A statement may append rows to the own directory after the switch: readers see them at most this late.
POLL_S = 5.0


@dataclass(frozen=True)
class Recovery:
    """All exchanges of one table that are not over; only the process that holds the table's lock may use it."""

    storage: Storage
    locations: Locations
    progress: Progress
    # Tests pass a clock of their own, and do not wait.
    now: Clock = time.time
    sleep: Callable[[float], None] = time.sleep
    # Exchanges that were switched back in this run: each round looks at their temporary locations, and a later
    # command deletes them.
    _switched_back: set[str] = field(default_factory=set)

    def finish_all(self) -> None:
        """Waits until all partitions are in their own directories."""
        watched = self.advance_all()
        if dues := [self._due_s(exchange) for exchange in watched if exchange.stage != SWITCHED_BACK]:
            self.progress(
                f"Statements may still read the old files of {len(dues)} partitions: waiting "
                f"{max(0.0, max(dues) - self.now()):.0f} s. This can be stopped, and the next command on the "
                f"table goes on"
            )
        while dues := [self._due_s(exchange) for exchange in watched if exchange.stage != SWITCHED_BACK]:
            self.sleep(max(0.0, min(POLL_S, min(dues) - self.now())))
            if any(map(self._needs_catalog, watched)):
                self.locations.refresh()
            watched = self._round(watched)

    def advance_all(self) -> list[PartitionExchange]:
        """Makes one round: copies late files, and switches back the partitions whose grace is over.

        Returns the exchanges to look at again.
        """
        known = exchanges(self.storage)
        if known:
            self.locations.refresh()
        return self._round(known)

    def _round(self, known: Sequence[PartitionExchange]) -> list[PartitionExchange]:
        watched: list[PartitionExchange] = []
        failed: list[PipelineError] = []
        for exchange in known:
            try:
                found = self._visit(exchange)
            except PipelineError as error:
                # An exchange that needs a person does not hold up the others.
                failed.append(error)
                continue
            if found is not None and (found.stage != SWITCHED_BACK or found.id in self._switched_back):
                watched.append(found)
        if failed:
            raise failed[0]
        return watched

    def _visit(self, exchange: PartitionExchange) -> PartitionExchange | None:
        """Goes on with one exchange as far as possible now; None if it is over."""
        location = self.locations.location_of(exchange.directory)
        if exchange.stage == DELETING or was_recreated(self.storage, self.locations, exchange):
            delete_exchange(self.storage, self.locations, exchange, self.progress)
            return None
        if exchange.stage == SWITCHED_BACK:
            return self._clean(exchange, location)
        if location not in {exchange.directory, exchange.temporary}:
            give_up(self.storage, self.locations, exchange, self.progress)
            return None
        if location == exchange.directory:
            # Another process was killed before it changed the catalog, or right after that.
            return self._in_own_directory(exchange)
        return self._wait(exchange)

    def _in_own_directory(self, exchange: PartitionExchange) -> PartitionExchange:
        if exchange.stage == IN_TEMPORARY:
            return record_switched_back(self.storage, exchange, self.now)
        return finish_switch_back(self.storage, self.locations, exchange, self.now)

    def _wait(self, exchange: PartitionExchange) -> PartitionExchange:
        if exchange.since_s is None:
            # Another process was killed while it changed the catalog.
            exchange = write_next_record(self.storage, replace(exchange, since_s=self.now()))
        if self.now() < self._due_s(exchange):
            copy_late_files(self.storage, exchange)
            return exchange
        found = switch_back(self.storage, self.locations, exchange, self.now)
        if found.stage == SWITCHED_BACK:
            self._switched_back.add(found.id)
            return self._clean(found, exchange.directory) or found
        return found

    def _clean(self, exchange: PartitionExchange, location: str | None) -> PartitionExchange | None:
        """Moves files from the temporary location back, until no statement can know that location any more."""
        theirs = foreign_files(self.storage, exchange)
        is_replaced = bool(theirs) and temporary_rows(self.storage, exchange) is TemporaryRows.OVERWRITTEN
        if location == exchange.temporary or (is_replaced and location == exchange.directory):
            return keep_temporary(self.storage, self.locations, exchange)
        if is_replaced:
            # A second exchange has the partition at another temporary location: this one waits for its end.
            return exchange
        if location is not None or not self.locations.owns_files():
            move_late_files_back(self.storage, exchange)
        is_over = self.now() >= (exchange.since_s or 0.0) + exchange.keep_s
        if is_over and exchange.id not in self._switched_back:
            delete_exchange(self.storage, self.locations, exchange, self.progress)
            return None
        return exchange

    def _needs_catalog(self, exchange: PartitionExchange) -> bool:
        if exchange.stage == SWITCHED_BACK:
            return bool(foreign_files(self.storage, exchange))
        return self.now() >= self._due_s(exchange)

    def _due_s(self, exchange: PartitionExchange) -> float:
        if exchange.stage == SWITCHING_BACK:
            # A grace that is over stays over: another time by the clock would put this off at each look.
            return 0.0
        return (self.now() if exchange.since_s is None else exchange.since_s) + exchange.grace_s
