"""Seconds of a decision, by the purpose of the queries that took them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from proxy.operations.query import Query, QueryResult

T = TypeVar("T")


@dataclass
class Timings:
    """Seconds of a decision. Parsing and planning are the rest of the total."""

    catalog_s: float = 0.0
    key_queries_s: float = 0.0
    # Fetching the file index's rows of a table: once for all statements until they change.
    files_s: float = 0.0
    total_s: float = 0.0

    def of_catalog(self, asking: Generator[Query, QueryResult, T]) -> Generator[Query, QueryResult, T]:
        """The same queries, whose answers count as lookups of tables."""
        seconds, found = yield from _counted(asking)
        self.catalog_s += seconds
        return found

    def of_key_queries(self, asking: Generator[Query, QueryResult, T]) -> Generator[Query, QueryResult, T]:
        """The same queries, whose answers count as key queries."""
        seconds, found = yield from _counted(asking)
        self.key_queries_s += seconds
        return found


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
