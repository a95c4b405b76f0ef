"""Filters with literals of the statement itself, as covers that leave out files: Spark filters the rows.

`x = 10`, `x IN (10, 20)`, `x BETWEEN 10 AND 20` and `<>`, `<`, `<=`, `>`, `>=` count, `x IS NULL`, tuples `(x, y)
IN ((10, 'a'), (20, 'c'))`, and AND, OR and NOT over all of these: by `(x = 10 AND y = 'a') OR (x = 20 AND y =
'c')` the two columns stay paired. Any other condition is ignored: more files are read.

A file may go where the filter is true for none of its values, so null counts by SQL's three values: `x <> 10` and
`NOT x = 10` are not true of null; `x IS DISTINCT FROM 10` is. `NOT (x = 10 AND y = 1)` is `x <> 10 OR y <> 1`,
also where one of the two is null. `(x, y) IN (..)` compares structs, in which null equals null: it is true or
false, so its NOT is true of nulls.

A literal must be of the column's own type, or Spark casts one of the two. Casts are followed where all of them
give the same answer: `x = '30'` is `x = cast('30' as bigint)`, or `as int` with ANSI off, and `x IN ('30')` is
`cast(x as string) = '30'` there. Each time that is `x = 30`, since Spark writes 30 so; for '030' it is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import TokenType, exp

from rewriter.catalog.table_facts import TableFacts
from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key, UnreadableKeyError, integers_of, is_key_type, literal
from rewriter.domains.widen import column_by_column
from rewriter.domains.written_literals import decimal_of, integer_of, is_date_literal
from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.semijoins.side_filters import BlockFilters, SideFilter
from rewriter.sql.classify import depends_on_quoting
from rewriter.sql.conditions import ALTERNATIVES_MAX, conjuncts
from rewriter.sql.negations import Joined, SignedCondition
from rewriter.sql.statement import Statement
from rewriter.vocabulary.identifiers import Column

# Boxes of the filters together: each disjunction multiplies them, and one that makes too many is ignored.
_BOXES_MAX = 1_000

# Parts of one condition that are looked at: each may cost the comparison of as many boxes.
_PARTS_MAX = 1_000

# An integer as Spark writes it, so that the text equals it as a number and as a text.
_INTEGER_TEXT = re.compile(r"0|-?[1-9][0-9]{0,18}")
# Spark writes days of the years 1 to 9999 so, and no other days.
_DATE_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_EQUALS = (exp.EQ, exp.NullSafeEQ)
_UNEQUALS = (exp.NEQ, exp.NullSafeNEQ)
# Comparisons that are true or false of null.
_OF_NULL = (exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is)
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NullSafeEQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.NullSafeNEQ: exp.NullSafeNEQ,
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


def filtered_partitions(
    statement: Statement, scope: Scope, leaf: Leaf, facts: TableFacts, filters: Iterable[SideFilter]
) -> Cover:
    """The partitions of a table that some filters let through, or more, by columns in lower case."""
    columns = frozenset(map(str.lower, facts.partition_columns))
    reading = _ConditionReader(statement, scope, leaf, facts, columns)
    return _intersection([reading.cover_of(one.tree, one.at) for one in filters if one.tree is not None])


def covers_by_term(
    statement: Statement, scope: Scope, leaf: Leaf, facts: TableFacts
) -> Iterator[tuple[exp.Expr, Join, Cover]]:
    """Each term of a block's conditions, with the partitions of a table that it lets through, or more."""
    columns = frozenset(map(str.lower, facts.partition_columns))
    reading = _ConditionReader(statement, scope, leaf, facts, columns)
    for join in scope.block.tree.joins:
        for term in conjuncts(join.condition):
            yield term, join, reading.cover_of(term, join)


def _cover(reading: _ConditionReader, filters: BlockFilters) -> Cover:
    """The rows of a table that the block's own filters let through, or more."""
    return _intersection([reading.cover_of(term, join) for term, join in filters.passed_by_rows(reading.leaf)])


