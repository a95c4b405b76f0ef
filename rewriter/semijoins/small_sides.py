"""Small sides: FROM items and subqueries that a key query reads, if they give the same rows when run again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from sqlglot import exp

from rewriter.catalog.prunable import unfollowed_because
from rewriter.catalog.table_facts import Catalog, TableFacts, TableKind, is_fixed
from rewriter.scopes.blocks import Operand, Scope, outer_selects, own_parts
from rewriter.scopes.join_tree import Leaf, name_parts, table_name
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.certain_rows import uncertain_choice
from rewriter.semijoins.key_query import NOT_IN_MEMORY
from rewriter.sql.inline_tables import generated_column, read_by_generator
from rewriter.sql.repeatable import (
    located_query,
    repeatable_generator,
    repeatable_lateral_view,
    repeatable_values,
    uncertain_part_of_view,
    uncertain_word_of_query,
)
from rewriter.sql.statement import Statement
from rewriter.vocabulary.cited import cited, listed
from rewriter.vocabulary.identifiers import TableName, quoted
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import CausedRefusal, Refusal, SkipReason

# The cause of a refusal, for users.
_OF_MAKER = "it is a query within a view, whose meaning may depend on settings that Spark keeps with the view"


@dataclass(frozen=True)
class SmallSide:
    """The FROM of a key query, with the tables and rules that it takes."""

    sql: str
    # True if it has a filter of its own, so that the key query is worth running without a further one.
    is_filtered: bool
    # The tables and views that it reads, and all that those views read; and the rules that reading them takes.
    tables: frozenset[TableName]
    rules: frozenset[Rule] = frozenset()

    def joined_with(self, other: SmallSide, rule: Rule) -> SmallSide:
        """Both in one FROM, by a rule."""
        rules = self.rules | other.rules | {rule}
        sql = f"{self.sql} JOIN {other.sql} ON {NOT_IN_MEMORY}"
        return SmallSide(sql, self.is_filtered, self.tables | other.tables, rules)

    def also_reading(self, tables: Iterable[frozenset[TableName]]) -> SmallSide:
        """The small side with filters or keys over it whose subqueries read these tables."""
        return replace(self, tables=self.tables.union(*tables))


@dataclass(frozen=True)
class PartOfTable:
    """Partitions of a table."""

    table: TableName
    # The table and the values of its partition columns, as a FROM and a WHERE that Spark can be asked about.
    text: str


@dataclass(frozen=True, eq=False)
class TinySides:
    """Small sides that are worth asking without a filter, and the tables that lack a size to tell so.

    Tables of few bytes are parameter tables, seeds and the temporary tables of BI tools.
    """

    _catalog: Catalog
    _bytes_max: int
    # The unpartitioned tables that were asked about and whose size is not known.
    unsized: set[TableName] = field(default_factory=set)
    # The parts of partitioned tables whose size is not known, and tables of which the last partition is not.
    unsized_parts: set[PartOfTable] = field(default_factory=set)
    unlisted: set[TableName] = field(default_factory=set)

    def are_tiny(self, tables: Iterable[TableName]) -> bool:
        """True if all tables together are known to have few bytes.

        Tables that views read are among the tables, so the views themselves need no size.
        """
        facts_of = {
            name: facts for name in tables if (facts := self._catalog.get(name)) is None or not facts.behind
        }
        if not all(facts is not None and not facts.partition_columns for facts in facts_of.values()):
            return False
        unsized = {name for name, facts in facts_of.items() if facts is not None and facts.size_bytes is None}
        is_tiny = known_bytes(self._catalog, facts_of) <= self._bytes_max
        if is_tiny and self._bytes_max:
            self.unsized.update(unsized)
        return is_tiny and not unsized


def small_side_of_item(scopes: Scopes, leaf: Leaf, *, of_partitions: bool = False) -> SmallSide | Refusal:
    """The small side that a FROM item is, or the reason why it is none.

    A partitioned table is none, unless only some of its partitions are read.
    """
    found = _small_side_of_item(scopes, leaf, of_partitions=of_partitions)
    return found.about(leaf.alias) if isinstance(found, CausedRefusal) and leaf.alias else found


def _small_side_of_item(scopes: Scopes, leaf: Leaf, *, of_partitions: bool) -> SmallSide | Refusal:
    is_table = leaf.reference is not None and not scopes.is_cte_name(leaf)
    if not is_table and scopes.is_in_view(leaf.node):
        return _uncertain(_OF_MAKER)
    if leaf.reference is not None and not scopes.is_cte_name(leaf):
        if leaf.reference.refusal is not None:
            return _uncertain(leaf.reference.refusal.sentence)
        facts = scopes.catalog.get(leaf.reference.name)
        text, tables = leaf.reference.source(scopes.statement), tables_read(scopes, leaf.node)
        rules = rules_of_tables(scopes, leaf.node)
        refusal = _table_refusal(leaf.reference.name, facts, of_partitions=of_partitions)
        return refusal or SmallSide(text, _is_filtered_view(facts), tables, rules)
    if isinstance(leaf.node, exp.Values) or generated_column(leaf.node) is not None:
        return _of_no_table(scopes.statement, leaf)
    query = scopes.query_of(leaf)
    if query is None:
        return _uncertain(_UNCERTAIN_QUERY)
    return _small_side_of_query(scopes, leaf, query, of_partitions=of_partitions)


def _of_no_table(statement: Statement, leaf: Leaf) -> SmallSide | Refusal:
    if isinstance(leaf.node, exp.Values):
        rows = repeatable_values(statement, leaf.node)
    elif (rows := repeatable_generator(statement, leaf.node)) is not None:
        rows += f" AS {leaf.alias_text(statement)}"
    if rows is None:
        return _uncertain("not all of its values are known to be the same each time")
    return SmallSide(rows, is_filtered=True, tables=frozenset[TableName]())


def generator_base(scope: Scope, leaf: Leaf) -> Leaf | None:
    """The one FROM item whose columns a LATERAL VIEW's generator reads; None if there is none, or several.

    An outer join must not pad it: `explode(array(1, p.x))` makes rows of a padded row too, which no row of p has.
    """
    columns = read_by_generator(leaf.node) if generated_column(leaf.node) is not None else []
    top = scope.block.tree.joins[-1]
    operands = [scope.resolve(column, top) for column in columns]
    bases = {operand.leaf if operand is not None else None for operand in operands}
    base = bases.pop() if len(bases) == 1 else None
    is_before = base is not None and base.position < leaf.position and not base.is_padded_below(top)
    return base if is_before else None


def small_side_of_generator(scopes: Scopes, leaf: Leaf, base: Leaf) -> SmallSide | Refusal:
    """The rows that a LATERAL VIEW makes of a small table's: `promotions p LATERAL VIEW explode(..) d AS day`.

    A join goes before the view. Without it, Spark would read that FROM from memory, below the key query's WHERE.
    """
    table = small_side_of_item(scopes, base)
    if isinstance(table, Refusal):
        return table
    view = repeatable_lateral_view(scopes.statement, leaf.node, leaf.alias_text(scopes.statement))
    if view is None or scopes.is_in_view(leaf.node):
        return _uncertain("not all of its values are known to be the same each time")
    return replace(table, sql=f"{table.sql} JOIN (SELECT 1) ON {NOT_IN_MEMORY} {view}")


def small_side_of_query(
    scopes: Scopes, query: exp.Expr, width: int, *, of_partitions: bool = False
) -> SmallSide | Refusal:
    """The small side that a subquery is, its columns named by `query_key`, or the reason why it is none.

    It reads partitioned tables only if it reads some of their partitions.
    """
    if scopes.is_in_view(query):
        return _uncertain(_OF_MAKER)
    outside = _refusal_of_columns_from_outside(scopes, query)
    if outside is not None:
        return outside
    text = _repeatable_text(scopes, query, of_partitions=of_partitions)
    if isinstance(text, Refusal):
        return text
    names = ", ".join(f"key{number}" for number in range(1, width + 1))
    tables, rules = tables_read(scopes, query), rules_of_tables(scopes, query)
    return SmallSide(f"({text}) AS reducer({names})", is_filtered(scopes, query), tables, rules)


def query_key(index: int) -> str:
    """The column of a `small_side_of_query`, counted from 0."""
    return f"reducer.key{index + 1}"


def is_plain_exists(query: exp.Expr) -> bool:
    """True if EXISTS asks for a joined row. An aggregate without groups always has one; LIMIT 0 never has."""
    if not isinstance(query, exp.Select) or any(query.args.get(clause) for clause in _NOT_PLAIN):
        return False
    shown = (node for projection in query.expressions for node in projection.find_all(*_PERHAPS_AGGREGATES))
    return query.find(exp.AggFunc, exp.Window) is None and all(isinstance(node, _NO_AGGREGATES) for node in shown)


_NOT_PLAIN = ("group", "having", "limit", "offset", "qualify", "laterals", "with_")

# sqlglot does not know all aggregates, such as `some`, `any` and count_min_sketch, and users can have their own.
_PERHAPS_AGGREGATES = (exp.Func, exp.SubqueryPredicate)
_NO_AGGREGATES = (exp.Case, exp.Cast, exp.Coalesce, exp.If, exp.Connector)


def view_refusal(view: Scopes, *, of_partitions: bool = False) -> Refusal | None:
    """The reason why a key query must not read a view of that text; None if it may."""
    refusal = _tables_refusal(view, view.statement.tree, of_partitions=of_partitions)
    if refusal is not None:
        return refusal
    uncertain = uncertain_part_of_view(view.statement)
    return _uncertain(uncertain) if uncertain is not None else None


def tables_read(scopes: Scopes, query: exp.Expr) -> frozenset[TableName]:
    """The tables and views that a query reads, and all that those views read."""
    return with_underlying_tables(scopes.catalog, map(table_name, scopes.tables_of(query)))


def with_underlying_tables(catalog: Catalog, names: Iterable[TableName]) -> frozenset[TableName]:
    """The names, and the names of all tables and views that the views among them read."""
    named = frozenset(names)
    views = (facts.behind for name in named if (facts := catalog.get(name)) is not None)
    return named.union(*(view.tables for view in views if view is not None))


def known_bytes(catalog: Catalog, tables: Iterable[TableName]) -> int:
    """The bytes of the tables, as far as the server knows.

    Partitioned tables are not counted: a key query reads their partition columns alone, which no file holds.
    """
    known = described(catalog, tables)
    return sum(facts.size_bytes or 0 for facts in known if not facts.partition_columns)


def changing_tables(catalog: Catalog, tables: Iterable[TableName]) -> frozenset[TableName]:
    """The tables that may hold other rows the next time."""
    return frozenset(name for name in tables if not is_fixed(catalog, name))


def described(catalog: Catalog, tables: Iterable[TableName]) -> Iterator[TableFacts]:
    """The facts of the tables, without unknown ones."""
    return (facts for name in tables if (facts := catalog.get(name)) is not None)


def may_be_as_large(catalog: Catalog, tables: Iterable[TableName], fact: TableFacts) -> bool:
    """True if reading the tables may take as long as reading the fact.

    A table of unknown size counts as small, as dimensions are, unless its layout lets files or buckets be left
    out.
    """
    sizes = {facts.size_bytes for facts in described(catalog, tables) if facts.has_layout}
    size_bytes = fact.size_bytes if fact.behind is None else known_bytes(catalog, fact.behind.tables) or None
    if sizes and None in {*sizes, size_bytes}:
        return True
    return size_bytes is not None and known_bytes(catalog, tables) >= size_bytes


def reads_foreign(catalog: Catalog, tables: Iterable[TableName]) -> bool:
    """True if any of the tables is of a format that may compare in another way than Spark."""
    return any(facts.is_foreign for facts in described(catalog, tables))


def is_laid_out(catalog: Catalog, tables: Iterable[TableName]) -> bool:
    """True if files or buckets of any of the tables can be left out."""
    return any(facts.has_layout for facts in described(catalog, tables))


def is_filtered(scopes: Scopes, query: exp.Expr) -> bool:
    """True if the query is likely to give fewer keys than its tables hold.

    A query without a table holds no more than the statement says: `SELECT 'a' AS k UNION ALL SELECT 'b'`.
    """
    parts = (query, *(scopes.ctes_read(query) or {}).values())
    scopes.steps.look_at(len(parts))
    if any(part.find(exp.Where, exp.Having, exp.AggFunc, exp.Limit) is not None for part in parts):
        return True
    tables = [scopes.catalog.get(table_name(table)) for table in scopes.tables_of(query)]
    return not tables or any(map(_is_filtered_view, tables))


def is_repeatable_subquery(scopes: Scopes, query: exp.Expr) -> bool:
    """True if a subquery in a condition reads small tables alone and gives the same rows when run again.

    The caller checks its words, since it has the text around it.
    """
    return _is_closed(scopes, query) and is_repeatable_correlated_subquery(scopes, query)


def subquery_refusal(scopes: Scopes, query: exp.Expr) -> Refusal | None:
    """The reason why a subquery is not repeatable, whatever its words; None if it is."""
    return _refusal_of_columns_from_outside(scopes, query) or correlated_subquery_refusal(scopes, query)


def is_repeatable_correlated_subquery(scopes: Scopes, query: exp.Expr) -> bool:
    """True if a subquery reads small tables alone, and gives the same rows for the same values of outer columns.

    The caller checks its words, and its columns from outside (`columns_from_outside`).
    """
    return correlated_subquery_refusal(scopes, query) is None


def correlated_subquery_refusal(scopes: Scopes, query: exp.Expr) -> Refusal | None:
    """The reason why a subquery may give other rows for the same values of outer columns; None if it may not."""
    uncertain = uncertain_choice(scopes, query)
    return _uncertain(uncertain) if uncertain is not None else _tables_refusal(scopes, query)


def columns_from_outside(scopes: Scopes, query: exp.Expr) -> list[exp.Column] | None:
    """The columns in a query that are an outer query's; None where that is not certain of one."""
    found: list[exp.Column] = []
    for select in query.find_all(exp.Select):
        scope = scopes.scope_of(select)
        columns, _ = scopes.own_parts(select)
        if not columns:
            continue
        if scope is None:
            return None
        around = [scope, *(scopes.scope_of(outer) for outer in outer_selects(select) if is_within(outer, query))]
        for column in _not_own(scope, columns):
            is_outer = _is_outside(column, around)
            if is_outer is None:
                return None
            found += [column] if is_outer else []
    return found


