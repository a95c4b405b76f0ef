"""Filters with literals of the statement itself, as covers that leave out files: Spark filters the rows.

`x = 10`, `x IN (10, 20)`, `x BETWEEN 10 AND 20` and `<`, `<=`, `>`, `>=` count, and disjunctions of them: by `(x =
10 AND y = 'a') OR (x = 20 AND y = 'c')` the two columns stay paired. Any other condition is ignored: more files
are read.

A literal must be of the column's own type, or Spark casts one of the two: it compares a date column and '2026-1-1'
as days or as strings, as a setting decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import TokenType, exp

from rewriter.catalog.table_facts import TableFacts
from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key, UnreadableKeyError, integers_of, is_key_type, literal
from rewriter.domains.written_literals import decimal_of, integer_of, is_date_literal
from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.semijoins.side_filters import BlockFilters
from rewriter.sql.classify import depends_on_quoting
from rewriter.sql.conditions import ALTERNATIVES_MAX, conjuncts
from rewriter.sql.statement import Statement

# Boxes of the filters together: each disjunction multiplies them, and one that makes too many is ignored.
_BOXES_MAX = 1_000

_EVERYTHING = Box(())
_EQUALS = (exp.EQ, exp.NullSafeEQ)
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NullSafeEQ: exp.EQ,
}


def own_cover(statement: Statement, scope: Scope, filters: BlockFilters, leaf: Leaf, facts: TableFacts) -> Cover:
    """The rows of a table that the block's own filters let through, by its indexed columns in lower case.

    All, unless the filters restrict a column that is no partition column: Spark prunes partitions by itself.
    """
    reading = _ConditionReader(statement, scope, leaf, facts, facts.file_columns)
    intersected = _cover(reading, filters)
    partitions = {name.lower() for name in facts.partition_columns}
    restricted = {column for box in intersected.boxes for column, _ in box.domains}
    return intersected if restricted - partitions else Cover.all()


def partition_cover(
    statement: Statement, scope: Scope, filters: BlockFilters, leaf: Leaf, facts: TableFacts
) -> Cover:
    """The partitions of a table that the block's own filters let through, or more, by columns in lower case."""
    columns = frozenset(map(str.lower, facts.partition_columns))
    return _cover(_ConditionReader(statement, scope, leaf, facts, columns), filters)


def _cover(reading: _ConditionReader, filters: BlockFilters) -> Cover:
    """The rows of a table that the block's own filters let through, or more."""
    intersected = Cover.all()
    for term, join in filters.passed_by_rows(reading.leaf):
        cover = reading.cover_of(term, join)
        if len(intersected.boxes) * len(cover.boxes) <= _BOXES_MAX:
            intersected = intersected.intersection(cover)
    return intersected


@dataclass(frozen=True)
class _ConditionReader:
    """Reads conditions as covers over some columns of one table, in lower case."""

    statement: Statement
    scope: Scope
    leaf: Leaf
    facts: TableFacts
    columns: frozenset[str]

    def cover_of(self, term: exp.Expr, at: Join) -> Cover:
        """The rows that a term of a condition lets through, or more."""
        branches = _alternatives(term)
        boxes = [self._box(branch, at) for branch in branches]
        if not boxes or _EVERYTHING in boxes:
            return Cover.all()
        return Cover.of(box for box in boxes if box is not None)

    def _box(self, branch: exp.Expr, at: Join) -> Box | None:
        """The rows that a conjunction lets through, or None for no row. Terms not understood are ignored."""
        domains: dict[str, Domain] = {}
        for term in conjuncts(branch):
            found = self._compared(term, at)
            if found is not None:
                column, domain = found
                domains[column] = domains[column].intersection(domain) if column in domains else domain
        return Box.of(domains)

    def _compared(self, term: exp.Expr, at: Join) -> tuple[str, Domain] | None:
        """The column that a comparison restricts, and the values that it lets through."""
        side, domain_of = _comparison(term)
        operand = self.scope.resolve(side, at) if side is not None else None
        if operand is None or operand.leaf is not self.leaf or operand.name.lower() not in self.columns:
            return None
        column = self.facts.column(operand.name)
        if column is None or not is_key_type(column.type_name):
            return None
        try:
            domain = domain_of(_Literals(self.statement, column.type_name))
        except UnreadableKeyError:
            return None
        return column.name.lower(), domain


