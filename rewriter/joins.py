"""Blocks of a statement: which tables one FROM joins, by which equalities, under which conditions.

A block is one SELECT with its FROM. Where all its joins are inner, a row of a table that finds no partner at
an equality of an ON or of the WHERE cannot reach the block's result, whatever the block does with it later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from rewriter.catalog import Catalog, Column, TableName
from rewriter.conditions import conjuncts
from rewriter.skip import SkipReason
from rewriter.statement import Statement

# What a SELECT may hold beside its FROM: all of it works on the joined rows, after ON and WHERE.
_SELECT_ARGS = frozenset(
    """
    with_ hint distinct expressions from_ joins where group having order limit offset windows sort cluster
    distribute qualify laterals
    """.split()
)
_JOIN_ARGS = frozenset({"this", "on", "using", "kind"})
_TABLE_ARGS = frozenset({"this", "db", "catalog", "alias"})


@dataclass(frozen=True, eq=False)
class Reference:
    """A table named in a FROM; `start` and `stop` bound its name in the text, without its alias."""

    node: exp.Table
    name: TableName
    start: int
    stop: int
    alias: str  # what the block calls it
    alias_start: int
    alias_stop: int  # where its source text ends: behind the alias, if it has one
    refusal: SkipReason | None

    @property
    def has_alias(self) -> bool:
        """Whether the statement gives the table a name of its own."""
        return self.alias_stop > self.stop

    def source(self, statement: Statement) -> str:
        """The reference as the client wrote it, with its alias."""
        return statement.text[self.start : self.alias_stop]

    def alias_text(self, statement: Statement) -> str:
        """The name that the block calls the table by, as the client wrote it, quotes included."""
        return statement.text[self.alias_start : self.alias_stop]


@dataclass(frozen=True, eq=False)
class Operand:
    """A column of a reference, as the catalog has it."""

    reference: Reference
    column: Column

    def __str__(self) -> str:
        return f"{self.reference.alias}.{self.column.name}"


@dataclass(frozen=True, eq=False)
class Equality:
    """`left = right`, on columns of two different references of one block."""

    left: Operand
    right: Operand


@dataclass(frozen=True, eq=False)
class Block:
    """One SELECT: its references in order, and the conditions that each of its rows has passed."""

    references: tuple[Reference, ...]
    conditions: tuple[exp.Expr, ...]
    using: tuple[tuple[Reference, tuple[str, ...]], ...]
    # Something in the FROM whose columns are not known, so that an unqualified name could be its.
    has_unknown_columns: bool
    refusal: SkipReason | None

    @property
    def may_narrow(self) -> bool:
        """Whether, by its shape alone, an equality between two tables could stand in the block."""
        compares = any(_compares_columns(c) for condition in self.conditions for c in conjuncts(condition))
        return self.refusal is None and len(self.references) > 1 and (compares or bool(self.using))

    @property
    def tables(self) -> Iterator[TableName]:
        """The names in the FROM that could be tables, whose facts decide about the block."""
        return (r.name for r in self.references if r.refusal is not SkipReason.NOT_A_TABLE)


@dataclass(frozen=True, eq=False)
class Scope:
    """The columns of a block's references, as the catalog has them, and what names in the block denote."""

    block: Block
    catalog: Catalog

    @cached_property
    def _by_alias(self) -> dict[str, Reference]:
        return {reference.alias.lower(): reference for reference in self.block.references}

    @cached_property
    def _by_column(self) -> dict[str, list[Operand]] | None:
        """Every column by its lower-case name; None where a column that we do not know could be meant."""
        facts = [self.catalog.get(reference.name) for reference in self.block.references]
        if self.block.has_unknown_columns or None in facts:
            return None
        found = defaultdict(list)
        for reference, known in zip(self.block.references, facts, strict=True):
            for column in known.columns if known is not None else ():
                found[column.name.lower()].append(Operand(reference, column))
        return found

    def resolve(self, node: exp.Expr) -> Operand | None:
        """The column that an expression names, or None where it is no name or not certain."""
        if (
            not isinstance(node, exp.Column)
            or node.args.get("db")
            or not isinstance(node.this, exp.Identifier)
        ):
            return None
        if node.table:
            reference = self._by_alias.get(node.table.lower())
            return self._column_of(reference, node.name) if reference is not None else None
        found = (self._by_column or {}).get(node.name.lower(), [])
        return found[0] if len(found) == 1 else None

    @cached_property
    def equalities(self) -> tuple[Equality, ...]:
        """Every equality between columns of two references that each row of the block has passed."""
        pairs = [*self._compared(), *self._merged_by_using()]
        return tuple(
            Equality(left, right)
            for left, right in pairs
            if left is not None and right is not None and left.reference is not right.reference
        )

    def _compared(self) -> Iterator[tuple[Operand | None, Operand | None]]:
        for condition in self.block.conditions:
            for term in conjuncts(condition):
                if _compares_columns(term):
                    yield self.resolve(term.this.unnest()), self.resolve(term.expression.unnest())

    def _merged_by_using(self) -> Iterator[tuple[Operand | None, Operand | None]]:
        position = {reference: index for index, reference in enumerate(self.block.references)}
        for joined, names in self.block.using:
            for name in names:
                candidates = (self._by_column or {}).get(name.lower(), [])
                earlier = [o for o in candidates if position[o.reference] < position[joined]]
                # More than one to the left: an earlier USING merged them, or Spark refuses the statement.
                if len(earlier) == 1:
                    yield earlier[0], self._column_of(joined, name)

    def _column_of(self, reference: Reference, name: str) -> Operand | None:
        facts = self.catalog.get(reference.name)
        column = facts.column(name) if facts is not None else None
        return Operand(reference, column) if column is not None else None


