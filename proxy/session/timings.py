"""Where the time of a decision goes."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from proxy.operations.query import Query, QueryResult

T = TypeVar("T")


@dataclass
class Timings:
    """Where the time of a decision went, in seconds. Parsing and planning are what is left of the total."""

    catalog_s: float = 0.0
    key_queries_s: float = 0.0
    # To fetch what the file index says of a table's files: once for all statements until it changes.
    files_s: float = 0.0
    total_s: float = 0.0

    def of_catalog(self, asking: Generator[Query, QueryResult, T]) -> Generator[Query, QueryResult, T]:
        """The same questions, of which the time that their answers took is that of looking up tables."""
        try:
            query = next(asking)
            while True:
                answer = yield query
                self.catalog_s += answer.seconds
                query = asking.send(answer)
        except StopIteration as end:
            found: T = end.value
            return found
