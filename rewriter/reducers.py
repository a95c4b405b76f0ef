"""Block -> fact scans with their reducers, or the reason why a table reference is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from rewriter.catalog import TableFacts, TableKind, quoted
from rewriter.conditions import conjuncts, operands_of
from rewriter.jointree import Join, Leaf, Reference
from rewriter.keyquery import KeyQuery, key_query
from rewriter.keys import is_key_type
from rewriter.lineage import Origin, origins
from rewriter.readers import REDUCED_KEY, Readers
from rewriter.repeatable import is_repeatable
from rewriter.rules import CONDITION_HOLDS
from rewriter.scopes import Operand, Scope, Scopes
from rewriter.skip import SkipReason
from rewriter.snowflake import arms
from rewriter.sources import QUERY_KEY, Source, is_plain_exists, query_source, source_of

# Formats whose partitions Spark prunes by the catalog's partition columns. Iceberg and Delta do otherwise.
_PROVIDERS = frozenset({"parquet", "orc", "hive", "csv", "json", "avro", "text"})


@dataclass(frozen=True)
class Reducer:
    """What shrinks a fact scan: an equality with a filtered small side, and the query for its keys."""

    column: str
    join: str
    key_query: KeyQuery


@dataclass(frozen=True)
class Finding:
    """A fact's scan with a reducer, or with the reason why an equality is none."""

    reference: Reference
    result: Reducer | SkipReason


@dataclass(frozen=True, eq=False)
class _SmallSide:
    """The other side of an equality: the FROM item that it reads, and the key as text."""

    leaf: Leaf
    key: str
    shown: str
    type_name: str | None


