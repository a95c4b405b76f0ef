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
_WHERE_FILTERS = (
    *("", "d.g = 5", "coalesce(d.g, 5) = 5", "d.g IS NULL", "coalesce(f.m, 1) = 1", "f.k IS NULL"),
    "(d.g = 5 AND f.m = 2 OR f.m = 1)",
)
# What may stand between the fact and a join on k: some keep each row's key apart from the others', some mix them.
_FACT_QUERIES = (
    "SELECT m, k FROM f",
    "SELECT m, coalesce(k, 2) AS k FROM f",
    "SELECT m, m AS k FROM f",
    "SELECT count(*) AS m, k FROM f GROUP BY k",
    "SELECT k AS m, max(m) AS k FROM f GROUP BY k",
    "SELECT m, max(k) AS k FROM f GROUP BY m",
    "SELECT count(*) AS m, k FROM f GROUP BY ROLLUP (k)",
    "SELECT count(*) OVER (PARTITION BY k) AS m, k FROM f",
    "SELECT count(*) OVER (PARTITION BY m) AS m, k FROM f",
    "SELECT DISTINCT m, k FROM f ORDER BY m, k LIMIT 2",
    "SELECT m, k FROM f EXCEPT SELECT m, k FROM f WHERE m = 2",
)
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
            Table("p", (Column("n", _INT), Column("k", _INT)), _FACT_ROWS[-1], ("k",)),
        )
    )


def star_of_two_types() -> Star:
    """A fact's key is a string and a dimension's a number: '01' = 1 is true, '01' IN ('1') is not."""
    return Star(
        (
            Table("f", (Column("m", _INT), Column("k", "string")), ((1, "1"), (2, "01"), (3, None)), ("k",)),
            Table("d", (Column("k", _INT), Column("g", _INT)), _DIMENSION_ROWS[-1]),
        )
    )


def joins_of_two_types() -> Iterator[Query]:
    """The joins of that star that could be narrowed, were it not for the types."""
    for join in ("JOIN", "LEFT SEMI JOIN"):
        yield _query(f"f {join} d ON f.k = d.k AND d.g = 5")
    yield _query("f JOIN d ON d.k = f.k", "d.g = 5")


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
    yield from nested_statements()


def nested_statements() -> Iterator[Query]:
    """Subqueries, derived tables and CTEs between the fact, the dimension and what filters them."""
    yield from _subqueries()
    yield from _filters_above()
    yield from _outer_joins_within()
    yield from _behind_queries()
    yield from _behind_ctes()
    yield from _conditions()
    yield from _named_by_database()
    yield from _probed_facts()


def _probed_facts() -> Iterator[Query]:
    """A fact that is looked into for the rows of a dimension: in subqueries, and on the right of SEMI and ANTI."""
    wheres = ("", "d.g = 5", "coalesce(d.g, 5) = 5", "(d.g = 5 OR d.k = 2)")
    subqueries = (
        "EXISTS (SELECT 1 FROM f WHERE f.k = d.k{})",
        "NOT EXISTS (SELECT 1 FROM f WHERE f.k = d.k{})",
        "(SELECT count(*) FROM f WHERE f.k = d.k{}) > 1",
        "(SELECT max(f.m) FROM f WHERE f.k = d.k{}) IS NULL",
        "d.g NOT IN (SELECT f.m + 4 FROM f WHERE f.k = d.k{})",
        "d.k IN (SELECT f.k FROM f WHERE f.k = d.k{})",
        "d.k NOT IN (SELECT f.k FROM f)",
    )
    for subquery, more, where in product(subqueries, ("", " AND f.m = 1"), wheres):
        found = subquery.format(more)
        yield _query("d", where, found)
        yield _query("d", where, f"({found} OR d.g = 6)")
        yield _query("d", f"({where or 'TRUE'} OR {found})")
    for join, where in product(_JOINS[:4], wheres):
        for found in ("EXISTS (SELECT 1 FROM f WHERE f.k = d.k)", "NOT EXISTS (SELECT 1 FROM f WHERE f.k = d.k)"):
            yield _query(f"e {join} d ON e.k = d.k AND d.g < 7", where, found)
            yield _query(f"d {join} e ON e.k = d.k AND d.g < 7", where, found)
    for found, where in product(subqueries[:2], wheres):
        pair = f"d JOIN p ON d.g = p.n + 4 AND {found.format('')}"
        yield _query(f"{pair} RIGHT JOIN e ON e.k = d.k", where)
        yield _query(f"e LEFT JOIN ({pair}) ON e.k = d.k", where)
        yield _query(f"e JOIN d ON e.k = d.k AND {found.format('')}", where)
        yield _query(
            f"f LEFT JOIN (SELECT d.k AS j, d.g AS h FROM d WHERE {found.format('')}) v ON f.m = v.j", "h = 5"
        )
    for where in wheres:
        amounts = "SELECT d.k, d.g, (SELECT sum(f.m) FROM f WHERE f.k = d.k) AS n FROM d"
        yield Query(f"{amounts}{f' WHERE {where}' if where else ''}", frozenset())
        yield _query(f"({amounts}) d", where)
        yield _query(f"(SELECT g, count(n) AS k FROM ({amounts}) x GROUP BY g) d", where)
        padded = "SELECT d.g, (SELECT count(*) FROM f WHERE f.k = d.k) AS n FROM e LEFT JOIN d ON d.k = e.k"
        yield Query(f"{padded}{f' WHERE {where}' if where else ''}", frozenset())
    for join, where, on in product(_JOINS[-2:], wheres, ("", " AND d.g = 5", " AND f.m = 1")):
        yield _query(f"d {join} f ON f.k = d.k{on}", where)
        yield _query(f"d {join} f ON f.k <=> d.k{on}", where)
        yield _query(f"d {join} (e LEFT JOIN f ON e.k = f.m) ON f.k <=> d.k{on}", where)
        yield _query(f"d {join} (f JOIN e ON f.m = e.k) ON f.k = d.k{on}", where)
        yield _query(f"(e LEFT JOIN d ON e.k = d.k) {join} f ON f.k = coalesce(d.k, 2){on}", where)