def _is_outside(column: exp.Column, scopes: Iterable[Scope | None]) -> bool | None:
    """True if a column is of none of the scopes, the innermost first; None if that is not certain."""
    for depth, scope in enumerate(scopes):
        if scope is None:
            return None
        if depth and scope.resolve(column, scope.block.tree.joins[-1]) is not None:
            return False
        if not scope.certainly_lacks(column):
            return None
    return True


def is_within(node: exp.Expr, query: exp.Expr) -> bool:
    """True if a node is the query, or a part of it."""
    found: exp.Expr | None = node
    while found is not None and found is not query:
        found = found.parent
    return found is query


def _is_within_any(node: exp.Expr | None, queries: AbstractSet[int]) -> bool:
    """True if a node is one of some queries, by their identities, or a part of one."""
    while node is not None and id(node) not in queries:
        node = node.parent
    return node is not None


def _is_closed(scopes: Scopes, query: exp.Expr) -> bool:
    """True if every column in the query is of its own FROM items: none of an outer query, no variable."""
    return columns_from_outside(scopes, query) == []


def _refusal_of_columns_from_outside(scopes: Scopes, query: exp.Expr) -> Refusal | None:
    """The refusal of a query that is not closed, with a column that it reads of another; None for a closed one."""
    if _is_closed(scopes, query):
        return None
    columns = columns_from_outside(scopes, query)
    cause = f"it reads {cited(columns[0].sql())} from outside" if columns else _UNCERTAIN_COLUMN
    return _uncertain(cause)


