"""One SELECT with its FROM, and the columns that the names in its conditions denote."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Protocol

from sqlglot import exp

from rewriter.catalog.table_facts import TableFacts
from rewriter.scopes.from_clause import JoinTreeBuilder, UnsupportedFromError, named_leaves
from rewriter.scopes.join_rules import JoinKind
from rewriter.scopes.join_tree import Join, JoinTree, Leaf, TableReference, holds_only
from rewriter.scopes.steps import Steps
from rewriter.sql.conditions import conjuncts
from rewriter.sql.inline_tables import read_by_generator
from rewriter.sql.statement import Statement
from rewriter.vocabulary.cited import listed
from rewriter.vocabulary.identifiers import Column
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# Arguments that a SELECT may have beside its FROM: all of them work on the joined rows, after ON and WHERE.
_SELECT_ARGS = frozenset(
    """
    with_ hint distinct expressions from_ joins where group having order limit offset windows sort cluster
    distribute qualify laterals
    """.split()
)

# Outputs of one SELECT. Wide tables have hundreds; stars over joins of stars double with each level.
OUTPUTS_MAX = 5_000
# Columns that USING merged into one: a join above counts as an equality with each of them.
_MERGED_MAX = 5
# Columns that a FULL JOIN by USING shows as one.
_PAIR = 2


@dataclass(frozen=True, eq=False)
class Block:
    """One SELECT with its FROM."""

    select: exp.Select
    tree: JoinTree
    refusal: Refusal | None

    @property
    def has_conditions(self) -> bool:
        """True if anything is compared, so that the block is worth a look."""
        return any(join.condition is not None or join.using or join.natural for join in self.tree.joins)

    @property
    def reads_several(self) -> bool:
        """True if it has several items, not counting LATERAL VIEWs over columns of other items."""
        views = [leaf for leaf in self.tree.leaves if leaf.node.args.get("view") and read_by_generator(leaf.node)]
        return len(self.tree.leaves) - len(views) > 1

    @property
    def is_merge(self) -> bool:
        """True if it is a MERGE as a join (`Statement.merge_join`)."""
        return isinstance(self.select.parent, exp.Merge)

    @property
    def is_in_select_list(self) -> bool:
        """True if it is, or is in, a subquery of a select list, which may be correlated."""
        node: exp.Expr = self.select
        while node.parent is not None:
            if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
                return True
            node = node.parent
        return False


def block_of(select: exp.Select, statement: Statement) -> Block:
    """A SELECT that has a FROM; with a refusal where that is not understood."""
    try:
        tree = JoinTreeBuilder(statement).build(select)
    except UnsupportedFromError as error:
        refusal = SkipReason.UNSUPPORTED_FROM.because(str(error))
        return Block(select, JoinTree(named_leaves(select, statement), ()), refusal)
    if holds_only(select, _SELECT_ARGS):
        return Block(select, tree, None)
    further = (name for name, value in select.args.items() if value and name not in _SELECT_ARGS)
    return Block(select, tree, SkipReason.UNSUPPORTED_FROM.because(f"the clause {listed(further)} of the SELECT"))


@dataclass(frozen=True, eq=False)
class Operand:
    """A column of a FROM item. `type_name` is None if only Spark knows it."""

    leaf: Leaf
    name: str
    type_name: str | None

    def __str__(self) -> str:
        return f"{self.leaf.alias}.{self.name}"


@dataclass(frozen=True, eq=False)
class ColumnOrigin:
    """A table's column that a key comes from, and the FROM item that reads it."""

    leaf: Leaf
    reference: TableReference
    facts: TableFacts
    column: Column


class KnownColumns(Protocol):
    """The known columns of a statement's FROM items. See `rewriter.scopes.scopes`."""

    @property
    def steps(self) -> Steps:
        """The steps that may be taken."""

    @property
    def has_variables(self) -> bool:
        """True if a name that is no column's may be a session variable."""

    def columns_of(self, leaf: Leaf, nesting: int = 0) -> tuple[Column, ...] | None:
        """The columns of a FROM item in order, with their types if known; None if the columns are not known."""

    def scope_of(self, select: exp.Expr) -> Scope | None:
        """The scope of a SELECT, or None where its FROM is not understood."""


