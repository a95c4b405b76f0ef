"""Statements that repeat or nest one thing, to be as hard to plan as their length allows."""

from collections.abc import Callable

from rewriter import Catalog, Column, TableFacts, TableName

CATALOG: Catalog = {
    TableName(("f",)): TableFacts(
        (Column("id", "int"), Column("ds", "string"), Column("k", "int")), ("ds",), size_bytes=10**12
    ),
    TableName(("d",)): TableFacts(
        (Column("ds", "string"), Column("g", "int"), Column("k", "int")), size_bytes=10**6
    ),
    TableName(("e",)): TableFacts(
        (Column("k", "int"), Column("g", "int"), Column("ds", "string")), size_bytes=10**6
    ),
}

Shape = Callable[[int], str]

_JOIN = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1 AND "


def _repeated(part: str, between: str = " ", *, head: str = "", tail: str = "") -> Shape:
    """A statement with a part many times, in which `#` is its number."""
    return lambda count: head + between.join(part.replace("#", str(n)) for n in range(count)) + tail


def _enclosed(opening: str, innermost: str, closing: str, *, head: str = "", tail: str = "") -> Shape:
    """A statement with a part within itself many times, in which `#` is its depth."""

    def statement(count: int) -> str:
        opened = "".join(opening.replace("#", str(n)) for n in range(count))
        return head + opened + innermost + "".join(closing.replace("#", str(n)) for n in range(count)) + tail

    return statement


def _both(first: Shape, second: Shape) -> Shape:
    return lambda count: first(count) + second(count)


def _ctes(body: str, *, first: str, last: str) -> Shape:
    """CTEs each of which reads the one before: `@` is its name in the body, and that of the last one in `last`."""

    def statement(count: int) -> str:
        named = [f"c0 AS ({first})", *(f"c{n} AS ({body.replace('@', f'c{n - 1}')})" for n in range(1, count))]
        return f"WITH {', '.join(named)} {last.replace('@', f'c{count - 1}')}"

    return statement


