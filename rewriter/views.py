"""Views: their texts are followed down to the tables, so that a view counts as what stands behind it.

A view in a fact's place is narrowed by a filter around its name. That is sound whatever the view holds; its text
says only whether Spark can carry the filter down to the partitions of tables. In a small side's place the key
query names the view as the client does. There the text must show that the view gives the same rows again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from rewriter.catalog import Catalog, Column, TableFacts, TableKind, TableName, ViewText
from rewriter.jointree import name_parts, table_name
from rewriter.lineage import Origin, output_origins
from rewriter.reducers import fact_refusal
from rewriter.scopes import Scopes
from rewriter.skip import SkipReason
from rewriter.sources import is_filtered, view_refusal
from rewriter.statement import Statement

# Views over views. Each level is a round of DESCRIBE, and 150 frames of recursion where its text is nested to the
# limits of `lineage`.
VIEW_NESTING_MAX = 5
# Names behind the views of one statement. Each costs a DESCRIBE the first time that a session needs it.
_NAMES_MAX = 200


@dataclass(frozen=True)
class Seen:
    """A catalog in which views say what stands behind them; `names` are all that they and the statement read."""

    catalog: Catalog
    names: frozenset[TableName]

    @property
    def missing(self) -> frozenset[TableName]:
        """The names that must be looked up before anything is certain."""
        return self.names - self.catalog.keys()


def see_through(names: frozenset[TableName], catalog: Catalog) -> Seen:
    """Follow the views among the names, and the views in their texts, as far as the catalog knows them."""
    found: set[TableName] = set(names)
    followed: set[TableName] = set()
    level = names
    for _ in range(VIEW_NESTING_MAX):
        views = {name: texts for name in level if (texts := _text(catalog, name)) is not None}
        level = frozenset(read for view, query in views.values() for read in _names_in(view, query))
        if not views or len(found | level) > _NAMES_MAX:
            break
        followed |= views.keys()
        found |= level
    # What is left at the deepest level is not followed. So every chain ends, even one that runs in a circle.
    return Seen(_followed(followed - level, catalog), frozenset(found))


def _followed(views: set[TableName], catalog: Catalog) -> Catalog:
    if not views:
        return catalog
    seen = dict(catalog)
    for name in views:
        facts = catalog[name]
        if facts is not None and (known := _text(catalog, name)) is not None:
            seen[name] = replace(facts, behind=_ViewQuery(facts, *known, seen))
    return seen


def _text(catalog: Catalog, name: TableName) -> tuple[ViewText, Statement] | None:
    facts = catalog.get(name)
    view = facts.view if facts is not None and facts.kind is TableKind.VIEW else None
    query = view.query if view is not None else None
    return (view, query) if view is not None and query is not None else None


def _names_in(view: ViewText, query: Statement) -> Iterator[TableName]:
    """The tables that a view's text may read, by names that mean the same wherever the session is now."""
    for table in query.tree.find_all(exp.Table):
        if all(isinstance(part, exp.Identifier) for part in name_parts(table)):
            name = table_name(table)
            yield view.qualified(name)
            if view.is_ambiguous(name):
                yield name


@dataclass(frozen=True)
class _NamesIn(Mapping[TableName, TableFacts | None]):
    """The catalog as the names in a view's text mean it."""

    view: ViewText
    catalog: Catalog

    def __getitem__(self, name: TableName) -> TableFacts | None:
        if self.view.is_ambiguous(name) and not _is_lasting(self.catalog[name]):
            return None
        return self.catalog[self.view.qualified(name)]

    def __iter__(self) -> Iterator[TableName]:
        return iter(self.catalog)

    def __len__(self) -> int:
        return len(self.catalog)


def _is_lasting(facts: TableFacts | None) -> bool:
    """Whether a name is known to be none of a temporary view."""
    if facts is None or facts.kind is TableKind.TABLE:
        return facts is not None
    return facts.view is not None and not facts.view.is_temporary


class _ViewQuery:
    """What stands behind one view. Each question is answered when it is asked first, and once."""

    def __init__(self, facts: TableFacts, view: ViewText, query: Statement, catalog: Catalog) -> None:
        self._facts = facts
        self._outputs = view.outputs
        self._scopes = Scopes(query, _NamesIn(view, catalog))
        self._prunes: dict[Column, bool] = {}

    @cached_property
    def small_side_refusal(self) -> SkipReason | None:
        """Why a key query must not read the view, if it must not."""
        return view_refusal(self._scopes)

    @cached_property
    def is_filtered(self) -> bool:
        """Whether the view is likely to hold fewer keys than its tables."""
        return is_filtered(self._scopes, self._scopes.statement.tree)

    def prunes_by(self, column: Column) -> bool:
        """Whether the column is, in every branch of the text, a table's partition column of the same type."""
        if column not in self._prunes:
            position = self._position(column)
            found = output_origins(self._scopes, position) if position is not None else ()
            self._prunes[column] = bool(found) and all(_is_partition(origin, column) for origin in found)
        return self._prunes[column]

    def _position(self, column: Column) -> int | None:
        """Where the column stands in the text's own output, which has grown if a table behind its star has."""
        outputs = [output.name for output in self._scopes.outputs_of(self._scopes.statement.tree) or ()]
        if len(self._outputs) != len(self._facts.columns):
            return None
        name = self._outputs[self._facts.columns.index(column)]
        return outputs.index(name) if outputs.count(name) == 1 else None


def _is_partition(origin: Origin, column: Column) -> bool:
    reference = origin.leaf.reference
    if reference is None or reference.refusal is not None or fact_refusal(origin.facts) is not None:
        return False
    return origin.facts.is_partition_column(origin.column) and origin.column.type_name == column.type_name
