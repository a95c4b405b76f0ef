"""Scopes of one statement: its blocks, its CTEs, and the columns that its queries give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from rewriter.catalog.table_facts import Catalog
from rewriter.scopes.blocks import OUTPUTS_MAX, Block, ColumnOrigin, Operand, Scope, block_of, own_parts
from rewriter.scopes.join_tree import Leaf, holds_only, table_name
from rewriter.scopes.kept_keys import KeptKeys
from rewriter.scopes.steps import Steps
from rewriter.sql.deterministic_functions import BARE_FUNCTIONS
from rewriter.sql.inline_tables import generated_column, inline_columns
from rewriter.sql.statement import Statement, is_plain_name
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# Derived tables inside one another. The limit bounds the recursion.
_NESTING_MAX = 30

# Arguments of a reference to a CTE that reads its rows as they are.
_PLAIN_REFERENCE = frozenset({"this", "alias", "joins"})

# The type of a column that a query computes: the key query's answer tells it.
_UNKNOWN_TYPE = ""

# Expressions that give one column without an alias. Any other could be a generator, such as `posexplode` and
# `stack`, also with its database's name, in parentheses or with a list of aliases.
_ONE_COLUMN = (
    *(exp.Literal, exp.Null, exp.Boolean, exp.Unary, exp.Binary, exp.Predicate, exp.Subquery, exp.Window),
    *(exp.AggFunc, exp.Case, exp.Cast, exp.Coalesce, exp.If),
)


@dataclass(frozen=True, eq=False)
class Output:
    """An output column of a SELECT: an expression, or a FROM item's column behind a star.

    `name` is None for an expression that Spark names.
    """

    name: str | None
    shows: exp.Expr | Operand


@dataclass(frozen=True)
class _Cte:
    """A CTE of any WITH, whose name no other CTE of the statement has."""

    name: str
    body: exp.Expr
    with_: exp.Expr
    position: int
    references: int


class Scopes:
    """The names of one statement, given what is known of the tables."""

    def __init__(
        self,
        statement: Statement,
        catalog: Catalog,
        *,
        has_variables: bool = False,
        narrows_merges: bool = False,
        steps: Steps | None = None,
    ) -> None:
        self.statement = statement
        self._narrows_merges = narrows_merges
        self.steps = steps or Steps()
        self.catalog = catalog
        self.has_variables = has_variables
        self._columns: dict[Leaf, tuple[Column, ...] | None] = {}
        self._outputs: dict[int, tuple[Output, ...] | None] = {}
        self._ctes_read: dict[int, dict[str, exp.Expr] | None] = {}
        # For `rewriter.scopes.lineage`: the origins of queries' outputs; and, for each SELECT, the columns that
        # its outputs show, the keys that it keeps apart, and whether it shows rows apart that differ in
        # expressions.
        self.origins: dict[tuple[int, int], tuple[ColumnOrigin, ...]] = {}
        self.columns_of_output: dict[tuple[int, int], tuple[Operand, ...]] = {}
        self.origins_by_branch: dict[tuple[Leaf, str], tuple[ColumnOrigin, ...]] = {}
        self.kept_keys: dict[int, KeptKeys] = {}
        self.shows_rows_apart: dict[int, bool] = {}
        # For `rewriter.semijoins.small_sides`: the texts of queries for key queries, or why they have none.
        self.repeatable_texts: dict[tuple[int, bool], str | Refusal] = {}
        self.repeatable_parts: dict[tuple[int, bool], str | Refusal] = {}
        self._tables_of: dict[int, tuple[exp.Table, ...]] = {}
        self._positions: dict[Leaf, dict[str, int | None]] = {}
        self._own_parts: dict[int, tuple[list[exp.Column], list[exp.Select]]] = {}

    def own_parts(self, tree: exp.Expr) -> tuple[list[exp.Column], list[exp.Select]]:
        """The columns of a part of the statement itself, and the SELECTs nested directly in it."""
        if id(tree) not in self._own_parts:
            self._own_parts[id(tree)] = own_parts(tree)
        return self._own_parts[id(tree)]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Every SELECT that has a FROM, outer before inner; before all a MERGE as a join, if that is wanted."""
        merge = self.statement.merge_join if self._narrows_merges else None
        selects = [*([merge] if merge is not None else []), *self.statement.find_all(exp.Select)]
        return tuple(block_of(select, self.statement) for select in selects if select.args.get("from_"))

    @cached_property
    def tables(self) -> frozenset[TableName]:
        """The names in the blocks that may be tables: all but those of CTEs."""
        leaves = (leaf for block in self.blocks if block.refusal is None for leaf in block.tree.leaves)
        references = (leaf.reference for leaf in leaves if leaf.reference and not self.is_cte_name(leaf))
        return frozenset(reference.name for reference in references if not reference.name.is_uncertain)

    @property
    def may_narrow(self) -> bool:
        """True if, by the statement's syntax alone, a FROM item could be reduced by another or by a subquery."""
        return any(
            block.has_conditions and (block.reads_several or block.is_in_select_list) for block in self.blocks
        ) or any(
            join.condition is not None and join.condition.find(exp.Query)
            for block in self.blocks
            for join in block.tree.joins
        )

    @property
    def has_conditions(self) -> bool:
        """True if anything is compared anywhere."""
        return any(block.has_conditions for block in self.blocks)

    @cached_property
    def bare_functions(self) -> frozenset[str]:
        """The session functions that may stand without parentheses: those whose name no column can have.

        An unknown table may have any column. So may a generator's output, or the star of a struct: their names are
        in types and in strings.
        """
        if BARE_FUNCTIONS.isdisjoint(token.text.lower() for token in self.statement.tokens):
            return frozenset()
        scopes = (self.scope_of(block.select) for block in self.blocks)
        if any(scope is None or not scope.knows_columns for scope in scopes):
            return frozenset()
        if any(self.catalog.get(table_name(table)) is None for table in self.statement.tables_read):
            return frozenset()
        names = {column.name.lower() for facts in self.catalog.values() if facts for column in facts.columns}
        names |= {identifier.name.lower() for identifier in self.statement.tree.find_all(exp.Identifier)}
        return BARE_FUNCTIONS - names

    def scope_of(self, select: exp.Expr) -> Scope | None:
        """The scope of a SELECT, or None where its FROM is not understood."""
        return self._scopes_by_select.get(id(select))

    @cached_property
    def _scopes_by_select(self) -> dict[int, Scope]:
        return {id(block.select): Scope(self, block) for block in self.blocks if block.refusal is None}

    def is_cte(self, name: str) -> bool:
        """True if any CTE of the statement has the name."""
        return _folded(name) in self._cte_names

    def is_cte_name(self, leaf: Leaf) -> bool:
        """True if the name could be that of a CTE, wherever that is defined."""
        return isinstance(leaf.node, exp.Table) and not leaf.node.db and self.is_cte(leaf.node.name)

    @cached_property
    def _cte_names(self) -> Counter[str]:
        return Counter(_folded(cte.alias) for cte in self.statement.find_all(exp.CTE))

    @cached_property
    def _ctes(self) -> dict[str, _Cte]:
        used = Counter(
            _folded(table.name) for table in self.statement.find_all(exp.Table) if not table.args.get("db")
        )
        return {
            name: _Cte(cte.alias, cte.this, with_, position, used[name])
            for with_ in self.statement.find_all(exp.With)
            if not with_.args.get("recursive")
            for position, cte in enumerate(with_.expressions)
            if self._cte_names[name := _folded(cte.alias)] == 1 and not cte.args["alias"].columns
        }

    def query_of(self, leaf: Leaf, *, only_once: bool = False) -> exp.Expr | None:
        """The query that a FROM item reads: a derived table's, or a CTE's body.

        With `only_once`, None for a CTE that is used more than once: its body has other readers too.
        """
        if isinstance(leaf.node, exp.Subquery):
            return leaf.node.this if isinstance(leaf.node.this, exp.Query) else None
        if leaf.reference is None or not self.is_cte_name(leaf):
            return None
        if leaf.reference.refusal is SkipReason.UNSUPPORTED_REFERENCE or leaf.reference.name.version:
            return None
        cte = self._cte_of(leaf.node)
        return None if cte is None or (only_once and cte.references != 1) else cte.body

    def _cte_of(self, table: exp.Expr) -> _Cte | None:
        """The CTE that a name without a database denotes, if that is certain."""
        cte = self._ctes.get(_folded(table.name))
        # `dates` may be a table beside the CTE `Dates` in a session with spark.sql.caseSensitive.
        return cte if cte is not None and cte.name == table.name and _sees(table, cte) else None

    def ctes_read(self, query: exp.Expr, nesting: int = 0) -> dict[str, exp.Expr] | None:
        """The CTEs that a query reads, and all that these read: bodies by names, each behind those that it reads.

        None where the meaning of a name is not certain.
        """
        if id(query) not in self._ctes_read:
            self._ctes_read[id(query)] = self._look_up_ctes_read(query, nesting)
        return self._ctes_read[id(query)]

    def _look_up_ctes_read(self, query: exp.Expr, nesting: int) -> dict[str, exp.Expr] | None:
        found: dict[str, exp.Expr] = {}
        for table in query.find_all(exp.Table):
            if table.db or not self.is_cte(table.name):
                continue
            cte = self._cte_of(table)
            if cte is None or nesting > _NESTING_MAX or not holds_only(table, _PLAIN_REFERENCE):
                return None
            behind = self.ctes_read(cte.body, nesting + 1)
            if behind is None:
                return None
            found |= {**behind, cte.name: cte.body}
        return found

    def tables_of(self, query: exp.Expr) -> tuple[exp.Table, ...]:
        """The tables that a query names, itself and in the CTEs that it reads."""
        if id(query) not in self._tables_of:
            ctes = self.ctes_read(query) or {}
            parts = (query, *ctes.values())
            named = (table for part in parts for table in part.find_all(exp.Table))
            self._tables_of[id(query)] = tuple(table for table in named if table.db or table.name not in ctes)
            self.steps.look_at(len(parts) + len(self._tables_of[id(query)]))
        return self._tables_of[id(query)]

    def is_in_view(self, node: exp.Expr) -> bool:
        """True if a node belongs to the text of a view, whose conditions have the settings of the view's maker."""
        found: exp.Expr | None = node if self.statement.view_texts else None
        while found is not None:
            if isinstance(found, exp.Subquery) and found.alias in self.statement.view_texts:
                return True
            found = found.parent
        return False

    def references_to(self, leaf: Leaf) -> int:
        """The number of times that the statement names the query that a FROM item reads."""
        cte = self._ctes.get(_folded(leaf.node.name)) if leaf.reference is not None else None
        return cte.references if cte is not None else 1

    def columns_of(self, leaf: Leaf, nesting: int = 0) -> tuple[Column, ...] | None:
        """The columns of a FROM item in order, with their types if known; None if the columns are not known."""
        if leaf not in self._columns:
            self._columns[leaf] = self._look_up_columns(leaf, nesting)
        return self._columns[leaf]

    def position_of(self, leaf: Leaf, name: str) -> int | None:
        """The position of a FROM item's column, by its name in any case; None if it has not exactly one."""
        if leaf not in self._positions:
            found: dict[str, int | None] = {}
            for position, column in enumerate(self.columns_of(leaf) or ()):
                lower = column.name.lower()
                found[lower] = None if lower in found else position
            # Only now: another thread may look it up at the same time.
            self._positions[leaf] = found
        return self._positions[leaf].get(name.lower())

    def _look_up_columns(self, leaf: Leaf, nesting: int) -> tuple[Column, ...] | None:
        if leaf.reference is not None and not self.is_cte_name(leaf):
            facts = self.catalog.get(leaf.reference.name)
            return None if facts is None or leaf.reference.refusal is SkipReason.COLUMN_ALIASES else facts.columns
        if isinstance(leaf.node, exp.Values):
            names = inline_columns(leaf.node)
            return None if names is None else tuple(Column(name, _UNKNOWN_TYPE) for name in names)
        if (generated := generated_column(leaf.node)) is not None:
            return (Column(generated, _UNKNOWN_TYPE),)
        query = self.query_of(leaf)
        alias = leaf.node.args.get("alias")
        if query is None or nesting > _NESTING_MAX or (alias is not None and alias.args.get("columns")):
            return None
        return self.query_columns(query, nesting + 1)

    def query_columns(self, query: exp.Expr, nesting: int = 0) -> tuple[Column, ...] | None:
        """The output columns of the statement's query, or of one inside it; None if they are not known."""
        is_union = isinstance(query, exp.SetOperation)
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
            is_union = is_union or isinstance(query, exp.SetOperation)
        outputs = self.outputs_of(query, nesting) if isinstance(query, exp.Select) else None
        if outputs is None:
            return None
        found: list[Column] = []
        for output in outputs:
            if output.name is None:
                return None
            # The branches of a UNION are cast to one type.
            known = output.shows.type_name if isinstance(output.shows, Operand) and not is_union else None
            found.append(Column(output.name, known or _UNKNOWN_TYPE))
        return tuple(found)

    def outputs_of(self, select: exp.Select, nesting: int = 0) -> tuple[Output, ...] | None:
        """The output columns of a SELECT, in order, with its stars expanded; None if they are not certain."""
        if id(select) not in self._outputs:
            found = None if select.args.get("kind") else self._look_up_outputs(select, nesting)
            self._outputs[id(select)] = found
        return self._outputs[id(select)]

    def _look_up_outputs(self, select: exp.Select, nesting: int) -> tuple[Output, ...] | None:
        found: list[Output] = []
        for projection in select.expressions:
            outputs = self._projected(select, projection, nesting)
            if outputs is None or len(found) + len(outputs) > OUTPUTS_MAX:
                return None
            found += outputs
        self.steps.look_at(len(found))
        return tuple(found)

    def _projected(self, select: exp.Select, projection: exp.Expr, nesting: int) -> list[Output] | None:
        if isinstance(projection, exp.Alias):
            return [Output(projection.alias, projection.this)]
        if projection.is_star:
            scope = self.scope_of(select)
            operands = scope.columns_of_star(projection, nesting) if scope is not None else None
            return None if operands is None else [Output(operand.name, operand) for operand in operands]
        if isinstance(projection, exp.Column):
            return [Output(projection.name, projection)] if is_plain_name(projection.name) else None
        shown = projection.unnest()
        is_one = isinstance(shown, _ONE_COLUMN) and not isinstance(shown, exp.Dot)
        return [Output(None, projection)] if is_one else None


def _sees(node: exp.Expr, cte: _Cte) -> bool:
    """True if a reference sees the CTE: it is in the query that has the WITH, or in a later CTE's body."""
    inner, outer = node, node.parent
    while outer is not None:
        if outer is cte.with_:
            return inner.index is not None and inner.index > cte.position
        if outer is cte.with_.parent:
            return True
        inner, outer = outer, outer.parent
    return False


def _folded(name: str) -> str:
    """A CTE's name, equal for all spellings that Spark may take for it: Spark compares letters in upper case too.

    So `dates` is no table where a CTE has that name with a long s. Columns and tables are found in lower case.
    """
    return name.upper().casefold().replace(_DOT_ABOVE, "")


# A capital I with a dot in lower case leaves this character beside the letter.
_DOT_ABOVE = "\u0307"
