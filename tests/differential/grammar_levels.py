"""Blocks upon blocks: CTEs with several readers, filters levels above a join, stars and what shifts them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grammar_filters import Source, accepts_nulls, attribute_filter, computed_filter, computed_output
from grammar_joins import Joined, Joins
from grammar_sources import Sources
from star_tables import VALUES, literal

from rewriter import Column

_KINDS = (*("JOIN",) * 4, *("LEFT JOIN", "RIGHT JOIN") * 2, "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


@dataclass(frozen=True)
class _Block:
    """A SELECT, and of the columns that it shows those with a name of their own."""

    sql: str
    columns: tuple[Column, ...]


@dataclass
class Levels:
    """Puts a joined fact under one or more further blocks, which filter it."""

    sources: Sources

    def stacked(self) -> Joined:
        """One to three blocks on top of each other, filtered at the top and maybe between."""
        self.sources.shapes.add("filter levels above")
        block = self._joined_fact()
        for _ in range(self.sources.rng.choice((0, 1, 1, 2))):
            block = self._above(block)
        return self._filtered(self._derived(block))

    def outer_within(self) -> Joined:
        """A fact that an outer join keeps within a derived table or a CTE, with filters outside."""
        self.sources.shapes.add("filter above an outer join within")
        fact = self.sources.fact()
        small = self.sources.dimension([fact.alias])
        terms = Joins(self.sources).equalities([fact], [small]) or ["TRUE"]
        terms += [self._filter(small)] if self.sources.chance(0.4) else []
        left, kind, right = self.sources.rng.choice(
            ((fact, "LEFT JOIN", small), (small, "RIGHT JOIN", fact), (fact, "FULL JOIN", small))
        )
        block, padded = self._partly_computed(
            fact, small, f"{left.sql} {kind} {right.sql} ON {' AND '.join(terms)}"
        )
        source = self._derived(block)
        if self.sources.chance(0.3):
            name = self.sources.name("c")
            self.sources.ctes.append(f"{name} AS ({block.sql})")
            source = Source(name, name, block.columns, is_fact=True)
        joined = Joined(source.sql, [source])
        if self.sources.chance(0.25):
            joined = self.joined(source, self.sources.dimension())
        for chance in (1, 0.6) if source in joined.visible else ():
            if self.sources.chance(chance):
                make = computed_filter if self.sources.chance(0.5) else attribute_filter
                joined.where.append(make(self.sources.rng, replace(source, columns=padded)))
        return joined

    def united(self) -> Joined:
        """Two facts of which an outer join shows one column, here or in a derived table, and a small side."""
        self.sources.shapes.add("columns united by an outer join")
        rng, first = self.sources.rng, self.sources.fact()
        second = self.sources.fact([first.alias])
        small = self.sources.dimension([first.alias, second.alias])
        keys = [replace(one, columns=tuple(c for c in one.columns if c.name[0] == "k")) for one in (first, second)]
        pair, other = self._pair(keys[0], keys[1]), self._pair(first, second)
        if pair is None or other is None:
            return self.joined(first, small)
        a, b = first.qualified(pair[0]), second.qualified(pair[1])
        compared = (a, b) if self.sources.chance(0.8) else (first.qualified(other[0]), second.qualified(other[1]))
        terms = [f"{compared[0]} = {compared[1]}"]
        terms += [self._filter(rng.choice((first, second)))] if self.sources.chance(0.3) else []
        kind = rng.choice(("FULL JOIN", "FULL JOIN", "LEFT JOIN", "RIGHT JOIN", "JOIN"))
        text = f"{first.sql} {kind} {second.sql} ON {' AND '.join(terms)}"
        shown = rng.choice((f"coalesce({a}, {b})", f"coalesce({b}, {a})"))
        alike = [column for column in small.columns if column.type_name == pair[0].type_name]
        key = small.qualified(rng.choice(alike or small.columns))
        if self.sources.chance(0.5):
            text = f"({text})" if self.sources.chance(0.3) else text
            joined = Joined(f"{text} JOIN {small.sql} ON {key} = {shown}", [first, second, small])
            joined.where += [self._filter(source) for source in joined.visible if self.sources.chance(0.3)]
        else:
            columns = (Column("k0", pair[0].type_name), Column("c1", first.columns[-1].type_name))
            outputs = f"{shown} AS k0, {first.qualified(first.columns[-1])} AS c1"
            distinct = "DISTINCT " if self.sources.chance(0.2) else ""
            block = _Block(f"SELECT {distinct}{outputs} FROM {text}", columns)
            if self.sources.chance(0.3):
                columns = (columns[0], Column("n", "bigint"))
                block = _Block(f"SELECT {shown} AS k0, count(*) AS n FROM {text} GROUP BY {shown}", columns)
            source = self._derived(block)
            joined = Joined(f"{source.sql} JOIN {small.sql} ON {key} = {source.alias}.k0", [source, small])
        joined.where.append(self._filter(small))
        return joined

    def lateral(self) -> Joined:
        """A small side with what a LATERAL subquery finds for each of its rows."""
        self.sources.shapes.add("lateral subquery")
        small = self.sources.dimension()
        fact = self.sources.plain(self.sources.star.table("f1"), [small.alias])
        alias, where = self.sources.name("v"), Joins(self.sources).equalities([small], [fact]) or ["TRUE"]
        where += [self._filter(fact)] if self.sources.chance(0.3) else []
        query = f"SELECT count(*) AS n, max({fact.qualified(fact.columns[0])}) AS x FROM {fact.sql}"
        query += f" WHERE {' AND '.join(where)}"
        source = Source("", alias, (Column("n", "bigint"), Column("x", fact.columns[0].type_name)))
        terms = [self._filter(small)] if self.sources.chance(0.4) else [f"{alias}.n > 1"]
        between = self.sources.rng.choice((", ", " CROSS JOIN ", " JOIN ", " LEFT JOIN "))
        on = f" ON {terms[0]}" if between in {" JOIN ", " LEFT JOIN "} else ""
        joined = Joined(f"{small.sql}{between}LATERAL ({query}) {alias}{on}", [small, source])
        if self.sources.chance(0.3):
            joined = self._padded(replace(joined, sql=joined.sql.replace(", LATERAL", " CROSS JOIN LATERAL")))
        joined.where += [self._filter(small), *([self._filter(source)] if self.sources.chance(0.3) else [])]
        return joined

    def _partly_computed(self, fact: Source, small: Source, rest: str) -> tuple[_Block, tuple[Column, ...]]:
        """A SELECT of columns of both sides, some computed, and the columns that come from the small side."""
        outputs = [f"{fact.qualified(fact.columns[0])} AS f0"]
        padded: list[Column] = []
        known = [column for column in small.columns if column.type_name in VALUES] or list(small.columns)
        for number, column in enumerate(self.sources.rng.sample(known, min(2, len(known)))):
            shown, type_name = small.qualified(column), column.type_name
            if type_name in VALUES and self.sources.chance(0.4):
                self.sources.shapes.add("computed output below")
                shown, type_name = computed_output(self.sources.rng, shown, column)
            padded.append(Column(f"{column.name[0]}{number}", type_name))
            outputs.append(f"{shown} AS {padded[-1].name}")
        form = self.sources.rng.random()
        columns = (Column("f0", fact.columns[0].type_name), *padded)
        if form < 0.2:
            grouped = ", ".join(str(number + 1) for number in range(len(outputs)))
            if self.sources.chance(0.3):
                grouped = self._totals([output.rsplit(" AS ", 1)[0] for output in outputs])
            sql = f"SELECT {', '.join(outputs)}, count(*) AS n FROM {rest} GROUP BY {grouped}"
            return _Block(sql, (*columns, Column("n", "bigint"))), tuple(padded)
        if form < 0.3:
            key = outputs[1].rsplit(" AS ", 1)[0] if self.sources.chance(0.5) else "1"
            outputs.append(f"count(*) OVER (PARTITION BY {key}) AS n")
            columns = (*columns, Column("n", "bigint"))
        distinct = "DISTINCT " if form > 0.9 else ""
        return _Block(f"SELECT {distinct}{', '.join(outputs)} FROM {rest}", columns), tuple(padded)

    def several_readers(self) -> list[Joined]:
        """The readers of one CTE, in one FROM, in a subquery of the WHERE or in branches of a UNION."""
        self.sources.shapes.add("cte with several readers")
        block = self._joined_fact()
        if self.sources.chance(0.3):
            block = self._above(block)
        name = self.sources.name("c")
        self.sources.ctes.append(f"{name} AS ({block.sql})")
        first, second = (self._reader(name, block) for _ in "12")
        style = self.sources.rng.random()
        if style < 0.35:
            return [self._filtered(first), self._filtered(second)]
        if style < 0.7:
            return [self.joined(first, second)]
        joined = self._filtered(first)
        joined.where.append(self._subquery(joined.visible[0], second))
        return [joined]

    def _reader(self, name: str, block: _Block) -> Source:
        alias = self.sources.name("r")
        if self.sources.chance(0.2):
            where = f" WHERE {self._filter(Source(name, name, block.columns))}"
            star = Source(f"(SELECT * FROM {name}{where}) {alias}", alias, block.columns, is_fact=True)
            self.sources.shapes.add("filter levels above")
            return star
        return Source(f"{name} {alias}", alias, block.columns, is_fact=True)

    def _joined_fact(self) -> _Block:
        """A fact and a small side, of which the small side is filtered from outside only, mostly."""
        fact = self.sources.fact()
        small = self.sources.dimension([fact.alias])
        terms = Joins(self.sources).equalities([fact], [small]) or ["TRUE"]
        kind = self.sources.rng.choice(("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"))
        sides = (fact, small) if self.sources.chance(0.5) else (small, fact)
        text = f"{sides[0].sql} {kind} {sides[1].sql} ON {' AND '.join(terms)}"
        if self.sources.chance(0.2):
            text = self._padded(Joined(text, list(sides))).sql
        where = f" WHERE {self._filter(small)}" if self.sources.chance(0.15) else ""
        block = self._shown(sides, small, f"{text}{where}")
        if self.sources.chance(0.15) and block.sql.startswith("SELECT "):
            self.sources.shapes.add("union branches below")
            return _Block(
                f"{block.sql} {self.sources.rng.choice(('UNION', 'UNION ALL'))} {block.sql}", block.columns
            )
        return block

    def _above(self, block: _Block) -> _Block:
        """A block over a block, which may filter it, join it to something or group it."""
        source = self._derived(block)
        joined = Joined(source.sql, [source])
        form = self.sources.rng.random()
        if form < 0.35:
            joined = self.joined(source, self.sources.dimension())
        elif form < 0.55:
            joined = self._filtered(source)
        where = f" WHERE {' AND '.join(joined.where)}" if joined.where else ""
        shown = source if source in joined.visible else joined.visible[0]
        return self._shown(joined.visible, shown, f"{joined.sql}{where}")

    def _derived(self, block: _Block) -> Source:
        alias = self.sources.name("v")
        return Source(f"({block.sql}) {alias}", alias, block.columns, is_fact=True)

    def _shown(self, sources: Sequence[Source], shown: Source, rest: str) -> _Block:
        """A SELECT over sources that shows one of them: by a star, column by column, or as groups."""
        form = self.sources.rng.random()
        if form < 0.2:
            self.sources.shapes.add("star beside columns")
            extra = Column("y9", "int")
            names = [column.name for source in sources for column in source.columns]
            columns = tuple(c for s in sources for c in s.columns if names.count(c.name) == 1 and c.name != "y9")
            return _Block(f"SELECT 0 AS y9, * FROM {rest}", (extra, *columns))
        if form < 0.4:
            self.sources.shapes.add("qualified star")
            columns = tuple(column for column in shown.columns if column.name != "y8")
            return _Block(f"SELECT 1 AS y8, {shown.alias}.* FROM {rest}", (Column("y8", "int"), *columns))
        if form < 0.5:
            return self._grouped(shown, rest)
        chosen = self.sources.rng.sample(shown.columns, min(3, len(shown.columns)))
        columns = tuple(Column(f"{c.name[0]}{i}", c.type_name) for i, c in enumerate(chosen))
        outputs = ", ".join(f"{self._of(shown, c)} AS {n.name}" for c, n in zip(chosen, columns, strict=True))
        if form < 0.6:
            self.sources.shapes.add("window partition key below")
            columns = (*columns, Column("w", "bigint"))
            outputs += f", count(*) OVER (PARTITION BY {shown.qualified(chosen[0])}) AS w"
        distinct = "DISTINCT " if form > 0.9 else ""
        return _Block(f"SELECT {distinct}{outputs} FROM {rest}", columns)

    def _of(self, source: Source, column: Column) -> str:
        """A column, or what a SELECT may compute of it, of the same type."""
        rng, text = self.sources.rng, source.qualified(column)
        if column.type_name not in VALUES or not self.sources.chance(0.2):
            return text
        self.sources.shapes.add("computed output below")
        value = literal(column.type_name, rng.choice([one for one in VALUES[column.type_name] if one is not None]))
        form = rng.choice(
            ("coalesce({0}, {1})", "nullif({0}, {1})", "CASE WHEN {0} IS NULL THEN {1} ELSE {0} END")
        )
        return form.format(text, value)

    def _grouped(self, shown: Source, rest: str) -> _Block:
        chosen = self.sources.rng.sample(shown.columns, min(2, len(shown.columns)))
        keys = [shown.qualified(column) for column in chosen]
        grouped = self._totals(keys) if self.sources.chance(0.2) else ", ".join(keys)
        columns = [replace(column, name=f"{column.name[0]}{i}") for i, column in enumerate(chosen)]
        if self.sources.chance(0.5):
            columns = list(chosen)
        outputs = ", ".join(f"{key} AS {column.name}" for key, column in zip(keys, columns, strict=True))
        sql = f"SELECT {outputs}, count(*) AS n FROM {rest} GROUP BY {grouped}"
        return _Block(sql, (*columns, Column("n", "bigint")))

    def _totals(self, keys: Sequence[str]) -> str:
        """Groups with totals, of all of them or of some."""
        self.sources.shapes.add("totals below")
        listed = ", ".join(keys)
        forms = (f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[-1]}), ())")
        return self.sources.rng.choice(forms)

    def _filtered(self, source: Source) -> Joined:
        """The source with a filter on it, now and then with none, or with one on something it is joined to."""
        form = self.sources.rng.random()
        if form < 0.3:
            return self.joined(source, self.sources.dimension())
        joined = Joined(source.sql, [source])
        if form < 0.9:
            joined.where.append(self._filter(source))
        return joined

    def joined(self, one: Source, other: Source) -> Joined:
        """Two sources joined by an equality, in either order, with filters over its columns or others."""
        left, right = (one, other) if self.sources.chance(0.5) else (other, one)
        kind = self.sources.rng.choice(_KINDS)
        pair = self._pair(left, right)
        terms = [f"{left.qualified(pair[0])} = {right.qualified(pair[1])}"] if pair is not None else ["TRUE"]
        if self.sources.chance(0.3):
            side = self.sources.rng.choice((0, 1))
            own = pair[side] if pair is not None and self.sources.chance(0.5) else None
            terms.append(self._filter((left, right)[side], own))
        visible = [left] if "SEMI" in kind or "ANTI" in kind else [left, right]
        joined = Joined(f"{left.sql} {kind} {right.sql} ON {' AND '.join(terms)}", visible)
        if self.sources.chance(0.15):
            joined = self._padded(joined)
        if pair is not None and self.sources.chance(0.6):
            self.sources.shapes.add("filter over an equality")
            source, column = (
                (left, pair[0]) if right not in visible or self.sources.chance(0.5) else (right, pair[1])
            )
            joined.where.append(self._filter(source, column))
        joined.where += [self._filter(source) for source in visible if self.sources.chance(0.3)]
        return joined

    def _padded(self, joined: Joined) -> Joined:
        """The joined sources on the null-supplying side of one more join."""
        third = self.sources.dimension([source.alias for source in joined.visible])
        pair = self._pair(third, joined.visible[0])
        on = f"{third.qualified(pair[0])} = {joined.visible[0].qualified(pair[1])}" if pair is not None else "TRUE"
        return Joined(f"{third.sql} LEFT JOIN ({joined.sql}) ON {on}", [*joined.visible, third])

    def _pair(self, left: Source, right: Source) -> tuple[Column, Column] | None:
        pairs = [(a, b) for a in left.columns for b in right.columns if a.type_name == b.type_name]
        return self.sources.rng.choice(pairs) if pairs else None

    def _subquery(self, outer: Source, inner: Source) -> str:
        """A condition by a subquery over the other reader."""
        pair = self._pair(outer, inner)
        condition = self._filter(inner) if self.sources.chance(0.85) else "TRUE"
        if pair is None:
            return f"EXISTS (SELECT 1 FROM {inner.sql} WHERE {condition})"
        mine, other = outer.qualified(pair[0]), inner.qualified(pair[1])
        negation = self.sources.rng.choice(("", "NOT "))
        if self.sources.chance(0.5):
            return f"{mine} {negation}IN (SELECT {other} FROM {inner.sql} WHERE {condition})"
        return f"{negation}EXISTS (SELECT 1 FROM {inner.sql} WHERE {mine} = {other} AND {condition})"

    def _filter(self, source: Source, column: Column | None = None) -> str:
        """A condition on the source, or on just that column of it."""
        make = accepts_nulls if self.sources.chance(0.3) else attribute_filter
        known = column is not None and column.type_name in VALUES
        return make(self.sources.rng, replace(source, columns=(column,)) if known and column else source)
