"""Reducers of the fact scans of one block: equalities with a small side, or conditions over partition columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from sqlglot import exp

from rewriter.partitions.index import PartitionIndexes
from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Join, TableReference
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.causes import rule_off, size_beside, too_large, unfiltered_subquery
from rewriter.semijoins.days_query import days_query
from rewriter.semijoins.equalities import (
    DayEquality,
    EqualityFinder,
    ItemPartner,
    KeyEquality,
    Partner,
    QueryPartner,
    RefusedEquality,
    by_partner,
)
from rewriter.semijoins.followed_facts import FactFollower
from rewriter.semijoins.key_query import key_set_query
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.outer_filters import REDUCED_KEY
from rewriter.semijoins.partition_conditions import (
    PartitionCondition,
    PartitionConditionFinder,
    condition_of_extreme,
)
from rewriter.semijoins.partition_reducers import PartitionReducerPlanner
from rewriter.semijoins.partitioned_sides import PartitionedSide
from rewriter.semijoins.range_query import key_ranges_query
from rewriter.semijoins.reducer import Finding, KeyQuery, Reducer
from rewriter.semijoins.small_sides import (
    SmallSide,
    changing_tables,
    known_bytes,
    may_be_as_large,
    reads_foreign,
    small_side_of_query,
)
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import CausedRefusal, Refusal, SkipReason

# Steps for writing a key query, with the queries in its place; and characters of it that take one more step.
_STEPS_PER_QUERY = 10
_CHARS_PER_STEP = 20


class BlockPlanner:
    """Finds the scans that equalities of one block reduce. All tables of the statement are in the catalog."""

    def __init__(
        self,
        scopes: Scopes,
        follower: FactFollower,
        scope: Scope,
        limits: RewriteLimits,
        partitions: PartitionIndexes,
    ) -> None:
        self._scopes = scopes
        self._sides = sides = follower.sides
        self._scope = scope
        self._limits = limits
        self._follower = follower
        self._lists = PartitionReducerPlanner(scopes, sides, scope, limits, partitions)

    def findings(self) -> Iterator[Finding]:
        """One for each fact and partner of each join, and one for each condition that does not reduce a scan."""
        filters = self._sides.filter_finder.filters_of(self._scope)
        matcher = EqualityFinder(self._scopes, self._scope, self._sides.filter_finder)
        conditions = PartitionConditionFinder(self._scopes, self._scope, filters)
        for join in self._scope.block.tree.joins:
            matches: list[KeyEquality] = []
            days: list[DayEquality] = []
            for found in matcher.matches(join):
                if isinstance(found, RefusedEquality):
                    yield Finding(found.reference, found.refusal)
                elif isinstance(found, DayEquality):
                    days.append(found)
                else:
                    matches.append(found)
            by_list = _by_partner_and_table(conditions.conditions(join), matches) if self._asks_lists else {}
            for (reference, partner, _), together in by_partner(matches).items():
                listed = by_list.pop((reference, partner), [])
                for finding in self._with_list(join, reference, together, listed):
                    yield from self._without_rules_off(finding)
            for day in days:
                yield from self._without_rules_off(self._by_day(day.equality))
            for (reference, _), listed in by_list.items():
                yield from self._without_rules_off(Finding(reference, self._lists.reducer(join, listed)))

    @property
    def _asks_lists(self) -> bool:
        return self._is_on(Rule.PARTITION_LIST)

    def _with_list(
        self,
        join: Join,
        reference: TableReference,
        matches: Sequence[KeyEquality],
        listed: Sequence[PartitionCondition],
    ) -> Iterator[Finding]:
        """The findings of equalities; and of the partition list, for keys of another type or if no keys reduce."""
        findings = list(self._reduced(reference, matches[0].partner, matches))
        # Spark itself infers, from a partitioned small side, the values of columns that are compared alone.
        chooses = any(match.is_expression for match in matches)
        by_list = self._lists.reducer(join, listed, chooses=chooses) if listed else None
        for finding in findings:
            result = finding.result
            if isinstance(result, Reducer):
                result = replace(result, if_types_differ=by_list)
            yield replace(finding, result=result)
        if by_list is not None and not any(isinstance(found.result, Reducer) for found in findings):
            yield Finding(reference, by_list)

    def _without_rules_off(self, found: Finding) -> Iterator[Finding]:
        if isinstance(found.result, Refusal):
            yield found
            return
        off = found.result.rules & self._limits.rules_off
        left = found.result.without(self._limits.rules_off) or (rule_off(off),)
        for result in left:
            yield Finding(found.reference, result)

    def _is_on(self, rule: Rule) -> bool:
        return rule not in self._limits.rules_off

    def _reduced(
        self, reference: TableReference, partner: Partner, matches: Sequence[KeyEquality]
    ) -> Iterator[Finding]:
        if isinstance(partner, ItemPartner):
            yield from self._by_item(reference, partner, matches)
        else:
            yield Finding(reference, self._by_query(partner, matches))

    def _by_query(self, partner: QueryPartner, matches: Sequence[KeyEquality]) -> Reducer | Refusal:
        small_side = small_side_of_query(self._scopes, partner.query, partner.width)
        if isinstance(small_side, Refusal):
            side = self._sides.partitioned.of_query(partner.query, partner.width)
            if side is None or small_side.reason is not SkipReason.REDUCER_PARTITIONED:
                return small_side.about("the subquery") if isinstance(small_side, CausedRefusal) else small_side
            chosen = self._of_partitions(side, matches, small_side)
            return chosen if isinstance(chosen, Refusal) else self._found(chosen, (), matches)
        # A scalar subquery has one row at most: its key query ends at the second.
        is_worth_it = small_side.is_filtered or partner.is_scalar or self._sides.tiny.are_tiny(small_side.tables)
        if is_worth_it:
            return self._found(small_side, (), matches)
        return unfiltered_subquery(self._scopes.catalog, small_side.tables, matches[0].shown)

    def _by_item(
        self, reference: TableReference, partner: ItemPartner, matches: Sequence[KeyEquality]
    ) -> Iterator[Finding]:
        side = self._sides.side_of(partner, matches[0].origin.facts)
        if isinstance(side, Refusal) and side.reason is SkipReason.REDUCER_PARTITIONED:
            found = list(self._followed(partner, matches))
            yield from (Finding(reference, result) for result in found)
            if found:
                return
            chosen = self._of_partitions(self._sides.partitioned.of_item(partner), matches, side)
            fact = matches[0].origin.facts
            side = chosen if isinstance(chosen, Refusal) else self._sides.filtered(chosen, partner, fact)
        if isinstance(side, Refusal):
            by_extremes = list(self._by_extremes(partner, matches)) if self._asks_lists else []
            yield from (Finding(reference, result) for result in by_extremes or [side])
            return
        small_side = side.small_side.also_reading(match.tables for match in matches)
        if side.outer is None:
            yield Finding(reference, self._found(small_side, side.filters, matches))
            return
        for match in matches:
            whole, filters = side.behind(side.outer, self._scopes, small_side.sql, match.key)
            whole = whole.also_reading([match.tables])
            yield Finding(reference, self._found(whole, filters, [replace(match, key=REDUCED_KEY)]))

    def _by_extremes(self, partner: ItemPartner, matches: Sequence[KeyEquality]) -> Iterator[Reducer | Refusal]:
        """The reducers by filters that extremes in a derived table have passed, where it is not asked itself."""
        for match in matches:
            condition = condition_of_extreme(self._scopes, self._sides.filter_finder, match)
            if condition is not None:
                found = self._lists.reducer(partner.join, [condition])
                if isinstance(found, Reducer):
                    found = replace(found, join=match.shown, rules=found.rules | match.rules)
                yield found

    def _of_partitions(
        self, side: PartitionedSide | None, matches: Sequence[KeyEquality], refusal: Refusal
    ) -> SmallSide | Refusal:
        """The small side that some partitions of tables are for these equalities; or a refusal."""
        fact, plain = matches[0].origin, [match for match in matches if not match.is_expression]
        if side is None or (side.fixed and any(match.reads <= side.fixed for match in plain)):
            return refusal  # Spark infers those literals for the fact
        chosen = self._sides.partitioned.small_side(side, fact.leaf, refusal, self._limits)
        of_files = all(match.is_on_data for match in matches)
        if isinstance(chosen, SmallSide) and of_files and (side.size_bytes or 0) >= (fact.facts.size_bytes or inf):
            return SkipReason.SMALL_SIDE_LARGER.because(side.size_shown)
        return chosen

    def _followed(self, partner: ItemPartner, matches: Sequence[KeyEquality]) -> Iterator[Reducer | Refusal]:
        """The reducers by the small sides of a partner that is a fact itself."""
        for side in self._follower.followed(partner, frozenset({matches[0].origin.leaf})):
            found = side.through(matches, self._scopes)
            if found is not None:
                small_side, filters, known = found
                yield self._found(small_side.also_reading(match.tables for match in known), filters, known)

    def _by_day(self, match: KeyEquality) -> Finding:
        """The reducer by days. Facts are not followed for them, since the days are computed in the key query."""
        reference, partner = match.origin.reference, match.partner
        assert isinstance(partner, ItemPartner)  # noqa: S101 - days of a subquery are not looked for
        side = self._sides.side_of(partner, match.origin.facts)
        if isinstance(side, Refusal):
            return Finding(reference, side)
        small_side, filters = side.small_side, side.filters
        if side.outer is not None:
            small_side, filters = side.behind(side.outer, self._scopes, small_side.sql, match.key)
            match = replace(match, key=REDUCED_KEY)
        small_side = small_side.also_reading([match.tables])
        (match,) = self._told_apart(small_side, [match])
        return Finding(
            reference, self._too_large(small_side, [match]) or self._of_days(small_side, filters, match)
        )

    def _of_days(self, small_side: SmallSide, filters: tuple[str, ...], match: KeyEquality) -> Reducer | Refusal:
        asked = days_query(
            source=small_side.sql,
            key=match.key,
            column=match.asked,
            filters=filters,
            rows_max=self._limits.key_rows_max,
            tables=changing_tables(self._scopes.catalog, small_side.tables),
        )
        return Reducer((match.column,), match.shown, asked, rules=_rules(small_side, [match], asked))

    def _found(
        self, small_side: SmallSide, filters: tuple[str, ...], matches: Sequence[KeyEquality]
    ) -> Reducer | Refusal:
        asked = self._told_apart(small_side, matches)
        return self._too_large(small_side, matches) or self._reducer(small_side, filters, asked)

    def _told_apart(self, small_side: SmallSide, matches: Sequence[KeyEquality]) -> Sequence[KeyEquality]:
        """The equalities with keys that Spark itself tells apart and orders.

        Spark lets a database behind a catalog find the distinct values of a column or a known function, and their
        extremes. With most collations of MySQL one of 'k' and 'K' is then missing.
        """
        if not reads_foreign(self._scopes.catalog, small_side.tables):
            return matches
        return [replace(match, key=f"array_max(array({match.key}))") for match in matches]

    def _too_large(self, small_side: SmallSide, matches: Sequence[KeyEquality]) -> Refusal | None:
        # Next comes the text of a key query, which repeats the text of the small side.
        self._scopes.steps.take(_STEPS_PER_QUERY + len(small_side.sql) // _CHARS_PER_STEP)
        catalog, fact = self._scopes.catalog, matches[0].origin.facts
        if known_bytes(catalog, small_side.tables) > self._limits.small_side_bytes_max:
            return too_large(catalog, small_side.tables)
        if all(match.is_on_data for match in matches) and may_be_as_large(catalog, small_side.tables, fact):
            return SkipReason.SMALL_SIDE_LARGER.because(size_beside(catalog, small_side.tables, fact))
        return None

    def _reducer(self, small_side: SmallSide, filters: tuple[str, ...], matches: Sequence[KeyEquality]) -> Reducer:
        asked = key_set_query(
            source=small_side.sql,
            keys=[match.key for match in matches],
            columns=[match.asked for match in matches],
            filters=filters,
            rows_max=self._limits.key_rows_max,
            tables=changing_tables(self._scopes.catalog, small_side.tables),
            is_scalar=matches[0].is_scalar,
        )
        if len(matches) > 1:
            alternatives = tuple(self._reducer(small_side, filters, [match]) for match in matches)
        else:
            has_ranges = matches[0].takes_ranges and not asked.is_scalar
            alternatives = (self._by_ranges(small_side, filters, matches[0]),) if has_ranges else ()
        return Reducer(
            columns=tuple(match.column for match in matches),
            join=" AND ".join(dict.fromkeys(match.shown for match in matches)),
            key_query=asked,
            alternatives=alternatives,
            rules=_rules(small_side, matches, asked),
        )

    def _by_ranges(self, small_side: SmallSide, filters: tuple[str, ...], match: KeyEquality) -> Reducer:
        asked = key_ranges_query(
            source=small_side.sql,
            key=match.key,
            column=match.asked,
            filters=filters,
            ranges_max=self._limits.key_ranges_max,
            tables=changing_tables(self._scopes.catalog, small_side.tables),
        )
        rules = _rules(small_side, [match], asked) | {Rule.RANGES}
        return Reducer((match.column,), match.shown, asked, rules=rules)


def _rules(small_side: SmallSide, matches: Sequence[KeyEquality], asked: KeyQuery) -> frozenset[Rule]:
    together = {Rule.PAIRS} if len(matches) > 1 else set()
    session = {Rule.SESSION_FUNCTIONS} if asked.assumes else set()
    return small_side.rules.union(together, session, *(match.rules for match in matches))


def _by_partner_and_table(
    conditions: Iterable[PartitionCondition], matches: Iterable[KeyEquality]
) -> dict[tuple[TableReference, Partner | None], list[PartitionCondition]]:
    """The conditions on partition columns by the table, and by the partner that they share with equalities.

    Conditions with subqueries that no equality reads have no partner, and count together.
    """
    queries = dict.fromkeys(match.partner for match in matches if isinstance(match.partner, QueryPartner))
    partners: dict[int, QueryPartner] = {}
    for query in queries:
        for select in query.query.find_all(exp.Select):
            partners.setdefault(id(select), query)
    found: dict[tuple[TableReference, Partner | None], list[PartitionCondition]] = defaultdict(list)
    for condition in conditions:
        of_queries = (partners[id(select)] for select in condition.queries if id(select) in partners)
        partner = condition.partner or next(of_queries, None)
        found[condition.reference, partner].append(condition)
    return found
