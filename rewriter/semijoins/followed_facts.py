"""Facts as small sides of other facts: their own small sides are read instead, and tell their possible keys.

`FROM sales s JOIN calendar c ON s.ds = c.ds JOIN returns r ON r.ds = s.ds WHERE c.ym = '2024-03'`: s may be
replaced by its rows with a day of that month, whatever r holds (the theorem, for s). The small side of r is then
that narrowed s, and no row of it has a day that the calendar has not. So the days of the calendar are keys of r.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Leaf
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.equalities import (
    EqualityFinder,
    ItemPartner,
    KeyEquality,
    Partner,
    QueryPartner,
    by_partner,
)
from rewriter.semijoins.filtered_sides import FilteredSides
from rewriter.semijoins.key_query import where_clause
from rewriter.semijoins.outer_filters import REDUCED_KEY
from rewriter.semijoins.small_sides import SmallSide, is_within, small_side_of_query
from rewriter.vocabulary.identifiers import quoted
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# Facts between a fact and the small side that its keys come from.
_FACTS_MAX = 4


@dataclass(frozen=True, eq=False)
class FollowedSide:
    """The small side of a fact, which tells the values that its rows may have in some columns.

    The fact may be a derived table or CTE that shows those columns of a fact.
    """

    leaf: Leaf
    small_side: SmallSide
    filters: tuple[str, ...]
    # The equalities of the fact with its small side, by the columns of `leaf` in lower case.
    keys: Mapping[str, KeyEquality]

    def through(
        self, matches: Sequence[KeyEquality], scopes: Scopes
    ) -> tuple[SmallSide, tuple[str, ...], list[KeyEquality]] | None:
        """Equalities with the fact, turned into equalities with its small side; the key query's FROM and filters.

        None if all of them read other columns of the fact.
        """
        known = [match for match in matches if self._tells(match)]
        if not known:
            return None
        if not any(match.is_expression for match in known):
            columns = [next(iter(match.reads)) for match in known]
            named = [(match, self.keys[column]) for match, column in zip(known, columns, strict=True)]
            plain = [replace(m, key=k.key, key_type=k.key_type, partner=k.partner) for m, k in named]
            return self.small_side, self.filters, plain
        shown = ", ".join(f"{match.key} AS {quoted(match.operand.name)}" for match in self.keys.values())
        where = where_clause(self.filters)
        alias = self.leaf.alias_text(scopes.statement)
        item = replace(self.small_side, sql=f"(SELECT {shown} FROM {self.small_side.sql}{where}) AS {alias}")
        return item, (), known

    def _tells(self, match: KeyEquality) -> bool:
        """True if the small side tells all that a key reads of the fact, in values of the fact's own types."""
        if not match.reads or not match.reads <= self.keys.keys():
            return False
        if not match.is_expression:
            return True
        reference = self.leaf.reference
        if reference is not None and reference.is_named_by_database:
            return False
        return all(self.keys[name].key_type == self.keys[name].origin.column.type_name for name in match.reads)


class FactFollower:
    """Finds the small sides of facts that are small sides of other facts. All tables are in the catalog."""

    def __init__(self, scopes: Scopes, sides: FilteredSides) -> None:
        self._scopes = scopes
        self.sides = sides
        self._found: dict[Scope, dict[Leaf, list[KeyEquality]]] = {}

    def followed(self, partner: ItemPartner, followed: frozenset[Leaf] = frozenset()) -> Iterator[FollowedSide]:
        """The small sides of a fact, which is the partner of another one, without facts that were followed."""
        followed |= {partner.leaf}
        if len(followed) > _FACTS_MAX:
            return
        for group in by_partner(self._equalities_of(partner)).values():
            self._scopes.steps.take()
            for side in self._sides_of(partner.leaf, group, followed):
                rules = frozenset({Rule.FOLLOWED_FACTS}).union(*(match.rules for match in group))
                small_side = side.small_side.also_reading(match.tables for match in group)
                yield replace(side, small_side=replace(small_side, rules=small_side.rules | rules))

    def _equalities_of(self, fact: ItemPartner) -> list[KeyEquality]:
        """The equalities that each row of the fact must satisfy to count."""
        return self.equalities_in(fact.scope).get(fact.leaf, [])

    def equalities_in(self, scope: Scope) -> dict[Leaf, list[KeyEquality]]:
        """The equalities of one block that reduce a scan, by the item that they are of."""
        if scope not in self._found:
            found: dict[Leaf, list[KeyEquality]] = defaultdict(list)
            finder = EqualityFinder(self._scopes, scope, self.sides.filter_finder)
            # An equality with a column of a UNION is found once for each branch.
            said: set[tuple[Leaf, str, Partner, str, bool]] = set()
            for one in (one for join in scope.block.tree.joins for one in finder.matches(join)):
                if isinstance(one, KeyEquality):
                    same = (one.operand.leaf, one.operand.name, one.partner, one.key, one.null_safe)
                    if same not in said:
                        found[one.operand.leaf].append(one)
                    said.add(same)
            self._found[scope] = found
        return self._found[scope]

    def _sides_of(
        self, fact: Leaf, group: Sequence[KeyEquality], followed: frozenset[Leaf]
    ) -> Iterator[FollowedSide]:
        partner = group[0].partner
        if isinstance(partner, QueryPartner):
            query = small_side_of_query(self._scopes, partner.query, partner.width)
            if not isinstance(query, Refusal) and (query.is_filtered or partner.is_scalar):
                yield _followed(fact, query, (), group)
        elif not self._reads_any(partner.leaf, followed):
            yield from self._sides_by_item(fact, partner, group, followed)

    def _reads_any(self, leaf: Leaf, followed: frozenset[Leaf]) -> bool:
        """True if an item is one of the facts, or reads one of them: its keys would be all keys of the fact."""
        query = self._scopes.query_of(leaf)
        return leaf in followed or (query is not None and any(is_within(fact.node, query) for fact in followed))

    def _sides_by_item(
        self, fact: Leaf, partner: ItemPartner, group: Sequence[KeyEquality], followed: frozenset[Leaf]
    ) -> Iterator[FollowedSide]:
        side = self.sides.side_of(partner, group[0].origin.facts)
        if isinstance(side, Refusal):
            if side.reason is not SkipReason.REDUCER_PARTITIONED:
                return
            for inner in self.followed(partner, followed):
                found = inner.through(group, self._scopes)
                if found is not None:
                    small_side, filters, matches = found
                    yield _followed(fact, small_side, filters, matches)
        elif side.outer is not None and len(group) == 1:
            small_side, filters = side.behind(side.outer, self._scopes, side.small_side.sql, group[0].key)
            yield _followed(fact, small_side, filters, [replace(group[0], key=REDUCED_KEY)])
        elif side.filters or side.small_side.is_filtered:
            yield _followed(fact, side.small_side, side.filters, group)


def _followed(
    fact: Leaf, small_side: SmallSide, filters: tuple[str, ...], matches: Sequence[KeyEquality]
) -> FollowedSide:
    return FollowedSide(fact, small_side, filters, {match.operand.name.lower(): match for match in matches})
