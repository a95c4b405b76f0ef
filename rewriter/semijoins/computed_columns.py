"""Columns of a derived table or CTE that its SELECT computes from columns of one of its FROM items.

With `WITH stg AS (SELECT v, CAST(ds AS DATE) AS day FROM f)`, a condition on `stg.day` is one on `f.ds`: `ds`
alone decides which day a row of stg shows. dbt's staging models are written so. Rows of one day must change
nothing for those of another: the SELECT shows its rows one by one, or groups them by the day, among others. A
LIMIT, a total or a window would look at rows of several days.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Leaf
from rewriter.scopes.lineage import branches, branches_apart, column_of_output, shows_rows_apart
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.side_filters import BlockFilters
from rewriter.sql.conditions import located_output
from rewriter.sql.statement import is_plain_name

# Derived tables inside one another that only rename the column.
_NESTING_MAX = 30

# The number of SELECTs from which on a query is a UNION.
_UNION = 2


@dataclass(frozen=True, eq=False)
class ComputedColumn:
    """An expression that a SELECT shows, and the columns that it reads of one FROM item."""

    # The name outside.
    name: str
    select: exp.Select
    item: Leaf
    text: str
    reads: tuple[str, ...]
    # True if a join within may pad it, or the columns that it is computed from, with nulls.
    is_padded: bool


def computed_columns(scopes: Scopes, leaf: Leaf, name: str) -> list[ComputedColumn]:
    """The expressions behind a column of a FROM item: one, or one for each branch of a UNION that computes it.

    Empty where it is a plain column, or is not certain.
    """
    found: list[ComputedColumn] = []
    pending = [(leaf, name, False, 0)]
    while pending:
        item, column, is_padded, nesting = pending.pop()
        scopes.steps.take()
        position = scopes.position_of(item, column)
        for select in _selects(scopes, item, column) if position is not None and nesting < _NESTING_MAX else ():
            scope, outputs = scopes.scope_of(select), scopes.outputs_of(select)
            if scope is None or outputs is None or position is None:
                continue
            operand = column_of_output(scopes, select, position)
            if operand is not None:
                padded = is_padded or operand.leaf.is_padded_below(scope.block.tree.joins[-1])
                pending.append((operand.leaf, operand.name, padded, nesting + 1))
                continue
            shown = outputs[position].shows
            if isinstance(shown, exp.Expr) and shows_rows_apart(scopes, select):
                computed = _computed(scopes, scope, shown, name, is_padded=is_padded)
                found += [computed] if computed is not None else []
    return found


def _selects(scopes: Scopes, leaf: Leaf, name: str) -> list[exp.Select]:
    """The SELECTs whose rows a FROM item shows; none for a UNION that may cast the column."""
    query = scopes.query_of(leaf, only_once=True)
    selects = branches(query) if query is not None else []
    return selects if len(selects) < _UNION else [select for select, _ in branches_apart(scopes, leaf, name)]


def _computed(
    scopes: Scopes, scope: Scope, shown: exp.Expr, name: str, *, is_padded: bool
) -> ComputedColumn | None:
    named = shown.parent
    located = located_output(scopes.statement, named if isinstance(named, exp.Alias) else shown)
    if located is not None:
        # It has been parsed once more.
        scopes.steps.take(located.last - located.first + 1)
    if located is None or not BlockFilters(scopes, scope).is_repeatable(located):
        return None
    columns, queries = scopes.own_parts(located.tree)
    operands = [scope.resolve(column, scope.block.tree.joins[-1]) for column in columns]
    read = [operand for operand in operands if operand is not None]
    items = {operand.leaf for operand in read}
    is_of_one_item = not queries and len(read) == len(columns) and len(items) == 1
    if not is_of_one_item or any(column.text("db") for column in columns):
        return None
    names = tuple(dict.fromkeys(operand.name for operand in read))
    (item,) = items
    is_certain = bool(item.alias) and all(map(is_plain_name, names))
    if not is_certain:
        return None
    is_padded |= item.is_padded_below(scope.block.tree.joins[-1])
    text = located.text(scopes.statement)
    return ComputedColumn(name, scope.block.select, item, text, names, is_padded)
