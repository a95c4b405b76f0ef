"""Lineage of a key column: the table that it comes from, through derived tables, CTEs and UNION ALL.

A column is followed as long as leaving out the table's rows with some key can only remove rows with that key, or
put null in its place: through projections and renames, group keys, DISTINCT and window partition keys. It is never
followed past a LIMIT, a sample, a PIVOT or an expression.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from rewriter.catalog.table_facts import TableKind
from rewriter.scopes.blocks import ColumnOrigin, Operand
from rewriter.scopes.join_tree import Leaf
from rewriter.scopes.kept_keys import KeptKeys, aggregates, has_totals
from rewriter.scopes.scopes import Scopes
from rewriter.vocabulary.identifiers import Column

# Derived tables inside one another, and branches of one UNION. The limits bound the recursion.
_NESTING_MAX = 30
_BRANCHES_MAX = 200

# Clauses of a SELECT that choose rows by more than the rows' own values.
_CHOOSING_CLAUSES = ("limit", "offset", "windows", "match", "sample")


def origins(scopes: Scopes, leaf: Leaf, name: str, nesting: int = 0) -> tuple[ColumnOrigin, ...]:
    """The origins of a FROM item's column, one for each branch of a UNION; none if they are not certain."""
    if nesting > _NESTING_MAX:
        return ()
    if leaf.reference is not None and not scopes.is_cte_name(leaf):
        facts = scopes.catalog.get(leaf.reference.name)
        column = facts.column(name) if facts is not None else None
        return (
            (ColumnOrigin(leaf, leaf.reference, facts, column),)
            if facts is not None and column is not None
            else ()
        )
    query = scopes.query_of(leaf)
    position = scopes.position_of(leaf, name)
    if query is None or position is None:
        return ()
    found = output_origins(scopes, query, position, nesting + 1)
    serves_others = scopes.query_of(leaf, only_once=True) is None
    columns = scopes.columns_of(leaf) or ()
    return _at_reference(leaf, columns[position].name, found) if serves_others else found


def _at_reference(leaf: Leaf, name: str, found: tuple[ColumnOrigin, ...]) -> tuple[ColumnOrigin, ...]:
    """The column of a CTE that has other readers too: this reference of the CTE is narrowed, and not its body.

    Spark pushes the filter down to the partitions if the column comes from partition columns alone.
    """
    is_pruned = all(o.facts.kind is TableKind.TABLE and o.facts.is_partition_column(o.column) for o in found)
    if not found or not is_pruned or leaf.reference is None:
        return ()
    column = Column(name, found[0].column.type_name)
    # The CTE's rows do not show files or buckets.
    facts = replace(
        found[0].facts, columns=(column,), partition_columns=(name,), indexed_columns=(), bucket_columns=()
    )
    return (ColumnOrigin(leaf, leaf.reference, facts, column),)


def output_origins(scopes: Scopes, query: exp.Expr, position: int, nesting: int = 0) -> tuple[ColumnOrigin, ...]:
    """The origins of a query's output column, as `origins` has them.

    They are found once: a CTE may read another one twice, and so on, level by level.
    """
    asked = id(query), position
    if asked not in scopes.origins:
        scopes.origins[asked] = _found_through_query(scopes, query, position, nesting)
    found = scopes.origins[asked]
    scopes.steps.look_at(len(found))
    return found


def _found_through_query(scopes: Scopes, query: exp.Expr, position: int, nesting: int) -> tuple[ColumnOrigin, ...]:
    selects = branches(query)
    found = [_through_select(scopes, select, position, nesting) for select in selects]
    if not selects or not all(found):
        return ()
    every = tuple(origin for branch in found for origin in branch)
    # A UNION casts its branches to one type. A key keeps its value only if all branches have that type already.
    return every if len({origin.column.type_name for origin in every}) == 1 else ()


