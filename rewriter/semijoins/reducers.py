"""Reducers of a fact scan: equalities with one small side, and the query for their keys."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rewriter.catalog.table_facts import is_fixed
from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import TableReference
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.equalities import (
    EqualityFinder,
    ItemPartner,
    KeyEquality,
    Partner,
    QueryPartner,
    RefusedEquality,
)
from rewriter.semijoins.key_query import KeySetQuery, key_set_query
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.outer_filters import REDUCED_KEY, OuterFilterFinder
from rewriter.semijoins.range_query import KeyRangesQuery, key_ranges_query
from rewriter.semijoins.small_sides import (
    SmallSide,
    known_bytes,
    may_be_as_large,
    small_side_of_item,
    small_side_of_query,
)
from rewriter.semijoins.snowflake import snowflake_tables
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import SkipReason

# A query for the keys of a small side.
KeyQuery: TypeAlias = KeySetQuery | KeyRangesQuery


@dataclass(frozen=True)
class Reducer:
    """A reducer of a fact scan: equalities with a filtered small side, and the query for their keys."""

    columns: tuple[str, ...]
    join: str
    key_query: KeyQuery
    # Reducers for too many keys: for several columns each by itself, and for one column ranges around the keys.
    alternatives: tuple[Reducer, ...] = ()
    # The rules that it takes. Reducers with the same query are equal, by whichever rules they were found.
    rules: frozenset[Rule] = field(default=frozenset(), compare=False)

    def without(self, off: frozenset[Rule]) -> tuple[Reducer, ...]:
        """The reducers that are left if these rules are off: itself, or its alternatives, or none."""
        alternatives = tuple(left for reducer in self.alternatives for left in reducer.without(off))
        return alternatives if self.rules & off else (replace(self, alternatives=alternatives),)


@dataclass(frozen=True)
class Finding:
    """A fact's scan with a reducer, or with the reason why an equality is none."""

    reference: TableReference
    result: Reducer | SkipReason


