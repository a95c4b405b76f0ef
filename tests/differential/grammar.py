"""A seeded grammar of star queries in Spark SQL.

Everything it makes has one answer as a multiset of rows: LIMIT stands only on a total order, aggregates only
over integers. The exception is a query with a random filter, which is marked as not comparable.
"""

from dataclasses import dataclass, replace
from random import Random

from grammar_filters import Source, accepts_nulls, attribute_filter, computed_filter, implied_by_disjunction
from grammar_joins import Joined, Joins
from grammar_levels import Levels
from grammar_sources import Sources
from grammar_text import dressed
from grammar_views import Views
from star_tables import VALUES, Star, StarView, literal

from rewriter import Column

# The table that CREATE TABLE .. AS and INSERT make or fill.
TARGET = "answer"

# True and false, with and without parentheses.
CLOCK_TERMS = (
    "current_date() >= DATE'2020-01-01'",
    "CURRENT_DATE < DATE'2020-01-01'",
    "current_database() = 'elsewhere'",
)


@dataclass(frozen=True)
class Query:
    """A statement and the shapes that it shows."""

    sql: str
    shapes: frozenset[str]
    # Whether its answer is the same each time it runs.
    comparable: bool = True
    # Statements to run before it, and the query that reads what it wrote (None: it answers itself).
    setup: tuple[str, ...] = ()
    read_back: str | None = None
    # The views that it reads, each behind those that it reads itself.
    views: tuple[StarView, ...] = ()


@dataclass(frozen=True)
class _Select:
    sql: str
    columns: tuple[Column, ...]


def random_query(star: Star, rng: Random) -> Query:
    """One statement over the tables."""
    return _Grammar(Sources(rng, star)).query()


def random_view_query(star: Star, rng: Random, prefix: str = "w") -> Query:
    """One statement over a view with a join in its text; its views have names with the prefix."""
    return _Grammar(Sources(rng, star)).view_query(prefix)


