"""The FROM of one SELECT as a tree: leaves in the order of the text, joins with their conditions above them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from rewriter.catalog import TableName, quoted
from rewriter.rules import NEVER_PADS, JoinKind, Side
from rewriter.skip import SkipReason
from rewriter.statement import Statement
from rewriter.time_travel import version_of, version_tokens

# Parenthesised joins inside one another. A person writes two or three; the limit bounds the recursion.
_NESTING_MAX = 30

_JOIN_ARGS = frozenset({"this", "on", "using", "kind", "side", "method"})
_TABLE_ARGS = frozenset({"this", "db", "catalog", "version", "alias", "joins"})

_KINDS = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("", "CROSS"): JoinKind.INNER,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "ANTI"): JoinKind.ANTI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
}


@dataclass(frozen=True)
class Reference:
    """A table named in a FROM; `start` and `stop` bound its name and version in the text.

    The bounds of the alias are those of the name itself where the table has none.
    """

    name: TableName
    start: int
    stop: int
    alias_start: int
    alias_stop: int
    refusal: SkipReason | None

    @property
    def has_alias(self) -> bool:
        """Whether the statement gives the table a name of its own."""
        return self.alias_stop > self.stop

    def source(self, statement: Statement) -> str:
        """The reference as the client wrote it, with its alias."""
        return statement.text[self.start : max(self.stop, self.alias_stop)]

    def alias_text(self, statement: Statement) -> str:
        """The name that the block calls the table by, as the client wrote it, quotes included."""
        return statement.text[self.alias_start : self.alias_stop]


@dataclass(eq=False)
class Join:
    """A join over the leaves `start` to `stop`, split at `middle`; or, at the top, the WHERE over all of them."""

    kind: JoinKind
    start: int
    middle: int
    stop: int
    condition: exp.Expr | None = None
    using: tuple[str, ...] = ()
    natural: bool = False
    # Children come before their parents.
    index: int = 0
    parent: Join | None = field(default=None, repr=False)
    # The nearest join above that pads this one's rows with nulls: beyond it they are not seen as they are.
    padded_by: Join | None = field(default=None, repr=False)
    # Whether a condition above was found to drop the rows that the join pads.
    is_strengthened: bool = False

    def side_of(self, leaf: Leaf) -> Side | None:
        """The side that the leaf stands on, or None if it is no part of the join."""
        if not self.start <= leaf.position < self.stop:
            return None
        return Side.LEFT if leaf.position < self.middle else Side.RIGHT

    def side_of_join(self, other: Join) -> Side:
        """The side that a join below this one stands on."""
        return Side.LEFT if other.stop <= self.middle else Side.RIGHT

    def stands_above(self, other: Join) -> bool:
        """Whether the other join is part of this one."""
        return self.index > other.index and self.start <= other.start and other.stop <= self.stop

    def mark_padded(self) -> None:
        """Note the nearest join above that pads this one; those above have been marked."""
        above = self.parent
        if above is not None:
            pads = above.side_of_join(self) not in NEVER_PADS[above.kind]
            self.padded_by = above if pads else above.padded_by

    def sees_unpadded(self, other: Join) -> bool:
        """Whether the rows of a join below reach this one's condition as they are."""
        return other.padded_by is None or self.index <= other.padded_by.index


@dataclass(eq=False)
class Leaf:
    """One item of the FROM. `reference` is set where it is a name, `node` is what sqlglot made of it."""

    position: int
    node: exp.Expr
    alias: str
    reference: Reference | None
    # The nearest semi- or anti-join whose right side this is: above it the columns cannot be named.
    hidden_by: Join | None = field(default=None, repr=False)
    # The nearest join above that pads the item's rows with nulls.
    padded_by: Join | None = field(default=None, repr=False)

    def alias_text(self, statement: Statement) -> str:
        """The name that the block calls the item by, as the client wrote it where that is certain."""
        return self.reference.alias_text(statement) if self.reference is not None else quoted(self.alias)

    def is_visible_at(self, join: Join) -> bool:
        """Whether the join's condition can name the leaf's columns."""
        hidden = self.hidden_by is not None and join.stands_above(self.hidden_by)
        return join.side_of(self) is not None and not hidden

    def is_padded_below(self, join: Join) -> bool:
        """Whether a row at the join can hold nulls in place of a row of the item."""
        return self.padded_by is not None and join.stands_above(self.padded_by)


class UnsupportedFromError(Exception):
    """The FROM holds something that is not understood."""


@dataclass(frozen=True)
class JoinTree:
    """The leaves of a FROM in the order of the text, and its joins; the last one is the WHERE."""

    leaves: tuple[Leaf, ...]
    joins: tuple[Join, ...]


def mark_padding(tree: JoinTree) -> None:
    """Note for each join and leaf the nearest join above that pads it with nulls."""
    for leaf in tree.leaves:
        leaf.padded_by = None
    for join in tree.joins:
        for side in Side if join.kind is not JoinKind.INNER else ():
            if side not in NEVER_PADS[join.kind]:
                start, stop = (join.start, join.middle) if side is Side.LEFT else (join.middle, join.stop)
                for leaf in tree.leaves[start:stop]:
                    leaf.padded_by = leaf.padded_by or join
    for join in reversed(tree.joins):
        join.mark_padded()