def origins_by_branch(scopes: Scopes, leaf: Leaf, name: str, nesting: int = 0) -> tuple[ColumnOrigin, ...]:
    """The origins of a FROM item's column, also of two that a FULL JOIN shows as one, or in branches of a UNION.

    Each origin may be narrowed by itself, and tells nothing of the column's other origins.
    """
    found = origins(scopes, leaf, name)
    if found or nesting > _NESTING_MAX:
        return found
    asked = leaf, name.lower()
    if asked not in scopes.origins_by_branch:
        apart = branches_apart(scopes, leaf, name, nesting)
        scopes.origins_by_branch[asked] = tuple(origin for _, of_branch in apart for origin in of_branch)
    return scopes.origins_by_branch[asked]


def branches_apart(
    scopes: Scopes, leaf: Leaf, name: str, nesting: int = 0
) -> list[tuple[exp.Select, tuple[ColumnOrigin, ...]]]:
    """The SELECTs of a query that a FROM item alone reads, with the origins of a column in each of them.

    Empty if a UNION or `coalesce` may cast it: each SELECT must show columns of tables or a CAST, all of one type.
    """
    query, position = scopes.query_of(leaf, only_once=True), scopes.position_of(leaf, name)
    if query is None or position is None or scopes.is_in_view(query):
        return []
    found: list[tuple[exp.Select, tuple[ColumnOrigin, ...]]] = []
    types: set[str | None] = set()
    for select in branches(query):
        shown = [
            origins_by_branch(scopes, operand.leaf, operand.name, nesting + 1)
            for operand in _columns_of_output(scopes, select, position)
        ]
        of_branch = tuple(origin for of_column in shown for origin in of_column) if all(shown) else ()
        types |= {origin.column.type_name for origin in of_branch} or {_type_of_cast(scopes, select, position)}
        found.append((select, of_branch))
    scopes.steps.look_at(len(found))
    return found if len(types) == 1 and None not in types else []