def _not_own(scope: Scope, columns: Iterable[exp.Column]) -> list[exp.Column]:
    """The columns that are not the block's own. A name in ON that only a later item has is an outer query's."""
    joins = scope.block.tree.joins
    conditions = [(join, join.condition) for join in joins if join.condition is not None]
    named = [(column, join) for join, condition in conditions for column in own_parts(condition)[0]]
    named += [(column, joins[-1]) for column in columns]
    return [column for column, join in named if scope.resolve(column, join) is None]


def _small_side_of_query(
    scopes: Scopes, leaf: Leaf, query: exp.Expr, *, of_partitions: bool
) -> SmallSide | Refusal:
    text = _repeatable_text(scopes, query, of_partitions=of_partitions)
    if isinstance(text, Refusal):
        return text
    tables, rules = tables_read(scopes, query), rules_of_tables(scopes, query) | {Rule.DERIVED_TABLES}
    return SmallSide(f"({text}) AS {quoted(leaf.key_query_alias)}", is_filtered(scopes, query), tables, rules)


def rules_of_tables(scopes: Scopes, query: exp.Expr) -> frozenset[Rule]:
    """The rules that reading the tables of a small side takes."""
    tables = [scopes.catalog.get(table_name(table)) for table in scopes.tables_of(query)]
    views = any(facts is not None and facts.behind is not None for facts in tables)
    partitioned = any(facts is not None and facts.partition_columns for facts in tables)
    found = ((Rule.VIEWS, views), (Rule.LATEST_PARTITION, partitioned))
    return frozenset(rule for rule, is_taken in found if is_taken)


