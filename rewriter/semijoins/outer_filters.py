"""Outer filters: filters on the output of a derived table or CTE whose body joins the small side.

`SELECT .. FROM (SELECT .., d.month AS m FROM sales s JOIN dates d ON ..) x WHERE x.m = 12`: rows of `x` with
another month do not reach the result, so the key query may ask for the keys of that month alone. This holds where
the output is a plain column of the small side that keeps its rows apart (see `lineage`), where nothing between the
join and the output pads it, and where the filter drops rows of `x` for good. An output that the block of the join
computes from the small side alone, such as `year(d.day) AS y`, counts too: the key query computes it again.

The filter may be several levels up: then all of this must hold at each level. A CTE may be read several times:
then a row counts if any of its readers lets it pass, and every reader must have a filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from rewriter.domains.literals import is_key_type
from rewriter.scopes.blocks import Operand, Scope, own_parts
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.lineage import ColumnTypes, column_of_output, shows_rows_apart
from rewriter.scopes.readers import Readers, ReadingItem
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.exact_values import ExactValues
from rewriter.semijoins.key_query import where_clause
from rewriter.semijoins.side_filters import BlockFilters, EqualColumns, SideFilter, condition_holds
from rewriter.sql.conditions import located_output
from rewriter.sql.statement import is_plain_name
from rewriter.vocabulary.identifiers import TableName, quoted

# The key's name beside the columns that the outer filters read, and the prefix of all columns that are no item's
# own.
REDUCED_KEY = "reduced_key"
_RESERVED = "reduced_"

# Derived tables and CTEs between a small side and a filter. The limit bounds the recursion.
_LEVELS_MAX = 20

# Paths from a small side to its outer filters. Each is one more read of the small side in its key query.
_PATHS_MAX = 12


@dataclass(frozen=True, order=True)
class ShownColumn:
    """A column of the small side, by its name, or an expression over it, as the client wrote it."""

    name: str
    expression: str = ""

    def text(self, small_alias: str) -> str:
        """The column or the expression over the small side."""
        return self.expression or f"{small_alias}.{quoted(self.name)}"


@dataclass(frozen=True)
class FilteredItem:
    """A FROM item that shows columns of the small side, by the item's names, and the filters on the item."""

    alias: str
    columns: tuple[tuple[str, ShownColumn], ...]
    texts: tuple[str, ...]

    def in_from(
        self, source: str, key: str, shown: Mapping[ShownColumn, str], passed_on: Mapping[ShownColumn, str]
    ) -> str:
        """The item for a FROM. `passed_on` are names of columns that another item around this one will show."""
        named = {name: shown[column] for name, column in self.columns}
        named |= {name: shown[column] for column, name in passed_on.items()}
        outputs = [f"{key} AS {REDUCED_KEY}", *(f"{text} AS {quoted(name)}" for name, text in named.items())]
        return f"(SELECT {', '.join(outputs)} FROM {source}) AS {quoted(self.alias)}"


# The items whose filters a row passes one after the other.
FilterPath: TypeAlias = tuple[FilteredItem, ...]


@dataclass(frozen=True)
class OuterFilters:
    """The paths by which rows of a small side reach the result. A row counts if one path lets it pass."""

    paths: tuple[FilterPath, ...]
    # The tables that subqueries in the filters read.
    tables: frozenset[TableName]

    @property
    def texts(self) -> tuple[str, ...]:
        """The filters that the key query still has to apply to `source`."""
        return self.paths[0][-1].texts if len(self.paths) == 1 else ()

    def small_side_sql(self, inner_source: str, key: str, small_alias: str, filters: tuple[str, ...]) -> str:
        """The small side as the outer items would show it, so that the client's own words can filter it."""
        inner = inner_source + where_clause(filters)
        items = [_last_item(path, inner, key, small_alias) for path in self.paths]
        if len(items) == 1:
            return items[0]
        pairs = zip(self.paths, items, strict=True)
        selects = [f"SELECT {REDUCED_KEY} FROM {item}{where_clause(path[-1].texts)}" for path, item in pairs]
        return f"({' UNION ALL '.join(selects)}) AS readers"


def _last_item(path: FilterPath, source: str, key: str, small_alias: str) -> str:
    """The last item of a path, around the others and their filters."""
    columns = {column for filtered in path for _, column in filtered.columns}
    shown = {column: column.text(small_alias) for column in columns}
    passed_on = _passed_on(path)
    for filtered in path[:-1]:
        source = filtered.in_from(source, key, shown, passed_on) + where_clause(filtered.texts)
        key, shown = REDUCED_KEY, {column: quoted(name) for column, name in passed_on.items()}
    return path[-1].in_from(source, key, shown, passed_on={})


