"""Filters that stand outside: on the output of a derived table or CTE in whose body the small side is joined.

`SELECT .. FROM (SELECT .., d.month AS m FROM sales s JOIN dates d ON ..) x WHERE x.m = 12`: rows of `x` with
another month reach nothing, so the key query may ask for the keys of that month alone. This holds where the
output is a plain column of the small side that keeps its rows apart (see `lineage`), where nothing between the
join and the output pads it, and where the filter drops rows of `x` for good.

The filter may stand several levels up: then all of this holds at each level. A CTE may be read several times:
then a row counts where any of its readers lets it pass, and there must be a filter at every one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from rewriter.domains.literals import is_key_type
from rewriter.scopes.blocks import Operand, Scope, own_parts
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.lineage import ColumnTypes, branches, column_of_output
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.side_filters import BlockFilters, EqualColumns, SideFilter, condition_holds
from rewriter.vocabulary.identifiers import TableName, quoted

# The key's name beside the columns that the outer filters read, and how the names of all columns begin that are
# no item's own.
REDUCED_KEY = "reduced_key"
_RESERVED = "reduced_"

# Derived tables and CTEs between a small side and a filter. The limit bounds the recursion.
_LEVELS_MAX = 20

# Ways from a small side to the filters outside. Each is one more read of the small side in its key query.
_WAYS_MAX = 12


@dataclass(frozen=True)
class FilteredItem:
    """The small side as a FROM item shows it, by the names of the item's columns, and the filters on the item."""

    alias: str
    columns: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]

    def over(self, source: str, key: str, shown: Mapping[str, str], handed_on: Iterable[str]) -> str:
        """The item for a FROM. `handed_on` are columns that another item on top of this one will show."""
        named = {name: shown[column] for name, column in self.columns}
        named |= {_RESERVED + column: shown[column] for column in handed_on}
        outputs = [f"{key} AS {REDUCED_KEY}", *(f"{text} AS {quoted(name)}" for name, text in named.items())]
        return f"(SELECT {', '.join(outputs)} FROM {source}) AS {quoted(self.alias)}"

    def with_filters_of(self, other: FilteredItem) -> FilteredItem | None:
        """One view with the filters of both, if all names mean the same in both."""
        shown = dict(self.columns)
        if self.alias != other.alias or any(shown.get(name, column) != column for name, column in other.columns):
            return None
        columns = tuple(dict.fromkeys(self.columns + other.columns))
        return FilteredItem(self.alias, columns, tuple(dict.fromkeys(self.texts + other.texts)))


# The views whose filters a row passes one after the other.
FilterPath: TypeAlias = tuple[FilteredItem, ...]


@dataclass(frozen=True)
class OuterFilters:
    """The ways on which rows of a small side come to count, each as good as the others."""

    ways: tuple[FilterPath, ...]
    # The tables that subqueries in the filters read.
    tables: frozenset[TableName]

    @property
    def texts(self) -> tuple[str, ...]:
        """The filters that are still to be put upon `source`."""
        return self.ways[0][-1].texts if len(self.ways) == 1 else ()

    def source(self, inner_source: str, key: str, small_alias: str, filters: tuple[str, ...]) -> str:
        """The small side as the items outside would show it, for the client's own words to filter."""
        inner = inner_source + _where(filters)
        items = [_last_item(way, inner, key, small_alias) for way in self.ways]
        if len(items) == 1:
            return items[0]
        pairs = zip(self.ways, items, strict=True)
        selects = [f"SELECT {REDUCED_KEY} FROM {item}{_where(way[-1].texts)}" for way, item in pairs]
        return f"({' UNION ALL '.join(selects)}) AS readers"


def _last_item(way: FilterPath, source: str, key: str, small_alias: str) -> str:
    """The last view of a way, on top of the others and their filters."""
    columns = {column for view in way for _, column in view.columns}
    shown = {column: f"{small_alias}.{quoted(column)}" for column in columns}
    handed_on = sorted({column for view in way[1:] for _, column in view.columns})
    for view in way[:-1]:
        source = view.over(source, key, shown, handed_on) + _where(view.texts)
        key, shown = REDUCED_KEY, {column: quoted(_RESERVED + column) for column in handed_on}
    return way[-1].over(source, key, shown, handed_on=())


def _where(texts: tuple[str, ...]) -> str:
    return f" WHERE {' AND '.join(f'({text})' for text in texts)}" if texts else ""


@dataclass(frozen=True, eq=False)
class _ReadingItem:
    """A FROM item that reads a query, and the branches of the UNION that it is, or the one SELECT."""

    scope: Scope
    item: Leaf
    selects: list[exp.Select]


@dataclass(frozen=True, eq=False)
class _Restriction:
    """A filter on a FROM item outside, and what columns of a block's own items the columns are that it reads."""

    alias: str
    text: str
    columns: Mapping[str, Operand]
    tables: frozenset[TableName]

    def reads_only(self, leaf: Leaf) -> bool:
        """Whether all the columns are those of one item of the block."""
        return all(operand.leaf is leaf for operand in self.columns.values())


