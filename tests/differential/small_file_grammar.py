"""Statements of many kinds over tables of many small files: any of them may depend on the order of rows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from small_file_parts import (
    ALL,
    DEPENDING,
    FILTERS,
    FRAMES,
    FRAMES_DEPENDING,
    KINDS,
    NUMBERS,
    OF_ANY,
    OF_NUMBERS,
    OF_SORTED,
    ROW_DEPENDING,
    ROW_EXPRESSIONS,
    SORTED,
    WINDOWS,
    WINDOWS_DEPENDING,
)

T = TypeVar("T")

_TABLE = re.compile(r"\bmany\b")
# The share of statements over the table whose floating-point numbers are texts.
_OF_TEXTS = 0.35


@dataclass(frozen=True)
class Made:
    """A statement, and whether a part was put into it that depends on the order of rows or on tasks."""

    sql: str
    depends: bool
    # True if its rows come in one order: all that it shows it is ordered by.
    is_ordered: bool
    shapes: frozenset[str]


def random_statement(rng: Random) -> Made:
    """A statement that reads the table `many` once."""
    maker = _Maker(rng)
    sql = maker.statement()
    if rng.random() < _OF_TEXTS and "seen" not in sql:
        maker.shapes.add("texts")
        sql = _TABLE.sub("texts", sql)
    return Made(sql, maker.depends, maker.is_ordered, frozenset(maker.shapes))


@dataclass
class _Maker:
    """Makes one statement, and notes of what it consists."""

    rng: Random
    shapes: set[str] = field(default_factory=set)
    depends: bool = False
    is_ordered: bool = False
    # A part that depends on the order of rows is put into one statement of six.
    depending_share: float = 0.0

    def __post_init__(self) -> None:
        self.depending_share = 0.5 if self._chance(0.17) else 0.0

    def statement(self) -> str:
        makers: dict[str, Callable[[str], str]] = {
            "rows": self._rows,
            "groups": self._groups,
            "one row": self._one_row,
            "window": self._window,
            "distinct": self._distinct,
            "set operation": self._set_operation,
            "aggregated twice": self._twice,
            "pivot": self._pivot,
        }
        shape = self.rng.choices(list(makers), (3, 6, 3, 4, 2, 3, 2, 1))[0]
        self.shapes.add(shape)
        with_text, source = self._source()
        return with_text + makers[shape](source)

    def _source(self) -> tuple[str, str]:
        """A WITH if there is one, and what stands behind FROM: it has all the columns of the table."""
        makers: dict[str, Callable[[], str]] = {
            "table": lambda: "many",
            "alias": lambda: f"many {self._pick(('a', 'AS i', 'm'))}",
            "derived table": lambda: f"({self._inner()}) q",
            "CTE": lambda: "many",
            "join": self._join,
            "union": lambda: f"({self._inner(may_be_star=False)} UNION ALL SELECT {self._nulls()} FROM other) u",
            "lateral view": self._lateral_view,
            "sample": self._sample,
            "view": lambda: "seen",
            "values": lambda: "many CROSS JOIN (VALUES (1.5D), (0.1D)) v (w)",
        }
        shape = self.rng.choices(list(makers), (8, 3, 5, 3, 5, 2, 3, 1, 1, 1))[0]
        self.shapes.add(shape)
        if shape == "CTE":
            return f"WITH cte AS ({self._inner()}) ", "cte"
        return "", makers[shape]()

    def _sample(self) -> str:
        self.depends = True
        return self._pick(("many TABLESAMPLE (50 PERCENT)", "many TABLESAMPLE (5 ROWS)"))

    def _lateral_view(self) -> str:
        return "many LATERAL VIEW " + self._pick(
            (
                "explode(a) x AS e1",
                "OUTER explode(e) x AS e1",
                "posexplode(e) x AS k, i1",
                "explode(array(st)) x AS w",
            )
        )

    def _join(self) -> str:
        kind = self._pick(KINDS)
        if kind == "CROSS JOIN":
            return "many CROSS JOIN (SELECT w, label FROM other) o"
        alike = self._pick(("many.i = o.k", "many.i = o.k AND o.w > 0", "many.z = o.w", "many.n < o.k"))
        return f"many {kind} (SELECT i AS k, w, label FROM other) o ON {alike}"

    def _inner(self, *, may_be_star: bool = True) -> str:
        """A SELECT with all columns of the table, of which some are another's."""
        names = list(ALL)
        texts = {name: name for name in names}
        if self._chance(0.5):
            # The name of a column that is exact hides one that is not.
            name, value = self._pick(
                (
                    ("i", "d"),
                    ("n", "z"),
                    ("m2", "d"),
                    ("i", "st.i"),
                    ("d", "i"),
                    ("m2", "CAST(i AS DOUBLE)"),
                    ("n", "i / 2"),
                )
            )
            self.shapes.add("hidden by an alias")
            texts[name] = f"{value} AS {name}"
            may_be_star = False
        columns = "*" if may_be_star and self._chance(0.3) else ", ".join(texts.values())
        where = f" WHERE {self._pick(FILTERS)}" if self._chance(0.2) else ""
        limit = ""
        if self._depend():
            self.depends = True
            limit = self._pick((" LIMIT 20", " LIMIT 20 OFFSET 3", " ORDER BY i LIMIT 17"))
        return f"SELECT {columns} FROM many{where}{limit}"

    def _nulls(self) -> str:
        return ", ".join("i" if name == "i" else f"NULL AS {name}" for name in ALL)

    def _rows(self, source: str) -> str:
        shown = [self._row_expression() for _ in range(self.rng.randint(1, 3))]
        columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(shown))
        return f"SELECT {columns} FROM {source}{self._where()}{self._order(len(shown))}"

    def _distinct(self, source: str) -> str:
        names = self._names(ALL[:-1], 2)
        return f"SELECT DISTINCT {', '.join(names)} FROM {source}{self._where()}{self._order(len(names))}"

    def _one_row(self, source: str) -> str:
        found = [self._aggregate() for _ in range(self.rng.randint(1, 3))]
        columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(found))
        return f"SELECT {columns} FROM {source}{self._where()}"

    def _groups(self, source: str) -> str:
        keys = self._names((*SORTED, "st"), 2)
        aggregates = [self._aggregate() for _ in range(self.rng.randint(1, 3))]
        self.shapes.add(
            grouping := self.rng.choice(("plain", "ROLLUP", "CUBE", "GROUPING SETS", "ordinals", "ALL"))
        )
        listed = ", ".join(keys)
        by = {
            "plain": listed,
            "ROLLUP": f"ROLLUP ({listed})",
            "CUBE": f"CUBE ({listed})",
            "GROUPING SETS": f"GROUPING SETS (({listed}), ({keys[0]}), ())",
            "ordinals": ", ".join(str(number + 1) for number in range(len(keys))),
            "ALL": "ALL",
        }[grouping]
        columns = ", ".join([*keys, *(f"{text} AS c{number}" for number, text in enumerate(aggregates))])
        having = (
            f" HAVING {self._pick(('count(*) > 1', 'max(i) > 0', 'max(z) >= 0'))}" if self._chance(0.2) else ""
        )
        order = self._order(len(keys) + len(aggregates))
        return f"SELECT {columns} FROM {source}{self._where()} GROUP BY {by}{having}{order}"

    def _window(self, source: str) -> str:
        name = self._pick(NUMBERS)
        function = self._pick(WINDOWS).format(name)
        frame = self._pick(FRAMES)
        order = self._pick(("i", "z", "s", "n, i", "p"))
        if self._depend():
            self.depends = True
            if self._chance(0.5):
                function = self._pick(WINDOWS_DEPENDING).format(name)
                frame = ""
            else:
                function, frame = f"count({name})", self._pick(FRAMES_DEPENDING)
        elif frame.endswith("FOLLOWING") and frame.startswith("RANGE"):
            order = self._pick(("i", "n", "d"))
        if function in {"rank()", "dense_rank()"}:
            frame = ""
        partition = self._pick(("", f"PARTITION BY {self._pick(SORTED)} "))
        by = f"ORDER BY {order} " if frame or "rank" in function or self._chance(0.6) or self.depends else ""
        over = f"{partition}{by}{frame}".strip()
        shown = ", ".join(self._names(SORTED, 2))
        if self._chance(0.2):
            self.shapes.add("named window")
            return f"SELECT {shown}, {function} OVER w AS c FROM {source}{self._where()} WINDOW w AS ({over})"
        return f"SELECT {shown}, {function} OVER ({over}) AS c FROM {source}{self._where()}"

    def _set_operation(self, source: str) -> str:
        self.shapes.add(
            kind := self._pick(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
        )
        pairs = (("i", "i"), ("z", "w"), ("d", "w"), ("s", "label"), ("max(z)", "max(w)"), ("i, z", "i, w"))
        own, other = self._pick(pairs)
        order = self._order(own.count(",") + 1)
        return f"SELECT {own} FROM {source}{self._where()} {kind} SELECT {other} FROM other{order}"

    def _twice(self, source: str) -> str:
        inner, outer = (
            self._aggregate(),
            self._pick(("sum(v)", "max(v)", "count(v)", "avg(v)", "max(k)", "min(v)")),
        )
        key = self._pick(SORTED)
        return f"SELECT {outer} AS c FROM (SELECT {key} AS k, {inner} AS v FROM {source} GROUP BY {key}) g"

    def _pivot(self, source: str) -> str:
        value, name = self._pick(("sum", "max", "count", "avg")), self._pick(NUMBERS)
        if self._chance(0.3):
            return f"SELECT * FROM (SELECT i, d FROM {source}) UNPIVOT (v FOR k IN (d))"
        return f"SELECT * FROM (SELECT s, n, {name} AS v FROM {source}) PIVOT ({value}(v) FOR s IN ('a', 'b'))"

    def _aggregate(self) -> str:
        if self._depend():
            self.depends = True
            return self._pick(DEPENDING).format(self._pick(NUMBERS))
        kinds = (OF_SORTED, OF_NUMBERS, OF_ANY)
        texts, names = self.rng.choices(list(zip(kinds, (SORTED, NUMBERS, ALL[:-1]), strict=True)), (3, 5, 1))[0]
        text, name = self._pick(texts), self._pick(names)
        self.shapes.add(text)
        return text.replace("{}", name)

    def _row_expression(self) -> str:
        if self._depend():
            self.depends = True
            return self._pick(ROW_DEPENDING)
        return self._pick(ROW_EXPRESSIONS)

    def _where(self) -> str:
        return f" WHERE {self._pick(FILTERS)}" if self._chance(0.25) else ""

    def _order(self, shown: int) -> str:
        """An ORDER BY of all or some of the outputs, and a LIMIT."""
        if self._depend():
            self.depends = True
            return " LIMIT 3"
        if self._chance(0.6):
            return ""
        places = [str(place + 1) for place in range(shown)]
        self.rng.shuffle(places)
        limit = f" LIMIT {self.rng.randint(1, 9)}" if self._chance(0.5) else ""
        if self._chance(0.3):
            self.shapes.add("ordered by some" + limit[:6])
            return f" ORDER BY {places[0]} DESC{limit}"
        self.is_ordered = True
        self.shapes.add("ordered by all" + limit[:6])
        return f" ORDER BY {', '.join(places)}{limit}"

    def _names(self, names: Sequence[str], most: int) -> list[str]:
        return self.rng.sample(names, self.rng.randint(1, most))

    def _depend(self) -> bool:
        return self._chance(self.depending_share)

    def _pick(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share
