"""Seconds of a decision, by the purpose of the queries that took them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from proxy.operations.query import Ask, Query, QueryResult


class AskedQuery(msgspec.Struct):
    """A query of a decision: "keys", or "descriptions" of tables with their partitions, files and snapshots."""

    purpose: str
    # From the beginning of the decision until it was asked.
    after_s: float
    # Until its answer, the wait for its turn included.
    seconds: float


class Purpose(Enum):
    """The purpose of a query."""

    KEYS = "keys"
    DESCRIPTIONS = "descriptions"


@dataclass
class Timings:
    """Seconds of a decision. Parsing and planning are the rest of the total."""

    catalog_s: float = 0.0
    key_queries_s: float = 0.0
    # Fetching the file index's rows of a table: once for all statements until they change.
    files_s: float = 0.0
    total_s: float = 0.0
    # The queries one by one, in their order.
    asked: list[AskedQuery] = field(default_factory=list)
    # The purpose that the queries inside `counting` have; None where a lookup counts all its time.
    _counted: Purpose | None = None

    def timed(self, ask: Ask, clock: Callable[[], float]) -> Ask:
        """Ask, and note how long each answer took."""
        start = clock()

        async def ask_timed(query: Query) -> QueryResult:
            at, purpose = clock(), self._counted
            answer = await ask(query)
            self.asked.append(AskedQuery((purpose or Purpose.DESCRIPTIONS).value, at - start, clock() - at))
            if purpose is Purpose.KEYS:
                self.key_queries_s += answer.seconds
            elif purpose is Purpose.DESCRIPTIONS:
                self.catalog_s += answer.seconds
            return answer

        return ask_timed

    @contextmanager
    def counting(self, purpose: Purpose) -> Iterator[None]:
        """Count the answers to the queries within, and not the work between them."""
        self._counted = purpose
        try:
            yield
        finally:
            self._counted = None

    @contextmanager
    def lookup(self, clock: Callable[[], float]) -> Iterator[None]:
        """Count all time within as a lookup, the reading of the answers included."""
        start = clock()
        try:
            yield
        finally:
            self.catalog_s += clock() - start

    @contextmanager
    def fetching_files(self, clock: Callable[[], float]) -> Iterator[None]:
        """Count all time within as fetching of files."""
        start = clock()
        try:
            yield
        finally:
            self.files_s += clock() - start
