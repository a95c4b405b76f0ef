"""Joins, conditions, unions and limits are read as Spark's parser reads them, in queries of every build.

STARPRUNER_DEEP=1 tries many; STARPRUNER_SEED=7 tries those of one seed.
"""

from random import Random

import pytest
from pyspark.sql import SparkSession
from seeding import seeded, seeds
from support.readings import our_facts, spark_facts

from rewriter import SkipReason
from rewriter.sql.statement import parse, parse_any

QUERIES_PER_SEED = 25
CHARS_MAX = 100_000
# A query that is refused, by the rewriter or by Spark, shows nothing. Of a seed's, so many are to show something.
READ_BY_BOTH_MIN = 8


def choices(text: str) -> list[str]:
    """What is named between semicolons."""
    return " ".join(text.split()).split("; ")


JOINS = choices("""
    JOIN; INNER JOIN; CROSS JOIN; LEFT JOIN; LEFT OUTER JOIN; RIGHT JOIN; RIGHT OUTER JOIN; FULL JOIN;
    FULL OUTER JOIN; LEFT SEMI JOIN; SEMI JOIN; LEFT ANTI JOIN; ANTI JOIN
""")
UNCONDITIONAL = "NATURAL JOIN", "NATURAL LEFT JOIN", "NATURAL FULL OUTER JOIN", "CROSS JOIN"
SET_OPERATIONS = choices("""
    UNION; UNION ALL; UNION DISTINCT; EXCEPT; EXCEPT ALL; MINUS; INTERSECT; INTERSECT ALL
""")
# Each # is a number of its own.
COMPARISONS = choices("""
    x = #; x <> #; x != #; x == #; x <=> #; # >= x; x + # < y * #; x IS DISTINCT FROM #; x IS NOT DISTINCT FROM #;
    x IN (#, #); x NOT IN (#, #); x BETWEEN # AND #; x NOT BETWEEN # AND #; x BETWEEN # AND # + y; x + # IS NULL;
    coalesce(x, #) IS NOT NULL; f(x, #) LIKE '1'; f(#) NOT LIKE '2'; f(#) RLIKE '3'; x | # & y = #;
    # % x - y ^ # > # || x; CASE WHEN x = # AND y OR z THEN y ELSE z END; (x, y) = (#, #); (x = #) = (y = #);
    f(x = # AND y = #); x::int = #; x.y[#] = z; aggregate(x, #, (a, b) -> a = b AND b = #);
    count(y) FILTER (WHERE x = # OR y = #) > #; -x = -# / ~y
""")
NEGATIONS = "NOT ", "NOT NOT ", "!", "! NOT "
TAILS = "LIMIT #", "ORDER BY x LIMIT #", "LIMIT # OFFSET #", "OFFSET #", "ORDER BY x", "SORT BY x LIMIT #"


class Writer:
    """Writes one query: each of its tables has a number of its own, and so has each comparison."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._tables = 0
        self._numbers = 1000

    def query(self, depth: int) -> str:
        """A query with its CTEs, set operations and limits, `depth` levels of others within it at most."""
        with_ = f"WITH c AS ({self.query(depth - 1)}) " if depth and self._one_in(6) else ""
        parts = [self._operand(depth)]
        for _ in range(self._rng.choice((0, 0, 0, 1, 1, 2, 3))):
            parts += [self._rng.choice(SET_OPERATIONS), self._operand(depth)]
        return f"{with_}{' '.join(parts)}{self._tail()}"

    def _operand(self, depth: int) -> str:
        if depth and self._one_in(6):
            return f"({self.query(depth - 1)})"
        from_ = self._from(depth)
        if self._one_in(30):
            return f"{from_} SELECT 1{self._where(depth)}" + (self._tail() if self._one_in(3) else "")
        return f"SELECT 1 {from_}{self._where(depth)}{self._group()}"

    def _from(self, depth: int) -> str:
        items = [self._relation(depth) for _ in range(self._rng.choice((1, 1, 1, 2, 3)))]
        if self._one_in(12):
            items.append(f"LATERAL ({self.query(0)}) AS s")
        view = " LATERAL VIEW OUTER explode(z) v AS w" if self._one_in(10) else ""
        return f"FROM {', '.join(items)}{view}"

    def _relation(self, depth: int) -> str:
        found = self._item(depth)
        for _ in range(self._rng.choice((0, 1, 1, 2, 3))):
            if self._one_in(8):
                found += f" {self._rng.choice(UNCONDITIONAL)} {self._item(depth)}"
            elif self._one_in(12):
                found += f" LEFT JOIN LATERAL ({self.query(0)}) AS s ON {self._condition(0)}"
            else:
                found += f" {self._rng.choice(JOINS)} {self._item(depth)}{self._on(depth)}"
        return found

    def _on(self, depth: int) -> str:
        if self._one_in(8):
            return f" USING (u{self._numbered('#')})"
        on = "" if self._one_in(8) else f" ON {self._condition(depth)}"
        # Joins to the right of one another, which only their conditions tell apart.
        return on if not self._one_in(60) else f"{on} ON {self._condition(depth)}"

    def _item(self, depth: int) -> str:
        self._tables += 1
        name = f"t{self._tables}"
        if depth and self._one_in(6):
            return f"({self._relation(depth - 1)})"
        if depth and self._one_in(8):
            return f"({self.query(depth - 1)}) AS {name}"
        return self._rng.choice(
            (name, f"db.{name}", f"{name} AS a", f"{name} a", f"`{name}`", "VALUES (1) AS v(x)")
        )

    def _where(self, depth: int) -> str:
        return "" if self._one_in(3) else f" WHERE {self._condition(depth)}"

    def _group(self) -> str:
        return f" GROUP BY x HAVING {self._condition(0)}" if self._one_in(8) else ""

    def _tail(self) -> str:
        return f" {self._numbered(self._rng.choice(TAILS))}" if self._one_in(4) else ""

    def _condition(self, depth: int) -> str:
        parts = [self._comparison(depth)]
        for _ in range(self._rng.choice((0, 0, 1, 2, 3))):
            parts += [self._rng.choice(("AND", "OR", "and", "or")), self._comparison(depth)]
        return " ".join(parts)

    def _comparison(self, depth: int) -> str:
        negation = self._rng.choice(NEGATIONS) if self._one_in(5) else ""
        if self._one_in(6):
            return f"{negation}({self._condition(depth)})"
        if depth and self._one_in(8):
            test = self._rng.choice(("EXISTS ({})", "x IN ({})", "x NOT IN ({})", "x = ({})"))
            return negation + test.format(self.query(depth - 1))
        return negation + self._numbered(self._rng.choice(COMPARISONS))

    def _numbered(self, text: str) -> str:
        while "#" in text:
            self._numbers += 1
            text = text.replace("#", str(self._numbers), 1)
        return text

    def _one_in(self, count: int) -> bool:
        return self._rng.randrange(count) == 0


@pytest.mark.parametrize("seed", seeds(quick=4, deep=400))
def test_what_is_read_of_a_query_is_what_spark_parses(local_spark: SparkSession, seed: int) -> None:
    compared = 0
    for number in range(QUERIES_PER_SEED):
        sql = Writer(seeded(seed, number)).query(depth=number % 2)
        statement = parse(sql, chars_max=CHARS_MAX, has_file_index=True)
        if statement is SkipReason.NO_JOIN_IN_TEXT:
            statement = parse_any(sql) or statement
        parsed = spark_facts(local_spark, sql)
        if not isinstance(statement, SkipReason) and parsed is not None:
            compared += 1
            assert our_facts(statement) <= parsed, sql
    assert compared >= READ_BY_BOTH_MIN
