"""What may stand in a FROM: tables, and what users put between a table and its join."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from grammar_filters import Source, attribute_filter
from star_tables import KEY_TYPES, REFUSED_TYPES, VALUES, Star, Table, literal, random_value

from rewriter import Column

# The database of the tables, by DuckDB's name for its own.
HERE = "main"

_FACTS = ("f1", "f1", "f2")
_DIMENSIONS = ("d1", "d1", "d2", "d3")


@dataclass
class Sources:
    """Makes the sources of one query, with names of their own, and collects its CTEs and its shapes."""

    rng: Random
    star: Star
    shapes: set[str] = field(default_factory=set)
    ctes: list[str] = field(default_factory=list)
    _names: int = 0

    def chance(self, probability: float) -> bool:
        """True that often."""
        return self.rng.random() < probability

    def name(self, prefix: str) -> str:
        """A name that nothing else in the query has."""
        self._names += 1
        return f"{prefix}{self._names}"

    def fact(self, used: Iterable[str] = ()) -> Source:
        """A fact, in half of the cases behind something."""
        table = self.star.table(self.rng.choice(_FACTS))
        if self.chance(0.6):
            return self.plain(table, used)
        make = self.rng.choice(
            (
                self._derived_fact,
                self._renamed_fact,
                self._grouped_fact,
                self._windowed_fact,
                self._distinct_fact,
                self._limited_fact,
                self._union_fact,
                self._cte_fact,
                self._shadowing_fact,
            )
        )
        return make(table)

    def dimension(self, used: Iterable[str] = ()) -> Source:
        """A dimension, mostly the table itself."""
        table = self.star.table(self.rng.choice(_DIMENSIONS))
        if self.chance(0.75):
            return self.plain(table, used)
        make = self.rng.choice(
            (
                self._derived_dimension,
                self._aggregated_dimension,
                self._snowflake,
                self._chained_dimension,
                self._dimension_within_with,
                self._inline_dimension,
                self._top_dimension,
                self._ranked_dimension,
                self._extremes_of_a_fact,
            )
        )
        return make(table)

    def plain(self, table: Table, used: Iterable[str] = ()) -> Source:
        """A table, under its own name where that is free and chance will."""
        by_database = f"{HERE}.{table.name}"
        if not {table.name, by_database} & {*used} and self.chance(0.35):
            if self.chance(0.25):
                self.shapes.add("named by database")
                return Source(by_database, by_database, table.columns, table.is_fact, table.name)
            self.shapes.add("no alias")
            return Source(table.name, table.name, table.columns, table.is_fact, table.name)
        alias = self.name("t")
        written = f"{table.name} AS {alias}" if self.chance(0.5) else f"{table.name} {alias}"
        return Source(written, alias, table.columns, table.is_fact, table.name)

    def _select(self, columns: str, table: Table, rest: str = "") -> str:
        where = f" WHERE {self._filter(table)}" if self.chance(0.3) else ""
        return f"SELECT {columns} FROM {table.name}{where}{rest}"

    def _filter(self, table: Table) -> str:
        return attribute_filter(self.rng, Source(table.name, table.name, table.columns))

    def _derive(self, select: str, columns: tuple[Column, ...], *, is_fact: bool) -> Source:
        alias = self.name("v")
        return Source(f"({select}) {alias}", alias, columns, is_fact)

    def _derived_fact(self, table: Table) -> Source:
        self.shapes.add("derived fact")
        return self._derive(self._select("*", table), table.columns, is_fact=True)

    def _renamed_fact(self, table: Table) -> Source:
        self.shapes |= {"derived fact", "renamed key"}
        columns = Column("key1", table.column("k1").type_name), Column("m", "int")
        select = self._select("k1 AS key1, m", table)
        return self._derive(select, columns, is_fact=True)

    def _grouped_fact(self, table: Table) -> Source:
        self.shapes.add("group key below")
        columns = table.column("k1"), Column("n", "bigint"), Column("m", "int")
        select = self._select("k1, count(*) AS n, max(m) AS m", table, " GROUP BY k1")
        return self._derive(select, columns, is_fact=True)

    def _windowed_fact(self, table: Table) -> Source:
        self.shapes.add("window partition key below")
        partition = self.rng.choice(("k1", "k2", "k1, k2"))
        window = f"count(*) OVER (PARTITION BY {partition}) AS w"
        if self.chance(0.3):
            columns = *table.columns, Column("w", "bigint")
            return self._derive(self._select(f"*, {window}", table), columns, is_fact=True)
        some = table.column("k1"), table.column("k2"), Column("w", "bigint")
        return self._derive(self._select(f"k1, k2, {window}", table), some, is_fact=True)

    def _distinct_fact(self, table: Table) -> Source:
        self.shapes.add("distinct below")
        columns = table.column("k1"), table.column("k2"), table.column("m")
        return self._derive(self._select("DISTINCT k1, k2, m", table), columns, is_fact=True)

    def _limited_fact(self, table: Table) -> Source:
        # One distinct column in a total order: the only LIMIT whose rows are certain.
        self.shapes.add("limit below")
        select = self._select("DISTINCT k1", table, " ORDER BY k1 LIMIT 2")
        return self._derive(select, (table.column("k1"),), is_fact=True)

    def _union_fact(self, table: Table) -> Source:
        self.shapes.add("union branches below")
        other = self.star.table(self.rng.choice(_FACTS))
        union = self.rng.choice(("UNION ALL", "UNION"))
        key, type_name = "k1", table.column("k1").type_name
        if type_name in {"string", other.column("k1").type_name} and self.chance(0.3):
            self.shapes.add("union branch that casts")
            key = f"CAST(k1 AS {type_name.upper()})"
        select = f"{self._select('k1, k2, m', table)} {union} {self._select(f'{key}, k2, m', other)}"
        columns = table.column("k1"), table.column("k2"), table.column("m")
        return self._derive(select, columns, is_fact=True)

    def _cte_fact(self, table: Table) -> Source:
        return self.cte(self.name("c"), self._select("*", table), table.columns)

    def cte(self, name: str, select: str, columns: tuple[Column, ...]) -> Source:
        """A reference to a new CTE that stands for a fact."""
        self.shapes.add("cte")
        self.ctes.append(f"{name} AS ({select})")
        alias = self.name("t")
        return Source(f"{name} {alias}", alias, columns, is_fact=True)

    def _shadowing_fact(self, table: Table) -> Source:
        # The CTE takes the name of the other fact, which then means the CTE everywhere after it.
        other = "f2" if table.name == "f1" else "f1"
        if self.ctes or self._names:
            return self._derived_fact(table)
        self.shapes.add("cte with a table's name")
        return self.cte(other, self._select("*", table), table.columns)

    def _derived_dimension(self, table: Table) -> Source:
        self.shapes.add("derived dimension")
        select = f"SELECT * FROM {table.name} WHERE {self._filter(table)}"
        return self._derive(select, table.columns, is_fact=False)

    def _aggregated_dimension(self, table: Table) -> Source:
        self.shapes.add("aggregated dimension")
        key = next(column for column in table.columns if column.name[0] == "k")
        attribute = next(column for column in table.columns if column.name[0] == "a")
        select = self._select(
            f"{key.name}, max({attribute.name}) AS {attribute.name}", table, f" GROUP BY {key.name}"
        )
        return self._derive(select, (key, attribute), is_fact=False)

    def _extremes_of_a_fact(self, table: Table) -> Source:
        """The first or last keys of a fact, mostly of those that a filter on the key leaves."""
        fact = self.star.table(self.rng.choice(_FACTS))
        key, m = fact.column("k1"), fact.column("m")
        if key.type_name not in VALUES:
            return self._derived_dimension(table)
        self.shapes.add("extremes of a fact")
        filtered = (key,) if self.chance(0.8) else (key, m)
        where = attribute_filter(self.rng, Source(fact.name, fact.name, filtered))
        extreme = f"{self.rng.choice(('max', 'min'))}({key.name}) AS {key.name}"
        return self._derive(
            f"SELECT m, {extreme} FROM {fact.name} WHERE {where} GROUP BY m", (key, m), is_fact=False
        )

    def _chained_dimension(self, table: Table) -> Source:
        """A CTE over one that imports the table, as dbt writes them."""
        self.shapes.add("chain of ctes")
        imported, filtered, alias = self.name("c"), self.name("c"), self.name("t")
        condition = attribute_filter(self.rng, Source(imported, imported, table.columns))
        self.ctes.append(f"{imported} AS (SELECT * FROM {table.name})")
        self.ctes.append(f"{filtered} AS (SELECT * FROM {imported} WHERE {condition})")
        return Source(f"{filtered} {alias}", alias, table.columns)

    def _dimension_within_with(self, table: Table) -> Source:
        """A derived table with a WITH of its own."""
        self.shapes.add("nested with")
        name = self.name("c")
        return self._derive(
            f"WITH {name} AS ({self._select('*', table)}) SELECT * FROM {name}", table.columns, is_fact=False
        )

    def _inline_dimension(self, table: Table) -> Source:
        """A few rows of the table's columns, written out."""
        self.shapes.add("inline rows")
        rows = [
            [literal(column.type_name, random_value(self.rng, column.type_name)) for column in table.columns]
            for _ in range(self.rng.randint(1, 4))
        ]
        alias, names = self.name("v"), [column.name for column in table.columns]
        if self.chance(0.5):
            values = ", ".join(f"({', '.join(row)})" for row in rows)
            return Source(f"(VALUES {values}) AS {alias}({', '.join(names)})", alias, table.columns)
        first = ", ".join(f"{value} AS {name}" for value, name in zip(rows[0], names, strict=True))
        union = " UNION ALL ".join(f"SELECT {shown}" for shown in (first, *map(", ".join, rows[1:])))
        return self._derive(union, table.columns, is_fact=False)

    def _top_dimension(self, table: Table) -> Source:
        """Some rows by an order of all that is shown of them."""
        self.shapes.add("top rows")
        columns = tuple(column for column in table.columns if column.type_name in KEY_TYPES)
        names = [column.name for column in columns]
        ordered = self.rng.sample(names, len(names))
        order = ", ".join(f"{name}{self.rng.choice(('', ' DESC', ' ASC NULLS LAST'))}" for name in ordered)
        select = self._select(", ".join(names), table, f" ORDER BY {order} LIMIT {self.rng.randint(1, 4)}")
        return self._derive(select, columns, is_fact=False)

    def _ranked_dimension(self, table: Table) -> Source:
        self.shapes.add("ranks")
        columns = tuple(column for column in table.columns if column.type_name in KEY_TYPES)
        by, within = self.rng.choice(columns).name, self.rng.choice(columns).name
        rank = self.rng.choice(("rank()", "dense_rank()", f"count({by})"))
        window = f"{rank} OVER (PARTITION BY {within} ORDER BY {by} DESC) AS a9"
        select = f"SELECT {', '.join(column.name for column in columns)}, {window} FROM {table.name}"
        return self._derive(f"SELECT * FROM ({select}) WHERE a9 <= 2", columns, is_fact=False)

    def _snowflake(self, _: Table) -> Source:
        self.shapes.add("snowflake dimension")
        d, s = self.star.table("d1"), self.star.table("s1")
        inner = attribute_filter(self.rng, Source("s1", "s1", s.columns))
        select = f"SELECT d1.k1, d1.a1, s1.x FROM d1 JOIN s1 ON d1.s = s1.s WHERE {inner}"
        return self._derive(select, (d.column("k1"), d.column("a1"), s.column("x")), is_fact=False)


def is_refused(column: Column) -> bool:
    """Whether the column's type is one that is never a key."""
    return column.type_name in REFUSED_TYPES
