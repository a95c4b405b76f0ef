"""Filters that stand outside: on the output of a derived table or CTE in whose body the small side is joined.

`SELECT .. FROM (SELECT .., d.month AS m FROM sales s JOIN dates d ON ..) x WHERE x.m = 12`: rows of `x` with
another month reach nothing, so the key query may ask for the keys of that month alone. This holds where the
output is a plain column of the small side that keeps its rows apart (see `lineage`), where nothing between the
join and the output pads it, and where the filter drops rows of `x` for good.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rewriter.catalog import quoted
from rewriter.filters import Filter, Filters, condition_holds
from rewriter.jointree import Join, Leaf
from rewriter.lineage import branches, column_behind
from rewriter.scopes import Scope, Scopes, own_parts

# The key's name beside the columns that the outer filters read.
REDUCED_KEY = "reduced_key"


@dataclass(frozen=True)
class OuterFilters:
    """Filters on a FROM item `alias`, and the small side's columns that its columns of those names are."""

    alias: str
    columns: dict[str, str]
    texts: tuple[str, ...]

    def source(self, inner_source: str, key: str, small_alias: str, filters: tuple[str, ...]) -> str:
        """The small side as the item would show it, for the client's own words to filter."""
        shown = [f"{small_alias}.{quoted(column)} AS {quoted(name)}" for name, column in self.columns.items()]
        where = f" WHERE {' AND '.join(f'({text})' for text in filters)}" if filters else ""
        projections = ", ".join([f"{key} AS {REDUCED_KEY}", *shown])
        query = f"SELECT {projections} FROM {inner_source}{where}"
        return f"({query}) AS {quoted(self.alias)}"


class Readers:
    """Which FROM item reads the output of which SELECT, and the filters of every block."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._filters: dict[Scope, Filters] = {}
        # By SELECT: who reads it, and the branches of the UNION that it is one of, or itself alone.
        self._readers: dict[int, tuple[Scope, Leaf, list[exp.Select]]] = {}
        for block in scopes.blocks:
            scope = scopes.scope_of(block.select)
            if scope is not None:
                self._note_readers(scope)

    def _note_readers(self, scope: Scope) -> None:
        for leaf in scope.block.tree.leaves:
            query = self._scopes.query_of(leaf, only_once=True)
            selects = branches(query) if query is not None else []
            for select in selects:
                self._readers[id(select)] = (scope, leaf, selects)

    def filters_of(self, scope: Scope) -> Filters:
        """The filters of one block."""
        if scope not in self._filters:
            self._filters[scope] = Filters(self._scopes.statement, scope)
        return self._filters[scope]

    def outer_filters(self, scope: Scope, join: Join, small: Leaf) -> OuterFilters | None:
        """The filters outside a block that restrict the small side of one of its joins, if there are any."""
        select, top = scope.block.select, scope.block.tree.joins[-1]
        reader = self._readers.get(id(select))
        if reader is None or not condition_holds(top, join, small):
            return None
        outer, leaf, selects = reader
        columns: dict[str, str] = {}
        texts = []
        for filter_ in self.filters_of(outer).holding_for_rows(leaf):
            found = self._columns(select, selects, leaf, small, filter_)
            if found is not None:
                columns |= found
                texts.append(filter_.text)
        if not texts or not leaf.alias or REDUCED_KEY in columns:
            return None
        return OuterFilters(leaf.alias, columns, tuple(texts))

    def _columns(
        self, select: exp.Select, selects: list[exp.Select], leaf: Leaf, small: Leaf, filter_: Filter
    ) -> dict[str, str] | None:
        """The small side's columns that the filter reads, by the names that it reads them by."""
        if filter_.tree is None:
            return None
        outputs = [column.name.lower() for column in self._scopes.columns_of(leaf) or ()]
        columns: dict[str, str] = {}
        for name in {column.name.lower() for column in own_parts(filter_.tree)[0]}:
            if outputs.count(name) != 1:
                return None
            position = outputs.index(name)
            operand = column_behind(self._scopes, select, position)
            if operand is None or operand.leaf is not small or not self._is_of_one_type(selects, position):
                return None
            columns[name] = operand.name
        return columns

    def _is_of_one_type(self, selects: list[exp.Select], position: int) -> bool:
        """Whether a UNION leaves the column's type as it is in every branch, so that a filter means the same."""
        if len(selects) == 1:
            return True
        behind = [column_behind(self._scopes, select, position) for select in selects]
        types = {operand.type_name if operand is not None else None for operand in behind}
        return len(types) == 1 and None not in types
