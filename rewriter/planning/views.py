"""Views: their texts are followed down to the tables, so that a view counts as the query that it names.

A view in a fact's place is narrowed by a filter around its name. The filter is sound whatever the view's query is;
the text only shows if Spark can push the filter down to the partitions of tables. For a view as a small side the
key query names the view as the client does. There the text must show that the view gives the same rows again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from rewriter.catalog.prunable import fact_refusal
from rewriter.catalog.table_facts import Catalog, TableFacts, TableKind, ViewText, may_read_anything
from rewriter.planning.view_text import qualified_text
from rewriter.predicates.metastore_filter import is_cast
from rewriter.scopes.blocks import ColumnOrigin, Operand
from rewriter.scopes.join_tree import name_parts, table_name
from rewriter.scopes.lineage import ColumnTypes, output_origins
from rewriter.scopes.scopes import Output, Scopes
from rewriter.scopes.steps import Steps, StepsSpentError
from rewriter.semijoins.settled_expressions import SettledExpressions
from rewriter.semijoins.small_sides import is_filtered, view_refusal, with_underlying_tables
from rewriter.sql.statement import Statement
from rewriter.sql.task_dependence import calls_own_functions
from rewriter.sql.time_travel import version_of
from rewriter.vocabulary.identifiers import UNCERTAIN_VERSION, Column, TableName, quoted
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# Views over views. Each level is a round of DESCRIBE, and 150 frames of recursion where its text is nested to the
# limits of `lineage`.
VIEW_NESTING_MAX = 5
# The alias of a view's text within another one's.
NESTED = "reduced_view"
# Names behind the views of one statement. Each costs a DESCRIBE the first time that a session needs it.
_NAMES_MAX = 200


@dataclass(frozen=True)
class FollowedViews:
    """A catalog whose views know their tables; `names` are all names that they and the statement read."""

    catalog: Catalog
    names: frozenset[TableName]
    views: tuple[_View, ...] = ()
    # True if the statement, or a view's text, reads a table that no name tells.
    reads_unnamed: bool = False
    # The target of a MERGE, which joins it with its source: Spark infers filters for it from the source's.
    target: TableName | None = None

    @cached_property
    def missing(self) -> frozenset[TableName]:
        """The names that must be looked up before anything is certain."""
        return self._joined - self.catalog.keys()

    @property
    def queries(self) -> tuple[Statement, ...]:
        """The texts of the views that were followed."""
        return tuple(view.query for view in self.views)

    @cached_property
    def known(self) -> Mapping[TableName, TableFacts]:
        """The facts of those names that were described, and of a MERGE's target."""
        return {name: facts for name in self._joined if (facts := self.catalog.get(name)) is not None}

    @property
    def _joined(self) -> frozenset[TableName]:
        return self.names if self.target is None else self.names | {self.target}

    @property
    def partition_columns(self) -> frozenset[str]:
        """The partition columns of all tables whose partitions a metastore filters: Iceberg keeps them itself."""
        tables = self.known.values()
        return frozenset().union(*(facts.partition_columns for facts in tables if facts.iceberg is None))

    @property
    def cast_tables(self) -> frozenset[TableName]:
        """The tables of which a metastore casts values of partitions to filter them."""
        return frozenset(
            name
            for name, facts in self.known.items()
            if facts.iceberg is None
            and any(is_cast(column.type_name) for column in map(facts.column, facts.partition_columns) if column)
        )

    @property
    def may_lose_times(self) -> bool:
        """True if a table may be read of which a filter may lose timestamps."""
        return not self.is_whole or any(facts.loses_times for facts in self.known.values())

    @property
    def reads_delta(self) -> bool:
        """True if a table among the names is Delta's."""
        return any(facts.provider == "delta" for facts in self.known.values())

    @property
    def generating(self) -> frozenset[TableName]:
        """The Delta tables a partition column of which may be generated from another column."""
        return frozenset(name for name, facts in self.known.items() if facts.may_generate_partitions)

    @property
    def foreign(self) -> frozenset[TableName]:
        """The tables whose format may compare with a filter in another way than Spark."""
        return frozenset(name for name, facts in self.known.items() if facts.is_foreign)

    @cached_property
    def unknown(self) -> frozenset[TableName]:
        """The names whose tables are not known."""
        return frozenset(name for name in self._joined if may_read_anything(self.catalog.get(name)))

    @cached_property
    def is_whole(self) -> bool:
        """True if the statement reads tables and followed views alone, each by its name."""
        return not (self.reads_unnamed or self.unknown)


@dataclass(frozen=True)
class _View:
    facts: TableFacts
    text: ViewText
    query: Statement

    @cached_property
    def names(self) -> frozenset[TableName]:
        """The tables that the text may read, by names that do not depend on the session's current database."""
        found = names_in(self.query)
        return frozenset(map(self.text.qualified, found)).union(filter(self.text.is_ambiguous, found))