def _named_by_database() -> Iterator[Query]:
    """Columns named by database, and the conditions that a filter on the fact can stand beside."""
    f, d, e = ("main.f", "main.d", "main.e")
    filters = ("", f"{d}.g = 5", f"({d}.g = 5 OR {d}.g = 6)", f"coalesce({d}.g, 5) = 5", f"coalesce({f}.m, 1) = 1")
    for join, left, where in product((*_JOINS, ","), (f, d), filters):
        right = d if left == f else f
        if join in _SHOWS_LEFT_ONLY and right in where:
            continue
        if join == ",":
            yield _query(f"{left}, {right}", f"{f}.k = {d}.k", where)
            continue
        yield _query(f"{left} {join} {right} ON {f}.k = {d}.k AND {d}.g < 7", where)
        yield _query(f"{left} {join} {right} ON (({f}.k = {d}.k) AND ({f}.m = 1 OR {d}.g = 5))", where)
        for inner in _JOINS[:4]:
            yield _query(f"{left} {join} {right} ON {f}.k = {d}.k {inner} {e} ON {e}.k = {left}.k", where)
            yield _query(f"{e} {inner} ({left} {join} {right} ON {f}.k = {d}.k) ON {e}.k = {left}.k", where)
    yield _query(
        f"{f} JOIN {d} ON {f}.k = {d}.k AND {f}.k IN (SELECT {e}.k FROM {e} WHERE {e}.h = 5)", f"{d}.g = 5"
    )


def _conditions() -> Iterator[Query]:
    """Conditions that say less than they seem to."""
    yield _query("f JOIN d ON f.k = d.k", "(d.g = 5 AND f.m = 2 OR f.m = 1)")
    yield _query("f JOIN d ON f.k <=> d.k AND d.g = 5")
    # The rows of e that meet only the second key are padded once it is gone, and null is a key.
    yield _query("(e LEFT JOIN f ON f.m = e.k AND f.k = 2) JOIN d ON f.k <=> d.k AND d.g = 5")
    yield _query("f LEFT JOIN d ON f.k = d.k AND d.g = 5", "(d.g = 5 OR f.m = 1)")
    yield _query("f JOIN (e LEFT JOIN d ON d.k = e.k AND d.g = 7) ON f.k = coalesce(d.k, 2)")


def _subqueries() -> Iterator[Query]:
    for negation, where in product(("", "NOT "), ("", " AND d.g = 5", " AND f.m = 1")):
        yield _query("f", f"{negation}EXISTS (SELECT 1 FROM d WHERE f.k = d.k{where})")
    for negation, where in product(("", "NOT "), ("", " WHERE d.g = 5", " WHERE d.k IS NOT NULL")):
        yield _query("f", f"f.k {negation}IN (SELECT d.k FROM d{where})")
    for shown in ("count(*)", "max(d.g)"):
        yield _query("f", f"EXISTS (SELECT {shown} FROM d WHERE f.k = d.k AND d.g = 5)")
    # The inner f hides the outer one, which is then not compared at all.
    yield _query("f", "EXISTS (SELECT 1 FROM d JOIN f ON f.m = d.g - 4 WHERE f.k = d.k AND d.g = 5)")
    for function in ("max", "min"):
        yield _query("f", f"f.k = (SELECT {function}(d.k) FROM d WHERE d.g = 5)")
        yield _query("f", f"f.k = (SELECT {function}(d.k) FROM d WHERE d.g = 5) OR f.m = 1")
    yield from _without_filters()


