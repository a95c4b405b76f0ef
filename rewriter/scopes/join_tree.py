"""The FROM of one SELECT as a tree: leaves in the order of the text, joins with their conditions above them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from rewriter.scopes.join_rules import CONDITION_HOLDS, NEVER_PADS, JoinKind, Side
from rewriter.sql.statement import Statement
from rewriter.sql.time_travel import version_of, version_tokens
from rewriter.vocabulary.identifiers import TableName, as_alias, quoted
from rewriter.vocabulary.skip_reason import SkipReason

# Arguments of a reference that can be narrowed. A sample is not among them: it would be drawn from other rows.
_TABLE_ARGS = frozenset({"this", "db", "catalog", "version", "alias", "joins"})


@dataclass(frozen=True)
class TableReference:
    """A table named in a FROM; `start` and `stop` bound its name and version in the text.

    The bounds of the alias are those of the name itself where the table has none.
    """

    name: TableName
    start: int
    stop: int
    alias_start: int
    alias_stop: int
    refusal: SkipReason | None
    # True if the statement may name columns of it as `database.table.column`: a narrowed scan would hide them.
    is_named_by_database: bool = False

    @property
    def has_alias(self) -> bool:
        """True if the statement gives the table a name of its own."""
        return self.alias_stop > self.stop

    def source(self, statement: Statement) -> str:
        """The reference as the client wrote it, with its alias."""
        return statement.text[self.start : max(self.stop, self.alias_stop)]

    def alias_text(self, statement: Statement) -> str:
        """The name of the table in the block, as the client wrote it, quotes included, or as an alias needs it."""
        return as_alias(statement.text[self.alias_start : self.alias_stop])


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
    # The nearest join above that pads this one's rows with nulls: conditions above that join see padded rows.
    padded_by: Join | None = field(default=None, repr=False)
    # True if a condition above was found to drop the rows that the join pads.
    is_made_inner: bool = False

    def side_of(self, leaf: Leaf) -> Side | None:
        """The side that the leaf is on, or None if it is no part of the join."""
        if not self.start <= leaf.position < self.stop:
            return None
        return Side.LEFT if leaf.position < self.middle else Side.RIGHT

    def side_of_join(self, other: Join) -> Side:
        """The side that a join below this one is on."""
        return Side.LEFT if other.stop <= self.middle else Side.RIGHT

    def stands_above(self, other: Join) -> bool:
        """True if the other join is part of this one."""
        return self.index > other.index and self.start <= other.start and other.stop <= self.stop

    def mark_padded(self) -> None:
        """Set `padded_by` to the nearest join above that pads this one; the joins above are marked before it."""
        above = self.parent
        if above is not None:
            pads = above.side_of_join(self) not in NEVER_PADS[above.kind]
            self.padded_by = above if pads else above.padded_by

    def sees_unpadded(self, other: Join) -> bool:
        """True if the rows of a join below reach this one's condition unpadded."""
        return other.padded_by is None or self.index <= other.padded_by.index


@dataclass(eq=False)
class Leaf:
    """One item of the FROM. `reference` is set if it is a name, `node` is sqlglot's node of it."""

    position: int
    node: exp.Expr
    alias: str
    reference: TableReference | None
    # The nearest semi- or anti-join whose right side this is: above it the columns cannot be named.
    hidden_by: Join | None = field(default=None, repr=False)
    # The nearest join above that pads the item's rows with nulls.
    padded_by: Join | None = field(default=None, repr=False)

    @property
    def key_query_alias(self) -> str:
        """The name of the item in a key query: a derived table without an alias has none in the statement."""
        return self.alias or f"reduced_item{self.position}"

    def alias_text(self, statement: Statement) -> str:
        """The name of the item in the block, as the client wrote it if that is certain."""
        reference = self.reference
        return reference.alias_text(statement) if reference is not None else quoted(self.key_query_alias)

    def is_of_database(self, name: str) -> bool:
        """True if the item is a table that the FROM names by that database, in any case, and without an alias."""
        reference = self.reference
        return reference is not None and not reference.has_alias and self.node.text("db").lower() == name.lower()

    def is_visible_at(self, join: Join) -> bool:
        """True if the join's condition can name the leaf's columns."""
        hidden = self.hidden_by is not None and join.stands_above(self.hidden_by)
        return join.side_of(self) is not None and not hidden

    def is_padded_below(self, join: Join) -> bool:
        """True if a row at the join can hold nulls in place of a row of the item."""
        return self.padded_by is not None and join.stands_above(self.padded_by)


@dataclass(frozen=True)
class JoinTree:
    """The leaves of a FROM in the order of the text, and its joins; the last one is the WHERE."""

    leaves: tuple[Leaf, ...]
    joins: tuple[Join, ...]


def must_be_passed(at: Join, leaf: Leaf) -> bool:
    """True if a row of the item that fails the condition of `at` cannot change the block's result."""
    unpadded = leaf.padded_by is None or at.index <= leaf.padded_by.index
    return unpadded and at.side_of(leaf) in CONDITION_HOLDS[at.kind]


def mark_padding(tree: JoinTree) -> None:
    """Set `padded_by` of each join and leaf to the nearest join above that pads it with nulls."""
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


def reference_of(node: exp.Expr, statement: Statement) -> TableReference | None:
    """The table that a leaf names, or None if its name has no certain place in the text."""
    parts = name_parts(node)
    alias = node.args.get("alias")
    named = alias.this if alias is not None and alias.this is not None else parts[-1]
    # sqlglot may make an alias of other text: it takes the `@a` in `FROM t @a` for a parameter.
    if not all(isinstance(part, exp.Identifier) and "start" in part.meta for part in (*parts, named)):
        return None
    version = version_tokens(statement, node)
    return TableReference(
        name=table_name(node),
        start=parts[0].meta["start"],
        stop=(statement.tokens[version[-1]].end if version else parts[-1].meta["end"]) + 1,
        alias_start=named.meta["start"],
        alias_stop=named.meta["end"] + 1,
        refusal=_refusal(node, statement),
        is_named_by_database=alias is None and node.name.lower() in statement.database_qualifiers,
    )


def name_parts(table: exp.Expr) -> list[exp.Expr]:
    """The parts of a table's name, outermost first: identifiers, or a function where it is one."""
    return [table.args[key] for key in ("catalog", "db", "this") if table.args.get(key)]


def table_name(table: exp.Expr) -> TableName:
    """The name of a table; for a table function, a name that no catalog holds."""
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
    return None


def is_named(source: exp.Expr) -> bool:
    """True if an item of a FROM is a table by its name: a subquery and a table function are not."""
    return isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)


def holds_only(node: exp.Expr, names: frozenset[str]) -> bool:
    """True if the node has none but these arguments: any other argument is not understood."""
    return all(name in names or not value for name, value in node.args.items())