def of_one_type(scopes: Scopes, pair: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """The columns that `Scope.united` finds, if it is certain that they have one type and none is cast."""
    found = [origins_by_branch(scopes, one.leaf, one.name) for one in pair]
    types = {origin.column.type_name for of_column in found for origin in of_column}
    return pair if all(found) and len(types) == 1 else ()


def _type_of_cast(scopes: Scopes, select: exp.Select, position: int) -> str | None:
    """The type that an output of a SELECT is cast to, if it is one of those that keys have."""
    outputs = scopes.outputs_of(select) or ()
    shown = outputs[position].shows if position < len(outputs) else None
    # sqlglot reads `date(x)`, which may be a function of the user's own, as exp.Cast.
    if not isinstance(shown, exp.Cast) or type(shown) is not exp.TryCast:
        return None
    # A text may have a collation.
    is_plain = not any(value for name, value in shown.to.args.items() if name != "this")
    return _CAST_TYPES.get(shown.to.this) if is_plain else None


_CAST_TYPES = {
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.DATE: "date",
    exp.DType.TEXT: "string",
}


class ColumnTypes:
    """The types of columns, followed down to the tables they come from; None if only Spark knows a type."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._found: dict[tuple[Leaf, str], str | None] = {}
        # The types of outputs, by the first branch of a UNION and a position in it.
        self._outputs: dict[tuple[int, int], str | None] = {}

    def of(self, operand: Operand, nesting: int = 0) -> str | None:
        """The type of a FROM item's column."""
        column = (operand.leaf, operand.name.lower())
        if column not in self._found:
            self._found[column] = self._look_up(operand, nesting) if nesting <= _NESTING_MAX else None
        return self._found[column]

    def _look_up(self, operand: Operand, nesting: int) -> str | None:
        query = self._scopes.query_of(operand.leaf)
        if query is None:
            return operand.type_name
        position = self._scopes.position_of(operand.leaf, operand.name)
        return None if position is None else self.of_output(branches(query), position, nesting + 1)

    def of_output(self, selects: list[exp.Select], position: int, nesting: int = 0) -> str | None:
        """The type of an output of a UNION, if it has that type in every branch and so is cast in none."""
        output = (id(selects[0]), position) if selects else None
        if output is None:
            return None
        if output not in self._outputs:
            behind = [column_of_output(self._scopes, select, position) for select in selects]
            types = {self.of(operand, nesting) if operand is not None else None for operand in behind}
            self._outputs[output] = types.pop() if len(types) == 1 else None
        return self._outputs[output]


def branches(query: exp.Expr) -> list[exp.Select]:
    """The SELECTs of a UNION, or the one SELECT that a query is; empty for any other query."""
    pending = [query]
    found: list[exp.Select] = []
    while pending:
        part = pending.pop()
        if isinstance(part, exp.Subquery) and not any(v for k, v in part.args.items() if k != "this"):
            pending.append(part.this)
        elif isinstance(part, exp.Union) and not any(part.args.get(k) for k in ("by_name", *_CHOOSING_CLAUSES)):
            pending += [part.expression, part.this]
        elif isinstance(part, exp.Select) and len(found) < _BRANCHES_MAX:
            found.append(part)
        else:
            return []
    return found


def _through_select(scopes: Scopes, select: exp.Select, position: int, nesting: int) -> tuple[ColumnOrigin, ...]:
    operand = column_of_output(scopes, select, position)
    return origins(scopes, operand.leaf, operand.name, nesting) if operand is not None else ()


def column_of_output(scopes: Scopes, select: exp.Select, position: int) -> Operand | None:
    """The column that an output of a SELECT shows, if rows with one value do not change rows with another."""
    found = _columns_of_output(scopes, select, position)
    return found[0] if len(found) == 1 else None


def _columns_of_output(scopes: Scopes, select: exp.Select, position: int) -> tuple[Operand, ...]:
    """The column that an output shows, as `column_of_output` has it; or the two that `Scope.united` finds."""
    asked = id(select), position
    if asked not in scopes.columns_of_output:
        scopes.columns_of_output[asked] = _look_up_columns_of_output(scopes, select, position)
    scopes.steps.take()
    return scopes.columns_of_output[asked]


def _look_up_columns_of_output(scopes: Scopes, select: exp.Select, position: int) -> tuple[Operand, ...]:
    scope = scopes.scope_of(select)
    if scope is None or any(select.args.get(clause) for clause in _CHOOSING_CLAUSES):
        return ()
    outputs = scopes.outputs_of(select) or ()
    if position >= len(outputs):
        return ()
    shown, top = outputs[position].shows, scope.block.tree.joins[-1]
    own = scope.column_of(shown.leaf, shown.name) if isinstance(shown, Operand) else scope.resolve(shown, top)
    united = scope.united(shown, top) if own is None and isinstance(shown, exp.Expr) else ()
    operands = united if own is None else (own,)
    if id(select) not in scopes.kept_keys:
        scopes.kept_keys[id(select)] = KeptKeys(scope, select)
    return operands if all(map(scopes.kept_keys[id(select)].has, operands)) else ()


def shows_rows_apart(scopes: Scopes, select: exp.Select) -> bool:
    """True if each output row of a SELECT comes from rows that are alike in all expressions without aggregates.

    A SELECT without groups shows its rows one by one. One with groups may show such an expression only if it is
    the same for all rows of a group: Spark refuses any other.
    """
    if id(select) not in scopes.shows_rows_apart:
        scopes.steps.take(len(select.expressions))
        scopes.shows_rows_apart[id(select)] = _looks_at_no_other_rows(select)
    return scopes.shows_rows_apart[id(select)]


def _looks_at_no_other_rows(select: exp.Select) -> bool:
    if any(select.args.get(clause) for clause in (*_CHOOSING_CLAUSES, "qualify")):
        return False
    group = select.args.get("group")
    if group is not None and has_totals(group):
        return False
    is_total = group is None and any(map(aggregates, select.expressions))
    return not is_total and not any(expression.find(exp.Window) for expression in select.expressions)
