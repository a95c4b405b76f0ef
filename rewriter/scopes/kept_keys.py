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
    """Totals of one SELECT, and keys that it partitions its windows by; looked at once for all of its outputs."""

    def __init__(self, scope: Scope, select: exp.Select) -> None:
        self._scope = scope
        group = select.args.get("group")
        self._mixes = any(map(aggregates, select.expressions)) if group is None else has_totals(group)
        parts = [*select.expressions, *(select.args[k] for k in ("qualify", "order") if select.args.get(k))]
        windows = (self._keys(w.args.get("partition_by") or []) for p in parts for w in p.find_all(exp.Window))
        first = next(windows, None)
        self._partitioned = None if first is None else first.intersection(*windows)

    def _keys(self, expressions: Iterable[exp.Expr]) -> frozenset[_Key]:
        found = (self._scope.resolve(one, self._scope.block.tree.joins[-1]) for one in expressions)
        return frozenset((operand.leaf, operand.name) for operand in found if operand is not None)

    def has(self, operand: Operand) -> bool:
        """True if rows of one value of a column, which is an output, change nothing for those of another.

        A SELECT with groups may show a column if it is the same for all rows of a group: Spark refuses any other.
        """
        return not self._mixes and self.is_partitioned_by(operand)

    def is_partitioned_by(self, operand: Operand) -> bool:
        """True if each window looks at rows of one value of the column, or there are no windows."""
        return self._partitioned is None or (operand.leaf, operand.name) in self._partitioned


def aggregates(expression: exp.Expr) -> bool:
    """True if an output of a SELECT without groups is one for all of its rows."""
    return any(found.find_ancestor(exp.Window) is None for found in expression.find_all(exp.AggFunc))


def has_totals(group: exp.Group) -> bool:
    """True if rows of several keys may share a group, which shows null in place of a key.

    ROLLUP, CUBE and GROUPING SETS stand beside the keys or among them. GROUP BY ALL names no keys.
    """
    beside = any(value for name, value in group.args.items() if name != "expressions")
    return beside or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