class BlockPlanner:
    """Finds what the equalities of one block reduce. The tables of the statement are all in the catalog."""

    def __init__(self, scopes: Scopes, readers: Readers, scope: Scope, key_rows_max: int) -> None:
        self._scopes = scopes
        self._readers = readers
        self._scope = scope
        self._statement = scopes.statement
        self._filters = readers.filters_of(scope)
        self._key_rows_max = key_rows_max

    def findings(self) -> Iterator[Finding]:
        """One for each equality and fact that it could reduce."""
        for join in self._scope.block.tree.joins:
            for left, right in self._scope.merged(join):
                yield from self._of_sides(join, left, self._column_side(right))
                yield from self._of_sides(join, right, self._column_side(left))
            for term in conjuncts(join.condition):
                yield from self._of_term(join, term)

    def _of_term(self, join: Join, term: exp.Expr) -> Iterator[Finding]:
        if isinstance(term, exp.EQ):
            sides = (term.this.unnest(), term.expression.unnest())
            yield from self._of_equality(join, term, *sides)
            yield from self._of_equality(join, term, *sides[::-1])
        elif isinstance(term, exp.In) and isinstance(query := term.args.get("query"), exp.Subquery):
            yield from self._of_query(join, term.this.unnest(), query.this)
        elif isinstance(term, exp.Exists):
            yield from self._of_exists(join, term.this.unnest())

    def _of_equality(
        self, join: Join, term: exp.EQ, fact_side: exp.Expr, small_side: exp.Expr
    ) -> Iterator[Finding]:
        if isinstance(small_side, exp.Query):
            yield from self._of_query(join, fact_side, small_side)
            return
        fact = self._scope.resolve(fact_side, join)
        column = self._scope.resolve(small_side, join)
        small = self._column_side(column) if column is not None else self._expression_side(join, term, small_side)
        if fact is not None and small is not None:
            yield from self._of_sides(join, fact, small)

    def _of_query(self, join: Join, fact_side: exp.Expr, query: exp.Expr) -> Iterator[Finding]:
        """`t.k IN (SELECT ..)` and `t.k = (SELECT ..)`: the keys are what the query answers."""
        fact = self._scope.resolve(fact_side, join)
        if fact is None:
            return
        source = query_source(self._scopes, query)
        for origin in origins(self._scopes, fact.leaf, fact.name):
            if origin.leaf.reference is not None:
                yield Finding(origin.leaf.reference, self._query_reducer(join, fact, origin, source))

    def _query_reducer(
        self, join: Join, fact: Operand, origin: Origin, source: Source | SkipReason
    ) -> Reducer | SkipReason:
        refusal = _origin_refusal(origin, None) or self._stays(join, fact)
        if refusal is not None:
            return refusal
        if isinstance(source, SkipReason):
            return source
        if not source.is_filtered:
            return SkipReason.REDUCER_UNFILTERED
        return self._reducer_of(source, QUERY_KEY, (), f"{fact} = (subquery)", origin)

    def _of_exists(self, join: Join, query: exp.Expr) -> Iterator[Finding]:
        """`EXISTS (SELECT .. FROM r WHERE r.k = t.k AND ..)` is a semi-join."""
        scope = self._scopes.scope_of(query)
        if scope is None or not is_plain_exists(query):
            return
        inner = BlockPlanner(self._scopes, self._readers, scope, self._key_rows_max)
        top = scope.block.tree.joins[-1]
        for term in conjuncts(top.condition):
            if isinstance(term, exp.EQ):
                sides = (term.this.unnest(), term.expression.unnest())
                yield from self._correlated(join, inner, top, *sides)
                yield from self._correlated(join, inner, top, *sides[::-1])

    def _correlated(
        self, join: Join, inner: BlockPlanner, top: Join, outer_side: exp.Expr, inner_side: exp.Expr
    ) -> Iterator[Finding]:
        small = inner._scope.resolve(inner_side, top)
        if small is None or not inner._scope.certainly_lacks(outer_side):
            return
        fact = self._scope.resolve(outer_side, join)
        if fact is None:
            return
        for origin in origins(self._scopes, fact.leaf, fact.name):
            if origin.leaf.reference is not None:
                side = inner._column_side(small)
                found = self._stays(join, fact) or inner._reducer(top, fact, origin, side)
                yield Finding(origin.leaf.reference, found)

    def _column_side(self, operand: Operand) -> _SmallSide:
        key = f"{self._alias_text(operand.leaf)}.{quoted(operand.name)}"
        return _SmallSide(operand.leaf, key, str(operand), operand.type_name)

    def _alias_text(self, leaf: Leaf) -> str:
        return leaf.reference.alias_text(self._statement) if leaf.reference is not None else quoted(leaf.alias)

    def _expression_side(self, join: Join, term: exp.EQ, side: exp.Expr) -> _SmallSide | None:
        """An expression over one FROM item, such as `cast(d.day AS STRING)`."""
        leaf = self._filters.only_reader(side, join)
        if leaf is None or leaf.is_padded_below(join):
            # Over nulls that pad it, an expression may give a key that no row of the item gives.
            return None
        for conjunct in self._filters.located(join):
            if conjunct.tree is not term:
                continue
            for operand in operands_of(self._statement, conjunct):
                if operand.tree is side and is_repeatable(self._statement, operand):
                    text = operand.text(self._statement)
                    return _SmallSide(leaf, text, text, None)
        return None

    def _of_sides(self, join: Join, fact: Operand, small: _SmallSide) -> Iterator[Finding]:
        if fact.leaf is small.leaf:
            return
        for origin in origins(self._scopes, fact.leaf, fact.name):
            if origin.leaf.reference is not None:
                found = self._stays(join, fact) or self._reducer(join, fact, origin, small)
                yield Finding(origin.leaf.reference, found)

    def _stays(self, join: Join, fact: Operand) -> SkipReason | None:
        """Whether rows of the fact reach the result of the join although they have no partner."""
        return None if join.side_of(fact.leaf) in CONDITION_HOLDS[join.kind] else SkipReason.OUTER_JOIN

    def _reducer(self, join: Join, fact: Operand, origin: Origin, small: _SmallSide) -> Reducer | SkipReason:
        refusal = _origin_refusal(origin, small.type_name)
        if refusal is not None:
            return refusal
        source = source_of(self._scopes, small.leaf)
        if isinstance(source, SkipReason):
            return source
        filters = self._filters.holding_for(join, small.leaf)
        snowflake = arms(self._scopes, self._filters, join, small.leaf)
        outer = self._readers.outer_filters(self._scope, join, small.leaf)
        if not (filters or source.is_filtered or snowflake or outer):
            return SkipReason.REDUCER_UNFILTERED
        for arm in snowflake:
            source = Source(f"{source.sql}, {arm.source.sql}", source.is_filtered)
            filters += (arm.equality, *arm.filters)
        shown = f"{fact} = {small.shown}"
        if outer is None:
            return self._reducer_of(source, small.key, filters, shown, origin)
        wrapped = outer.source(source.sql, small.key, self._alias_text(small.leaf), filters)
        return self._reducer_of(Source(wrapped, is_filtered=True), REDUCED_KEY, outer.texts, shown, origin)

    def _reducer_of(
        self, source: Source, key: str, filters: tuple[str, ...], shown: str, origin: Origin
    ) -> Reducer:
        asked = key_query(
            source=source.sql,
            key=key,
            filters=filters,
            type_name=origin.column.type_name,
            rows_max=self._key_rows_max,
        )
        return Reducer(column=origin.column.name, join=shown, key_query=asked)


def _origin_refusal(origin: Origin, small_type: str | None) -> SkipReason | None:
    facts, type_name = origin.facts, origin.column.type_name
    refusal = fact_refusal(facts)
    if refusal is not None:
        return refusal
    if not facts.is_partition_column(origin.column):
        return SkipReason.NOT_A_PARTITION_COLUMN
    if small_type is not None and small_type != type_name:
        return SkipReason.TYPES_DIFFER
    return None if is_key_type(type_name) else SkipReason.TYPE_REFUSED


def fact_refusal(facts: TableFacts | None) -> SkipReason | None:
    """Why a table cannot be narrowed, whatever it is joined with."""
    if facts is None:
        return SkipReason.UNKNOWN_TABLE
    if facts.kind is TableKind.VIEW:
        # What stands behind its columns is asked of each by itself.
        refusal = SkipReason.VIEW_NOT_FOLLOWED if facts.behind is None else None
    else:
        refusal = _table_refusal(facts)
    if refusal is not None:
        return refusal
    return SkipReason.COLUMNS_DIFFER_BY_CASE if facts.columns_differ_by_case else None


def _table_refusal(facts: TableFacts) -> SkipReason | None:
    if facts.provider not in _PROVIDERS:
        return SkipReason.PROVIDER
    return None if facts.partition_columns else SkipReason.NOT_PARTITIONED