class OuterFilterFinder:
    """Which FROM items read the output of which SELECT, and the filters of every block."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._types = ColumnTypes(scopes)
        self._filters: dict[Scope, BlockFilters] = {}
        self._readers: dict[int, list[_ReadingItem]] = defaultdict(list)
        self._ways: dict[int, list[tuple[_Restriction, ...]]] = {}
        for block in scopes.blocks:
            scope = scopes.scope_of(block.select)
            if scope is not None:
                self._note_readers(scope)

    def _note_readers(self, scope: Scope) -> None:
        for leaf in scope.block.tree.leaves:
            query = self._scopes.query_of(leaf)
            selects = branches(query) if query is not None else []
            for select in selects:
                self._readers[id(select)].append(_ReadingItem(scope, leaf, selects))

    def filters_of(self, scope: Scope) -> BlockFilters:
        """The filters of one block."""
        if scope not in self._filters:
            self._filters[scope] = BlockFilters(self._scopes, scope)
        return self._filters[scope]

    def outer_filters(self, scope: Scope, join: Join, small: Leaf) -> OuterFilters | None:
        """The filters outside a block that restrict the small side of one of its joins, if there are any."""
        if not condition_holds(scope.block.tree.joins[-1], join, small):
            return None
        found = self._ways_from(scope.block.select)
        ways = [_views(way, small) for way in found]
        tables = frozenset[TableName]().union(*(restriction.tables for way in found for restriction in way))
        return OuterFilters(tuple(dict.fromkeys(ways)), tables) if ways and all(ways) else None

    def _ways_from(self, select: exp.Select, level: int = 0) -> list[tuple[_Restriction, ...]]:
        """What a row of a block passes on each way on which it counts; none if it counts without passing any."""
        if id(select) not in self._ways:
            self._ways[id(select)] = self._look_up_ways(select, level)
        return self._ways[id(select)]

    def _look_up_ways(self, select: exp.Select, level: int) -> list[tuple[_Restriction, ...]]:
        readers = self._readers.get(id(select), [])
        # A reader in a place that is not understood is counted among the references, but not among the readers.
        if not readers or len(readers) != self._scopes.references_to(readers[0].item):
            return []
        if level > _LEVELS_MAX or len(readers) > _WAYS_MAX:
            return []
        ways = [way for reader in readers for way in self._ways_through(select, reader, level)]
        return ways if all(ways) and len(ways) <= _WAYS_MAX else []

    def _ways_through(
        self, select: exp.Select, reader: _ReadingItem, level: int
    ) -> list[tuple[_Restriction, ...]]:
        """The ways of the SELECT's rows that one of its readers lets pass."""
        own = tuple(self._restrictions(reader))
        # In place of rows that a padded item lacks come nulls, which a filter further out may let pass.
        outer = self._ways_from(reader.scope.block.select, level + 1) if reader.item.padded_by is None else []
        return [tuple(self._brought_down((*own, *way), select, reader)) for way in outer or [()]]

    def _brought_down(
        self, way: Iterable[_Restriction], select: exp.Select, reader: _ReadingItem
    ) -> Iterator[_Restriction]:
        """The restrictions on a reader's item in terms of the SELECT that it reads, where it shows the columns."""
        for restriction in way:
            if restriction.reads_only(reader.item):
                columns = {n: self._behind(select, reader, o) for n, o in restriction.columns.items()}
                known = {name: operand for name, operand in columns.items() if operand is not None}
                if len(known) == len(columns):
                    yield replace(restriction, columns=known)

    def _behind(self, select: exp.Select, reader: _ReadingItem, operand: Operand) -> Operand | None:
        """The column in a SELECT that a reader's column is, if a filter means the same of both."""
        names = [column.name.lower() for column in self._scopes.columns_of(reader.item) or ()]
        if names.count(operand.name.lower()) != 1:
            return None
        position = names.index(operand.name.lower())
        if len(reader.selects) > 1 and self._types.of_output(reader.selects, position) is None:
            return None
        return column_of_output(self._scopes, select, position)

    def _restrictions(self, reader: _ReadingItem) -> Iterator[_Restriction]:
        """The filters without which a row of the reader's item cannot reach the result of the reader's block."""
        filters, item = self.filters_of(reader.scope), reader.item
        for filter_ in filters.holding_for_rows(item):
            own = {name: reader.scope.column_of(item, name) for name in _names_read(filter_)}
            yield from _restriction(item, filter_, own)
        for filter_, other, pairs in filters.holding_through_equalities(item):
            equal = {pair.other.name.lower(): pair.own for pair in pairs if self._are_of_one_type(pair)}
            yield from _restriction(other, filter_, {name: equal.get(name) for name in _names_read(filter_)})

    def _are_of_one_type(self, pair: EqualColumns) -> bool:
        """Whether equal values are the same value: '01' = 1 and 0.0 = -0.0 are not."""
        type_name = self._types.of(pair.own)
        return type_name is not None and is_key_type(type_name) and type_name == self._types.of(pair.other)


def _restriction(item: Leaf, filter_: SideFilter, columns: Mapping[str, Operand | None]) -> Iterator[_Restriction]:
    known = {name: operand for name, operand in columns.items() if operand is not None}
    is_named = item.alias and not any(name.startswith(_RESERVED) for name in columns)
    if columns and is_named and len(known) == len(columns):
        yield _Restriction(item.alias, filter_.text, known, filter_.tables)


def _names_read(filter_: SideFilter) -> set[str]:
    """The columns that a filter reads; none where it is only implied."""
    return {column.name.lower() for column in own_parts(filter_.tree)[0]} if filter_.tree is not None else set()


def _views(way: tuple[_Restriction, ...], small: Leaf) -> FilterPath:
    """A way in terms of a small side's columns, without the restrictions on other columns."""
    views: list[FilteredItem] = []
    for restriction in way:
        if not restriction.reads_only(small):
            continue
        columns = {name: operand.name for name, operand in sorted(restriction.columns.items())}
        view = FilteredItem(restriction.alias, tuple(columns.items()), (restriction.text,))
        both = views[-1].with_filters_of(view) if views else None
        views[-1:] = [both] if both is not None else [*views[-1:], view]
    return tuple(views)