@dataclass(frozen=True)
class _ConditionReader:
    """Reads conditions as covers over some columns of one table, in lower case."""

    statement: Statement
    scope: Scope
    leaf: Leaf
    facts: TableFacts
    columns: frozenset[str]

    def cover_of(self, term: exp.Expr, at: Join) -> Cover:
        """The rows of which a condition is true, or more. Parts that are not understood are true of all rows."""
        covers: list[Cover] = []
        steps: list[SignedCondition | Joined] = [SignedCondition.of(term)]
        for _ in range(_PARTS_MAX):
            step = steps.pop()
            if isinstance(step, Joined):
                joined = _intersection if step.is_conjunction else _union
                covers[-step.count :] = [joined(covers[-step.count :])]
            elif len(parts := step.parts()) > 1:
                is_conjunction = step.is_conjunction
                if not is_conjunction and len(parts) > ALTERNATIVES_MAX:
                    covers.append(Cover.all())
                else:
                    steps += [Joined(len(parts), is_conjunction=is_conjunction), *reversed(parts)]
            else:
                covers.append(self._compared(step, at))
            if not steps:
                return covers.pop()
        return Cover.all()

    def _compared(self, comparison: SignedCondition, at: Join) -> Cover:
        """The rows of which a comparison, or its NOT, is true."""
        tuples = _tuples(comparison.tree)
        if tuples is not None:
            return self._in_tuples(*tuples, at, is_negated=comparison.is_negated)
        side, domain_of = _comparison(comparison)
        column = self._column(side, at)
        if column is None:
            return Cover.all()
        try:
            domain = domain_of(_Literals(self.statement, column.type_name))
        except UnreadableKeyError:
            return Cover.all()
        return Cover.of_domain(column.name, domain)

    def _in_tuples(
        self, sides: Sequence[exp.Expr], tuples: Sequence[Sequence[exp.Expr]], at: Join, *, is_negated: bool
    ) -> Cover:
        """The rows whose tuple is, or is not, among those of literals."""
        found: dict[Column, list[Key]] = {}
        for place, side in enumerate(sides):
            column = self._column(side, at)
            values = self._values([row[place] for row in tuples], column)
            if column is not None and column not in found and values is not None:
                found[column] = values
        if not found or (is_negated and len(found) < len(sides)):
            return Cover.all()
        cover = Cover.of_rows(tuple(found), list(zip(*found.values(), strict=True)))
        if is_negated:
            return _outside(cover)
        return cover if len(cover.boxes) <= _BOXES_MAX else _around(cover)

    def _values(self, nodes: Sequence[exp.Expr], column: Column | None) -> list[Key] | None:
        """The literals as values of a column; None where one of them is not certain to be."""
        if column is None:
            return None
        literals = _Literals(self.statement, column.type_name)
        try:
            values = [literals.value(node) for node in nodes]
            _ = Domain.of(column.type_name, values)
        except UnreadableKeyError:
            return None
        return values

    def _column(self, side: exp.Expr | None, at: Join) -> Column | None:
        """The table's column that an expression names, in lower case, if it is one of those to read."""
        operand = self.scope.resolve(side, at) if side is not None else None
        if operand is None or operand.leaf is not self.leaf or operand.name.lower() not in self.columns:
            return None
        column = self.facts.column(operand.name)
        if column is None or not is_key_type(column.type_name):
            return None
        return Column(column.name.lower(), column.type_name)


def _intersection(covers: Sequence[Cover]) -> Cover:
    """The rows of all covers, or more: one that would make too many boxes is left out."""
    found = Cover.all()
    for cover in covers:
        if len(found.boxes) * len(cover.boxes) <= _BOXES_MAX:
            found = found.intersection(cover)
    return found


def _union(covers: Sequence[Cover]) -> Cover:
    boxes = [box for cover in covers for box in cover.boxes]
    return Cover.of(boxes) if len(boxes) <= _BOXES_MAX else Cover.all()


def _outside(cover: Cover) -> Cover:
    """The rows that are not in the cover, those with nulls among them; all if that takes too many boxes."""
    left = [Box(())]
    for box in cover.boxes:
        left = [piece for part in left for piece in (part.without_rows_of(box) if part.meets(box) else (part,))]
        if len(left) > ALTERNATIVES_MAX:
            return Cover.all()
    return Cover.of(left)


def _around(cover: Cover) -> Cover:
    """One box around those of a cover."""
    box = Box.of(column_by_column(cover.boxes))
    return Cover.all() if box is None else Cover((box,))


@dataclass(frozen=True)
class _Literals:
    """Literals that are of one type for certain. Raises UnreadableKeyError for any other expression."""

    statement: Statement
    type_name: str

    def value(self, node: exp.Expr) -> Key:
        """The value of a literal, as a key of the type: Spark casts neither the literal nor the column."""
        node = node.unnest()
        if integers_of(self.type_name) is not None:
            return integer_of(node)
        if self.type_name == "boolean" and isinstance(node, exp.Boolean):
            return bool(node.this)
        if self.type_name == "date" and is_date_literal(node) and not _calls_date(self.statement):
            return str(node.this.this)
        if self.type_name == "string":
            return self._text(node)
        if self.type_name.startswith("decimal"):
            return decimal_of(node, self.type_name)
        raise UnreadableKeyError(f"no literal that is a {self.type_name} for certain")

    def compared(self, node: exp.Expr, *, is_ordered: bool = False) -> Key:
        """The value that a literal equals, whichever side Spark casts; or, if `is_ordered`, is ordered by."""
        node = node.unnest()
        held = integers_of(self.type_name)
        if not isinstance(node, exp.Literal) or not node.is_string or self.type_name == "string":
            return self.value(node)
        text = self._text(node)
        if held is not None and _INTEGER_TEXT.fullmatch(text) and int(text) in held:
            return int(text)
        # As texts, days of the year 10000 come before all others.
        if self.type_name == "date" and _DATE_TEXT.fullmatch(text) and not is_ordered:
            return text
        raise UnreadableKeyError(f"no text that is a {self.type_name} in each session")

    def _text(self, node: exp.Expr) -> str:
        if not _is_plain_text(node) or depends_on_quoting(self.statement.text):
            raise UnreadableKeyError("no text that is the same under every setting")
        return str(node.this)

    def points(self, nodes: Sequence[exp.Expr]) -> Domain:
        """The values of literals."""
        return Domain.of(self.type_name, [self.compared(node) for node in nodes])

    def null(self) -> Domain:
        """Null alone."""
        return Domain(self.type_name, nullable=True)

    def range(self, low: exp.Expr | None, high: exp.Expr | None) -> Domain:
        """The values between two literals, both included."""
        ends = (None if node is None else self.compared(node, is_ordered=True) for node in (low, high))
        return Domain.between(self.type_name, *ends)

    def outside(self, low: exp.Expr | None, high: exp.Expr | None) -> Domain:
        """The values that are not between two literals, without null."""
        return Domain(self.type_name, self.range(low, high).complement().cuts)