def _repeatable_text(scopes: Scopes, query: exp.Expr, *, of_partitions: bool) -> str | Refusal:
    """The query as the client wrote it, behind the CTEs that it reads; found once for all that read it."""
    asked = id(query), of_partitions
    if asked not in scopes.repeatable_texts:
        scopes.repeatable_texts[asked] = _look_up_repeatable_text(scopes, query, of_partitions=of_partitions)
    return scopes.repeatable_texts[asked]


def _look_up_repeatable_text(scopes: Scopes, query: exp.Expr, *, of_partitions: bool) -> str | Refusal:
    ctes = scopes.ctes_read(query)
    if ctes is None:
        return _uncertain(_UNCERTAIN_QUERY)
    parts = {id(part) for part in (query, *ctes.values())}
    outside = {name: body for name, body in ctes.items() if not _is_within_any(body.parent, parts)}
    read = (*outside.values(), query)
    texts = [_repeatable_part(scopes, part, of_partitions=of_partitions) for part in read]
    refusals = [text for text in texts if isinstance(text, Refusal)]
    if refusals or not outside:
        return refusals[0] if refusals else texts[0]
    named = ", ".join(f"{quoted(name)} AS ({text})" for name, text in zip(outside, texts, strict=False))
    return f"WITH {named} {f'({texts[-1]})' if query.args.get('with_') else texts[-1]}"


