"""Statements about facts whose files can be told apart: points, lists, ranges, pairs, and joins by every strategy.

The grammar of the other differential tests makes half of them, with all else that a statement may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from grammar import Query, random_query
from star_tables import VALUES, Star, Table, Value, literal

from rewriter import Column

_SHAPE = frozenset({"layout"})


def layout_query(star: Star, rng: Random) -> Query:
    """One statement."""
    return random_query(star, rng) if rng.random() < 0.3 else Query(_Layouts(star, rng).sql(), _SHAPE)


class _Layouts:
    def __init__(self, star: Star, rng: Random) -> None:
        self._star, self._rng = star, rng

    def sql(self) -> str:
        fact = self._star.table(self._rng.choice(("f1", "f1", "f2")))
        make = self._rng.choice(
            (self._filtered, self._filtered, self._joined, self._joined, self._semi, self._self_joined)
        )
        return make(fact)

    def _filtered(self, fact: Table) -> str:
        outputs = self._rng.choice(("*", "count(*), sum(t.m)", "t.k2, count(*)", "max(t.k2), min(t.k1)"))
        group = " GROUP BY t.k2" if outputs == "t.k2, count(*)" else ""
        return f"SELECT {outputs} FROM {fact.name} t WHERE {self._condition(fact, 't')}{group}"

    def _joined(self, fact: Table) -> str:
        small = self._star.table(self._rng.choice(("d2", "d2", "d3", "d1")))
        hint = self._rng.choice(("", "/*+ MERGE(d) */ ", "/*+ BROADCAST(d) */ ", "/*+ SHUFFLE_HASH(d) */ "))
        kind = self._rng.choice(("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT SEMI JOIN"))
        order = (f"{fact.name} t", f"{small.name} d")
        left, right = order if kind == "LEFT SEMI JOIN" or self._rng.random() < 0.7 else reversed(order)
        where = f" WHERE {self._small_filter(small)}" if kind != "LEFT SEMI JOIN" else ""
        if where and self._rng.random() < 0.3:
            where += f" AND {self._condition(fact, 't')}"
        on = self._equalities(small)
        return f"SELECT {hint}t.m, t.k1, t.k2 FROM {left} {kind} {right} ON {on}{where}"

    def _equalities(self, small: Table) -> str:
        pairs = {"d1": [("k1", "k1")], "d2": [("k2", "k2")], "d3": [("k2", "l"), ("k1", "k")]}[small.name]
        chosen = pairs if self._rng.random() < 0.5 else pairs[:1]
        equals = self._rng.choice(("=", "=", "=", "<=>"))
        return " AND ".join(f"t.{mine} {equals} d.{other}" for mine, other in chosen)

    def _semi(self, fact: Table) -> str:
        where = self._small_filter(self._star.table("d2"))
        subquery = self._rng.choice(
            (
                f"t.k2 IN (SELECT d.k2 FROM d2 d WHERE {where})",
                f"EXISTS (SELECT 1 FROM d2 d WHERE d.k2 = t.k2 AND {where})",
                f"t.k2 = (SELECT max(d.k2) FROM d2 d WHERE {where})",
                f"t.k2 NOT IN (SELECT d.k2 FROM d2 d WHERE d.k2 IS NOT NULL AND {where})",
            )
        )
        return f"SELECT count(*), sum(t.m), max(t.k1) FROM {fact.name} t WHERE {subquery}"

    def _self_joined(self, fact: Table) -> str:
        condition = self._condition(fact, "a")
        return (
            f"SELECT a.k2, count(*), sum(b.m) FROM {fact.name} a JOIN {fact.name} b ON a.k2 = b.k2 "
            f"WHERE {condition} GROUP BY a.k2"
        )

    def _small_filter(self, small: Table) -> str:
        """By a value that a row has: keys that there are not any of skip all there is."""
        column = self._rng.choice([column for column in small.columns if column.name[0] in "ab"])
        place = small.columns.index(column)
        values = [row[place] for row in small.rows if row[place] is not None]
        return self._compared(column, "d", values or VALUES[column.type_name])

    def _condition(self, fact: Table, alias: str) -> str:
        """Most often a conjunction, over the key that the files are laid out by before all others."""
        terms = [self._term(fact, alias) for _ in range(self._rng.choice((1, 1, 1, 2, 2, 3)))]
        if len(terms) > 1 and self._rng.random() < 0.4:
            pairs = [f"({term} AND {self._term(fact, alias)})" for term in terms]
            return f"({' OR '.join(pairs)})"
        return " AND ".join(terms)

    def _term(self, fact: Table, alias: str) -> str:
        column = fact.column(self._rng.choice(("k2", "k2", "k2", "k2", "m", "k1")))
        return self._compared(column, alias, VALUES[column.type_name])

    def _compared(self, column: Column, alias: str, values: Sequence[Value]) -> str:
        name = f"{alias}.{column.name}"
        low, high, other = (literal(column.type_name, self._rng.choice(values)) for _ in "123")
        return self._rng.choice(
            (
                *(f"{name} = {low}",) * 6,
                *(f"{name} IN ({low}, {high})",) * 3,
                f"{name} IN ({low}, {high}, {other})",
                *(f"{name} BETWEEN {low} AND {high}",) * 2,
                f"{name} < {low}",
                f"{name} <= {low}",
                f"{high} < {name}",
                f"{name} >= {high}",
                f"{name} <=> {low}",
                f"{name} IS NULL",
                f"NOT ({name} = {low})",
                f"({name} = {low} OR {name} IS NULL)",
                f"({name} = {low} OR {name} = {high})",
                f"coalesce({name}, {low}) = {low}",
            )
        )