def _without_filters() -> Iterator[Query]:
    """Small sides of a few texts, and of partition columns alone."""
    texts = "SELECT 2 AS k UNION ALL SELECT 5"
    for join in _JOINS[:4]:
        yield _query(f"f {join} ({texts}) d ON f.k = d.k")
        yield _query(f"f {join} (VALUES (2, 5), (NULL, 7), (1, 6)) AS d(k, g) ON f.k = d.k", "d.g < 7")
        yield _query(f"f {join} (SELECT x.k, max(x.k) AS g FROM f x GROUP BY x.k) d ON f.k = d.g")
        yield _query(f"f {join} (SELECT DISTINCT x.k FROM f x WHERE x.k > 1) d ON f.k = d.k")
    yield _query("f", "f.k IN (SELECT max(x.k) FROM f x GROUP BY x.k)")
    yield _query("f JOIN d ON f.k = d.k", f"d.g IN (SELECT k FROM ({texts}) v)")


def _filters_above() -> Iterator[Query]:
    for join, left, above in product(_JOINS[:4], "fd", ("g = 5", "coalesce(g, 5) = 5", "g IS NULL")):
        right = "d" if left == "f" else "f"
        inner = f"SELECT f.k, f.m, d.g FROM {left} {join} {right} ON f.k = d.k"
        yield _query(f"({inner}) v", above)
        # The total has null in place of g, and counts the rows of every g.
        groupings = ("ROLLUP (d.g)", "GROUPING SETS ((d.g), ())")
        for shown, grouping in product(("d.g", "d.g AS g", "d.g + 0 AS g"), groupings):
            totals = f"SELECT {shown}, count(*) AS n FROM {left} {join} {right} ON f.k = d.k GROUP BY {grouping}"
            yield _query(f"({totals}) v", above)


def _outer_joins_within() -> Iterator[Query]:
    """A join that keeps the fact within a derived table, which drops the padded rows, or only seems to."""
    left_join = "f LEFT JOIN d ON f.k = d.k AND d.g = 5"
    shown = (
        *("f.m, d.g", "f.m, d.g + 0 AS g", "f.m, coalesce(d.g, 5) AS g", "DISTINCT f.m, d.g"),
        *(
            "d.g, count(*) OVER () AS n",
            "d.g, count(*) OVER (PARTITION BY d.g) AS n",
            "max(d.g) AS g, count(*) AS n",
        ),
        "CASE WHEN d.g IS NULL THEN 5 ELSE d.g END AS g, f.m",
    )
    above = ("g = 5", "coalesce(g, 5) = 5", "g IS NULL", "(g = 5 OR m = 1)", "NOT (g + m = 7)", "g <> 6 OR g = 5")
    for outputs, where in product(shown, above):
        if " m" in where and " m" not in outputs.replace("f.m", " m"):
            continue
        yield _query(f"(SELECT {outputs} FROM {left_join}) v", where)
    for rest in ("GROUP BY d.g", "GROUP BY ROLLUP (d.g)", "GROUP BY d.g HAVING count(*) > 1"):
        yield _query(f"(SELECT d.g, count(*) AS n FROM {left_join} {rest}) v", "g = 5")
    yield _query(f"(SELECT f.m, max(d.g) AS g, count(*) AS n FROM {left_join} GROUP BY f.m) v", "g = 5")
    yield _query(f"(SELECT f.k, f.m, d.g FROM {left_join} ORDER BY 3 DESC, 2, 1 LIMIT 3) v", "g = 5")
    yield _query(f"(SELECT f.m, d.g FROM {left_join} UNION ALL SELECT k, h FROM e) v", "g = 5")
    yield _query(f"(SELECT d.g, f.m FROM {left_join} EXCEPT SELECT h, k FROM e) v", "g = 5")
    inner = f"(SELECT f.m, d.g FROM {left_join}) v"
    for join, swapped, on in product(_JOINS, (True, False), ("v.g = e.h", "v.m = e.k AND v.g = 5", "v.m = e.k")):
        sides = f"e {join} {inner}" if swapped else f"{inner} {join} e"
        yield _query(f"{sides} ON {on}")
        if join not in _SHOWS_LEFT_ONLY:
            yield _query(f"{sides} ON {on}", "v.g = 5")
            yield _query(f"(SELECT g, m, h FROM {sides} ON {on}) w", "w.g = 5")
    for readers in (
        "SELECT m FROM v WHERE g = 5 UNION ALL SELECT m FROM v WHERE g > 5",
        "SELECT m FROM v WHERE g = 5 UNION ALL SELECT m FROM v",
        "SELECT m FROM v WHERE g = 5 UNION ALL SELECT k FROM e WHERE k NOT IN (SELECT m FROM v)",
        "SELECT a.m FROM v a JOIN v b ON a.g = b.g",
        "SELECT a.m FROM v a LEFT JOIN v b ON a.g = b.g",
    ):
        yield Query(f"WITH v AS (SELECT f.m, d.g FROM {left_join}) {readers}", frozenset())


