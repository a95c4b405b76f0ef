"""Brings partitions home that went away for compaction, once nobody reads their old files any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pipeline.spark.errors import PipelineError
from pipeline.spark.session import Progress
from pipeline.swap.dropped import abandon, discard, was_made_anew
from pipeline.swap.locations import Clock, Locations, Rows, foreign_files, rows_placed
from pipeline.swap.overwritten import give_way, stay_home
from pipeline.swap.record import AWAY, COMING_HOME, LEFT, OVER, Exchange, advance, exchanges
from pipeline.swap.swap import arrive, bring_home, carry_late_files, come_home
from pipeline.tables.storage import Storage

# How soon rows are seen that a statement appends to the place it read of before the partition went away.
POLL_S = 5.0


@dataclass(frozen=True)
class Journeys:
    """All partitions of one table that are on their way; for the holder of the lock."""

    storage: Storage
    locations: Locations
    progress: Progress
    # Of tests, which do not wait.
    now: Clock = time.time
    sleep: Callable[[float], None] = time.sleep
    # In this run: their second places are looked at in each round, and deleted by a later command.
    _came_home: set[str] = field(default_factory=set)

    def settle(self) -> None:
        """Waits until all are home."""
        watched = self.tend()
        if dues := [self._due_s(exchange) for exchange in watched if exchange.stage != LEFT]:
            self.progress(
                f"Statements may still read the old files of {len(dues)} partitions: waiting "
                f"{max(0.0, max(dues) - self.now()):.0f} s. This can be stopped, and the next command on the "
                f"table goes on"
            )
        while dues := [self._due_s(exchange) for exchange in watched if exchange.stage != LEFT]:
            self.sleep(max(0.0, min(POLL_S, min(dues) - self.now())))
            if any(map(self._needs_catalog, watched)):
                self.locations.refresh()
            watched = self._round(watched)

    def tend(self) -> list[Exchange]:
        """One round: carries over what was written, and brings home who is due; returns those to look at again."""
        known = exchanges(self.storage)
        if known:
            self.locations.refresh()
        return self._round(known)

    def _round(self, known: Sequence[Exchange]) -> list[Exchange]:
        watched: list[Exchange] = []
        failed: list[PipelineError] = []
        for exchange in known:
            try:
                found = self._visit(exchange)
            except PipelineError as error:
                # One that waits for a person does not keep the others away.
                failed.append(error)
                continue
            if found is not None and (found.stage != LEFT or found.id in self._came_home):
                watched.append(found)
        if failed:
            raise failed[0]
        return watched

    def _visit(self, exchange: Exchange) -> Exchange | None:
        """Goes on with one as far as it can go now; None if there is nothing left of it."""
        place = self.locations.place(exchange.directory)
        if exchange.stage == OVER or was_made_anew(self.storage, self.locations, exchange):
            discard(self.storage, self.locations, exchange, self.progress)
            return None
        if exchange.stage == LEFT:
            return self._clean(exchange, place)
        if place not in {exchange.directory, exchange.place}:
            abandon(self.storage, self.locations, exchange, self.progress)
            return None
        if place == exchange.directory:
            # Of a process that was killed before it told the catalog, or when it had.
            return self._at_home(exchange)
        return self._wait(exchange)

    def _at_home(self, exchange: Exchange) -> Exchange:
        if exchange.stage == AWAY:
            return stay_home(self.storage, exchange, self.now)
        return arrive(self.storage, self.locations, exchange, self.now)

    def _wait(self, exchange: Exchange) -> Exchange:
        if exchange.since_s is None:
            # Of a process that was killed as it told the catalog.
            exchange = advance(self.storage, replace(exchange, since_s=self.now()))
        if self.now() < self._due_s(exchange):
            carry_late_files(self.storage, exchange)
            return exchange
        found = come_home(self.storage, self.locations, exchange, self.now)
        if found.stage == LEFT:
            self._came_home.add(found.id)
            return self._clean(found, exchange.directory) or found
        return found

    def _clean(self, exchange: Exchange, place: str | None) -> Exchange | None:
        """Carries home what is written to the second place, until nobody can have read of it any more."""
        theirs = foreign_files(self.storage, exchange)
        is_replaced = bool(theirs) and rows_placed(self.storage, exchange) is Rows.REPLACED
        if place == exchange.place or (is_replaced and place == exchange.directory):
            return give_way(self.storage, self.locations, exchange)
        if is_replaced:
            # It is away again, in a second exchange: this is seen to when it is home.
            return exchange
        if place is not None or not self.locations.owns_files():
            bring_home(self.storage, exchange)
        is_over = self.now() >= (exchange.since_s or 0.0) + exchange.keep_s
        if is_over and exchange.id not in self._came_home:
            discard(self.storage, self.locations, exchange, self.progress)
            return None
        return exchange

    def _needs_catalog(self, exchange: Exchange) -> bool:
        if exchange.stage == LEFT:
            return bool(foreign_files(self.storage, exchange))
        return self.now() >= self._due_s(exchange)

    def _due_s(self, exchange: Exchange) -> float:
        if exchange.stage == COMING_HOME:
            return self.now()
        return (self.now() if exchange.since_s is None else exchange.since_s) + exchange.grace_s
