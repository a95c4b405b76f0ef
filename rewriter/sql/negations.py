"""NOT over AND and OR, moved down to the conditions that these join (De Morgan).

`NOT (a AND b)` is `NOT a OR NOT b` in SQL's three values too: both are true where either is false, and null where
neither is false and one is null.

>>> from rewriter.sql.statement import parse_tree
>>> condition = SignedCondition.of(parse_tree("SELECT 1 WHERE NOT (a AND (NOT b AND c))").args["where"].this)
>>> condition.is_conjunction
False
>>> [("NOT " if part.is_negated else "") + part.tree.sql() for part in condition.parts()]
['NOT a', 'b', 'NOT c']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Joined:
    """The mark behind the parts of a condition: the last `count` results are joined there."""

    count: int
    is_conjunction: bool


@dataclass(frozen=True, slots=True, eq=False)
class SignedCondition:
    """A condition that is no parenthesis and no NOT, or its NOT."""

    tree: exp.Expr
    is_negated: bool

    @classmethod
    def of(cls, tree: exp.Expr, *, is_negated: bool = False) -> Self:
        """The condition within any parentheses and NOTs."""
        while isinstance(tree, exp.Not | exp.Paren):
            is_negated ^= isinstance(tree, exp.Not)
            tree = tree.this
        return cls(tree, is_negated)

    @property
    def is_conjunction(self) -> bool:
        """True if all of its parts are true where it is; else one of them is."""
        return isinstance(self.tree, exp.Or if self.is_negated else exp.And)

    def parts(self) -> list[SignedCondition]:
        """The conditions that AND joins, or OR, left to right; a condition of neither is its only part."""
        found: list[SignedCondition] = []
        pending = [self]
        while pending:
            part = pending.pop()
            if isinstance(part.tree, exp.And | exp.Or) and part.is_conjunction == self.is_conjunction:
                sides = (part.tree.expression, part.tree.this)
                pending += [SignedCondition.of(side, is_negated=part.is_negated) for side in sides]
            else:
                found.append(part)
        return found