@dataclass(frozen=True, eq=False)
class Scope:
    """The columns that names in one block denote."""

    known: KnownColumns
    block: Block

    @cached_property
    def _by_alias(self) -> dict[str, list[Leaf]]:
        found = defaultdict(list)
        for leaf in self.block.tree.leaves:
            found[leaf.alias.lower()].append(leaf)
        return found

    @cached_property
    def _by_column(self) -> dict[str, list[Operand]] | None:
        """Every column by its lower-case name; None if a name could mean a column that we do not know.

        A name of a LATERAL VIEW has no column here: it may stand for a generator's output or for another column.
        """
        if self._generated is None:
            return None
        found = defaultdict(list)
        for leaf in self.block.tree.leaves:
            columns = self.known.columns_of(leaf)
            if columns is None:
                return None
            self.known.steps.look_at(len(columns))
            for column in columns:
                found[column.name.lower()].append(Operand(leaf, column.name, column.type_name or None))
        return found | {name.lower(): [] for name in self._generated}

    @cached_property
    def _generated(self) -> frozenset[str] | None:
        """The names that LATERAL VIEWs beside the tree give; None if one names no columns."""
        views = self.block.select.args.get("laterals") or ()
        in_tree = {id(leaf.node) for leaf in self.block.tree.leaves}
        aliases = [view.args.get("alias") for view in views if id(view) not in in_tree]
        named = [alias for alias in aliases if isinstance(alias, exp.TableAlias) and alias.columns]
        if len(named) < len(aliases):
            return None
        return frozenset(name for alias in named for name in (alias.name, *(one.name for one in alias.columns)))

    @property
    def knows_columns(self) -> bool:
        """True if no name can mean a column that we do not know."""
        return self._by_column is not None

    def resolve(self, node: exp.Expr, at: Join) -> Operand | None:
        """The column that an expression names in the condition of a join; None where that is not certain.

        `a.b.c` is, before anything else, column c of a table that a FROM names `a.b` without an alias.
        """
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        # The node is kept, so that no other node gets its id.
        if (id(node), at) not in self._resolved:
            self._resolved[id(node), at] = node, self._look_up(node, at)
        return self._resolved[id(node), at][1]

    @cached_property
    def _resolved(self) -> dict[tuple[int, Join], tuple[exp.Column, Operand | None]]:
        """The columns that names were found to be, with the names."""
        return {}

    def _look_up(self, node: exp.Column, at: Join) -> Operand | None:
        self.known.steps.take()
        database = node.text("db")
        if node.table:
            leaves = self._by_alias.get(node.table.lower(), [])
            certain = len(leaves) == 1 and (not database or leaves[0].is_of_database(database))
            certain = certain and not node.args.get("catalog")
            named = self.column_of(leaves[0], node.name) if certain else None
            found = [named] if named is not None else []
        else:
            found = list(islice(self._named_between(node.name, at.start, at.stop), 2))
            certain = len(found) == 1
        if not (certain and found and found[0].leaf.is_visible_at(at)):
            return None
        is_exact = node.name == found[0].name and node.table in {"", found[0].leaf.alias}
        is_exact = is_exact and database in {"", found[0].leaf.node.text("db")}
        return found[0] if is_exact or not self._may_be_another(node) else None

    def _named_between(self, name: str, start: int, stop: int) -> Iterator[Operand]:
        """The columns of a name, in any case, of the items at some positions."""
        alike = (self._by_column or {}).get(name.lower(), [])
        places = range(*(bisect_left(alike, position, key=_position) for position in (start, stop)))
        return (alike[place] for place in places)

    def _may_be_another(self, node: exp.Column) -> bool:
        """True if a name, found in another case, may exist as it is spelled: here, further out or in the session.

        With spark.sql.caseSensitive the name denotes that one. `F.ds` may be a field of a column F.
        """
        first = node.text("db") or node.table
        if self.known.has_variables or (first and (self._by_column is None or first in self._spelled_columns)):
            return True
        scopes = (self.known.scope_of(select) for select in outer_selects(self.block.select))
        return any(scope is None or scope.may_have_name(node.table or node.name) for scope in scopes)

    def may_have_name(self, name: str) -> bool:
        """True if a FROM item or a column may have the name in exactly this case."""
        return self._by_column is None or name in self._spelled

    @cached_property
    def _spelled(self) -> frozenset[str]:
        """The names of columns and items as they are spelled."""
        return self._spelled_columns.union(leaf.alias for leaf in self.block.tree.leaves)

    @cached_property
    def _spelled_columns(self) -> frozenset[str]:
        """The names of columns, and those of LATERAL VIEWs, as they are spelled."""
        found = self._by_column or {}
        columns = frozenset(column.name for alike in found.values() for column in alike)
        # Spark takes the name of a LATERAL VIEW in lower case.
        generated = self._generated or frozenset()
        return columns | generated | {name.lower() for name in generated}

    def columns_of_star(self, star: exp.Expr, nesting: int) -> list[Operand] | None:
        """The columns of `*` or `a.*`, in the order of the FROM; None if they are not certain."""
        joins, node = self.block.tree.joins, star.this if isinstance(star, exp.Column) else star
        is_plain = isinstance(node, exp.Star) and not any(node.args.values()) and not star.args.get("db")
        # USING and NATURAL show their columns once and first, LATERAL VIEW adds some.
        if not is_plain or self.block.select.args.get("laterals") or any(j.using or j.natural for j in joins):
            return None
        leaves = [leaf for leaf in self.block.tree.leaves if leaf.is_visible_at(joins[-1])]
        if isinstance(star, exp.Column):
            leaves = [leaf for leaf in leaves if leaf.alias.lower() == star.table.lower()]
            if any(leaf.alias != star.table for leaf in leaves) and self._may_be_another(star):
                return None
        columns = [self.known.columns_of(leaf, nesting) for leaf in leaves]
        known = [found for found in columns if found is not None]
        is_one = node is star or len(leaves) == 1
        if not is_one or len(known) < len(leaves) or sum(map(len, known)) > OUTPUTS_MAX:
            return None
        pairs = zip(leaves, known, strict=True)
        return [Operand(leaf, column.name, column.type_name or None) for leaf, found in pairs for column in found]

    def certainly_lacks(self, node: exp.Expr) -> bool:
        """True if an expression names a column that no FROM item of this block has, so that it is an outer one.

        `a.b` may be a field of a column a too: Spark looks for that in the block before it looks further out.
        """
        if not isinstance(node, exp.Column) or node.args.get("db") or not isinstance(node.this, exp.Identifier):
            return False
        if self._by_column is None or (node.table and node.table.lower() in self._by_alias):
            return False
        return (node.table or node.name).lower() not in self._by_column

    def column_of(self, leaf: Leaf, name: str) -> Operand | None:
        """The column of that name, in any case, if the item is known to have exactly one."""
        if leaf not in self._columns:
            self._columns[leaf] = _by_name(self.known.columns_of(leaf) or ())
        found = self._columns[leaf].get(name.lower())
        return Operand(leaf, found.name, found.type_name or None) if found is not None else None

    @cached_property
    def _columns(self) -> dict[Leaf, dict[str, Column | None]]:
        """The columns of items by their lower-case names, as far as they were looked up."""
        return {}

    def merged(self, join: Join) -> Iterator[tuple[Operand, Operand]]:
        """The pairs of columns that USING or NATURAL compares, where each is certain."""
        for lefts, right in self._merges(join):
            for left in lefts if len(lefts) == 1 else self._equal_to_first(lefts):
                yield left, right

    def _merges(self, join: Join) -> Iterator[tuple[list[Operand], Operand]]:
        """The columns on the left that USING or NATURAL finds by a name, and the one on the right."""
        by_column = self._by_column
        if by_column is None or not (join.using or join.natural):
            return
        names = [name.lower() for name in join.using] if join.using else list(by_column)
        for name in dict.fromkeys(names):
            lefts = self._visible(name, join, join.start, join.middle)
            rights = self._visible(name, join, join.middle, join.stop)
            self.known.steps.take(1 + len(lefts))
            # In a case-sensitive session `DS` and `ds` are two columns, and for NATURAL they are in every session.
            is_any_case = join.using and len(lefts) == 1
            if lefts and len(rights) == 1 and (is_any_case or {one.name for one in lefts} == {rights[0].name}):
                yield lefts, rights[0]

    def _equal_to_first(self, alike: list[Operand]) -> list[Operand]:
        """The columns, of several with one name, that equal the one that Spark takes: the first that it shows.

        Spark shows the left column of an inner join and of a left join by USING. After inner joins alone the right
        column equals it, if their types are the same, so that none is cast.
        """
        if not self._kinds_of_merges <= {JoinKind.INNER, JoinKind.LEFT}:
            return []
        first, types = alike[0], {operand.type_name for operand in alike}
        if self._kinds_of_merges != {JoinKind.INNER} or len(types) > 1 or None in types:
            return [first]
        return [first, *(one for one in alike[1:] if self._merged_into.get(one) is first)]

    def united(self, node: exp.Expr, at: Join) -> tuple[Operand, ...]:
        """The two columns of `coalesce(a.k, b.k)` that a join below has compared, as a FULL JOIN does; else none.

        USING shows such a pair by its bare name. In each row that the join gives both columns hold the value, or
        one holds it and the other null. Their types may differ.
        """
        if isinstance(node, exp.Coalesce):
            found = [self.resolve(side.unnest(), at) for side in (node.this, *node.expressions)]
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and not node.table:
            named = self._visible(node.name.lower(), at, at.start, at.stop)
            found = [operand if operand.name == node.name else None for operand in named]
        else:
            return ()
        return self._compared_below(found, at)

    def united_by_using(self, join: Join) -> Iterator[tuple[tuple[Operand, ...], Operand]]:
        """The pairs that joins below have united and USING or NATURAL compares with a column on the right."""
        for lefts, right in self._merges(join):
            yield self._compared_below(lefts, join), right

    def _compared_below(self, operands: Sequence[Operand | None], at: Join) -> tuple[Operand, ...]:
        pair = tuple(operand for operand in operands if operand is not None)
        if len(pair) != len(operands) or len(pair) != _PAIR:
            return ()
        compared = self._compared.get(frozenset((one.leaf, one.name) for one in pair), ())
        return pair if any(map(at.stands_above, compared)) else ()

    @cached_property
    def _compared(self) -> dict[frozenset[tuple[Leaf, str]], list[Join]]:
        """The pairs of columns, one from each side, that a join's condition wants to be equal; and those joins."""
        found = defaultdict(list)
        for join in self.block.tree.joins:
            pairs = [(lefts[0], right) for lefts, right in self._merges(join) if len(lefts) == 1]
            for term in conjuncts(join.condition):
                if isinstance(term, exp.EQ):
                    sides = [self.resolve(side.unnest(), join) for side in (term.this, term.expression)]
                    pairs += [(one, other) for one, other in [sides] if one is not None and other is not None]
            for one, other in pairs:
                if join.side_of(one.leaf) is not join.side_of(other.leaf):
                    found[frozenset({(one.leaf, one.name), (other.leaf, other.name)})].append(join)
        return found

    @cached_property
    def _merged_into(self) -> dict[Operand, Operand]:
        """The columns on the right of joins by USING or NATURAL, with those on the left that they equal."""
        return {right: lefts[0] for join in self.block.tree.joins for lefts, right in self._merges(join)}

    @cached_property
    def _kinds_of_merges(self) -> frozenset[JoinKind]:
        """The kinds, as written, of the joins by USING or NATURAL.

        A join that was made inner counts as FULL: it may show the right column, or one made of both.
        """
        merges = (join for join in self.block.tree.joins if join.using or join.natural)
        return frozenset(JoinKind.FULL if join.is_made_inner else join.kind for join in merges)

    def _visible(self, name: str, join: Join, start: int, stop: int) -> list[Operand]:
        """The first columns of a name that the condition of a join can name, on one side of it."""
        alike = self._named_between(name, start, stop)
        return list(islice((operand for operand in alike if operand.leaf.is_visible_at(join)), _MERGED_MAX))