def blocks(statement: Statement) -> tuple[Block, ...]:
    """All blocks of the statement, outer before inner."""
    cte_names = {cte.alias.lower() for cte in statement.tree.find_all(exp.CTE)}
    return tuple(
        _block(select, statement, cte_names)
        for select in statement.tree.find_all(exp.Select)
        if select.args.get("from_")
    )


def _block(select: exp.Select, statement: Statement, cte_names: set[str]) -> Block:
    joins = select.args.get("joins") or []
    sources = [select.args["from_"].this, *(join.this for join in joins)]
    references = {id(s): _reference(s, statement, cte_names) for s in sources if _is_named_table(s)}
    known = tuple(reference for reference in references.values() if reference is not None)
    where = select.args.get("where")
    return Block(
        references=known,
        conditions=tuple(c for c in (*(join.args.get("on") for join in joins), where and where.this) if c),
        using=tuple(
            (reference, tuple(identifier.name for identifier in join.args["using"]))
            for join in joins
            if join.args.get("using") and (reference := references.get(id(join.this)))
        ),
        has_unknown_columns=len(known) < len(sources) or bool(select.args.get("laterals")),
        refusal=_refusal(select, joins, known),
    )


def _refusal(
    select: exp.Select, joins: list[exp.Join], references: tuple[Reference, ...]
) -> SkipReason | None:
    if any(join.side or join.kind in {"SEMI", "ANTI", "OUTER"} for join in joins):
        return SkipReason.OUTER_JOIN
    understood = _holds_only(select, _SELECT_ARGS) and all(
        _holds_only(join, _JOIN_ARGS) and join.kind in {"", "INNER", "CROSS"} for join in joins
    )
    if not understood or _pivots(select):
        return SkipReason.UNSUPPORTED_FROM
    aliases = [reference.alias.lower() for reference in references]
    return SkipReason.SAME_ALIAS_TWICE if len(set(aliases)) < len(aliases) else None


def _pivots(select: exp.Select) -> bool:
    """Whether a PIVOT stands in the FROM: it aggregates before WHERE, so WHERE no longer sees the rows."""
    sources = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
    return any(source.args.get("pivots") for source in sources)


def _reference(node: exp.Table, statement: Statement, cte_names: set[str]) -> Reference | None:
    parts = [node.args[key] for key in ("catalog", "db", "this") if node.args.get(key)]
    if not all(isinstance(part, exp.Identifier) and "start" in part.meta for part in parts):
        return None
    alias = node.args.get("alias")
    named = alias.this if alias is not None and alias.this is not None else parts[-1]
    return Reference(
        node=node,
        name=TableName(tuple(part.name for part in parts)),
        start=parts[0].meta["start"],
        stop=parts[-1].meta["end"] + 1,
        alias=named.name,
        alias_start=named.meta["start"],
        alias_stop=named.meta["end"] + 1,
        refusal=_reference_refusal(node, statement, cte_names),
    )


def _reference_refusal(node: exp.Table, statement: Statement, cte_names: set[str]) -> SkipReason | None:
    if not node.db and node.name.lower() in cte_names:
        return SkipReason.NOT_A_TABLE
    if not _holds_only(node, _TABLE_ARGS):
        return SkipReason.UNSUPPORTED_REFERENCE
    if statement.reads_metadata:
        return SkipReason.METADATA_IN_USE
    alias = node.args.get("alias")
    if alias is not None and not _holds_only(alias, frozenset({"this"})):
        return SkipReason.COLUMN_ALIASES
    hidden = alias is None and node.name.lower() in statement.database_qualifiers
    return SkipReason.NAMED_BY_DATABASE if hidden else None


def _is_named_table(source: exp.Expr) -> bool:
    return isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)


def _holds_only(node: exp.Expr, names: frozenset[str]) -> bool:
    return all(name in names or not value for name, value in node.args.items())


def _compares_columns(term: exp.Expr) -> bool:
    return (
        isinstance(term, exp.EQ)
        and isinstance(term.this.unnest(), exp.Column)
        and isinstance(term.expression.unnest(), exp.Column)
    )