SHAPES: dict[str, Shape] = {
    "the same equality": _repeated(
        "f.ds = d.ds", " AND ", head="SELECT 1 FROM f JOIN d ON ", tail=" WHERE d.g = 1"
    ),
    "the same equality without a filter": _repeated("f.ds = d.ds", " AND ", head="SELECT 1 FROM f JOIN d ON "),
    "equalities with expressions": _repeated(
        "f.ds = concat(d.ds, '#')", " AND ", head="SELECT 1 FROM f JOIN d ON ", tail=" WHERE d.g = 1"
    ),
    "facts of one dimension": _repeated(
        "JOIN f f# ON f#.ds = d.ds", head="SELECT 1 FROM d ", tail=" WHERE d.g = 1"
    ),
    "facts of a dimension without a filter": _repeated("JOIN f f# ON f#.ds = d.ds", head="SELECT 1 FROM d "),
    "facts of a dimension with many filters": _both(
        _repeated("JOIN f f# ON f#.ds = d.ds", head="SELECT 1 FROM d "),
        _repeated("d.g <> #", " AND ", head=" WHERE "),
    ),
    "facts of chosen partitions of another": _both(
        _repeated("JOIN f f# ON f#.ds = concat(s.k, '')", head="SELECT 1 FROM f s "),
        _repeated("'#'", ", ", head=" WHERE s.ds IN (", tail=")"),
    ),
    "facts and a snowflake": _both(
        _repeated("JOIN f f# ON f#.ds = d.ds", head="SELECT 1 FROM d "),
        _repeated("JOIN e e# ON e#.k = d.k AND e#.g = 1", head=" "),
    ),
    "facts that tell of one another": lambda count: (
        "SELECT 1 FROM d d0 "
        + " ".join(f"JOIN f f{n} ON f{n}.ds = d0.ds AND f{n}.ds = f{n // 2}.ds" for n in range(1, count))
        + " WHERE d0.g = 1"
    ),
    "facts in a chain": lambda count: (
        "SELECT 1 FROM d JOIN f f0 ON f0.ds = d.ds "
        + " ".join(f"JOIN f f{n} ON f{n}.ds = f{n - 1}.ds" for n in range(1, count))
        + " WHERE d.g = 1"
    ),
    "facts that are asked for": _repeated(
        "LEFT SEMI JOIN f f# ON f#.ds = d.ds", head="SELECT 1 FROM d ", tail=" WHERE d.g = 1"
    ),
    "facts on the right of outer joins": _repeated(
        "LEFT JOIN f f# ON f#.ds = d.ds", head="SELECT 1 FROM d ", tail=" WHERE d.g = 1"
    ),
    "dimensions": _repeated("JOIN d d# ON f.ds = d#.ds AND d#.g = 1", head="SELECT 1 FROM f "),
    "dimensions of dimensions": lambda count: (
        "SELECT 1 FROM f "
        + " ".join(f"JOIN d d{n} ON f.ds = d{n}.ds AND d{n}.ds = d{max(n - 1, 0)}.ds" for n in range(count))
        + " WHERE d0.g = 1"
    ),
    "semi-joins": _repeated("LEFT SEMI JOIN d d# ON f.ds = d#.ds AND d#.g = 1", head="SELECT 1 FROM f "),
    "outer joins that are made inner": _both(
        _repeated("LEFT JOIN d d# ON f.ds = d#.ds", head="SELECT 1 FROM f "),
        _repeated("d#.g = 1", " AND ", head=" WHERE "),
    ),
    "right joins": _repeated("RIGHT JOIN d d# ON f.ds = d#.ds", head="SELECT 1 FROM f ", tail=" WHERE d0.g = 1"),
    "full joins": _repeated("FULL JOIN d d# ON f.ds = d#.ds", head="SELECT 1 FROM f "),
    "items of a FROM": _repeated("f f#", ", ", head="SELECT 1 FROM d, ", tail=" WHERE f0.ds = d.ds AND d.g = 1"),
    "items of one name": _both(
        _repeated("f", ", ", head="SELECT 1 FROM "),
        _repeated("f.ds <> '#'", " AND ", head=" JOIN d ON f.ds = d.ds WHERE "),
    ),
    "columns without a table": _both(
        _repeated("JOIN d d# ON f.ds = d#.ds", head="SELECT 1 FROM f "),
        _repeated("id <> #", " AND ", head=" WHERE "),
    ),
    "columns that a CTE computes": _both(
        _repeated("concat(ds, '#') AS c#", ", ", head="WITH s AS (SELECT ", tail=" FROM f)"),
        _repeated("s.c# = d.ds", " AND ", head=" SELECT 1 FROM s JOIN d ON ", tail=" WHERE d.g = 1"),
    ),
    "a column of many branches, one of which casts it": _repeated(
        "SELECT ds, # AS n FROM f UNION ALL",
        head="SELECT 1 FROM (",
        tail=" SELECT CAST(k AS STRING), 0 FROM f) u JOIN d ON u.ds = d.ds AND u.ds = d.ds || '' WHERE d.g = 1",
    ),
    "conditions on a column of many branches": _both(
        _repeated(
            "SELECT CAST(ds AS DATE) AS ds FROM f UNION ALL",
            head="SELECT 1 FROM (",
            tail=" SELECT CAST(k AS DATE) FROM f) u JOIN d ON ",
        ),
        _repeated("u.ds = date_add(d.ds, #)", " AND ", tail=" WHERE d.g = 1"),
    ),
    "columns that outer joins show as one, in one another": _enclosed(
        "SELECT coalesce(f.ds, x.ds) AS ds FROM f FULL JOIN (",
        "SELECT ds FROM f",
        ") x ON f.ds = x.ds",
        head="SELECT 1 FROM (",
        tail=") y JOIN d ON y.ds = d.ds WHERE d.g = 1",
    ),
    "outer joins and what they show as one": lambda count: (
        "SELECT 1 FROM f f0 "
        + " ".join(f"FULL JOIN f f{n} ON f{n - 1}.ds = f{n}.ds" for n in range(1, count))
        + " "
        + " ".join(
            f"JOIN d d{n} ON d{n}.ds = coalesce(f{n - 1}.ds, f{n}.ds) AND d{n}.g = 1" for n in range(1, count)
        )
    ),
    "LATERAL subqueries": _repeated(
        ", LATERAL (SELECT max(id) AS m FROM f WHERE f.ds = d.ds) l#",
        head="SELECT 1 FROM d",
        tail=" WHERE d.g = 1",
    ),
    "a computed column in many conditions": _repeated(
        "s.c <> concat(d.ds, '#')",
        " AND ",
        head="WITH s AS (SELECT concat(ds, '0') AS c FROM f) SELECT 1 FROM s JOIN d ON ",
        tail=" WHERE d.g = 1",
    ),
    "a computed column that is renamed": _ctes(
        "SELECT c, id FROM @",
        first="SELECT concat(ds, '0') AS c, id FROM f",
        last="SELECT 1 FROM @ s JOIN d ON s.c = d.ds WHERE d.g = 1",
    ),
    "USING": _repeated("JOIN d d# USING (ds)", head="SELECT 1 FROM f ", tail=" WHERE d0.g = 1"),
    "NATURAL joins": _repeated("NATURAL JOIN d d#", head="SELECT 1 FROM f ", tail=" WHERE d0.g = 1"),
    "the same column in USING": _repeated(
        "ds", ",", head="SELECT 1 FROM f JOIN d USING (", tail=") WHERE d.g = 1"
    ),
    "CTEs": _both(
        _repeated("c# AS (SELECT ds FROM d WHERE g = #)", ", ", head="WITH "),
        _repeated("JOIN c# ON f.ds = c#.ds", head=" SELECT 1 FROM f "),
    ),
    "readers of a long CTE": _both(
        _repeated("g <> #", " AND ", head="WITH c AS (SELECT ds FROM d WHERE ", tail=")"),
        _repeated("JOIN c c# ON f.ds = c#.ds", head=" SELECT 1 FROM f "),
    ),
    "readers of a join": _repeated(
        "SELECT 1 FROM c WHERE g = #",
        " UNION ALL ",
        head="WITH c AS (SELECT f.ds, d.g FROM f JOIN d ON f.ds = d.ds) ",
    ),
    "facts behind doubling CTEs": _ctes(
        "SELECT ds, id FROM @ UNION ALL SELECT ds, id FROM @",
        first="SELECT ds, id FROM f",
        last="SELECT 1 FROM @ c JOIN d ON c.ds = d.ds WHERE d.g = 1",
    ),
    "dimensions behind doubling CTEs": _ctes(
        "SELECT ds, g FROM @ UNION ALL SELECT ds, g FROM @",
        first="SELECT ds, g FROM d",
        last="SELECT 1 FROM f JOIN @ c ON c.ds = f.ds WHERE c.g = 1",
    ),
    "outer joins behind doubling CTEs": _ctes(
        "SELECT a.ds, b.g FROM @ a LEFT JOIN @ b ON a.ds = b.ds",
        first="SELECT f.ds, d.g FROM f LEFT JOIN d ON f.ds = d.ds",
        last="SELECT 1 FROM @ c WHERE c.g = 1",
    ),
    "sums behind doubling CTEs": _ctes(
        "SELECT ds, g + g AS g FROM @",
        first="SELECT f.ds, d.g + 1 AS g FROM f JOIN d ON f.ds = d.ds",
        last="SELECT 1 FROM @ c WHERE c.g = 1",
    ),
    "derived tables within derived tables": _enclosed(
        "(SELECT * FROM ", "f", ") x#", head="SELECT 1 FROM ", tail=" JOIN d ON ds = d.ds WHERE d.g = 1"
    ),
    "parentheses": _enclosed("(", "d.k = 1", ")", head=_JOIN),
    "conditions in parentheses": _enclosed("(d.k <> # AND ", "d.k = 1", ")", head=_JOIN),
    "CASE within CASE": _enclosed("CASE WHEN d.k = # THEN 1 ELSE ", "0", " END", head=_JOIN, tail=" = 1"),
    "branches of a CASE": _repeated("WHEN d.k = # THEN #", head=_JOIN + "CASE ", tail=" END = 1"),
    "branches of a CASE over an outer join": _repeated(
        "WHEN d.k = # THEN d.g",
        head="SELECT 1 FROM f LEFT JOIN d ON f.ds = d.ds WHERE CASE ",
        tail=" END = 1",
    ),
    "UNION ALL of joins": _repeated("SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = #", " UNION ALL "),
    "UNION ALL of facts": _repeated(
        "SELECT ds FROM f", " UNION ALL ", head="SELECT 1 FROM (", tail=") u JOIN d ON u.ds = d.ds WHERE d.g = 1"
    ),
    "an IN list": _repeated("#", ", ", head=_JOIN + "d.k IN (", tail=")"),
    "a list of tuples": _repeated("(#, #)", ", ", head=_JOIN + "(d.k, d.g) IN (", tail=")"),
    "ORs": _repeated("d.k = #", " OR ", head=_JOIN + "(", tail=")"),
    "ORs over a partition column": _repeated("f.ds = '#'", " OR ", head=_JOIN + "(", tail=")"),
    "ORs of two tables": _repeated("(d.k = # AND f.id = #)", " OR ", head=_JOIN + "(", tail=")"),
    "ORs of many tables": lambda count: (
        "SELECT 1 FROM f "
        + " ".join(f"JOIN d d{n} ON f.ds = d{n}.ds" for n in range(count))
        + " WHERE "
        + " OR ".join("(" + " AND ".join(f"d{n}.g = {of}" for n in range(count)) + ")" for of in range(3))
    ),
    "ANDs": _repeated("d.k <> #", " AND ", head=_JOIN),
    "ANDs over a partition column": _repeated("f.ds <> '#'", " AND ", head=_JOIN),
    "inequalities": _repeated("f.ds >= d.ds", " AND ", head="SELECT 1 FROM f JOIN d ON ", tail=" WHERE d.g = 1"),
    "outputs": _repeated(
        "f.id AS a#",
        ", ",
        head="SELECT 1 FROM (SELECT f.ds, ",
        tail=" FROM f) x JOIN d ON x.ds = d.ds WHERE d.g = 1",
    ),
    "outputs with filters": _both(
        _repeated("d.k AS a#", ", ", head="SELECT 1 FROM (SELECT f.ds, ", tail=" FROM f JOIN d ON f.ds = d.ds) x"),
        _repeated("x.a# = 1", " AND ", head=" WHERE "),
    ),
    "computed outputs with filters": _both(
        _repeated(
            "d.k + # AS a#", ", ", head="SELECT 1 FROM (SELECT f.ds, ", tail=" FROM f JOIN d ON f.ds = d.ds) x"
        ),
        _repeated("x.a# = 1", " AND ", head=" WHERE "),
    ),
    "windows with filters": _both(
        _repeated(
            "sum(d.k) OVER (PARTITION BY f.ds) a#",
            ", ",
            head="SELECT 1 FROM (SELECT f.ds, ",
            tail=" FROM f JOIN d ON f.ds = d.ds) x",
        ),
        _repeated("x.a# = 1", " AND ", head=" WHERE "),
    ),
    "groups": _repeated(
        "f.id + #",
        ", ",
        head="SELECT 1 FROM (SELECT f.ds FROM f GROUP BY f.ds, ",
        tail=") x JOIN d ON x.ds = d.ds WHERE d.g = 1",
    ),
    "correlated EXISTS": _repeated(
        "EXISTS (SELECT 1 FROM d WHERE d.ds = f.ds AND d.g = #)", " AND ", head="SELECT 1 FROM f WHERE "
    ),
    "IN subqueries": _repeated("f.ds IN (SELECT ds FROM d WHERE g = #)", " AND ", head="SELECT 1 FROM f WHERE "),
    "subqueries of filters": _repeated("d.k IN (SELECT k FROM e WHERE g = #)", " AND ", head=_JOIN),
    "EXISTS within EXISTS": _enclosed(
        "EXISTS (SELECT 1 FROM d d# WHERE d#.ds = f.ds AND ", "1 = 1", ")", head="SELECT 1 FROM f WHERE "
    ),
    "scalar subqueries that are shown": _repeated(
        "(SELECT max(x.id) FROM f x WHERE x.ds = f.ds)",
        ", ",
        head="SELECT ",
        tail=" FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1",
    ),
    "dimensions in subqueries": _repeated(
        "JOIN (SELECT ds FROM d WHERE g = #) x# ON f.ds = x#.ds", head="SELECT 1 FROM f "
    ),
}


def of_length(shape: Shape, chars: int) -> str:
    """The largest statement of a shape that is no longer than so many characters."""
    count = 1
    while len(shape(2 * count)) <= chars:
        count *= 2
    step = count
    while step:
        if len(shape(count + step)) <= chars:
            count += step
        step //= 2
    return shape(count)