def follow_views(statement: Statement, catalog: Catalog, steps: Steps | None = None) -> FollowedViews:
    """Follow the views that a statement reads, and the views in their texts, as far as the catalog knows them."""
    names = names_in(statement)
    found: set[TableName] = set(names)
    followed: dict[TableName, _View] = {}
    level = names
    for _ in range(VIEW_NESTING_MAX):
        views = {name: view for name in level if (view := _view(catalog.get(name))) is not None}
        level = frozenset(name for view in views.values() for name in view.names)
        if not views or len(found | level) - len(names) > _NAMES_MAX:
            break
        followed |= views
        found |= level
    # Views at the deepest level are not followed. So every chain ends, even a circular one.
    followed = {name: view for name, view in followed.items() if name not in level}
    texts = tuple(followed.values())
    reads_unnamed = any(map(_reads_unnamed, (statement, *(text.query for text in texts))))
    target = table_name(statement.merged_into) if statement.merged_into is not None else None
    seen = _with_views(catalog, followed, steps or Steps())
    return FollowedViews(seen, frozenset(found), texts, reads_unnamed, target)


def _with_views(catalog: Catalog, views: Mapping[TableName, _View], steps: Steps) -> Catalog:
    if not views:
        return catalog
    seen = dict(catalog)
    for name, view in views.items():
        seen[name] = replace(view.facts, behind=_ViewQuery(view, seen, steps))
    return seen


def _view(facts: TableFacts | None) -> _View | None:
    """A view whose text is known and understood."""
    if facts is None or facts.kind is not TableKind.VIEW or facts.view is None:
        return None
    query = facts.view.query
    return _View(facts, facts.view, query) if query is not None else None


def names_in(statement: Statement) -> frozenset[TableName]:
    """The names of the tables that a text may read."""
    return frozenset(map(table_name, filter(_is_named, statement.tables_read)))


def _reads_unnamed(statement: Statement) -> bool:
    """True if a text may read a table by no certain name: a function of a user's own may read any."""
    items = (table for table in statement.tables_read if not isinstance(table.this, exp.Func))
    return calls_own_functions(statement) or not all(map(_is_named, items))


def _is_named(table: exp.Table) -> bool:
    is_name = all(isinstance(part, exp.Identifier) for part in name_parts(table))
    return is_name and version_of(table) != UNCERTAIN_VERSION


@dataclass(frozen=True)
class _NamesIn(Mapping[TableName, TableFacts | None]):
    """The catalog by the names in a view's text."""

    text: ViewText
    catalog: Catalog

    def __getitem__(self, name: TableName) -> TableFacts | None:
        if self.text.is_ambiguous(name) and not _is_lasting(self.catalog[name]):
            return None
        return self.catalog[self.text.qualified(name)]

    def __iter__(self) -> Iterator[TableName]:
        return iter(self.catalog)

    def __len__(self) -> int:
        return len(self.catalog)


def _is_lasting(facts: TableFacts | None) -> bool:
    """True if a name is known not to be a temporary view's."""
    if facts is None or facts.kind is TableKind.TABLE:
        return facts is not None
    return facts.view is not None and not facts.view.is_temporary


