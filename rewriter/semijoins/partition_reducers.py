"""Reducers by the list of a fact's partitions, from conditions that no keys tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rewriter.domains.cover import Cover
from rewriter.domains.literals import UnreadableKeyError
from rewriter.partitions.index import PartitionIndex, PartitionIndexes
from rewriter.partitions.pruning import as_filter
from rewriter.partitions.value_encoding import NotIndexableError
from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.causes import rule_off, too_large, unfiltered_subquery
from rewriter.semijoins.equalities import ItemPartner, rules_of
from rewriter.semijoins.filtered_sides import FilteredSide, FilteredSides
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.literal_filters import partition_cover
from rewriter.semijoins.outer_filters import REDUCED_KEY
from rewriter.semijoins.partition_conditions import PartitionCondition
from rewriter.semijoins.partition_query import PartitionList, PartitionsQuery, partitions_query
from rewriter.semijoins.reducer import Reducer
from rewriter.semijoins.small_sides import (
    SmallSide,
    changing_tables,
    is_filtered,
    known_bytes,
    rules_of_tables,
)
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason


@dataclass(frozen=True, eq=False)
class _Asking:
    """The parts of a query over a list: its FROM, with the list and without, its keys and its filters."""

    source: str
    outline: str
    keys: list[str]
    filters: Sequence[str]
    small_side: SmallSide


@dataclass(frozen=True, eq=False)
class PartitionReducerPlanner:
    """Makes reducers by partition lists for the conditions of one block."""

    _scopes: Scopes
    _sides: FilteredSides
    _scope: Scope
    _limits: RewriteLimits
    _partitions: PartitionIndexes

    def reducer(
        self, join: Join, conditions: Sequence[PartitionCondition], *, chooses: bool = True
    ) -> Reducer | Refusal:
        """The reducer by several conditions together, on one table and with one partner; or the reason for none.

        With `chooses`, the partner may be partitioned itself, if the statement chooses partitions of it.
        """
        first = conditions[0]
        # Conditions on columns that another SELECT computes are left out: one list replaces one derived table.
        conditions = [condition for condition in conditions if _place(condition) == _place(first)]
        named = dict(column for condition in conditions for column in condition.columns)
        if len({column.name for column in named.values()}) < len(named):
            return SkipReason.UNSUPPORTED_REFERENCE  # the block has two names for one column
        side = self._side(join, conditions, chooses=chooses)
        if isinstance(side, Refusal):
            return side
        listed = self._listed(first, named)
        if isinstance(listed, Refusal):
            return listed
        computed = {column.name: column.text for condition in conditions for column in condition.computed}
        if computed:
            within = first.computed[0].item.alias_text(self._scopes.statement)
            listed = replace(listed, within=within, computed=tuple(computed.items()))
        if any(condition.may_be_padding for condition in conditions):
            listed = listed.with_padding()
        try:
            asking = self._asking(listed, conditions, side)
        except UnreadableKeyError:
            return SkipReason.UNREADABLE_KEY
        return asking if isinstance(asking, Refusal) else self._reducer(join, conditions, named, listed, asking)

    def _side(
        self, join: Join, conditions: Sequence[PartitionCondition], *, chooses: bool
    ) -> FilteredSide | Refusal | None:
        """The partner, or None for subqueries in its place; or the reason why they are not asked."""
        refusal = self._refusal_of_lists(join, conditions)
        if refusal is not None:
            return refusal
        tables, first = _tables_of_subqueries(conditions), conditions[0]
        side = None
        if first.partner is not None:
            side = self._sides.side_of(first.partner, first.facts)
            if isinstance(side, Refusal) and chooses:
                side = self._side_of_partitions(first, first.partner, side)
            if isinstance(side, Refusal):
                return side
            tables |= side.small_side.tables
        if known_bytes(self._scopes.catalog, tables) > self._limits.small_side_bytes_max:
            return too_large(self._scopes.catalog, tables)
        queries = (query for condition in conditions for query in condition.queries)
        is_worth_it = any(_has_scalar_subquery(query) or is_filtered(self._scopes, query) for query in queries)
        if side is None and not is_worth_it and not self._sides.tiny.are_tiny(tables):
            return unfiltered_subquery(self._scopes.catalog, tables, first.text)
        return side

    def _side_of_partitions(
        self, condition: PartitionCondition, partner: ItemPartner, refusal: Refusal
    ) -> FilteredSide | Refusal:
        """The partitions that the statement chooses of a partner, which as a whole is refused."""
        chosen = self._sides.partitioned.of_item(partner)
        if chosen is None or refusal.reason is not SkipReason.REDUCER_PARTITIONED:
            return refusal
        side = self._sides.partitioned.small_side(chosen, condition.scan, refusal, self._limits)
        return side if isinstance(side, Refusal) else self._sides.filtered(side, partner, condition.facts)

    def _refusal_of_lists(self, join: Join, conditions: Sequence[PartitionCondition]) -> Refusal | None:
        """The reason why Spark must not be asked about the conditions; None if it may."""
        if self._limits.strict:
            return SkipReason.STRICT_PARTITIONS
        rules = frozenset[Rule]().union(*(self._rules(join, condition) for condition in conditions))
        return rule_off(rules & self._limits.rules_off) if rules & self._limits.rules_off else None

    def _listed(self, condition: PartitionCondition, named: Mapping[str, Column]) -> PartitionList | Refusal:
        """The list that is asked about: one for all conditions that ask for the same part of it."""
        index = self._partitions.get(condition.reference.name)
        if index is None:
            return SkipReason.PARTITIONS_NOT_LISTED
        columns = tuple((name, column.type_name) for name, column in named.items())
        names = tuple(column.name for column in named.values())
        alias, within = condition.fact.alias_text(self._scopes.statement), self._within(condition)
        known, asked = self._sides.asked_lists, (condition.reference.name, names, columns, alias, within)
        if asked not in known.lists:
            empty = PartitionList(alias, columns, frozenset())
            known.lists[asked] = self._look_up(index, condition, names, empty, within)
        return known.lists[asked]

    def _look_up(
        self,
        index: PartitionIndex,
        condition: PartitionCondition,
        names: Sequence[str],
        empty: PartitionList,
        within: Cover,
    ) -> PartitionList | Refusal:
        try:
            values = index.values(names, as_filter(within))
        except NotIndexableError:
            return SkipReason.PARTITIONS_NOT_LISTED
        if not values:
            return SkipReason.NOTHING_TO_SKIP
        if len(values) > self._limits.partition_list_max:
            return SkipReason.TOO_MANY_PARTITIONS.because(f"{len(values):,} partitions of {condition.fact.alias}")
        self._sides.asked_lists.values_left -= len(values)
        if self._sides.asked_lists.values_left < 0:
            return SkipReason.TOO_MANY_PARTITIONS.because(
                "other scans of the statement ask about as many as may be"
            )
        return replace(empty, values=frozenset(values))

    def _asking(
        self, listed: PartitionList, conditions: Sequence[PartitionCondition], side: FilteredSide | None
    ) -> _Asking | Refusal:
        """The query's parts. Raises UnreadableKeyError for a partition without a certain literal."""
        source, outline, keys = listed.source(), listed.outline(), listed.keys
        texts = tuple(condition.text for condition in conditions)
        if side is None:
            nothing = SmallSide("", is_filtered=True, tables=frozenset())
            return _Asking(source, outline, keys, texts, nothing)
        small, beside = side.small_side, side.with_filters(texts)
        source, outline = f"{source}, {small.sql}", f"{outline}, {small.sql}"
        if side.outer is None or len(keys) > 1:
            # Filters around the block are not used where several columns would have to be shown to them.
            if side.filters or small.is_filtered:
                return _Asking(source, outline, keys, beside.filters, small)
            cause = (
                f"the filters outside its SELECT are not used beside several columns of {conditions[0].fact.alias}"
            )
            return SkipReason.REDUCER_UNFILTERED.because(cause)
        whole, filters = beside.behind(side.outer, self._scopes, source, keys[0])
        shown, _ = beside.behind(side.outer, self._scopes, outline, keys[0])
        return _Asking(whole.sql, shown.sql, [REDUCED_KEY], filters, whole)

    def _reducer(
        self,
        join: Join,
        conditions: Sequence[PartitionCondition],
        named: Mapping[str, Column],
        listed: PartitionList,
        asking: _Asking,
    ) -> Reducer:
        query = self._query(conditions, listed, asking)
        session = {Rule.SESSION_FUNCTIONS} if query.assumes else set()
        rules = asking.small_side.rules.union(session, *(self._rules(join, condition) for condition in conditions))
        shown = " AND ".join(condition.text for condition in conditions)
        return Reducer(tuple(column.name for column in named.values()), shown, query, rules=rules)

    def _query(
        self, conditions: Sequence[PartitionCondition], listed: PartitionList, asking: _Asking
    ) -> PartitionsQuery:
        """The query, whose text holds the list: one for all conditions that are asked alike."""
        tables = asking.small_side.tables | _tables_of_subqueries(conditions)
        may_be_padding = any(condition.may_be_padding for condition in conditions)
        may_fail = any(map(_has_scalar_subquery, (query for one in conditions for query in one.queries)))
        words = asking.source, tuple(asking.keys), tuple(asking.filters)
        asked = (*words, tables, may_be_padding, may_fail)
        known = self._sides.asked_lists.queries
        if asked not in known:
            known[asked] = partitions_query(
                listed,
                source=asking.source,
                outline=asking.outline,
                keys=asking.keys,
                filters=asking.filters,
                tables=changing_tables(self._scopes.catalog, tables),
                may_be_padding=may_be_padding,
                may_fail=may_fail,
            )
        return known[asked]

    def _rules(self, join: Join, condition: PartitionCondition) -> frozenset[Rule]:
        subquery = Rule.EXISTS if condition.is_in_exists else Rule.SCALAR_SUBQUERY if condition.queries else None
        found = rules_of(self._scopes, self._scope, join, condition.fact, facts=condition.facts, subquery=subquery)
        tables = (rules_of_tables(self._scopes, query) for query in condition.queries)
        return found.union({Rule.PARTITION_LIST}, *tables)

    def _within(self, condition: PartitionCondition) -> Cover:
        """The partitions that the block's own filters leave, where the table itself stands in the block."""
        if condition.fact.reference is not condition.reference:
            return Cover.all()
        filters = self._sides.filter_finder.filters_of(self._scope)
        return partition_cover(self._scopes.statement, self._scope, filters, condition.fact, condition.facts)


def _place(condition: PartitionCondition) -> tuple[exp.Select, Leaf] | None:
    """The SELECT that computes a condition's columns, and the item that it reads for them; None if none does."""
    return next(((column.select, column.item) for column in condition.computed), None)


def _tables_of_subqueries(conditions: Sequence[PartitionCondition]) -> frozenset[TableName]:
    return frozenset[TableName]().union(*(condition.tables for condition in conditions))


def _has_scalar_subquery(query: exp.Expr) -> bool:
    """True if a second row of the query is an error."""
    around = query.parent
    while isinstance(around, exp.SetOperation | exp.Subquery):
        around = around.parent
    return not isinstance(around, exp.Exists | exp.In)