def _behind_queries() -> Iterator[Query]:
    for query, join in product(_FACT_QUERIES, ("JOIN", "LEFT SEMI JOIN")):
        yield _query(f"({query}) f {join} d ON f.k = d.k AND d.g = 5")


def _behind_ctes() -> Iterator[Query]:
    """Names that stand for a CTE in one place and for a table, or for another reader, in another."""
    for sql in (
        "WITH d AS (SELECT k, h + 1 AS g FROM e) SELECT m FROM f JOIN d ON f.k = d.k WHERE d.g = 6",
        "WITH d AS (SELECT k, h + 1 AS g FROM e) SELECT m FROM f WHERE f.k IN (SELECT d.k FROM d WHERE d.g = 6)",
        "WITH c AS (SELECT m FROM f JOIN d ON f.k = d.k), d AS (SELECT k FROM e WHERE h = 7) SELECT c.m FROM c, d",
        "WITH c AS (SELECT m FROM f JOIN d ON f.k = d.k), d AS (SELECT k FROM e WHERE k = 1) SELECT m FROM c",
        "WITH a AS (SELECT * FROM d), b AS (SELECT k FROM a WHERE g = 5) SELECT f.m FROM f JOIN b ON f.k = b.k",
        "WITH b AS (SELECT k FROM d WHERE g = 5), d AS (SELECT * FROM e) SELECT m FROM f JOIN b ON f.k = b.k",
        "WITH a AS (SELECT k FROM d WHERE g = 5) SELECT m FROM f WHERE k IN (SELECT k FROM a) OR m > 1",
        "SELECT v.m FROM (WITH a AS (SELECT * FROM d) SELECT f.m FROM f JOIN a ON f.k = a.k WHERE a.g = 5) v",
        "SELECT f.m FROM (WITH d AS (SELECT k FROM e) SELECT k FROM d) v, f JOIN d ON f.k = d.k WHERE d.g = 5",
        "SELECT m FROM (SELECT f.m, d.g FROM f JOIN d ON f.k = d.k) WHERE g = 5",
        "SELECT m FROM (SELECT f.m, d.g FROM f LEFT JOIN d ON f.k = d.k) WHERE coalesce(g, 5) = 5",
        "SELECT m FROM (SELECT m, g AS h FROM (SELECT m, g FROM f JOIN d ON f.k = d.k) WHERE g > 4) WHERE h = 5",
        "SELECT m FROM f JOIN (SELECT k AS j, g FROM d) ON k = j JOIN (SELECT k AS i FROM e) ON j = i WHERE g = 5",
        "WITH c AS (SELECT * FROM f) SELECT m FROM c JOIN d ON c.k = d.k WHERE d.g = 5 UNION ALL SELECT m FROM c",
        "WITH c AS (SELECT m, g FROM f JOIN d ON f.k = d.k) SELECT m FROM c WHERE g = 5 UNION ALL SELECT m FROM c",
    ):
        yield Query(sql, frozenset())


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
            for where in (*_WHERE_FILTERS, "e.h = 5", "coalesce(e.h, 5) = 5"):
                if not any(f"{table}." in where for table in unseen):
                    yield _query(f"{joined} ON e.k = {link}.k", where)
    yield from outer_statements()
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


def outer_statements() -> Iterator[Query]:
    """Filters further out: on a derived table that is joined, and on the neighbour of a dimension."""
    yield from _filters_outside()
    yield from _snowflakes()
    yield from _followed_facts()