def _passed_on(path: FilterPath) -> dict[ShownColumn, str]:
    """Names for the columns that items beyond the first one show."""
    columns = sorted({column for filtered in path[1:] for _, column in filtered.columns})
    return {
        column: f"{_RESERVED}_{number}" if column.expression else _RESERVED + column.name
        for number, column in enumerate(columns)
    }


@dataclass(frozen=True, eq=False)
class _Computed:
    """An output that a block computes from one of its FROM items."""

    leaf: Leaf
    text: str
    # The tables that subqueries in it read.
    tables: frozenset[TableName]


@dataclass(frozen=True, eq=False)
class _Restriction:
    """A filter on an outer FROM item, and the columns of a block's own items that its columns come from."""

    alias: str
    text: str
    columns: Mapping[str, Operand | _Computed]
    tables: frozenset[TableName]

    def reads_only(self, leaf: Leaf) -> bool:
        """True if all the columns are those of one item of the block."""
        return all(operand.leaf is leaf for operand in self.columns.values())


class OuterFilterFinder:
    """Finds outer filters by the FROM items that read each SELECT, and the filters of every block."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._types = ColumnTypes(scopes)
        self._values = ExactValues(scopes, self._types)
        # For each SELECT, True if it puts equal rows together.
        self._together: dict[int, bool] = {}
        self._filters: dict[Scope, BlockFilters] = {}
        self.readers = Readers(scopes)
        self._paths: dict[int, list[tuple[_Restriction, ...]]] = {}
        self._computed_outputs: dict[tuple[int, int], _Computed | None] = {}

    def filters_of(self, scope: Scope) -> BlockFilters:
        """The filters of one block."""
        if scope not in self._filters:
            self._filters[scope] = BlockFilters(self._scopes, scope)
        return self._filters[scope]

    def outer_filters(self, scope: Scope, join: Join, small: Leaf) -> OuterFilters | None:
        """The filters outside a block that restrict the small side of one of its joins, if there are any."""
        if not condition_holds(scope.block.tree.joins[-1], join, small):
            return None
        found = self._paths_from(scope.block.select)
        self._scopes.steps.look_at(sum(map(len, found)))
        paths = [_filter_path(path, small) for path in found]
        tables = frozenset[TableName]().union(*(restriction.tables for path in found for restriction in path))
        return OuterFilters(tuple(dict.fromkeys(paths)), tables) if paths and all(paths) else None

    def _paths_from(self, select: exp.Select, level: int = 0) -> list[tuple[_Restriction, ...]]:
        """The filters that a row of a block passes on each path to the result; none if a path has no filter."""
        if id(select) not in self._paths:
            self._paths[id(select)] = self._look_up_paths(select, level)
        return self._paths[id(select)]

    def _look_up_paths(self, select: exp.Select, level: int) -> list[tuple[_Restriction, ...]]:
        readers = self.readers.readers_of(select)
        if level > _LEVELS_MAX or len(readers) > _PATHS_MAX:
            return []
        paths = [path for reader in readers for path in self._paths_through(select, reader, level)]
        return paths if all(paths) and len(paths) <= _PATHS_MAX else []

    def _paths_through(
        self, select: exp.Select, reader: ReadingItem, level: int
    ) -> list[tuple[_Restriction, ...]]:
        """The paths of the SELECT's rows through one of its readers."""
        own = tuple(self._restrictions(reader))
        # A padded item has nulls in place of missing rows, which a filter further out may let pass.
        outer = self._paths_from(reader.scope.block.select, level + 1) if reader.item.padded_by is None else []
        return [tuple(self._in_terms_of_select((*own, *path), select, reader)) for path in outer or [()]]

    def _in_terms_of_select(
        self, path: Iterable[_Restriction], select: exp.Select, reader: ReadingItem
    ) -> Iterator[_Restriction]:
        """The restrictions on a reader's item in terms of the SELECT that it reads, where it shows the columns."""
        for restriction in path:
            if restriction.reads_only(reader.item):
                columns = {n: self._column_of_select(select, reader, o) for n, o in restriction.columns.items()}
                known = {name: operand for name, operand in columns.items() if operand is not None}
                if len(known) == len(columns):
                    computed = [operand for operand in known.values() if isinstance(operand, _Computed)]
                    tables = restriction.tables.union(*(operand.tables for operand in computed))
                    yield replace(restriction, columns=known, tables=tables)

    def _column_of_select(
        self, select: exp.Select, reader: ReadingItem, operand: Operand | _Computed
    ) -> Operand | _Computed | None:
        """The column of a SELECT that a reader's column shows, if a filter means the same for both."""
        if isinstance(operand, _Computed):
            # The block between computes it from a derived table, which no key query shows under its name.
            return None
        position = self._scopes.position_of(reader.item, operand.name)
        if position is None:
            return None
        if len(reader.selects) > 1 and self._types.of_output(reader.selects, position) is None:
            return None
        column = column_of_output(self._scopes, select, position)
        if column is None:
            return self._computed(select, position)
        if id(select) not in self._together:
            self._together[id(select)] = _puts_together(select)
        is_alone = len(reader.selects) == 1 and not self._together[id(select)]
        return column if is_alone or self._values.is_exact(column) else None

    def _computed(self, select: exp.Select, position: int) -> _Computed | None:
        """An output that is computed from one FROM item, if a key query can compute it again for each row."""
        asked = id(select), position
        if asked not in self._computed_outputs:
            self._computed_outputs[asked] = self._look_up_computed(select, position)
        return self._computed_outputs[asked]

    def _look_up_computed(self, select: exp.Select, position: int) -> _Computed | None:
        scope, outputs = self._scopes.scope_of(select), self._scopes.outputs_of(select) or ()
        shown = outputs[position].shows if scope is not None and position < len(outputs) else None
        output = shown.parent if isinstance(shown, exp.Expr) else None
        if scope is None or not isinstance(output, exp.Alias) or not shows_rows_apart(self._scopes, select):
            return None
        filters, tree = self.filters_of(scope), output.this.unnest()
        leaf = filters.only_reader(tree, scope.block.tree.joins[-1])
        # A name in a select list may be a pattern for several columns.
        is_plain = all(is_plain_name(column.name) for column in tree.find_all(exp.Column))
        if leaf is None or not is_plain or not self._values.is_exact_expression(scope, tree):
            return None
        located = located_output(self._scopes.statement, output)
        if located is None or not filters.is_repeatable(located):
            return None
        return _Computed(leaf, located.text(self._scopes.statement), filters.tables_of(tree))

    def _restrictions(self, reader: ReadingItem) -> Iterator[_Restriction]:
        """The filters without which a row of the reader's item cannot reach the result of the reader's block."""
        filters, item = self.filters_of(reader.scope), reader.item
        for filter_ in filters.holding_for_rows(item):
            own = {name: reader.scope.column_of(item, name) for name in _names_read(filter_)}
            yield from _restriction(item, filter_, own)
        for filter_, other, pairs in filters.holding_through_equalities(item):
            equal = {pair.other.name.lower(): pair.own for pair in pairs if self._are_of_one_type(pair)}
            yield from _restriction(other, filter_, {name: equal.get(name) for name in _names_read(filter_)})

    def _are_of_one_type(self, pair: EqualColumns) -> bool:
        """True if equal values are the same value: '01' = 1 and 0.0 = -0.0 are not."""
        type_name = self._types.of(pair.own)
        return type_name is not None and is_key_type(type_name) and type_name == self._types.of(pair.other)


