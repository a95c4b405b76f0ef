"""Seconds of a decision, by the purpose of the queries that took them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from proxy.operations.query import Query, QueryResult

T = TypeVar("T")


class AskedQuery(msgspec.Struct):
    """A query of a decision: "keys", or "descriptions" of tables with their partitions, files and snapshots."""

    purpose: str
    # From the beginning of the decision until it was asked.
    after_s: float
    # Until its answer, the wait for its turn included.
    seconds: float


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
    _asks_for_keys: bool = False

    def of_catalog(self, asking: Generator[Query, QueryResult, T]) -> Generator[Query, QueryResult, T]:
        """The same queries, whose answers count as lookups of tables."""
        seconds, found = yield from _counted(asking)
        self.catalog_s += seconds
        return found

    def of_key_queries(self, asking: Generator[Query, QueryResult, T]) -> Generator[Query, QueryResult, T]:
        """The same queries, whose answers count as key queries."""
        self._asks_for_keys = True
        seconds, found = yield from _counted(asking)
        self._asks_for_keys = False
        self.key_queries_s += seconds
        return found

    def noted(
        self, asking: Generator[Query, QueryResult, T], clock: Callable[[], float]
    ) -> Generator[Query, QueryResult, T]:
        """The same queries, those of a whole decision, each noted in `asked`."""
        start = clock()
        try:
            query = next(asking)
            while True:
                at = clock()
                answer = yield query
                purpose = "keys" if self._asks_for_keys else "descriptions"
                self.asked.append(AskedQuery(purpose, at - start, clock() - at))
                query = asking.send(answer)
        except StopIteration as end:
            found: T = end.value
            return found
        finally:
            asking.close()


def _counted(asking: Generator[Query, QueryResult, T]) -> Generator[Query, QueryResult, tuple[float, T]]:
    seconds = 0.0
    try:
        query = next(asking)
        while True:
            answer = yield query
            seconds += answer.seconds
            query = asking.send(answer)
    except StopIteration as end:
        found: T = end.value
        return seconds, found