def _followed_facts() -> Iterator[Query]:
    """A fact whose partner is a fact, which has a filtered partner in its turn."""
    pairs = [(inner, outer) for inner, outer in product(_JOINS, _JOINS) if "JOIN" in {inner, outer}]
    for (inner, outer), where in product(pairs, ("", "d.g = 5", "coalesce(d.g, 5) = 5")):
        for equality in ("f.k = p.k", "f.k <=> p.k", "f.k = coalesce(p.k, 2) - 1"):
            chains = (
                (f"f {inner} p ON {equality} {outer} d ON p.k = d.k AND d.g < 7", inner, outer, "d"),
                (f"d {inner} p ON p.k = d.k AND d.g < 7 {outer} f ON {equality}", inner, outer, "f"),
                (f"f {outer} (p {inner} d ON p.k = d.k) ON {equality}", inner, outer, "pd"),
            )
            for joined, first, second, last in chains:
                hides_first = first in _SHOWS_LEFT_ONLY
                hides_second = second in _SHOWS_LEFT_ONLY
                if hides_first and (last != "pd" or "d." in where):
                    continue
                if hides_second and any(f"{table}." in where for table in last):
                    continue
                yield _query(joined, where)
    for query in ("SELECT d.k FROM d WHERE d.g = 5", "SELECT max(d.k) FROM d"):
        yield _query("f JOIN p ON f.k = p.k", f"p.k IN ({query})")
        yield _query("f JOIN p ON f.k = p.k", f"p.k = ({query})" if "max" in query else f"NOT p.k IN ({query})")
    yield _query("f JOIN p ON f.k = p.k JOIN p AS q ON p.k = q.k + 1 JOIN d ON q.k = d.k", "d.g = 5")
    yield _query("f JOIN p ON f.k = p.k JOIN p AS q ON p.n = q.n JOIN d ON q.k = d.k", "d.g = 5")
    yield _query("f JOIN p ON f.k = p.k + p.n JOIN d ON p.k = d.k", "d.g = 5")
    yield _query("f", "EXISTS (SELECT 1 FROM p JOIN d ON p.k = d.k WHERE f.k = p.k AND d.g = 5)")
    yield _query("f JOIN p ON f.k = p.k AND f.m = p.n JOIN (SELECT k AS j, g FROM d) ON p.k = j", "g = 5")
    inner = "SELECT f.m, d.g FROM f JOIN p ON f.k = p.k JOIN d ON p.k = d.k"
    yield _query(f"({inner}) v", "g = 5")
    yield _query(f"({inner}) v", "coalesce(g, 5) = 5")


def _snowflakes() -> Iterator[Query]:
    for join, swapped, on in product(_JOINS, (True, False), ("", " AND e.h = 5", " AND coalesce(e.h, 5) = 5")):
        pair = f"e {join} d" if swapped else f"d {join} e"
        hidden = join in _SHOWS_LEFT_ONLY
        if hidden and swapped:
            continue
        for where in ("", *(() if hidden else ("e.h = 5", "coalesce(e.h, 5) = 5"))):
            yield _query(f"({pair} ON d.g = e.k + 4{on}) JOIN f ON f.k = d.k", where)
            yield _query(f"({pair} ON d.k = e.k{on}) JOIN f ON f.k = d.k", where)
    for join in _JOINS:
        # The filter on e stands in another join than the equality with d.
        yield _query(f"d JOIN e ON d.k = e.k JOIN f ON f.k = d.k {join} e AS z ON z.h = d.g AND e.h = 6")


def _filters_outside() -> Iterator[Query]:
    """A fact and its dimension in a derived table, which is joined, and filtered, in its turn."""
    inner = "SELECT f.m, f.k, d.g FROM f JOIN d ON f.k = d.k"
    for join, left, on in product(_JOINS, "xe", ("", " AND x.g = 5", " AND coalesce(x.g, 5) = 5")):
        right = "e" if left == "x" else "x"
        sources = {"x": f"({inner}) x", "e": "e"}
        hides_x = right == "x" and join in _SHOWS_LEFT_ONLY
        for where in ("", *(() if hides_x else ("x.g = 5", "coalesce(x.g, 5) = 5", "x.g IS NULL"))):
            yield _query(f"{sources[left]} {join} {sources[right]} ON x.m = e.k{on}", where)
    for join, above in product(_JOINS[:4], ("x.g = 5", "coalesce(x.g, 5) = 5", "x.g IS NULL")):
        padded = f"SELECT e.h, f.m, d.g FROM e {join} (f JOIN d ON f.k = d.k) ON e.k = f.k"
        yield _query(f"({padded}) x", above)


def _query(joined: str, *where: str) -> Query:
    conditions = " AND ".join(filter(None, where))
    return Query(f"SELECT * FROM {joined}{f' WHERE {conditions}' if conditions else ''}", frozenset())