class JoinTreeBuilder:
    """Builds the tree of one SELECT. Raises UnsupportedFromError where it is not understood."""

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._leaves: list[Leaf] = []
        self._joins: list[Join] = []

    def build(self, select: exp.Select) -> JoinTree:
        """The tree of the SELECT's FROM, with its WHERE on top."""
        root = self._joined(select.args["from_"].this, select.args.get("joins") or [], nesting=0)
        where = select.args.get("where")
        count = len(self._leaves)
        self._add(Join(JoinKind.INNER, 0, count, count, where.this if where else None), root)
        tree = JoinTree(tuple(self._leaves), tuple(self._joins))
        mark_padding(tree)
        return tree

    def _add(self, join: Join, *children: Join | None) -> Join:
        join.index = len(self._joins)
        self._joins.append(join)
        for child in children:
            if child is not None:
                child.parent = join
        if join.kind in {JoinKind.SEMI, JoinKind.ANTI}:
            for leaf in self._leaves[join.middle : join.stop]:
                leaf.hidden_by = leaf.hidden_by or join
        return join

    def _joined(self, first: exp.Expr, joins: list[exp.Join], nesting: int) -> Join | None:
        kinds = [_kind(join) for join in joins]
        if {JoinKind.RIGHT, JoinKind.FULL} & set(kinds) and any(join.kind == "CROSS" for join in joins):
            # A comma binds less than JOIN, and the tree does not tell it from CROSS JOIN: `a, b RIGHT JOIN c`
            # preserves c against b alone.
            raise UnsupportedFromError
        start = len(self._leaves)
        result = self._source(first, nesting)
        for join, kind in zip(joins, kinds, strict=True):
            middle = len(self._leaves)
            right = self._source(join.this, nesting)
            using = tuple(identifier.name for identifier in join.args.get("using") or ())
            natural = join.method == "NATURAL"
            node = Join(kind, start, middle, len(self._leaves), join.args.get("on"), using, natural)
            result = self._add(node, result, right)
        return result

    def _source(self, source: exp.Expr, nesting: int) -> Join | None:
        """Add a source's leaves. Answers its topmost join, None where it is a single leaf."""
        if (
            nesting > _NESTING_MAX
            or source.args.get("pivots")
            or (source.args.get("sample") and not _named(source))
        ):
            raise UnsupportedFromError
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table):
            # `(a JOIN b ON ..)`: the same FROM in parentheses, unless it gets a name.
            if not holds_only(source, frozenset({"this"})):
                raise UnsupportedFromError
            return self._source(source.this, nesting + 1)
        if isinstance(source, exp.Table) and source.args.get("joins"):
            return self._joined_table(source, nesting)
        self._add_leaf(source)
        return None

    def _joined_table(self, table: exp.Table, nesting: int) -> Join | None:
        """`a JOIN b JOIN c ON .. ON ..` and FROM-first queries: the joins hang on the table itself."""
        joins = table.args["joins"]
        bare = table.copy()
        bare.set("joins", None)
        # What a leaf needs of it: the copy has the identifiers' offsets, and its place says which names it sees.
        bare.parent = table.parent
        return self._joined(bare, joins, nesting + 1)

    def _add_leaf(self, source: exp.Expr) -> None:
        reference = reference_of(source, self._statement) if _named(source) else None
        alias = source.alias_or_name if reference else source.alias
        self._leaves.append(Leaf(len(self._leaves), source, alias, reference))


def named_leaves(select: exp.Select, statement: Statement) -> tuple[Leaf, ...]:
    """The tables that a FROM names, without what joins them: for a FROM that is not understood."""
    sources = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
    return tuple(
        Leaf(position, source, source.alias_or_name, reference_of(source, statement))
        for position, source in enumerate(sources)
        if _named(source)
    )


def _kind(join: exp.Join) -> JoinKind:
    kind = _KINDS.get((join.side, join.kind))
    if kind is None or not holds_only(join, _JOIN_ARGS) or join.method not in {"", "NATURAL"}:
        raise UnsupportedFromError
    return kind


def reference_of(node: exp.Expr, statement: Statement) -> Reference | None:
    """The table that a leaf names, or None where its name has no certain place in the text."""
    parts = name_parts(node)
    alias = node.args.get("alias")
    named = alias.this if alias is not None and alias.this is not None else parts[-1]
    # An alias may be none that stands in the text: sqlglot takes the `@a` in `FROM t @a` for a parameter.
    if not all(isinstance(part, exp.Identifier) and "start" in part.meta for part in (*parts, named)):
        return None
    version = version_tokens(statement, node)
    return Reference(
        name=table_name(node),
        start=parts[0].meta["start"],
        stop=(statement.tokens[version[-1]].end if version else parts[-1].meta["end"]) + 1,
        alias_start=named.meta["start"],
        alias_stop=named.meta["end"] + 1,
        refusal=_refusal(node, statement),
    )


def name_parts(table: exp.Expr) -> list[exp.Expr]:
    """The parts of a table's name, outermost first: identifiers, or a function where it is one."""
    return [table.args[key] for key in ("catalog", "db", "this") if table.args.get(key)]


def table_name(table: exp.Expr) -> TableName:
    """The name as one; a table function's parts make a name that no catalog holds."""
    return TableName(tuple(part.name for part in name_parts(table)), version_of(table))


def _refusal(node: exp.Expr, statement: Statement) -> SkipReason | None:
    is_understood = bool(version_tokens(statement, node)) or not node.args.get("version")
    if not holds_only(node, _TABLE_ARGS) or not is_understood:
        return SkipReason.UNSUPPORTED_REFERENCE
    if statement.reads_metadata:
        return SkipReason.METADATA_IN_USE
    alias = node.args.get("alias")
    if alias is not None and not holds_only(alias, frozenset({"this"})):
        return SkipReason.COLUMN_ALIASES
    hidden = alias is None and node.name.lower() in statement.database_qualifiers
    return SkipReason.NAMED_BY_DATABASE if hidden else None


def _named(source: exp.Expr) -> bool:
    return isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)


def holds_only(node: exp.Expr, names: frozenset[str]) -> bool:
    """Whether the node has none but these arguments: what is not named here is not understood."""
    return all(name in names or not value for name, value in node.args.items())
