"""Tests whether each LIMIT and OFFSET of a statement takes the same rows each time.

`ORDER BY day LIMIT 10` takes any rows of the last of those days. If a SELECT is ordered by all that it shows, or
by all that it groups by, rows that are equal in their order are one, or show the same. A number in ORDER BY counts
as that of an output, as Spark reads it unless `spark.sql.orderByOrdinal` is off.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rewriter.scopes.kept_keys import has_totals
from rewriter.splits.signed_zeros import IsToldApart
from rewriter.sql.statement import Statement

# These make several rows of one group.
_GENERATORS = (exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.PosexplodeOuter)


def takes_certain_rows(statement: Statement, is_told_apart: IsToldApart) -> bool:
    """True if no query of the statement takes some of several rows that are equal in their order."""
    queries = (query for query in statement.find_all(exp.Query) if _takes_some(query))
    return all(isinstance(query, exp.Select) and _is_certain(query, is_told_apart) for query in queries)


def _takes_some(query: exp.Expr) -> bool:
    return bool(query.args.get("limit") or query.args.get("offset"))


def _is_certain(select: exp.Select, is_told_apart: IsToldApart) -> bool:
    order, group, outputs = select.args.get("order"), select.args.get("group"), select.expressions
    if order is None or any(output.is_star or output.find(*_GENERATORS) for output in outputs):
        return False
    ordered = {place for key in order.expressions for place in [_place(outputs, key.this)] if place is not None}
    if group is not None and not has_totals(group):
        return _are_ordered(_keys(outputs, group), ordered)
    if len(ordered) < len(outputs):
        return False
    is_unified = select.args.get("distinct") is not None
    return is_unified or all(is_told_apart(output.unalias()) for output in outputs)


def _are_ordered(keys: Sequence[int | None], ordered: set[int]) -> bool:
    """True if all group keys are outputs, each its own, that the groups are ordered by."""
    return len(set(keys)) == len(keys) and all(key is not None and key in ordered for key in keys)


def _keys(outputs: Sequence[exp.Expr], group: exp.Group) -> list[int | None]:
    return [_place_of_key(outputs, key) for key in group.expressions]


def _place(outputs: Sequence[exp.Expr], key: exp.Expr) -> int | None:
    """The output that a key of ORDER BY names: Spark looks for a name among the outputs first."""
    if isinstance(key, exp.Literal):
        return _ordinal(outputs, key)
    if not isinstance(key, exp.Column):
        return None
    alike = [place for place, output in enumerate(outputs) if output.alias_or_name.lower() == key.name.lower()]
    if alike and not key.table:
        return alike[0] if [outputs[place].alias_or_name for place in alike] == [key.name] else None
    return next((place for place, output in enumerate(outputs) if output.unalias() == key), None)


def _place_of_key(outputs: Sequence[exp.Expr], key: exp.Expr) -> int | None:
    """The output that shows a group key: Spark looks for a name among the columns of the FROM first."""
    if isinstance(key, exp.Literal):
        return _ordinal(outputs, key)
    same = next((place for place, output in enumerate(outputs) if output.unalias() == key), None)
    if same is not None or not isinstance(key, exp.Column) or key.table:
        return same
    named = [place for place, output in enumerate(outputs) if output.alias == key.name]
    return named[0] if len(named) == 1 and outputs[named[0]].find(exp.AggFunc) is None else None


def _ordinal(outputs: Sequence[exp.Expr], key: exp.Literal) -> int | None:
    if key.is_string or not key.name.isdecimal() or not 0 < int(key.name) <= len(outputs):
        return None
    return int(key.name) - 1