class _ViewQuery:
    """One view's query and its tables. Each property is computed when it is read first, and once."""

    def __init__(self, view: _View, catalog: Catalog, steps: Steps) -> None:
        self._columns = view.facts.columns
        self._outputs = view.text.outputs
        self._text = view.text
        self._scopes = Scopes(view.query, _NamesIn(view.text, catalog), steps=steps)
        self._names = view.names
        self._catalog = catalog
        self._found: dict[tuple[Callable[[ColumnOrigin], bool], Column], bool] = {}

    @cached_property
    def small_side_refusal(self) -> Refusal | None:
        """The reason why a key query must not read the view; None if it may."""
        return view_refusal(self._scopes)

    @cached_property
    def refusal_of_partitions(self) -> Refusal | None:
        """The reason why a key query must not read some partitions of the tables behind it; None if it may."""
        return view_refusal(self._scopes, of_partitions=True)

    @cached_property
    def reads_unpartitioned_alone(self) -> bool:
        """True if the view reads tables that have neither partitions nor another layout, and nothing else."""
        is_known = all(block.refusal is None for block in self._scopes.blocks)
        refusals = (fact_refusal(self._scopes.catalog.get(name)) for name in self._scopes.tables)
        return is_known and all(r is not None and r.reason is SkipReason.NOT_PARTITIONED for r in refusals)

    @cached_property
    def joins_inside(self) -> bool:
        """True if its text, by syntax alone, joins tables or compares with subqueries."""
        return self._scopes.may_narrow

    @cached_property
    def is_filtered(self) -> bool:
        """True if the view is likely to hold fewer keys than its tables."""
        return is_filtered(self._scopes, self._scopes.statement.tree)

    @cached_property
    def tables(self) -> frozenset[TableName]:
        """The tables and views that the text names, and all that those views read."""
        return with_underlying_tables(self._catalog, self._names)

    def as_derived_table(self, alias: str) -> str | None:
        """A SELECT of the view's columns from its text, under the alias; None if that is not certain."""
        if self._derived is None:
            return None
        shown, text = self._derived
        return f"SELECT {shown} FROM ({text}) AS {quoted(alias)}"

    @cached_property
    def _derived(self) -> tuple[str, str] | None:
        """The view's columns as Spark shows them, and the text that shows them, with qualified names."""
        query = self._scopes.statement.tree
        outputs = self._scopes.outputs_of(query) if isinstance(query, exp.Select) else None
        names = [output.name for output in outputs or ()]
        if outputs is None or len(self._outputs) != len(self._columns):
            return None
        text = qualified_text(self._scopes, self._text, self._names_lasting, self._nested)
        if text is None or any(names.count(name) != 1 for name in self._outputs):
            return None
        types = ColumnTypes(self._scopes)
        shown = []
        for column, name in zip(self._columns, self._outputs, strict=True):
            is_as_shown = self._type_of(types, query, outputs[names.index(name)]) == column.type_name
            # Spark casts a column whose type has changed by now. A column that is cast is not followed.
            what = quoted(name) if is_as_shown else f"CAST({quoted(name)} AS {column.type_name.upper()})"
            shown.append(f"{what} AS {quoted(column.name)}")
        return ", ".join(shown), text

    def _type_of(self, types: ColumnTypes, query: exp.Expr, output: Output) -> str | None:
        """The type of an output, if its value is the same under all settings."""
        if isinstance(output.shows, Operand):
            return types.of(output.shows)
        scope = self._scopes.scope_of(query)
        if scope is None:
            return None
        shown = output.shows.unnest()
        operand = scope.resolve(shown, scope.block.tree.joins[-1])
        return types.of(operand) if operand is not None else SettledExpressions(types).type_of(scope, shown)

    def _names_lasting(self, name: TableName) -> bool:
        """True if a name in the text is known to mean what it meant to the view's maker."""
        return not self._text.is_ambiguous(name) or _is_lasting(self._catalog.get(name))

    def _nested(self, name: TableName) -> str | None:
        """A view in the text as a derived table, if a fact may stand behind it."""
        facts = self._catalog.get(name)
        if facts is None or facts.behind is None or not any(map(facts.is_partition_column, facts.columns)):
            return None
        return facts.behind.as_derived_table(NESTED)

    def prunes_by(self, column: Column) -> bool:
        """True if the column is, in every branch of the text, a table's partition column of the same type."""
        return self._holds(_is_partition, column)

    def skips_by(self, column: Column) -> bool:
        """True if the column is, in every branch of the text, a table's column by which the format skips files."""
        return self._holds(_skips_files, column)

    @cached_property
    def reads_delta(self) -> bool:
        """True if a table behind it is Delta's."""
        behind = (self._catalog.get(name) for name in self.tables)
        return any(facts is not None and facts.delta is not None for facts in behind)

    def _holds(self, test: Callable[[ColumnOrigin], bool], column: Column) -> bool:
        """True if all origins of the view's column pass the test. A view may name another one many times."""
        asked = (test, column)
        if asked not in self._found:
            try:
                position = self._position(column)
                tree = self._scopes.statement.tree
                found = output_origins(self._scopes, tree, position) if position is not None else ()
                self._found[asked] = bool(found) and all(_is_narrowable(o, column) and test(o) for o in found)
            except StepsSpentError:
                # The answer of a column without origins: the plan's next step raises again, and behind the plan
                # this is safe.
                return False
        return self._found[asked]

    def _position(self, column: Column) -> int | None:
        """The column's position in the text's own output, which has grown if a table behind its star has."""
        if len(self._outputs) != len(self._columns):
            return None
        name = self._outputs[self._columns.index(column)]
        outputs = [output.name for output in self._scopes.query_columns(self._scopes.statement.tree) or ()]
        return outputs.index(name) if outputs.count(name) == 1 else None


def _is_narrowable(origin: ColumnOrigin, column: Column) -> bool:
    reference = origin.leaf.reference
    if reference is None or reference.refusal is not None or fact_refusal(origin.facts) is not None:
        return False
    return origin.column.type_name == column.type_name


def _is_partition(origin: ColumnOrigin) -> bool:
    return origin.facts.is_partition_column(origin.column)


def _skips_files(origin: ColumnOrigin) -> bool:
    facts = origin.facts
    return (facts.skips_files_itself or facts.behind is not None) and facts.is_data_column(origin.column)
