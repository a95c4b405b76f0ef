"""Every small case: each join, side and place of the filter, over tables with nulls, duplicates and no rows."""

from collections.abc import Iterator, Sequence
from itertools import product

from grammar import Query
from star_tables import Row, Star, Table

from rewriter import Column

_INT = "int"
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
_SHOWS_LEFT_ONLY = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")

_FACT_ROWS: tuple[tuple[Row, ...], ...] = (
    (),
    ((1, 1),),
    ((1, None),),
    ((1, 1), (1, 1), (1, 2), (2, 3), (None, None), (2, None)),
)
_DIMENSION_ROWS: tuple[tuple[Row, ...], ...] = (
    (),
    ((1, 5),),
    ((1, None),),
    ((None, 5),),
    ((1, 5), (1, 5), (2, 6), (None, 5), (3, 5), (None, None)),
)
# Where a filter may stand, with the tables that it reads. The coalesce lets rows pass that a join padded.
_ON_FILTERS = ("", "d.g = 5", "f.m = 1", "coalesce(d.g, 5) = 5")
_WHERE_FILTERS = ("", "d.g = 5", "coalesce(d.g, 5) = 5", "d.g IS NULL", "coalesce(f.m, 1) = 1", "f.k IS NULL")
_EQUALITIES = ("f.k = d.k", "f.k <=> d.k", "f.k = coalesce(d.k, 1)", "(f.k = d.k OR f.m = 1)", "NOT f.k = d.k")


def two_table_stars() -> list[Star]:
    """Every pair of contents for a fact and a dimension."""
    return [_star(f, d, _DIMENSION_ROWS[1]) for f, d in product(_FACT_ROWS, _DIMENSION_ROWS)]


def three_table_stars() -> list[Star]:
    """Contents in which each of three tables is empty, null, single or full."""
    fact, dimension = _FACT_ROWS, _DIMENSION_ROWS
    return [
        _star(fact[-1], dimension[-1], dimension[-1]),
        _star(fact[-1], dimension[1], dimension[-1]),
        _star(fact[-1], dimension[-1], dimension[3]),
        _star(fact[1], dimension[-1], dimension[2]),
        _star(fact[2], dimension[2], dimension[-1]),
        _star(fact[-1], dimension[0], dimension[-1]),
        _star(fact[0], dimension[-1], dimension[-1]),
        _star(fact[-1], dimension[-1], dimension[0]),
    ]


def _star(fact: Sequence[Row], dimension: Sequence[Row], third: Sequence[Row]) -> Star:
    return Star(
        (
            # Spark puts partition columns last.
            Table("f", (Column("m", _INT), Column("k", _INT)), tuple(fact), ("k",)),
            Table("d", (Column("k", _INT), Column("g", _INT)), tuple(dimension)),
            Table("e", (Column("k", _INT), Column("h", _INT)), tuple(third)),
        )
    )


def two_table_statements() -> Iterator[Query]:
    """Every join of the fact with the dimension, and every subquery that reduces it."""
    for join, left, equality in product((*_JOINS, ","), "fd", _EQUALITIES):
        right = "d" if left == "f" else "f"
        for on, where in product(_ON_FILTERS, _WHERE_FILTERS):
            if join in _SHOWS_LEFT_ONLY and f"{right}." in where:
                continue
            if join == ",":
                yield _query(f"{left}, {right}", equality, on, where)
                continue
            condition = " AND ".join(filter(None, (equality, on)))
            yield _query(f"{left} {join} {right} ON {condition}", where)
    yield from _subqueries()
    yield from _filters_above()


def _subqueries() -> Iterator[Query]:
    for negation, where in product(("", "NOT "), ("", " AND d.g = 5", " AND f.m = 1")):
        yield _query("f", f"{negation}EXISTS (SELECT 1 FROM d WHERE f.k = d.k{where})")
    for negation, where in product(("", "NOT "), ("", " WHERE d.g = 5", " WHERE d.k IS NOT NULL")):
        yield _query("f", f"f.k {negation}IN (SELECT d.k FROM d{where})")
    for function in ("max", "min"):
        yield _query("f", f"f.k = (SELECT {function}(d.k) FROM d WHERE d.g = 5)")
        yield _query("f", f"f.k = (SELECT {function}(d.k) FROM d WHERE d.g = 5) OR f.m = 1")


def _filters_above() -> Iterator[Query]:
    for join, left, above in product(_JOINS[:4], "fd", ("g = 5", "coalesce(g, 5) = 5", "g IS NULL")):
        right = "d" if left == "f" else "f"
        inner = f"SELECT f.k, f.m, d.g FROM {left} {join} {right} ON f.k = d.k"
        yield _query(f"({inner}) v", above)


def three_table_statements() -> Iterator[Query]:
    """A join of fact and dimension within a join with a third table, on either side."""
    for inner, outer, left in product(_JOINS, _JOINS, "fd"):
        right = "d" if left == "f" else "f"
        hidden = (right,) if inner in _SHOWS_LEFT_ONLY else ()
        for nested, on, link in product((True, False), ("", " AND d.g = 5"), "fd"):
            if link in hidden:
                continue
            pair = f"{left} {inner} {right} ON f.k = d.k{on}"
            joined = f"e {outer} ({pair})" if nested else f"({pair}) {outer} e"
            unseen = hidden
            if outer in _SHOWS_LEFT_ONLY:
                unseen = ("f", "d") if nested else (*hidden, "e")
            for where in (*_WHERE_FILTERS, "e.h = 5"):
                if not any(f"{table}." in where for table in unseen):
                    yield _query(f"{joined} ON e.k = {link}.k", where)
    yield from _keys_over_padded_rows()


def _keys_over_padded_rows() -> Iterator[Query]:
    """The small side comes out of a join that may pad it, and its key is made of the padding."""
    for inner, outer, nested in product(_JOINS, _JOINS, (True, False)):
        for small in ("d", "(SELECT * FROM d WHERE g = 5) d"):
            for left, right in ((small, "e"), ("e", small)):
                if inner in _SHOWS_LEFT_ONLY and right == small:
                    continue
                for on, key in product(("", " AND d.g = 5", " AND d.g = 7"), ("coalesce(d.k, 2)", "d.k")):
                    pair = f"{left} {inner} {right} ON d.k = e.k{on}"
                    joined = f"f {outer} ({pair})" if nested else f"({pair}) {outer} f"
                    yield _query(f"{joined} ON f.k = {key}")


def _query(joined: str, *where: str) -> Query:
    conditions = " AND ".join(filter(None, where))
    return Query(f"SELECT * FROM {joined}{f' WHERE {conditions}' if conditions else ''}", frozenset())