class BlockPlanner:
    """Finds the scans that equalities of one block reduce. All tables of the statement are in the catalog."""

    def __init__(
        self, scopes: Scopes, filter_finder: OuterFilterFinder, scope: Scope, limits: RewriteLimits
    ) -> None:
        self._scopes = scopes
        self._filter_finder = filter_finder
        self._scope = scope
        self._limits = limits

    def findings(self) -> Iterator[Finding]:
        """One for each fact and partner of each join, and one for each equality that does not reduce a scan."""
        matcher = EqualityFinder(self._scopes, self._scope, self._filter_finder.filters_of(self._scope))
        for join in self._scope.block.tree.joins:
            matches: list[KeyEquality] = []
            for found in matcher.matches(join):
                if isinstance(found, RefusedEquality):
                    yield Finding(found.reference, found.reason)
                else:
                    matches.append(found)
            for (reference, partner, _), together in _by_partner(matches).items():
                for finding in self._reduced(reference, partner, together):
                    yield from self._without_rules_off(finding)

    def _without_rules_off(self, found: Finding) -> Iterator[Finding]:
        if isinstance(found.result, SkipReason):
            yield found
            return
        left = found.result.without(self._limits.rules_off) or (SkipReason.RULE_OFF,)
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

    def _by_query(self, partner: QueryPartner, matches: Sequence[KeyEquality]) -> Reducer | SkipReason:
        small_side = small_side_of_query(self._scopes, partner.query, partner.width)
        if isinstance(small_side, SkipReason):
            return small_side
        return self._found(small_side, (), matches) if small_side.is_filtered else SkipReason.REDUCER_UNFILTERED

    def _by_item(
        self, reference: TableReference, partner: ItemPartner, matches: Sequence[KeyEquality]
    ) -> Iterator[Finding]:
        scope, join, leaf = partner.scope, partner.join, partner.leaf
        small_side = small_side_of_item(self._scopes, leaf)
        if isinstance(small_side, SkipReason):
            yield Finding(reference, small_side)
            return
        own = self._filter_finder.filters_of(scope)
        filters = own.holding_for(join, leaf)
        snowflake = (
            snowflake_tables(self._scopes, own, join, leaf, matches[0].origin.facts)
            if self._is_on(Rule.SNOWFLAKE)
            else ()
        )
        outer = self._filter_finder.outer_filters(scope, join, leaf) if self._is_on(Rule.OUTER_FILTERS) else None
        if not (filters or small_side.is_filtered or snowflake or outer):
            yield Finding(reference, SkipReason.REDUCER_UNFILTERED)
            return
        small_side = small_side.also_reading(filter_.tables for filter_ in filters)
        small_side = small_side.also_reading(match.tables for match in matches)
        texts = tuple(filter_.text for filter_ in filters)
        for table in snowflake:
            small_side = small_side.joined_with(table.small_side, Rule.SNOWFLAKE)
            small_side = small_side.also_reading(filter_.tables for filter_ in table.filters)
            texts += (table.equality, *(filter_.text for filter_ in table.filters))
        if outer is None:
            yield Finding(reference, self._found(small_side, texts, matches))
            return
        for match in matches:
            wrapped = outer.small_side_sql(
                small_side.sql, match.key, leaf.alias_text(self._scopes.statement), texts
            )
            tables, rules = small_side.tables | outer.tables, small_side.rules | {Rule.OUTER_FILTERS}
            whole = SmallSide(wrapped, is_filtered=True, tables=tables, rules=rules)
            yield Finding(reference, self._found(whole, outer.texts, [replace(match, key=REDUCED_KEY)]))

    def _found(
        self, small_side: SmallSide, filters: tuple[str, ...], matches: Sequence[KeyEquality]
    ) -> Reducer | SkipReason:
        catalog, fact = self._scopes.catalog, matches[0].origin.facts
        if known_bytes(catalog, small_side.tables) > self._limits.small_side_bytes_max:
            return SkipReason.SMALL_SIDE_TOO_LARGE
        if all(match.is_on_data for match in matches) and may_be_as_large(catalog, small_side.tables, fact):
            return SkipReason.SMALL_SIDE_LARGER
        return self._reducer(small_side, filters, matches)

    def _reducer(self, small_side: SmallSide, filters: tuple[str, ...], matches: Sequence[KeyEquality]) -> Reducer:
        asked = key_set_query(
            source=small_side.sql,
            keys=[match.key for match in matches],
            columns=[match.asked for match in matches],
            filters=filters,
            rows_max=self._limits.key_rows_max,
            tables=self._changing(small_side),
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
            tables=self._changing(small_side),
        )
        rules = _rules(small_side, [match], asked) | {Rule.RANGES}
        return Reducer((match.column,), match.shown, asked, rules=rules)

    def _changing(self, small_side: SmallSide) -> frozenset[TableName]:
        """The tables of a small side that may hold other rows the next time."""
        return frozenset(name for name in small_side.tables if not is_fixed(self._scopes.catalog, name))


def _rules(small_side: SmallSide, matches: Sequence[KeyEquality], asked: KeyQuery) -> frozenset[Rule]:
    together = {Rule.PAIRS} if len(matches) > 1 else set()
    session = {Rule.SESSION_FUNCTIONS} if asked.assumes else set()
    return small_side.rules.union(together, session, *(match.rules for match in matches))


def _by_partner(matches: Iterable[KeyEquality]) -> dict[tuple[TableReference, Partner, int], list[KeyEquality]]:
    """The equalities of one fact with one partner, whose keys are pairs: one row of the partner has both.

    A column with two equalities has the second one in a group of its own.
    """
    found: dict[tuple[TableReference, Partner, int], list[KeyEquality]] = defaultdict(list)
    times: Counter[tuple[TableReference, Partner, str]] = Counter()
    for match in matches:
        reference = match.origin.reference
        column = (reference, match.partner, match.column)
        found[reference, match.partner, times[column]].append(match)
        times[column] += 1
    return found