# Makes the domain that the literals of a comparison leave of its column.
_DomainOf = Callable[[_Literals], Domain]


def _tuples(term: exp.Expr) -> tuple[Sequence[exp.Expr], list[Sequence[exp.Expr]]] | None:
    """The expressions of `(a, b) IN ((1, 2), (3, 4))`, and the tuples; None for any other comparison."""
    if isinstance(term, exp.In) and _has_only(term, "this", "expressions"):
        sides, rows = term.this.unnest(), [row.unnest() for row in term.expressions]
    elif isinstance(term, _EQUALS):
        sides, rows = term.this.unnest(), [term.expression.unnest()]
    else:
        return None
    if not isinstance(sides, exp.Tuple) or not rows:
        return None
    count = len(sides.expressions)
    if not all(isinstance(row, exp.Tuple) and len(row.expressions) == count for row in rows):
        return None
    return [side.unnest() for side in sides.expressions], [row.expressions for row in rows]


def _comparison(comparison: SignedCondition) -> tuple[exp.Expr | None, _DomainOf]:
    """The expression that is compared with literals, and the domain they leave; None for any other condition."""
    term = comparison.tree
    side, domain_of = _unnegated(term)
    if comparison.is_negated:
        return side, _complement(domain_of, of_null=isinstance(term, _OF_NULL))
    return side, domain_of


def _unnegated(term: exp.Expr) -> tuple[exp.Expr | None, _DomainOf]:
    if isinstance(term, exp.In) and _has_only(term, "this", "expressions"):
        return term.this.unnest(), lambda literals: literals.points(term.expressions)
    if isinstance(term, exp.Between) and _has_only(term, "this", "low", "high"):
        return term.this.unnest(), lambda literals: literals.range(term.args["low"], term.args["high"])
    if isinstance(term, exp.Is) and isinstance(term.expression, exp.Null):
        return term.this.unnest(), _Literals.null
    if type(term) not in _MIRRORED:
        return None, lambda literals: Domain.all(literals.type_name)
    left, right = term.this.unnest(), term.expression.unnest()
    if isinstance(right, exp.Column):
        return right, _ordered(_MIRRORED[type(term)], left)
    return left, _ordered(type(term), right)


def _complement(domain_of: _DomainOf, *, of_null: bool) -> _DomainOf:
    """The values of which a comparison is false: null is one where the comparison is never null itself."""

    def complement(literals: _Literals) -> Domain:
        found = domain_of(literals).complement()
        return found if of_null else replace(found, nullable=False)

    return complement


def _ordered(comparison: type[exp.Expr], bound: exp.Expr) -> _DomainOf:
    if comparison in _UNEQUALS:
        return _complement(_ordered(exp.EQ, bound), of_null=comparison in _OF_NULL)
    if issubclass(comparison, _EQUALS):
        return lambda literals: literals.points([bound])
    if comparison is exp.LTE:
        return lambda literals: literals.range(None, bound)
    if comparison is exp.GTE:
        return lambda literals: literals.range(bound, None)
    if comparison is exp.LT:
        return lambda literals: literals.outside(bound, None)
    return lambda literals: literals.outside(None, bound)


def _has_only(node: exp.Expr, *names: str) -> bool:
    return all(name in names or not value for name, value in node.args.items())


def _calls_date(statement: Statement) -> bool:
    """True if `date(` stands anywhere: a session may have a function of its own by that name."""
    kinds = [token.token_type for token in statement.tokens]
    return (TokenType.DATE, TokenType.L_PAREN) in pairwise(kinds)


def _is_plain_text(node: exp.Expr) -> bool:
    """True if the literal has the same value under every setting."""
    return isinstance(node, exp.Literal) and node.is_string and literal("string", node.name) == f"'{node.name}'"