class _Grammar:
    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.rng = sources.rng
        self.shapes = sources.shapes
        self.comparable = True

    def query(self) -> Query:
        return self._of_body(self._body())

    def view_query(self, prefix: str) -> Query:
        """A statement over views; its CTEs are made after theirs."""
        views = Views(self.sources, prefix)
        readers = views.readers()
        if len(readers) == 1:
            body = self._output(readers[0])
        else:
            first, second = map(self._counted, readers)
            body = _Select(f"{first.sql} UNION ALL {second.sql}", first.columns)
        return replace(self._of_body(body), views=tuple(views.made))

    def _of_body(self, body: _Select) -> Query:
        ctes = f"WITH {', '.join(self.sources.ctes)} " if self.sources.ctes else ""
        form = self.rng.random()
        if form < 0.04:
            self.shapes.add("create table as")
            return self._finish(f"CREATE TABLE {TARGET} AS {ctes}{body.sql}", body, setup=())
        if form < 0.08:
            self.shapes.add("insert select")
            columns = ", ".join(f"{c.name} {c.type_name}" for c in body.columns)
            return self._finish(
                f"INSERT INTO {TARGET} {ctes}{body.sql}", body, setup=(f"CREATE TABLE {TARGET} ({columns})",)
            )
        return self._finish(ctes + body.sql, body, setup=None)

    def _finish(self, sql: str, body: _Select, setup: tuple[str, ...] | None) -> Query:
        writes = setup is not None and bool(body.columns)
        if setup is not None and not writes:
            # SELECT * may show one name twice, which no table can.
            sql = sql[sql.index("SELECT") :] if not self.sources.ctes else sql[sql.index("WITH") :]
            self.shapes -= {"create table as", "insert select"}
        text, text_shapes = dressed(sql, self.rng)
        shapes = frozenset(self.shapes | text_shapes)
        if not writes:
            return Query(text, shapes, self.comparable)
        return Query(text, shapes, self.comparable, setup or (), f"SELECT * FROM {TARGET}")

    def _body(self) -> _Select:
        form = self.rng.random()
        if form < 0.08:
            self.shapes.add("union all")
            first, second = (self._counted(self._block()) for _ in "12")
            return _Select(f"{first.sql} UNION ALL {second.sql}", first.columns)
        if form < 0.14:
            return self._cte_twice()
        if form < 0.26:
            return self._nested()
        if form < 0.5:
            return self._levels(form)
        if form < 0.55:
            return self._output(Levels(self.sources).united())
        return self._output(Levels(self.sources).lateral() if form < 0.58 else self._block())

    def _levels(self, form: float) -> _Select:
        """Blocks upon blocks."""
        if form < 0.34:
            return self._output(Levels(self.sources).stacked())
        if form < 0.42:
            return self._several_readers()
        return self._output(Levels(self.sources).outer_within())

    def _cte_twice(self) -> _Select:
        """A CTE over a fact in two branches, only one of which need be joined."""
        self.shapes.add("cte used twice")
        table = self.sources.star.table("f1")
        name = self.sources.name("c")
        twice = self.sources.cte(name, "SELECT * FROM f1", table.columns)
        second = Source(f"{name} again", "again", table.columns, is_fact=True)
        joined = self._reduced(twice)
        other = self._reduced(second) if self.sources.chance(0.5) else Joined(second.sql, [second])
        branches = self._counted(joined), self._counted(other)
        return _Select(f"{branches[0].sql} UNION ALL {branches[1].sql}", branches[0].columns)

    def _several_readers(self) -> _Select:
        readers = Levels(self.sources).several_readers()
        if len(readers) == 1:
            return self._output(readers[0])
        first, second = map(self._counted, readers)
        return _Select(f"{first.sql} UNION ALL {second.sql}", first.columns)

    def _reduced(self, fact: Source) -> Joined:
        small = self.sources.dimension()
        terms = Joins(self.sources).equalities([fact], [small]) or ["TRUE"]
        joined = Joined(f"{fact.sql} JOIN {small.sql} ON {' AND '.join(terms)}", [fact, small])
        joined.where.append(attribute_filter(self.rng, small))
        return joined

    def _nested(self) -> _Select:
        """A block as a source of another block, filtered and maybe joined again above."""
        self.shapes.add("filter above")
        inner = self._columns(self._block())
        alias = self.sources.name("v")
        source = Source(f"({inner.sql}) {alias}", alias, inner.columns, is_fact=True)
        if self.sources.chance(0.2):
            self.shapes.add("derived table without an alias")
            source = Source(f"({inner.sql})", "", inner.columns, is_fact=True)
            joined = Joined(source.sql, [source])
            joined.where.append(attribute_filter(self.rng, source))
            return self._columns(joined)
        joined = self._reduced(source) if self.sources.chance(0.6) else Joined(source.sql, [source])
        nulls = self.sources.chance(0.4)
        joined.where.append((accepts_nulls if nulls else attribute_filter)(self.rng, source))
        return self._output(joined)

    def _block(self) -> Joined:
        joined = Joins(self.sources).joined()
        self._filter(joined)
        if self.sources.chance(0.3):
            self._reduce_in_where(joined)
        if self.sources.chance(0.06):
            self._lateral_view(joined)
        self.rng.shuffle(joined.where)
        return joined

    def _lateral_view(self, joined: Joined) -> None:
        """A generator of literals; or of a source's column, with a value where that is null, beside a fact."""
        self.shapes.add("lateral view")
        alias, made = self.sources.name("e"), "1, 2"
        small = [source for source in joined.visible if not source.is_fact]
        outer, source = (self.rng.choice(some or joined.visible) for some in (joined.facts, small))
        pair = self._columns_alike(outer, source)
        if pair is not None and self.sources.chance(0.7):
            self.shapes.add("generator of a column")
            mine, other = (one.qualified(column) for one, column in zip((outer, source), pair, strict=True))
            value = literal(pair[1].type_name, self.rng.choice(VALUES[pair[1].type_name]))
            joined.where.append(f"{mine} = {alias}.z")
            made = f"{other}, coalesce({other}, {value})"
        joined.sql += f" LATERAL VIEW explode(array({made})) {alias} AS z"

    def _filter(self, joined: Joined) -> None:
        small = [source for source in joined.visible if not source.is_fact]
        for source in small:
            if self.sources.chance(0.6):
                self.shapes.add("filter in where")
                make = computed_filter if self.sources.chance(0.15) else attribute_filter
                joined.where.append(make(self.rng, source))
        if joined.padded and self.sources.chance(0.4):
            padded = [source for source in joined.padded if source in joined.visible]
            if padded:
                self.shapes.add("null-accepting filter above an outer join")
                joined.where.append(accepts_nulls(self.rng, self.rng.choice(padded)))
        if self.sources.chance(0.2):
            joined.where.append(attribute_filter(self.rng, self.rng.choice(joined.visible)))
        if small and joined.facts:
            self._special_filter(joined, self.rng.choice(joined.facts), self.rng.choice(small))

    def _special_filter(self, joined: Joined, fact: Source, small: Source) -> None:
        form = self.rng.random()
        column = small.qualified(self.rng.choice(small.columns))
        if form < 0.05:
            self.shapes.add("filter implied by a disjunction")
            joined.where.append(implied_by_disjunction(self.rng, fact, small))
        elif form < 0.08:
            self.shapes.add("random filter")
            self.comparable = False
            joined.where.append(f"if({column} IS NULL, rand(), rand()) < 0.5")
        elif form < 0.11:
            self.shapes.add("clock filter")
            joined.where.append(f"({self.rng.choice(CLOCK_TERMS)} OR {column} IS NULL)")
        elif form < 0.17:
            self._weak_equality(joined, fact, small)

    def _weak_equality(self, joined: Joined, fact: Source, small: Source) -> None:
        terms = Joins(self.sources).equalities([fact], [small])
        if terms and self.sources.chance(0.5):
            self.shapes.add("equality under or")
            joined.where.append(f"({terms[0]} OR {attribute_filter(self.rng, fact)})")
        elif terms:
            self.shapes.add("equality under not")
            joined.where.append(f"NOT ({terms[0]})")

    def _reduce_in_where(self, joined: Joined) -> None:
        """A semi-join, an anti-join or a scalar subquery on a source of the block."""
        outer = self.rng.choice(joined.facts or joined.visible)
        inner = self.sources.dimension() if self.sources.chance(0.85) else self.sources.fact()
        small = [source for source in joined.visible if not source.is_fact]
        if small and self.sources.chance(0.2):
            self.shapes.add("fact probed")
            outer, inner = self.rng.choice(small), self.sources.plain(self.sources.star.table("f1"))
            joined.where.append(attribute_filter(self.rng, outer))
        terms = Joins(self.sources).equalities([outer], [inner])
        if not terms:
            return
        condition = f" AND {attribute_filter(self.rng, inner)}" if self.sources.chance(0.8) else ""
        exists = f"EXISTS (SELECT 1 FROM {inner.sql} WHERE {' AND '.join(terms)}{condition})"
        form = self.rng.choice(("exists", "not exists", "in subquery", "not in subquery", "scalar subquery"))
        if form in {"exists", "not exists"}:
            self.shapes.add(form)
            joined.where.append(exists if form == "exists" else f"NOT {exists}")
            return
        pair = self._column_pair(outer, inner)
        if pair is None:
            return
        self.shapes.add(form)
        mine, other = pair
        where = f" WHERE {attribute_filter(self.rng, inner)}" if condition else ""
        if form == "scalar subquery":
            shown = self.rng.choice((f"max({other})", f"coalesce(min({other}), max({other}))"))
            sign = self.rng.choice(("=", "=", ">="))
            joined.where.append(f"{mine} {sign} (SELECT {shown} FROM {inner.sql}{where})")
        else:
            negation = "NOT " if form == "not in subquery" else ""
            first = f" ORDER BY {other} DESC LIMIT 2" if self.sources.chance(0.2) else ""
            joined.where.append(f"{mine} {negation}IN (SELECT {other} FROM {inner.sql}{where}{first})")

    def _column_pair(self, outer: Source, inner: Source) -> tuple[str, str] | None:
        pair = self._columns_alike(outer, inner)
        return (outer.qualified(pair[0]), inner.qualified(pair[1])) if pair is not None else None

    def _columns_alike(self, outer: Source, inner: Source) -> tuple[Column, Column] | None:
        pairs = [
            (a, b)
            for a in outer.columns
            for b in inner.columns
            if a.type_name == b.type_name and a.name[0] == "k" and b.name[0] in "kl"
        ]
        return self.rng.choice(pairs) if pairs else None

    def _output(self, joined: Joined) -> _Select:
        form = self.rng.random()
        if form < 0.15:
            self.shapes.add("star")
            return _Select(f"SELECT * FROM {joined.sql}{self._where(joined)}", ())
        if form < 0.3:
            return self._counted(joined)
        if form < 0.5:
            return self._grouped(joined)
        if form < 0.6:
            self.shapes.add("distinct above")
            return self._columns(joined, "DISTINCT ")
        return self._columns(joined)

    def _where(self, joined: Joined) -> str:
        return f" WHERE {' AND '.join(joined.where)}" if joined.where else ""

    def _measure(self, joined: Joined) -> str:
        numbers = [s.qualified(c) for s in joined.visible for c in s.columns if c.type_name == "int"]
        return f"sum({self.rng.choice(numbers)})" if numbers else "count(1)"

    def _counted(self, joined: Joined) -> _Select:
        self.shapes.add("aggregate above")
        measure = self._measure(joined)
        columns = Column("c0", "bigint"), Column("c1", "bigint")
        sql = f"SELECT count(*) AS c0, {measure} AS c1 FROM {joined.sql}{self._where(joined)}"
        return _Select(sql, columns)

    def _grouped(self, joined: Joined) -> _Select:
        self.shapes.add("aggregate above")
        source = self.rng.choice(joined.visible)
        column = self.rng.choice(source.columns)
        key = source.qualified(column)
        group = "1" if self.sources.chance(0.3) else key
        having = ""
        if self.sources.chance(0.25):
            self.shapes.add("having above")
            having = " HAVING count(*) > 1"
        outputs = f"{key} AS k0, count(*) AS c1, {self._measure(joined)} AS c2"
        sql = f"SELECT {outputs} FROM {joined.sql}{self._where(joined)} GROUP BY {group}{having}"
        return _Select(sql, (Column("k0", column.type_name), Column("c1", "bigint"), Column("c2", "bigint")))

    def _columns(self, joined: Joined, distinct: str = "") -> _Select:
        shown = [(source, column) for source in joined.visible for column in source.columns]
        chosen = self.rng.sample(shown, min(len(shown), self.rng.randint(2, 4)))
        names = [("k" if column.name[0] == "k" else "c") + str(i) for i, (_, column) in enumerate(chosen)]
        outputs = ", ".join(f"{s.qualified(c)} AS {n}" for (s, c), n in zip(chosen, names, strict=True))
        columns = tuple(Column(n, c.type_name) for (_, c), n in zip(chosen, names, strict=True))
        return _Select(f"SELECT {distinct}{outputs} FROM {joined.sql}{self._where(joined)}", columns)