def _repeatable_part(scopes: Scopes, query: exp.Expr, *, of_partitions: bool) -> str | Refusal:
    """The text of a query or of a CTE, found once for all that read it."""
    asked = id(query), of_partitions
    if asked not in scopes.repeatable_parts:
        scopes.repeatable_parts[asked] = _look_up_repeatable_part(scopes, query, of_partitions=of_partitions)
    scopes.steps.take()
    return scopes.repeatable_parts[asked]


def _look_up_repeatable_part(scopes: Scopes, query: exp.Expr, *, of_partitions: bool) -> str | Refusal:
    # In a key query, a column of an outer query may be a session variable of that name.
    if next(outer_selects(query), None) is not None:
        outside = _refusal_of_columns_from_outside(scopes, query)
        if outside is not None:
            return outside
    refusal = _tables_refusal(scopes, query, scopes.ctes_read(query) or {}, of_partitions=of_partitions)
    if refusal is not None:
        return refusal
    located = located_query(scopes.statement, query)
    if located is None:
        return _uncertain("its place in the text is not certain")
    # It has been parsed once more.
    scopes.steps.take(len(located.tokens))
    uncertain = uncertain_choice(scopes, query) or uncertain_word_of_query(located, scopes.bare_functions)
    return _uncertain(uncertain) if uncertain is not None else located.text


def _uncertain(cause: str) -> CausedRefusal:
    """The refusal of a small side that may give other rows when it is asked again."""
    return SkipReason.REDUCER_NOT_UNDERSTOOD.because(cause)


_UNCERTAIN_QUERY = "it is not certain which query it is: a table function, or the name of several CTEs"
_UNCERTAIN_COLUMN = "it is not certain which table each of its columns is of"


def _tables_refusal(
    scopes: Scopes, query: exp.Expr, ctes: Collection[str] = (), *, of_partitions: bool = False
) -> Refusal | None:
    """The reason why a table of the query must not be in a key query, which has the CTEs; None if all may be."""
    tables = (table for table in query.find_all(exp.Table) if table.db or table.name not in ctes)
    found = (_inner_table_refusal(scopes, table, of_partitions=of_partitions) for table in tables)
    refusals = [refusal for refusal in found if refusal is not None]
    reasons = {refusal.reason for refusal in refusals}
    if reasons == {SkipReason.REDUCER_PARTITIONED} and reads_partition_columns_alone(scopes, query):
        return None
    return refusals[0] if refusals else None