@dataclass(frozen=True)
class _Literals:
    """Literals that are of one type for certain. Raises UnreadableKeyError for any other expression."""

    statement: Statement
    type_name: str

    def value(self, node: exp.Expr) -> Key:
        """The value of a literal, as a key of the type."""
        node = node.unnest()
        if integers_of(self.type_name) is not None:
            return integer_of(node)
        if self.type_name == "boolean" and isinstance(node, exp.Boolean):
            return bool(node.this)
        if self.type_name == "date" and is_date_literal(node) and not _calls_date(self.statement):
            return str(node.this.this)
        if self.type_name == "string" and _is_plain_text(node) and not depends_on_quoting(self.statement.text):
            return str(node.this)
        if self.type_name.startswith("decimal"):
            return decimal_of(node, self.type_name)
        raise UnreadableKeyError(f"no literal that is a {self.type_name} for certain")

    def points(self, nodes: Sequence[exp.Expr]) -> Domain:
        """The values of literals."""
        return Domain.of(self.type_name, [self.value(node) for node in nodes])

    def range(self, low: exp.Expr | None, high: exp.Expr | None) -> Domain:
        """The values between two literals, both included."""
        ends = (None if node is None else self.value(node) for node in (low, high))
        return Domain.between(self.type_name, *ends)

    def outside(self, low: exp.Expr | None, high: exp.Expr | None) -> Domain:
        """The values that are not between two literals, without null."""
        return Domain(self.type_name, self.range(low, high).complement().cuts)


# Makes the domain that the literals of a comparison leave of its column.
_DomainOf = Callable[[_Literals], Domain]


def _comparison(term: exp.Expr) -> tuple[exp.Expr | None, _DomainOf]:
    """The expression that a term compares with literals, and the domain they leave; None for any other term."""
    if isinstance(term, exp.In) and _has_only(term, "this", "expressions"):
        return term.this.unnest(), lambda literals: literals.points(term.expressions)
    if isinstance(term, exp.Between) and _has_only(term, "this", "low", "high"):
        return term.this.unnest(), lambda literals: literals.range(term.args["low"], term.args["high"])
    if type(term) not in _MIRRORED:
        return None, lambda literals: Domain.all(literals.type_name)
    left, right = term.this.unnest(), term.expression.unnest()
    if isinstance(right, exp.Column):
        return right, _ordered(_MIRRORED[type(term)], left)
    return left, _ordered(type(term), right)


def _ordered(comparison: type[exp.Expr], bound: exp.Expr) -> _DomainOf:
    if issubclass(comparison, _EQUALS):
        return lambda literals: literals.points([bound])
    if comparison is exp.LTE:
        return lambda literals: literals.range(None, bound)
    if comparison is exp.GTE:
        return lambda literals: literals.range(bound, None)
    if comparison is exp.LT:
        return lambda literals: literals.outside(bound, None)
    return lambda literals: literals.outside(None, bound)


def _alternatives(term: exp.Expr) -> list[exp.Expr]:
    """The branches of a disjunction, or the term by itself; none if there are too many."""
    found: list[exp.Expr] = []
    pending = [term]
    while pending and len(found) <= ALTERNATIVES_MAX:
        part = pending.pop().unnest()
        if isinstance(part, exp.Or):
            pending += [part.expression, part.this]
        else:
            found.append(part)
    return found if len(found) <= ALTERNATIVES_MAX else []


def _has_only(node: exp.Expr, *names: str) -> bool:
    return all(name in names or not value for name, value in node.args.items())


def _calls_date(statement: Statement) -> bool:
    """True if `date(` stands anywhere: a session may have a function of its own by that name."""
    kinds = [token.token_type for token in statement.tokens]
    return (TokenType.DATE, TokenType.L_PAREN) in pairwise(kinds)


def _is_plain_text(node: exp.Expr) -> bool:
    """True if the literal has the same value under every setting."""
    return isinstance(node, exp.Literal) and node.is_string and literal("string", node.name) == f"'{node.name}'"
