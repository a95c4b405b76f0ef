"""Parser of one SELECT's FROM into a join tree; a FROM that is not understood is refused."""

from __future__ import annotations

from sqlglot import exp

from rewriter.scopes.join_rules import JoinKind
from rewriter.scopes.join_tree import Join, JoinTree, Leaf, holds_only, is_named, mark_padding, reference_of
from rewriter.sql.inline_tables import generated_column
from rewriter.sql.statement import Statement

# Parenthesised joins inside one another. A person writes two or three; the limit bounds the recursion.
_NESTING_MAX = 30

# Items of one FROM. Spark takes minutes to plan some hundred, and each is looked at beside each other one.
_ITEMS_MAX = 1_000

_JOIN_ARGS = frozenset({"this", "on", "using", "kind", "side", "method"})

_DERIVED_TABLE_ARGS = frozenset({"this", "alias"})

# Arguments that a query in parentheses may have, if it is no more than a query.
_QUERY_ARGS = frozenset({"this", "with_", "order", "limit", "offset"})

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


class UnsupportedFromError(Exception):
    """The FROM holds something that is not understood; the message names it for the user."""


class JoinTreeBuilder:
    """Builds the tree of one SELECT. Raises UnsupportedFromError if the FROM is not understood."""

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._leaves: list[Leaf] = []
        self._joins: list[Join] = []

    def build(self, select: exp.Select) -> JoinTree:
        """The tree of the SELECT's FROM, with its WHERE on top."""
        joins, views = select.args.get("joins") or [], select.args.get("laterals") or []
        if len(joins) + len(views) > _ITEMS_MAX:
            raise UnsupportedFromError(f"more than {_ITEMS_MAX:,} tables in one FROM")
        root = self._joined(select.args["from_"].this, joins, nesting=0)
        for view in views:
            # Other LATERAL VIEWs are not in the tree: they make rows of their own for each joined row.
            if generated_column(view) is not None:
                middle = len(self._leaves)
                self._add_leaf(view)
                root = self._add(Join(JoinKind.INNER, 0, middle, middle + 1), root)
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
        is_tied = {JoinKind.RIGHT, JoinKind.FULL} & set(kinds) or any(join.method for join in joins)
        if is_tied and any(join.kind == "CROSS" for join in joins):
            # A comma binds less than JOIN under spark.sql.ansi.relationPrecedence, and in the tree it is a CROSS
            # JOIN: `a, b RIGHT JOIN c` preserves c against b alone, NATURAL compares it with b.
            raise UnsupportedFromError("a comma or CROSS JOIN beside RIGHT, FULL or NATURAL JOIN")
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
        """Add a source's leaves. Answers its topmost join, or None for a single leaf."""
        if (
            nesting > _NESTING_MAX
            or source.args.get("pivots")
            or (source.args.get("sample") and not is_named(source))
        ):
            raise UnsupportedFromError("PIVOT, a sample of a query, or joins nested too deeply")
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table):
            # `(a JOIN b ON ..)`: the same FROM in parentheses, unless it gets a name.
            if not holds_only(source, frozenset({"this"})):
                raise UnsupportedFromError("a name or more for joins in parentheses")
            return self._source(source.this, nesting + 1)
        if isinstance(source, exp.Table) and source.args.get("joins"):
            return self._joined_table(source, nesting)
        if _holds_items(source):
            raise UnsupportedFromError("joins or clauses in the parentheses of a derived table")
        self._add_leaf(source)
        return None

    def _joined_table(self, table: exp.Table, nesting: int) -> Join | None:
        """`a JOIN b JOIN c ON .. ON ..` and FROM-first queries: sqlglot attaches the joins to the table itself."""
        joins = table.args["joins"]
        bare = table.copy()
        bare.set("joins", None)
        # The copy has the identifiers' offsets, and its parent decides which names it sees: a leaf needs no more.
        bare.parent = table.parent
        return self._joined(bare, joins, nesting + 1)

    def _add_leaf(self, source: exp.Expr) -> None:
        reference = reference_of(source, self._statement) if is_named(source) else None
        alias = source.alias_or_name if reference else source.alias
        if isinstance(source, exp.Lateral) and source.args.get("view"):
            # As Spark takes it (withGenerate in AstBuilder.scala), also in a session with spark.sql.caseSensitive.
            alias = alias.lower()
        self._leaves.append(Leaf(len(self._leaves), source, alias, reference))


def named_leaves(select: exp.Select, statement: Statement) -> tuple[Leaf, ...]:
    """The tables that a FROM names, without its joins: for a FROM that is not understood."""
    sources = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
    return tuple(
        Leaf(position, source, source.alias_or_name, reference_of(source, statement))
        for position, source in enumerate(sources)
        if is_named(source)
    )


def _holds_items(source: exp.Expr) -> bool:
    """True if a subquery contains items that the FROM can name, or has joins attached.

    sqlglot reads `((SELECT ..) a JOIN b ON ..)` as a query in parentheses, like `((SELECT ..) LIMIT 3)`.
    """
    if not isinstance(source, exp.Subquery):
        return False
    if not holds_only(source, _DERIVED_TABLE_ARGS):
        return True
    inner = source.this
    while isinstance(inner, exp.Subquery):
        if not holds_only(inner, _QUERY_ARGS):
            return True
        inner = inner.this
    return False


def _kind(join: exp.Join) -> JoinKind:
    kind = _KINDS.get((join.side, join.kind))
    if kind is None or not holds_only(join, _JOIN_ARGS) or join.method not in {"", "NATURAL"}:
        raise UnsupportedFromError(
            " ".join(filter(None, ("a join of the kind", join.method, join.side, join.kind)))
        )
    return kind
