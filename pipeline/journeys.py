"""Brings partitions home that went away for compaction, once nobody reads their old files any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.exchange import (
    Locations,
    abandon,
    bring_home,
    carry_late_files,
    come_home,
    is_undisturbed,
    stay_home,
)
from pipeline.exchange_record import AWAY, LEFT, Exchange, exchanges
from pipeline.spark import Progress
from pipeline.storage import Storage

# How soon rows are seen that a statement appends to the place it read of before the partition went away.
POLL_S = 5.0


@dataclass(frozen=True)
class Journeys:
    """All partitions of one table that are on their way; for the holder of the lock."""

    storage: Storage
    locations: Locations
    progress: Progress
    # Of tests, which do not wait.
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep

    def settle(self) -> list[Exchange]:
        """Waits until all are home, and says which came."""
        under_way = exchanges(self.storage)
        if not under_way:
            return []
        self.locations.refresh()
        away = [exchange for stage, exchange in under_way if self._is_away(stage, exchange)]
        self._wait(away)
        return away

    def _is_away(self, stage: str, exchange: Exchange) -> bool:
        place = self.locations.place(exchange.directory)
        if place not in {exchange.directory, exchange.place}:
            abandon(self.storage, self.locations, exchange, stage)
        elif stage == LEFT:
            self._clean(exchange)
        elif stage == AWAY and place == exchange.directory:
            stay_home(self.storage, exchange, self.now())
        else:
            return True
        return False

    def _clean(self, exchange: Exchange) -> None:
        bring_home(self.storage, exchange)
        if self.now() >= exchange.since_s + exchange.keep_s:
            self.storage.delete(exchange.root)

    def _wait(self, away: Sequence[Exchange]) -> None:
        waiting = sorted(away, key=_due_s)
        if waiting:
            rest_s = max(0.0, _due_s(waiting[-1]) - self.now())
            self.progress(
                f"Statements may still read the old files of {len(away)} partitions: waiting {rest_s:.0f} s. "
                f"This can be stopped, and the next command on the table goes on"
            )
        while waiting:
            due = [exchange for exchange in waiting if self.now() >= _due_s(exchange)]
            waiting = waiting[len(due) :]
            self._bring(due)
            for exchange in waiting:
                # Beside the new files, those of a statement that replaced the rows would double them.
                if is_undisturbed(self.storage, exchange):
                    carry_late_files(self.storage, exchange)
            if waiting:
                self.sleep(max(0.0, min(POLL_S, _due_s(waiting[0]) - self.now())))

    def _bring(self, due: Sequence[Exchange]) -> None:
        if due:
            self.locations.refresh()
        for exchange in due:
            if self.locations.place(exchange.directory) not in {exchange.directory, exchange.place}:
                # Dropped as we waited: the next command sees to it.
                continue
            for _ in come_home(self.storage, self.locations, exchange, self.now()):
                pass
            bring_home(self.storage, exchange)


def _due_s(exchange: Exchange) -> float:
    return exchange.since_s + exchange.grace_s