def _position(operand: Operand) -> int:
    return operand.leaf.position


def _by_name(columns: Sequence[Column]) -> dict[str, Column | None]:
    """The columns by their lower-case names; None for a name that several of them have."""
    found: dict[str, Column | None] = {}
    for column in columns:
        name = column.name.lower()
        found[name] = None if name in found else column
    return found


def outer_selects(query: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs around a query whose names it may read, the nearest first.

    SELECTs that have the query in their FROM or WITH are excluded, unless it is LATERAL or in the condition of a
    join. But Spark lets `EXISTS (SELECT .. FROM f, (SELECT k FROM d WHERE d.g = v) r ..)` read column v of the
    outer query.
    """
    node, sees = query, False
    while (parent := node.parent) is not None:
        sees = sees or isinstance(parent, exp.Lateral) or (isinstance(parent, exp.Join) and node.arg_key == "on")
        if isinstance(parent, exp.Select):
            if sees or node.arg_key not in _OF_ITSELF:
                yield parent
            sees = False
        node = parent


# Arguments of a SELECT whose queries read none of its columns.
_OF_ITSELF = frozenset({"from_", "joins", "with_"})


def own_parts(tree: exp.Expr) -> tuple[list[exp.Column], list[exp.Select]]:
    """The columns of a tree itself, and the SELECTs nested directly in it, which have columns of their own."""
    columns: list[exp.Column] = []
    selects: list[exp.Select] = []
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Select) and node is not tree):
        if isinstance(node, exp.Column):
            columns.append(node)
        elif isinstance(node, exp.Select) and node is not tree:
            selects.append(node)
    return columns, selects
