"""Views that join a fact with small sides in their text, and statements that filter them from outside."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grammar_filters import Source, accepts_nulls, attribute_filter, computed_filter, computed_output
from grammar_joins import Joined, Joins
from grammar_levels import Levels
from grammar_sources import Sources
from star_tables import VALUES, StarView

from rewriter import Column

_KINDS = (*("JOIN",) * 22, "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


@dataclass
class Views:
    """Makes the views of one statement, and what reads them."""

    sources: Sources
    # Views of one statement are w1, w2, ..
    prefix: str = "w"
    made: list[StarView] = field(default_factory=list)

    def readers(self) -> list[Joined]:
        """A view under filters, or two branches that read it with a filter each."""
        view = self._view()
        while "\\" in view.text and self.sources.chance(0.9):
            # Such a text is not followed.
            self.made.clear()
            view = self._view()
        if self.sources.chance(0.1):
            view = self._view_over(view)
        if self.sources.chance(0.2):
            self.sources.shapes.add("view read twice")
            return [self._filtered(self._reference(view)) for _ in "12"]
        return [self._filtered(self._reference(view))]

    def _view(self) -> StarView:
        self.sources.shapes.add("join in a view")
        fact, small = self._sides()
        terms = self._equality(fact, small) if self.sources.chance(0.92) else []
        terms = terms or Joins(self.sources).equalities([fact], [small]) or ["TRUE"]
        terms += [self._filter(small)] if self.sources.chance(0.2) else []
        kind = self.sources.rng.choice(_KINDS)
        sides = (fact, small) if "SEMI" in kind or "ANTI" in kind or self.sources.chance(0.6) else (small, fact)
        text = f"{sides[0].sql} {kind} {sides[1].sql} ON {' AND '.join(terms)}"
        visible = [fact] if "SEMI" in kind or "ANTI" in kind else [fact, small]
        if self.sources.chance(0.2):
            third = self.sources.dimension([source.alias for source in visible])
            on = Joins(self.sources).equalities([fact], [third]) or ["TRUE"]
            text += f" {self.sources.rng.choice(('JOIN', 'LEFT JOIN', 'RIGHT JOIN'))} {third.sql} ON {on[0]}"
        if self.sources.chance(0.35):
            text += f" WHERE {self._filter(self.sources.rng.choice(visible))}"
        return self._named(*self._select(visible, text))

    def _sides(self) -> tuple[Source, Source]:
        """A fact and a small side, both mostly tables."""
        star = self.sources.star
        fact = self.sources.plain(star.table("f1")) if self.sources.chance(0.9) else self.sources.fact()
        small = self.sources.dimension([fact.alias]) if self.sources.chance(0.2) else None
        return fact, small or self.sources.plain(
            star.table(self.sources.rng.choice(("d1", "d1", "d3"))), [fact.alias]
        )

    def _equality(self, fact: Source, small: Source) -> list[str]:
        """An equality of keys of one type, or none where there are no such keys."""
        partitioned = self.sources.star.table(fact.table).partition_columns if fact.table else ()
        pairs = [
            f"{fact.qualified(own)} = {small.qualified(other)}"
            for own in fact.columns
            for other in small.columns
            if own.name[0] == "k" and other.name[0] in "kl" and own.type_name == other.type_name
            if own.name in (partitioned or ("k1", "k2", "key1"))
        ]
        return [self.sources.rng.choice(pairs)] if pairs else []

    def _select(self, visible: Sequence[Source], rest: str) -> tuple[str, tuple[Column, ...]]:
        """A SELECT of keys and attributes, some computed, in one of the forms that views have."""
        shown: list[tuple[str, Column]] = []
        for source in visible:
            for column in source.columns:
                chance = 0.97 if source.is_fact == (column.name[0] == "k") else 0.3
                if column.type_name in VALUES and self.sources.chance(chance):
                    text, type_name = source.qualified(column), column.type_name
                    if column.name[0] not in "kl" and self.sources.chance(0.2):
                        self.sources.shapes.add("computed output in a view")
                        text, type_name = computed_output(self.sources.rng, text, column)
                    shown.append((text, Column(f"{column.name[0]}{len(shown)}", type_name)))
        if not shown:
            return f"SELECT 1 AS y0 FROM {rest}", (Column("y0", "int"),)
        return self._formed([text for text, _ in shown], tuple(column for _, column in shown), rest)

    def _formed(
        self, texts: Sequence[str], columns: tuple[Column, ...], rest: str
    ) -> tuple[str, tuple[Column, ...]]:
        pairs = zip(texts, columns, strict=True)
        outputs, counted = (
            ", ".join(f"{text} AS {c.name}" for text, c in pairs),
            (*columns, Column("n9", "bigint")),
        )
        plain = f"SELECT {outputs} FROM {rest}"
        key, order = self.sources.rng.choice(("1", *texts)), ", ".join(str(n + 1) for n in range(len(texts)))
        window = f"count(*) OVER (PARTITION BY {key}) AS n9"
        forms = {
            "distinct in a view": (f"SELECT DISTINCT {outputs} FROM {rest}", columns),
            "groups in a view": (
                f"SELECT {outputs}, count(*) AS n9 FROM {rest} GROUP BY {', '.join(texts)}",
                counted,
            ),
            "window in a view": (f"SELECT {outputs}, {window} FROM {rest}", counted),
            "union in a view": (f"{plain} UNION ALL {plain}", columns),
            "limit in a view": (f"{plain} ORDER BY {order} LIMIT 3", columns),
            "derived table in a view": (
                f"SELECT i.* FROM ({plain}) i WHERE {self._filter(Source('', 'i', columns))}",
                columns,
            ),
            "plain view": (plain, columns),
        }
        (form,) = self.sources.rng.choices(list(forms), (6, 6, 4, 2, 2, 6, 74))
        self.sources.shapes.add(form)
        return forms[form]

    def _named(self, text: str, columns: tuple[Column, ...]) -> StarView:
        """The view, with the CTEs of its text; some have a list of columns."""
        if self.sources.ctes:
            text = f"WITH {', '.join(self.sources.ctes)} {text}"
            self.sources.ctes.clear()
        outputs = tuple(column.name for column in columns)
        if self.sources.chance(0.25):
            self.sources.shapes.add("view with a column list")
            columns = tuple(Column(f"{c.name[0]}x{i}", c.type_name) for i, c in enumerate(columns))
        view = StarView(f"{self.prefix}{len(self.made) + 1}", columns, outputs, text)
        self.made.append(view)
        return view

    def _view_over(self, view: StarView) -> StarView:
        self.sources.shapes.add("view over a view")
        source = self._reference(view)
        where = f" WHERE {self._filter(source)}" if self.sources.chance(0.5) else ""
        columns = tuple(Column(f"{c.name[0]}y{i}", c.type_name) for i, c in enumerate(view.columns))
        pairs = zip(view.columns, columns, strict=True)
        outputs = ", ".join(f"{source.qualified(own)} AS {column.name}" for own, column in pairs)
        return self._named(f"SELECT {outputs} FROM {source.sql}{where}", columns)

    def _reference(self, view: StarView) -> Source:
        if self.sources.chance(0.3):
            return Source(view.name, view.name, view.columns, is_fact=True)
        alias = self.sources.name("r")
        if self.sources.chance(0.15):
            return Source(f"(SELECT * FROM {view.name}) {alias}", alias, view.columns, is_fact=True)
        if self.sources.chance(0.15):
            name = self.sources.name("c")
            self.sources.ctes.append(f"{name} AS (SELECT * FROM {view.name})")
            return Source(f"{name} {alias}", alias, view.columns, is_fact=True)
        return Source(f"{view.name} {alias}", alias, view.columns, is_fact=True)

    def _filtered(self, source: Source) -> Joined:
        """The view under filters, maybe joined with something else."""
        joined = Joined(source.sql, [source])
        if self.sources.chance(0.25):
            joined = Levels(self.sources).joined(source, self.sources.dimension([source.alias]))
        for chance in (0.97, 0.5) if source in joined.visible else ():
            if self.sources.chance(chance):
                joined.where.append(self._filter(source))
        return joined

    def _filter(self, source: Source) -> str:
        """A condition on an attribute, mostly."""
        known = [column for column in source.columns if column.type_name in VALUES]
        if not known:
            return "TRUE"
        # Those of small sides.
        telling = [column for column in known if column.name[0] not in "kmnq"]
        known = telling if telling and self.sources.chance(0.85) else known
        form = self.sources.rng.random()
        make = attribute_filter if form < 0.75 else computed_filter if form < 0.88 else accepts_nulls
        return make(self.sources.rng, replace(source, columns=tuple(known)))
