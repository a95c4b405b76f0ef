"""Filters on partition columns: a tree of conditions, the test of one field, and the test of one partition.

There is no NOT, so null and false never differ: a comparison with null is not true, and no node above turns that
into true. Negations are conditions of their own (`!=`, NOT LIKE, IS NOT NULL).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from rewriter.domains.literals import Key
from rewriter.partitions.byte_ranges import ByteRange, ByteRanges
from rewriter.partitions.key_encoding import END, NULL, VALUE, PartitionKeys
from rewriter.partitions.like import LikePattern
from rewriter.partitions.value_encoding import NotIndexableError, encoded_prefix


class Operator(Enum):
    """A comparison as SQL writes it."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True)
class Compare:
    """A column against a value of its type. Nothing compares with null."""

    column: str
    operator: Operator
    value: Key | None


@dataclass(frozen=True)
class In:
    """A column against several values of its type, of which a null matches nothing."""

    column: str
    values: tuple[Key | None, ...]


@dataclass(frozen=True)
class Like:
    """A string column against a pattern, which it must fit or, if negated, must not fit."""

    column: str
    pattern: str
    escape: str = "\\"
    negated: bool = False


@dataclass(frozen=True)
class IsNull:
    """A test that a column is null or, if negated, that it is not."""

    column: str
    negated: bool = False


@dataclass(frozen=True, eq=False)
class And:
    """All of the terms; true where there is none."""

    terms: tuple[PartitionFilter, ...]


@dataclass(frozen=True, eq=False)
class Or:
    """Any of the terms; false where there is none."""

    terms: tuple[PartitionFilter, ...]


ColumnCondition: TypeAlias = Compare | In | Like | IsNull
PartitionFilter: TypeAlias = ColumnCondition | And | Or


def terms_of(node: And | Or) -> list[PartitionFilter]:
    """The terms in order, through any nesting of the same kind: parsers make `a OR b OR c` a chain."""
    terms: list[PartitionFilter] = []
    pending: list[PartitionFilter] = [node]
    while pending:
        term = pending.pop()
        if isinstance(term, And | Or) and type(term) is type(node):
            pending += reversed(term.terms)
        else:
            terms.append(term)
    return terms


@dataclass(frozen=True)
class FieldTest:
    """A test of one field: it must be in the ranges, and be a text that fits the pattern, if there is one.

    Negated, it must be a text that does not fit the pattern.
    """

    column: int
    ranges: ByteRanges
    pattern: LikePattern | None = None
    is_negated: bool = False

    @classmethod
    def of(cls, leaf: ColumnCondition, keys: PartitionKeys) -> FieldTest:
        """The test of a leaf. Raises NotIndexableError."""
        column = keys.position(leaf.column)
        if isinstance(leaf, Like):
            return cls._like(column, leaf, keys)
        if isinstance(leaf, IsNull):
            ranges = [ByteRange(VALUE, END) if leaf.negated else ByteRange(NULL, VALUE)]
        elif isinstance(leaf, In):
            encoded = [keys.encode_field(column, value) for value in leaf.values if value is not None]
            ranges = list(map(ByteRange.of_prefix, encoded))
        elif leaf.value is None:
            ranges = []
        else:
            ranges = _compared(leaf.operator, ByteRange.of_prefix(keys.encode_field(column, leaf.value)))
        return cls(column, ByteRanges.union(ranges))

    @classmethod
    def _like(cls, column: int, leaf: Like, keys: PartitionKeys) -> FieldTest:
        if keys.type_names[column] != "string":
            raise NotIndexableError(f"LIKE on a {keys.type_names[column]}, which Spark casts")
        pattern = LikePattern.of(leaf.pattern, leaf.escape)
        if pattern.is_text:
            prefix = keys.encode_field(column, pattern.prefix)
        else:
            prefix = VALUE + encoded_prefix(pattern.prefix)
        fitting = ByteRange.of_prefix(prefix)
        if pattern.is_text or pattern.is_prefix:
            ranges = _not_in(fitting) if leaf.negated else [fitting]
            return cls(column, ByteRanges.union(ranges))
        if leaf.negated:
            return cls(column, ByteRanges((ByteRange(VALUE, END),)), pattern, is_negated=True)
        return cls(column, ByteRanges((fitting,)), pattern)

    def holds(self, entry: bytes, keys: PartitionKeys) -> bool:
        """True if a partition satisfies the leaf."""
        found = keys.field(entry, self.column)
        if found not in self.ranges or self.pattern is None:
            return found in self.ranges
        return self.pattern.matches(str(keys.decode_field(self.column, found))) is not self.is_negated


def _not_in(fields: ByteRange) -> list[ByteRange]:
    """The values below and above some fields; null is neither."""
    return [ByteRange(VALUE, fields.start), ByteRange(fields.stop, END)]


def _compared(operator: Operator, equal: ByteRange) -> list[ByteRange]:
    """The fields that satisfy the comparison with a value whose own field is at `equal`."""
    less, greater = _not_in(equal)
    return {
        Operator.EQUAL: [equal],
        Operator.NOT_EQUAL: [less, greater],
        Operator.LESS: [less],
        Operator.AT_MOST: [less, equal],
        Operator.GREATER: [greater],
        Operator.AT_LEAST: [equal, greater],
    }[operator]


_TRUE: Final = -1
_FALSE: Final = -2
# The step that was added last, while steps are added from the last one to the first.
_LATEST: Final = -3


@dataclass(frozen=True)
class _Step:
    test: FieldTest
    # The index of the next step, or the result.
    if_true: int
    if_false: int


@dataclass(frozen=True)
class PartitionTest:
    """A filter as steps that jump to the next leaf that can still change the answer.

    A tree may be nested as deeply as its text is long; steps need no recursion.
    """

    keys: PartitionKeys
    steps: tuple[_Step, ...]
    first: int

    @classmethod
    def of(cls, root: PartitionFilter, keys: PartitionKeys) -> PartitionTest:
        """The test of a filter. Raises NotIndexableError."""
        steps: list[_Step] = []
        latest = _TRUE
        pending: list[tuple[PartitionFilter, int, int]] = [(root, _TRUE, _FALSE)]
        while pending:
            node, if_true, if_false = pending.pop()
            if_true = latest if if_true == _LATEST else if_true
            if_false = latest if if_false == _LATEST else if_false
            if isinstance(node, And | Or) and node.terms:
                pending += _jumps(node, if_true, if_false)
            elif isinstance(node, And | Or):
                latest = if_true if isinstance(node, And) else if_false
            else:
                steps.append(_Step(FieldTest.of(node, keys), if_true, if_false))
                latest = len(steps) - 1
        return cls(keys, tuple(steps), latest)

    def holds(self, entry: bytes) -> bool:
        """True if a partition satisfies the filter."""
        at = self.first
        while at >= 0:
            step = self.steps[at]
            at = step.if_true if step.test.holds(entry, self.keys) else step.if_false
        return at == _TRUE


def _jumps(node: And | Or, if_true: int, if_false: int) -> list[tuple[PartitionFilter, int, int]]:
    """The terms in order, each with its next steps; all but the last one may continue at the next term."""
    *terms, last = node.terms
    if isinstance(node, And):
        return [*((term, _LATEST, if_false) for term in terms), (last, if_true, if_false)]
    return [*((term, if_true, _LATEST) for term in terms), (last, if_true, if_false)]