def reads_partition_columns_alone(scopes: Scopes, query: exp.Expr) -> bool:
    """True if the query asks for extremes, groups, distinct or first values, and reads partition columns alone.

    Examples: `SELECT region, date_sub(max(ds), 7) FROM t WHERE .. GROUP BY region`, `SELECT DISTINCT ds FROM t
    WHERE ..` and `SELECT ds FROM t ORDER BY ds DESC LIMIT 1`. It answers no more rows than there are partitions,
    or than its LIMIT says. The statement runs it too, and Spark lists the table's partitions once for both.
    """
    scope = scopes.scope_of(query) if isinstance(query, exp.Select) else None
    if scope is None or query.args.get("having"):
        return False
    columns, selects = scopes.own_parts(query)
    operands = [scope.resolve(column, scope.block.tree.joins[-1]) for column in columns]
    shows_columns = any(query.args.get(clause) for clause in ("group", "distinct", "limit"))
    return (
        not selects
        and (not shows_columns or len(scope.block.tree.leaves) == 1)
        and all(
            _is_of_extremes(shown) or (shows_columns and isinstance(shown.unalias(), exp.Column))
            for shown in query.expressions
        )
        and all(operand is not None and _is_partition_column(scopes, operand) for operand in operands)
    )


def _is_of_extremes(shown: exp.Expr) -> bool:
    """True for `max(ds)` and `coalesce(date_sub(min(ds), 30), ..)`: one value for all rows or for a group."""
    aggregates = list(shown.find_all(exp.AggFunc, exp.Window))
    return bool(aggregates) and all(isinstance(aggregate, exp.Max | exp.Min) for aggregate in aggregates)


def _is_partition_column(scopes: Scopes, operand: Operand) -> bool:
    reference = operand.leaf.reference
    facts = scopes.catalog.get(reference.name) if reference is not None else None
    column = facts.column(operand.name) if facts is not None else None
    return facts is not None and column is not None and facts.is_partition_column(column)


def _inner_table_refusal(scopes: Scopes, table: exp.Table, *, of_partitions: bool) -> Refusal | None:
    if not all(isinstance(part, exp.Identifier) for part in name_parts(table)):
        return _uncertain("it reads a table function")
    name = table_name(table)
    if not table.db and scopes.is_cte(table.name):
        return _uncertain(f"{name} may be a CTE or a table")
    return _table_refusal(name, scopes.catalog.get(name), of_partitions=of_partitions)


def _table_refusal(name: TableName, facts: TableFacts | None, *, of_partitions: bool = False) -> Refusal | None:
    if facts is None or facts.is_written:
        unknown = SkipReason.REDUCER_NOT_A_TABLE.because(f"it is not known which table {name} is")
        return unknown if facts is None else SkipReason.WRITES_WHAT_IT_READS.because(str(name))
    if facts.kind is TableKind.VIEW and facts.behind is None:
        return SkipReason.REDUCER_NOT_A_TABLE.because(f"{name} is a view, and {unfollowed_because(facts)}")
    view = facts.behind
    refusal = None
    if view is not None:
        refusal = view.refusal_of_partitions if of_partitions else view.small_side_refusal
    if refusal is not None:
        return refusal.about(f"the view {name}") if isinstance(refusal, CausedRefusal) else refusal
    if facts.partition_columns and not of_partitions:
        columns = listed(facts.partition_columns)
        return SkipReason.REDUCER_PARTITIONED.because(f"{name} is partitioned by {columns}")
    collated = [column.name for column in facts.columns if " collate " in column.type_name]
    if collated:
        # 'a' and 'A' are one group, of which Spark may show either.
        return _uncertain(f"{name} has a column with a collation, {collated[0]}")
    return SkipReason.COLUMNS_DIFFER_BY_CASE if facts.columns_differ_by_case else None


def _is_filtered_view(facts: TableFacts | None) -> bool:
    return facts is not None and facts.behind is not None and facts.behind.is_filtered
