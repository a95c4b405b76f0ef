"""FROM clauses: sources joined in every way, with what each way shows and pads with nulls."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from grammar_filters import Source, attribute_filter, equal_columns, key_expression, partition_condition
from grammar_sources import Sources, is_refused

from rewriter import Column

_KINDS = (
    *("JOIN", "INNER JOIN") * 8,
    *("LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "FULL OUTER JOIN"),
    *("LEFT SEMI JOIN", "LEFT ANTI JOIN"),
)


@dataclass
class Joined:
    """A FROM so far: its text, the sources that can be named, those that may be padded with nulls."""

    sql: str
    visible: list[Source]
    padded: list[Source] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    # Names that a USING above can name, though several of the sources have them: joins by USING merged them.
    merged: frozenset[str] = frozenset()

    @property
    def facts(self) -> list[Source]:
        """The facts that can be named."""
        return [source for source in self.visible if source.is_fact]


@dataclass
class Joins:
    """Joins the sources of one block."""

    sources: Sources
    # Columns known to equal a column of the fact, as the block names them.
    _linked: set[str] = field(default_factory=set)
    # The names of sources that a join below may have padded with nulls.
    _padded: set[str] = field(default_factory=set)

    def joined(self) -> Joined:
        """One FROM: a fact, one to three other sources, in any order."""
        chosen = self._chosen()
        self._note(chosen)
        style = self.sources.rng.random()
        if style < 0.15:
            return self._in_where(chosen)
        joined = Joined(chosen[0].sql, [chosen[0]])
        rest = chosen[1:]
        while rest:
            if len(rest) > 1 and self.sources.chance(0.2):
                self.sources.shapes.add("parenthesised join")
                first, second, *rest = rest
                inner = self._join(Joined(first.sql, [first]), Joined(second.sql, [second]))
                joined = self._join(joined, Joined(f"({inner.sql})", inner.visible, inner.padded))
            else:
                right, *rest = rest
                joined = self._join(joined, Joined(right.sql, [right]))
            if rest and self.sources.chance(0.15):
                self.sources.shapes.add("parenthesised join")
                joined.sql = f"({joined.sql})"
        return joined

    def _chosen(self) -> list[Source]:
        sources, rng = self.sources, self.sources.rng
        if sources.chance(0.06):
            sources.shapes.add("fact beside a fact")
            first = sources.plain(sources.star.table("f1"))
            second = sources.plain(sources.star.table(rng.choice(("f1", "f2"))), [first.alias])
            chosen = [first, second, sources.dimension([first.alias, second.alias])]
            rng.shuffle(chosen)
            return chosen
        chosen = [sources.fact()]
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            used = [source.alias for source in chosen]
            chosen.append(sources.fact(used) if sources.chance(0.12) else sources.dimension(used))
        if sources.chance(0.35):
            rng.shuffle(chosen)
        return chosen

    def _note(self, chosen: Sequence[Source]) -> None:
        facts = [source for source in chosen if source.is_fact]
        tables = [source.table for source in chosen if source.table]
        dimensions = [t for t in tables if not self.sources.star.table(t).is_fact]
        fact_tables = [t for t in tables if self.sources.star.table(t).is_fact]
        found = {
            "several facts": len(facts) > 1,
            "several dimensions": len(chosen) - len(facts) > 1,
            "same dimension twice": len(set(dimensions)) < len(dimensions),
            "self join": len(set(fact_tables)) < len(fact_tables),
        }
        self.sources.shapes |= {shape for shape, holds in found.items() if holds}

    def _in_where(self, chosen: Sequence[Source]) -> Joined:
        comma = self.sources.chance(0.6)
        self.sources.shapes.add("comma join" if comma else "cross join and where")
        text = (", " if comma else " CROSS JOIN ").join(source.sql for source in chosen)
        joined = Joined(text, list(chosen))
        for index in range(1, len(chosen)):
            joined.where += self.equalities(chosen[:index], chosen[index : index + 1])
        return joined

    def _join(self, left: Joined, right: Joined) -> Joined:
        kind = self.sources.rng.choice(_KINDS)
        self._note_kind(kind, left, right)
        joined = Joined("", list(left.visible), list(left.padded))
        if not kind.startswith(("LEFT SEMI", "LEFT ANTI")):
            joined.visible += right.visible
            joined.padded += right.padded
        if kind.startswith(("LEFT JOIN", "LEFT OUTER", "FULL")):
            joined.padded += right.visible
        if kind.startswith(("RIGHT", "FULL")):
            joined.padded += left.visible
        shared = self._shared_names(left, right)
        if shared and self.sources.chance(0.25):
            joined.sql = self._by_names(kind, left, right, shared)
            joined.merged = frozenset(shared)
        else:
            joined.sql = self._by_on(kind, left, right)
        joined.merged |= {name for name in left.merged if not any(one.column(name) for one in right.visible)}
        self._padded |= {source.alias for source in joined.padded}
        return joined

    def _by_names(self, kind: str, left: Joined, right: Joined, shared: Sequence[str]) -> str:
        if len(left.visible) > 1:
            self.sources.shapes.add("join using, of several")
        elif self.sources.chance(0.3):
            self.sources.shapes.add("natural join")
            return f"{left.sql} NATURAL {kind} {right.sql}"
        self.sources.shapes.add("join using")
        return f"{left.sql} {kind} {right.sql} USING ({', '.join(shared)})"

    def _by_on(self, kind: str, left: Joined, right: Joined) -> str:
        self.sources.shapes.add("join on")
        terms = self.equalities(left.visible, right.visible)
        if self.sources.chance(0.35):
            self.sources.shapes.add("filter in on")
            terms.append(self._filter([*right.visible, *left.visible]))
            self.sources.rng.shuffle(terms)
        return f"{left.sql} {kind} {right.sql} ON {' AND '.join(terms) or 'TRUE'}"

    def _note_kind(self, kind: str, left: Joined, right: Joined) -> None:
        shapes = self.sources.shapes
        if kind.startswith("FULL"):
            shapes.add("full join")
        if kind in {"LEFT SEMI JOIN", "LEFT ANTI JOIN"}:
            shapes.add(kind.lower())
        elif kind.startswith(("LEFT", "RIGHT")):
            side = "left join" if kind.startswith("LEFT") else "right join"
            preserved, supplied = (left, right) if side == "left join" else (right, left)
            if preserved.facts:
                shapes.add(f"{side}, fact preserved")
            if supplied.facts:
                shapes.add(f"{side}, fact null-supplying")

    def _shared_names(self, left: Joined, right: Joined) -> list[str]:
        """Names for USING: each once on either side, or merged on the left one, and a key."""
        if len(right.visible) > 1:
            return []
        names = [column.name for source in left.visible for column in source.columns if column.name[0] in "ks"]
        known = (name for name in dict.fromkeys(names) if names.count(name) == 1 or name in left.merged)
        return [name for name in known if right.visible[0].column(name) is not None]

    def _filter(self, among: Sequence[Source]) -> str:
        small = [source for source in among if not source.is_fact]
        chosen = small if small and self.sources.chance(0.85) else among
        return attribute_filter(self.sources.rng, self.sources.rng.choice(chosen))

    def equalities(self, left: Sequence[Source], right: Sequence[Source]) -> list[str]:
        """One equality between the two sides or, now and then, one for each of two pairs of columns."""
        rng = self.sources.rng
        candidates = [(a, b, pairs) for a in left for b in right if (pairs := equal_columns(rng, a, b))]
        if not candidates:
            return []
        with_fact = [c for c in candidates if c[0].is_fact or c[1].is_fact]
        a, b, pairs = rng.choice(with_fact if with_fact and self.sources.chance(0.75) else candidates)
        disjoint = [p for p in pairs[1:] if p[0] != pairs[0][0] and p[1] != pairs[0][1]]
        disjoint = [p for p in disjoint if p[0].type_name == p[1].type_name or self.sources.chance(0.2)]
        chosen = [pairs[0], *disjoint[:1]] if self.sources.chance(0.25) else [pairs[0]]
        if len(chosen) > 1:
            self.sources.shapes.add("composite key")
        return [self._equality(a, x, b, y) for x, y in chosen]

    def _equality(self, left: Source, x: Column, right: Source, y: Column) -> str:
        rng, shapes = self.sources.rng, self.sources.shapes
        shapes |= {"types that differ"} if x.type_name != y.type_name else set()
        shapes |= {"type refused"} if is_refused(x) or is_refused(y) else set()
        self._link(left, left.qualified(x), right, right.qualified(y))
        a, b = named = left.qualified(x), right.qualified(y)
        if left.is_fact != right.is_fact and x.name[0] == "k" and self.sources.chance(0.12):
            shapes.add("condition on partitions")
            fact, small = ((left, x), (right, y)) if left.is_fact else ((right, y), (left, x))
            return partition_condition(rng, *fact, *small)
        if self._computes(right):
            b = key_expression(rng, right, y)
        elif self._computes(left):
            a = key_expression(rng, left, x)
        null_safe = self.sources.chance(0.08)
        shapes |= {"null-safe equality"} if null_safe else set()
        a, b = (b, a) if self.sources.chance(0.3) else (a, b)
        if null_safe and a in named and b in named and self.sources.chance(0.5):
            shapes.add("null-safe equality spelled out")
            both = rng.choice((f"{a} IS NULL AND {b} IS NULL", f"({b} IS NULL AND {a} IS NULL)"))
            return rng.choice((f"({a} = {b} OR {both})", f"({both} OR {b} = {a})"))
        return f"{a} <=> {b}" if null_safe else f"{a} = {b}"

    def _computes(self, small: Source) -> bool:
        """Whether the small side's key is to be an expression; often where that may turn padding into a key."""
        is_padded = small.alias in self._padded
        if small.is_fact or not self.sources.chance(0.4 if is_padded else 0.12):
            return False
        self.sources.shapes |= {"key expression", *(["key expression over padded rows"] if is_padded else [])}
        return True

    def _link(self, left: Source, a: str, right: Source, b: str) -> None:
        if (a in self._linked and not right.is_fact) or (b in self._linked and not left.is_fact):
            self.sources.shapes.add("transitive equality")
        if left.is_fact or right.is_fact or {a, b} & self._linked:
            self._linked |= {name for name, s in ((a, left), (b, right)) if not s.is_fact}
