"""Smaller tables and a shorter statement that still go wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from grammar import Query
from sqlglot import exp, parse_one
from star_tables import Star

Fails = Callable[[Star, Query], bool]

# Each attempt asks a few statements of tiny tables; a minute of them is worth it for a wrong answer.
ATTEMPTS_MAX = 2_000


def shrunk(star: Star, query: Query, fails: Fails) -> tuple[Star, Query]:
    """The smallest that dropping rows and clauses one at a time leads to."""
    attempts = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(star, query):
            attempts += 1
            if attempts > ATTEMPTS_MAX:
                return star, query
            if fails(*candidate):
                (star, query), smaller = candidate, True
                break
    return star, query


def _candidates(star: Star, query: Query) -> Iterator[tuple[Star, Query]]:
    for tables in _without_a_row(star):
        yield tables, query
    for sql in _without_a_clause(query.sql):
        yield star, replace(query, sql=sql)


def _without_a_row(star: Star) -> Iterator[Star]:
    for index, table in enumerate(star.tables):
        # Half of the rows at once first, then each.
        halves = [table.rows[: len(table.rows) // 2], table.rows[len(table.rows) // 2 :]]
        singles = [table.rows[:i] + table.rows[i + 1 :] for i in range(len(table.rows))]
        for rows in (*halves, *singles):
            if len(rows) < len(table.rows):
                yield Star((*star.tables[:index], replace(table, rows=rows), *star.tables[index + 1 :]))


def _without_a_clause(sql: str) -> Iterator[str]:
    tree = parse_one(sql, read="spark")
    for index, node in enumerate(tree.find_all(exp.And, exp.Or, exp.Where, exp.Having, exp.Join, exp.Lateral)):
        for side in ("this", "expression") if isinstance(node, exp.And | exp.Or) else ("",):
            copy = tree.copy()
            found = list(copy.find_all(exp.And, exp.Or, exp.Where, exp.Having, exp.Join, exp.Lateral))[index]
            _ = found.replace(found.args[side]) if side else found.pop()
            yield copy.sql("spark")