def _restriction(item: Leaf, filter_: SideFilter, columns: Mapping[str, Operand | None]) -> Iterator[_Restriction]:
    known = {name: operand for name, operand in columns.items() if operand is not None}
    is_reserved = any(name.startswith(_RESERVED) for name in columns)
    if columns and not is_reserved and len(known) == len(columns):
        yield _Restriction(item.key_query_alias, filter_.text, known, filter_.tables)


def _names_read(filter_: SideFilter) -> set[str]:
    """The columns that a filter reads; none if the filter is only implied, or names them by database."""
    columns = own_parts(filter_.tree)[0] if filter_.tree is not None else []
    return set() if any(column.args.get("db") for column in columns) else {c.name.lower() for c in columns}


def _shown(operand: Operand | _Computed) -> ShownColumn:
    return ShownColumn("", operand.text) if isinstance(operand, _Computed) else ShownColumn(operand.name)


def _puts_together(select: exp.Select) -> bool:
    """True if a SELECT may show one row, or one value, for several that are equal."""
    return any(select.args.get(clause) for clause in ("group", "distinct")) or select.find(exp.Window) is not None


def _filter_path(path: tuple[_Restriction, ...], small: Leaf) -> FilterPath:
    """A path in terms of a small side's columns, without the restrictions on other columns."""
    items: list[tuple[str, dict[str, ShownColumn], dict[str, None]]] = []
    for restriction in path:
        if not restriction.reads_only(small):
            continue
        columns = {name: _shown(operand) for name, operand in sorted(restriction.columns.items())}
        alias, shown, texts = items[-1] if items else ("", {}, {})
        if not items or alias != restriction.alias or any(shown.get(name, c) != c for name, c in columns.items()):
            items.append((restriction.alias, columns, {restriction.text: None}))
        else:
            # One item with the filters of both, since all names mean the same in both.
            shown |= columns
            texts[restriction.text] = None
    return tuple(FilteredItem(alias, tuple(shown.items()), tuple(texts)) for alias, shown, texts in items)
