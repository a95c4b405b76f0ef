"""Columns by whose values a SELECT keeps its rows apart: rows of one key change nothing for those of another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from sqlglot import exp

from rewriter.scopes.blocks import Operand, Scope
from rewriter.scopes.join_tree import Leaf

# A column of a FROM item.
_Key: TypeAlias = tuple[Leaf, str]


class KeptKeys:
    """Keys that one SELECT groups by, and partitions its windows by; looked at once for all of its outputs."""

    def __init__(self, scope: Scope, select: exp.Select) -> None:
        self._scope = scope
        group = select.args.get("group")
        # ROLLUP, CUBE and GROUPING SETS mix the keys in their totals.
        self._mixes = group is not None and any(v for name, v in group.args.items() if name != "expressions")
        self._mixes |= group is None and any(map(aggregates, select.expressions))
        self._grouped = None if group is None else self._keys(group.expressions)
        self._ordinals = {k.name for k in group.expressions if isinstance(k, exp.Literal)} if group else set()
        parts = [*select.expressions, *(select.args[k] for k in ("qualify", "order") if select.args.get(k))]
        windows = (self._keys(w.args.get("partition_by") or []) for p in parts for w in p.find_all(exp.Window))
        first = next(windows, None)
        self._partitioned = None if first is None else first.intersection(*windows)

    def _keys(self, expressions: Iterable[exp.Expr]) -> frozenset[_Key]:
        found = (self._scope.resolve(one, self._scope.block.tree.joins[-1]) for one in expressions)
        return frozenset((operand.leaf, operand.name) for operand in found if operand is not None)

    def has(self, operand: Operand, position: int) -> bool:
        """True if rows of one value of a column, which is an output, change nothing for those of another."""
        return not self._mixes and self.is_grouped_by(operand, position) and self.is_partitioned_by(operand)

    def is_grouped_by(self, operand: Operand, position: int) -> bool:
        """True if each group has one value of the column, or there are no groups."""
        is_key = self._grouped is None or (operand.leaf, operand.name) in self._grouped
        return is_key or str(position + 1) in self._ordinals

    def is_partitioned_by(self, operand: Operand) -> bool:
        """True if each window looks at rows of one value of the column, or there are no windows."""
        return self._partitioned is None or (operand.leaf, operand.name) in self._partitioned


def aggregates(expression: exp.Expr) -> bool:
    """True if an output of a SELECT without groups is one for all of its rows."""
    return any(found.find_ancestor(exp.Window) is None for found in expression.find_all(exp.AggFunc))
