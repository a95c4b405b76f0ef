"""The statements that random Iceberg tables are asked: most of them such as are narrowed."""

from collections.abc import Iterator

from grammar import Query
from layout_queries import layout_query
from seeding import seeded
from sieve import planned_on
from star_tables import Star

from rewriter import SkipReason

# Most statements are worth the server's time only if they may be narrowed; the others must still pass.
_LEFT_ALONE_EVERY = 8
_TRIES = 10


def chosen_statements(star: Star, count: int, *seed: int) -> Iterator[tuple[int, Query]]:
    """So many statements with one answer each, by the numbers that they are repeated by."""
    found = 0
    for index in range(count * _TRIES):
        query = layout_query(star, seeded(*seed, index))
        if query.comparable and (index % _LEFT_ALONE_EVERY == 0 or _asks_for_keys(query.sql, star)):
            yield index, query
            found += 1
        if found == count:
            return


def _asks_for_keys(sql: str, star: Star) -> bool:
    planned = planned_on(sql, star.schema)
    return not isinstance(planned, SkipReason) and bool(planned.key_queries)
