"""Filters that a key query may use: conditions that read one FROM item alone and hold for its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from rewriter.scopes.blocks import Operand, Scope
from rewriter.scopes.join_rules import CONDITION_HOLDS, NEVER_PADS
from rewriter.scopes.join_tree import Join, Leaf, must_be_passed
from rewriter.scopes.lineage import ColumnTypes
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.settled_expressions import SettledExpressions
from rewriter.semijoins.small_sides import is_repeatable_subquery, tables_read
from rewriter.sql.conditions import Conjunct, alternatives, conjuncts, located
from rewriter.sql.repeatable import uncertain_word
from rewriter.vocabulary.identifiers import TableName

# The cause of a refusal, for users.
_SETTINGS = "its meaning may depend on settings that Spark keeps with the view"


@dataclass(frozen=True, eq=False)
class SideFilter:
    """A condition on one FROM item, as the client wrote it; `tree` is None if a disjunction implies it."""

    at: Join
    text: str
    tree: exp.Expr | None
    # The tables that subqueries in it read.
    tables: frozenset[TableName]


@dataclass(frozen=True, eq=False)
class EqualColumns:
    """A column of an item and the column of another item that an equality compares it with."""

    own: Operand
    other: Operand


class BlockFilters:
    """The conditions of one block, by the FROM item that they read."""

    def __init__(self, scopes: Scopes, scope: Scope) -> None:
        self._scopes = scopes
        self._statement = scopes.statement
        self._scope = scope
        self._located: dict[Join, tuple[Conjunct, ...]] = {}
        self._located_terms: dict[Join, dict[int, Conjunct]] = {}
        self._uncertain_words: dict[Conjunct, str | None] = {}
        # The only item that a term reads, by the term and the join at which it stands.
        self._only_readers: dict[tuple[int, Join], Leaf | None] = {}
        # Conditions of each branch of a disjunction on each item, by the disjunction.
        self._branches: dict[int, list[dict[Leaf, list[str]]]] = {}
        # A view's conditions have the settings of its maker, and a key query those of the client's session.
        is_in_view = scopes.is_in_view(scope.block.select)
        self._settled = SettledExpressions(ColumnTypes(scopes)) if is_in_view else None

    def located(self, join: Join) -> tuple[Conjunct, ...]:
        """The conjuncts of a join's condition with their places; none where the places are not certain."""
        if join not in self._located:
            condition = join.condition
            found = () if condition is None else located(self._statement, condition)
            # Each has been parsed once more.
            self._scopes.steps.take(sum(conjunct.last - conjunct.first + 1 for conjunct in found))
            self._located[join] = found
        return self._located[join]

    def located_term(self, join: Join, term: exp.Expr) -> Conjunct | None:
        """One conjunct of a join's condition with its place; None where that is not certain."""
        if join not in self._located_terms:
            self._located_terms[join] = {id(conjunct.tree): conjunct for conjunct in self.located(join)}
        return self._located_terms[join].get(id(term))

    def is_repeatable(self, conjunct: Conjunct) -> bool:
        """True if a conjunct means the same in a key query, by its words and under the session's settings."""
        return self.uncertain_word(conjunct) is None

    def uncertain_word(self, conjunct: Conjunct) -> str | None:
        """The word of a conjunct that may mean something else in a key query, for users; None if none does."""
        if conjunct not in self._uncertain_words:
            self._uncertain_words[conjunct] = self._look_up_uncertain_word(conjunct)
        return self._uncertain_words[conjunct]

    def _look_up_uncertain_word(self, conjunct: Conjunct) -> str | None:
        if self._settled is not None and self._settled.type_of(self._scope, conjunct.tree) is None:
            return _SETTINGS
        return uncertain_word(self._statement, conjunct, self._scopes.bare_functions)

    def only_reader(self, term: exp.Expr, join: Join) -> Leaf | None:
        """The one FROM item whose columns the term reads, if it reads only that item and closed subqueries."""
        asked = id(term), join
        if asked not in self._only_readers:
            self._only_readers[asked] = self._look_up_only_reader(term, join)
        return self._only_readers[asked]

    def _look_up_only_reader(self, term: exp.Expr, join: Join) -> Leaf | None:
        _, queries = self._scopes.own_parts(term)
        if not all(is_repeatable_subquery(self._scopes, query) for query in queries):
            return None
        leaves = set(self._readers(term, join))
        return leaves.pop() if len(leaves) == 1 else None

    def tables_of(self, term: exp.Expr) -> frozenset[TableName]:
        """The tables that closed subqueries in a term read."""
        _, queries = self._scopes.own_parts(term)
        return frozenset[TableName]().union(*(tables_read(self._scopes, query) for query in queries))

    def reading(self, leaf: Leaf) -> Sequence[tuple[Join, Conjunct]]:
        """The conditions that read an item, each with its join: for users, to find the ones that are not used."""
        return self._reading.get(leaf, ())

    @cached_property
    def _reading(self) -> dict[Leaf, list[tuple[Join, Conjunct]]]:
        found = defaultdict(list)
        for join in self._scope.block.tree.joins:
            for conjunct in self.located(join):
                for leaf in dict.fromkeys(self._readers(conjunct.tree, join)):
                    if leaf is not None:
                        found[leaf].append((join, conjunct))
        return found

    @cached_property
    def unplaced(self) -> Sequence[tuple[Join, exp.Expr]]:
        """The conditions of joins that are not used since their places in the text are not certain."""
        joins = self._scope.block.tree.joins
        return [(j, j.condition) for j in joins if j.condition is not None and not self.located(j)]

    def holding_for(self, join: Join, leaf: Leaf) -> tuple[SideFilter, ...]:
        """The filters that every partner of the item at `join` has satisfied."""
        found = self._by_leaf.get(leaf, ())
        self._scopes.steps.look_at(len(found))
        return tuple(filter_ for filter_ in found if condition_holds(filter_.at, join, leaf))

    def holding_for_rows(self, leaf: Leaf) -> Iterator[SideFilter]:
        """The filters without which a row of the item cannot reach the block's result."""
        for filter_ in self._by_leaf.get(leaf, ()):
            if must_be_passed(filter_.at, leaf):
                yield filter_

    def passed_by_rows(self, leaf: Leaf) -> Iterator[tuple[exp.Expr, Join]]:
        """The terms that read the item, and maybe more, that its rows must pass to reach the block's result."""
        found = self._terms.get(leaf, ())
        self._scopes.steps.look_at(len(found))
        return ((term, join) for term, join in found if must_be_passed(join, leaf))

    @cached_property
    def _terms(self) -> dict[Leaf, list[tuple[exp.Expr, Join]]]:
        found = defaultdict(list)
        for join in self._scope.block.tree.joins:
            for term in conjuncts(join.condition):
                for leaf in dict.fromkeys(self._readers(term, join)):
                    if leaf is not None:
                        found[leaf].append((term, join))
        return found

    def holding_through_equalities(
        self, leaf: Leaf
    ) -> Iterator[tuple[SideFilter, Leaf, tuple[EqualColumns, ...]]]:
        """The filters on other items that restrict this one, if the columns that they read equal columns of it.

        In `x LEFT JOIN y ON y.a = x.a .. WHERE x.a = 5`, a row of y with another `a` meets only rows of x that
        are dropped later, whether they met it or not.
        """
        for (at, other), pairs in self._compared.get(leaf, {}).items():
            if must_be_passed(at, leaf):
                self._scopes.steps.look_at(len(self._by_leaf.get(other, ())))
                for filter_ in self._by_leaf.get(other, ()):
                    if condition_holds(filter_.at, at, other):
                        yield filter_, other, tuple(pairs)

    def neighbours(self, leaf: Leaf) -> Sequence[tuple[Join, Leaf, str]]:
        """The items that an item is compared with by an equality, each with the join and the equality's text."""
        return self._equalities.get(leaf, ())

    def joined_with(self, join: Join, leaf: Leaf, other: Leaf) -> tuple[SideFilter, ...]:
        """The filters on another item that hold in every row in which a partner of `leaf` stands at `join`."""
        found = self._by_leaf.get(other, ())
        self._scopes.steps.look_at(len(found))
        return tuple(filter_ for filter_ in found if is_passed_with(filter_.at, join, leaf))

    @cached_property
    def _compared(self) -> dict[Leaf, dict[tuple[Join, Leaf], list[EqualColumns]]]:
        """For each item its columns that a join compares by equality with those of another item."""
        found: dict[Leaf, dict[tuple[Join, Leaf], list[EqualColumns]]] = defaultdict(lambda: defaultdict(list))
        for join in self._scope.block.tree.joins:
            for one, other in self._equal_operands(join):
                if one.leaf is not other.leaf:
                    found[one.leaf][join, other.leaf].append(EqualColumns(one, other))
                    found[other.leaf][join, one.leaf].append(EqualColumns(other, one))
        return found

    def _equal_operands(self, join: Join) -> Iterator[tuple[Operand, Operand]]:
        yield from self._scope.merged(join)
        for term in conjuncts(join.condition):
            if isinstance(term, exp.EQ):
                one, other = (self._scope.resolve(side.unnest(), join) for side in (term.this, term.expression))
                if one is not None and other is not None:
                    yield one, other

    @cached_property
    def _equalities(self) -> dict[Leaf, list[tuple[Join, Leaf, str]]]:
        """For each item the equalities between a column of it and a column of another item, as text."""
        found = defaultdict(list)
        for join in self._scope.block.tree.joins:
            terms = list(conjuncts(join.condition))
            readers = [self._two_compared(term, join) for term in terms]
            if not any(readers):
                continue
            for conjunct, leaves in zip(self.located(join), readers, strict=False):
                if len(leaves) == 2 and self.is_repeatable(conjunct):  # noqa: PLR2004 - a pair
                    one, other = leaves
                    text = conjunct.text(self._statement)
                    found[one].append((join, other, text))
                    found[other].append((join, one, text))
        return found

    def _two_compared(self, term: exp.Expr, join: Join) -> tuple[Leaf, ...]:
        if not isinstance(term, exp.EQ):
            return ()
        sides = [self._scope.resolve(side.unnest(), join) for side in (term.this, term.expression)]
        leaves = tuple({operand.leaf for operand in sides if operand is not None})
        return leaves if None not in sides and len(leaves) == 2 else ()  # noqa: PLR2004 - a pair

    @cached_property
    def _by_leaf(self) -> dict[Leaf, list[SideFilter]]:
        found = defaultdict(list)
        for join in self._scope.block.tree.joins:
            terms = list(conjuncts(join.condition))
            readers = [self._few_readers(term, join) for term in terms]
            if not any(readers):
                continue
            # If the place of one conjunct is uncertain, none is located, and none is used.
            for conjunct, leaves in zip(self.located(join), readers, strict=False):
                for leaf in leaves:
                    filter_ = self._filter(conjunct, leaf, join)
                    if filter_ is not None:
                        found[leaf].append(filter_)
        return found

    def _readers(self, term: exp.Expr, join: Join) -> Iterator[Leaf | None]:
        columns, _ = self._scopes.own_parts(term)
        for column in columns:
            operand = self._scope.resolve(column, join)
            yield operand.leaf if operand is not None else None

    def _few_readers(self, term: exp.Expr, join: Join) -> set[Leaf]:
        """The items that the term could restrict: the only one, or each that a disjunction reads."""
        if not isinstance(term, exp.Or):
            leaf = self.only_reader(term, join)
            return {leaf} if leaf is not None else set()
        return {leaf for leaf in self._readers(term, join) if leaf is not None}

    def _filter(self, conjunct: Conjunct, leaf: Leaf, join: Join) -> SideFilter | None:
        tables = self.tables_of(conjunct.tree)
        if self.only_reader(conjunct.tree, join) is not leaf:
            implied = self._implied(conjunct, leaf, join)
            return SideFilter(join, implied, None, tables) if implied is not None else None
        if not self.is_repeatable(conjunct):
            return None
        return SideFilter(join, conjunct.text(self._statement), conjunct.tree, tables)

    def _implied(self, disjunction: Conjunct, leaf: Leaf, join: Join) -> str | None:
        """The condition that a disjunction implies for one item.

        `(r.y = 1 AND t.q > 5) OR r.y = 2` implies `r.y = 1 OR r.y = 2`.
        """
        if id(disjunction.tree) not in self._branches:
            self._branches[id(disjunction.tree)] = list(self._branches_of(disjunction, join))
        branches = self._branches[id(disjunction.tree)]
        self._scopes.steps.look_at(len(branches))
        if not all(leaf in branch for branch in branches):
            return None
        of_leaf = (" AND ".join(f"({text})" for text in branch[leaf]) for branch in branches)
        return " OR ".join(f"({branch})" for branch in of_leaf) or None

    def _branches_of(self, disjunction: Conjunct, join: Join) -> Iterator[dict[Leaf, list[str]]]:
        """The conditions on single items in each branch of a disjunction."""
        for terms in alternatives(self._statement, disjunction):
            found = defaultdict(list)
            for term in terms:
                leaf = self.only_reader(term.tree, join)
                if leaf is not None and self.is_repeatable(term):
                    found[leaf].append(term.text(self._statement))
            yield found


def is_passed_with(at: Join, join: Join, leaf: Leaf) -> bool:
    """True if the condition of `at` holds in every row in which a partner of the item stands at `join`."""
    return at.side_of(leaf) is not None and condition_holds(at, join, leaf)


def condition_holds(at: Join, join: Join, leaf: Leaf) -> bool:
    """True if every row of the item that can be a partner at `join` has satisfied the condition of `at`.

    See `join_rules`. The condition may be the join's own; that of a join below it that lets through only rows
    which satisfied it; or that of a join above it, if no join between pads the item's columns with nulls.
    """
    if at is join:
        return True
    if not at.stands_above(join):
        return at.side_of(leaf) in CONDITION_HOLDS[at.kind]
    unpadded = join.side_of(leaf) in NEVER_PADS[join.kind] and at.sees_unpadded(join)
    return unpadded and at.side_of_join(join) in CONDITION_HOLDS[at.kind]
