"""Refusals of facts that no equality and no condition over partition columns narrows, with the nearest condition.

A fact is narrowed by conditions that look at its partition columns and at one other table or a subquery. This
module tells a user which condition comes nearest to one, and what it lacks. It runs for refused facts alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rewriter.catalog.prunable import known_columns
from rewriter.catalog.table_facts import TableFacts, TableKind
from rewriter.domains.literals import is_key_type
from rewriter.scopes.blocks import Block, Operand, Scope
from rewriter.scopes.join_rules import CONDITION_HOLDS
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.causes import BlockCauses, between
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.side_filters import BlockFilters
from rewriter.semijoins.small_sides import columns_from_outside, correlated_subquery_refusal
from rewriter.sql.conditions import Conjunct
from rewriter.sql.statement import is_plain_name
from rewriter.vocabulary.cited import cited, listed
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# FROM items that read the query of a fact. A CTE may have many, and the first ones tell enough.
_READERS_MAX = 10
# Conditions outside that query that are looked at for each fact.
_TERMS_MAX = 20

_NO_EQUALITY = "it is no equality of the column alone"


@dataclass(frozen=True, eq=False)
class _Term:
    """A conjunct of a join's condition, and the columns that it reads, itself and in its subqueries."""

    at: Join
    conjunct: Conjunct
    operands: Sequence[Operand]
    # The columns that are of no item of the block, as far as is known.
    foreign: Sequence[exp.Column]
    queries: Sequence[exp.Select]

    def columns_of(self, leaf: Leaf) -> list[str]:
        """The item's columns that it reads."""
        return list(dict.fromkeys(operand.name for operand in self.operands if operand.leaf is leaf))

    def others(self, leaf: Leaf) -> list[Leaf]:
        """The other items that it reads."""
        return [read for read in dict.fromkeys(operand.leaf for operand in self.operands) if read is not leaf]


class UnusedConditions:
    """Finds the conditions on a fact that do not narrow it."""

    def __init__(self, scopes: Scopes, filter_finder: OuterFilterFinder, *, asks_lists: bool) -> None:
        self._scopes = scopes
        self._filter_finder = filter_finder
        # True if any condition over partition columns is used, and not equalities alone.
        self._asks_lists = asks_lists
        self._terms_by_leaf: dict[Scope, dict[Leaf, list[_Term]]] = {}

    def refusal(self, block: Block, leaf: Leaf, facts: TableFacts) -> Refusal:
        """The refusal of a fact for which no equality was found."""
        scope = self._scopes.scope_of(block.select)
        if scope is None:
            return SkipReason.NO_EQUALITY
        terms = self._reading(scope, leaf)
        shared = [term for term in terms if term.queries or term.foreign or term.others(leaf)]
        found = self._of_shared(scope, shared, leaf, facts) or self._of_readers(block, leaf)
        if found is not None:
            return found
        if facts.behind is not None and facts.behind.joins_inside:
            return SkipReason.JOINED_IN_VIEW.because(self._cited(terms[0])) if terms else SkipReason.JOINED_IN_VIEW
        if terms and facts.takes_file_hints:
            return SkipReason.NO_EQUALITY.because(
                f"the file index knows no files to skip by {self._cited(terms[0])}"
            )
        if terms:
            return SkipReason.OWN_FILTERS_ALONE.because(self._cited(terms[0]))
        leaves = block.tree.leaves
        others = (other.alias or "(..)" for other in leaves if other is not leaf)
        beside = f"compares it with {listed(others)}" if len(leaves) > 1 else "is on it"
        return SkipReason.NO_EQUALITY.because(self._merged(scope, leaf) or f"no condition of its SELECT {beside}")

    def _of_shared(self, scope: Scope, terms: Sequence[_Term], leaf: Leaf, facts: TableFacts) -> Refusal | None:
        """The refusal of conditions that read the fact and something else; those on partition columns first."""
        for term in terms:
            if not _useless_columns(term, leaf, facts):
                return self._lack(scope, term, leaf, facts)
        for term in terms:
            names = listed(_useless_columns(term, leaf, facts))
            cause = f"{self._cited(term)} reads {names}; {known_columns(facts)}"
            return SkipReason.OTHER_COLUMNS_READ.because(cause)
        return None

    def _lack(self, scope: Scope, term: _Term, leaf: Leaf, facts: TableFacts) -> Refusal:
        """The refusal of a condition that reads partition columns of the fact and something else."""
        causes = BlockCauses(self._scopes, self._filter_finder, scope)
        if term.at.side_of(leaf) not in CONDITION_HOLDS[term.at.kind]:
            return SkipReason.OUTER_JOIN.because(causes.kept(term.at, leaf))
        lack = self._lack_of_text(scope, term, leaf) or self._lack_of_lists(term, leaf, facts)
        lack = lack or _lack_of_names(term, leaf) or "Spark is not asked about partitions by it"
        return SkipReason.NO_EQUALITY.because(f"{self._cited(term)} cannot be used: {lack}")

    def _lack_of_text(self, scope: Scope, term: _Term, leaf: Leaf) -> str | None:
        """The part of a condition that cannot be asked about."""
        if term.foreign:
            return self._foreign(scope, term.foreign[0])
        for query in term.queries:
            refusal = correlated_subquery_refusal(self._scopes, query)
            if refusal is not None:
                return (
                    f"its subquery is not certain to answer the same ({refusal.cause or refusal.reason.sentence})"
                )
        if len(term.others(leaf)) > 1:
            return f"it reads {listed(other.alias or '(..)' for other in term.others(leaf))}, and not one alone"
        return self._filters(scope).uncertain_word(term.conjunct)

    def _foreign(self, scope: Scope, column: exp.Column) -> str:
        """The reason why a column is not known to be of a FROM item of the block."""
        for leaf in scope.block.tree.leaves:
            if leaf.alias.lower() == column.table.lower() and self._scopes.columns_of(leaf) is None:
                return f"the columns of {leaf.alias} are not certain"
        shown = cited(column.sql())
        if scope.certainly_lacks(column):
            return f"{shown} is a column of a query around this one"
        return f"{shown} is not certain to be a column of one table in the same SELECT"

    def _lack_of_lists(self, term: _Term, leaf: Leaf, facts: TableFacts) -> str | None:
        """The reason why nothing but equalities narrows a fact."""
        if not self._asks_lists:
            return f"{_NO_EQUALITY} that every row must satisfy, and the rule partition_list is off"
        if facts.kind is TableKind.VIEW:
            return f"{_NO_EQUALITY}, and nothing else narrows a view"
        columns = [column for name in term.columns_of(leaf) if (column := facts.column(name)) is not None]
        if any(map(facts.is_data_column, columns)):
            return f"{_NO_EQUALITY}, and nothing else narrows a table by columns of its files"
        unlisted = next((column for column in columns if not is_key_type(column.type_name)), None)
        if unlisted is not None:
            return f"{unlisted.name} is of type {unlisted.type_name}, whose values Spark is not asked about"
        return None

    def _merged(self, scope: Scope, leaf: Leaf) -> str | None:
        """The USING or NATURAL JOIN that compares the fact with several tables at once."""
        own = {column.name.lower() for column in self._scopes.columns_of(leaf) or ()}
        for join in scope.block.tree.joins:
            if not (join.using or join.natural):
                continue
            self._scopes.steps.look_at(len(scope.block.tree.leaves))
            side = join.side_of(leaf)
            beside = [one for one in scope.block.tree.leaves if join.side_of(one) not in {side, None}]
            named = [{column.name.lower() for column in self._scopes.columns_of(one) or ()} for one in beside]
            using = {name.lower() for name in join.using} if join.using else own
            shared = sorted(own & using & set[str]().union(*named))
            if side is not None and shared:
                word = f"USING ({listed(join.using)})" if join.using else "NATURAL JOIN"
                tables = listed(one.alias or "(..)" for one in beside)
                return f"{cited(word)} compares its {listed(shared)} with what joins before it make of {tables}"
        return None

    def _of_readers(self, block: Block, leaf: Leaf) -> Refusal | None:
        """The refusal of conditions outside the derived table or CTE that the fact stands in."""
        for reader in self._filter_finder.readers.known_readers_of(block.select)[:_READERS_MAX]:
            for term in self._reading(reader.scope, reader.item)[:_TERMS_MAX]:
                if term.queries or term.others(reader.item):
                    name = reader.item.alias or "the derived table"
                    within = self._within(block.select, reader.item)
                    cause = f"{self._cited(term)} stands outside {name}, where {leaf.alias} is read: {within}"
                    return SkipReason.NO_EQUALITY.because(cause)
        return None

    def _within(self, select: exp.Select, item: Leaf) -> str:
        """The clause of a derived table that keeps a condition outside it from the fact within."""
        if self._scopes.query_of(item, only_once=True) is None:
            return "a CTE that is read several times is not narrowed within"
        return between(select) or "the column is computed within, or is one of another table"

    def _reading(self, scope: Scope, leaf: Leaf) -> Sequence[_Term]:
        """The terms of a block that read an item."""
        if scope not in self._terms_by_leaf:
            found: dict[Leaf, list[_Term]] = defaultdict(list)
            for term in self._terms(scope):
                for read in dict.fromkeys(operand.leaf for operand in term.operands):
                    found[read].append(term)
            self._terms_by_leaf[scope] = found
        return self._terms_by_leaf[scope].get(leaf, ())

    def _terms(self, scope: Scope) -> Iterator[_Term]:
        for at in scope.block.tree.joins:
            for conjunct in self._filters(scope).located(at):
                columns, queries = self._scopes.own_parts(conjunct.tree)
                for query in queries:
                    columns = [*columns, *(columns_from_outside(self._scopes, query) or ())]
                operands = [scope.resolve(column, at) for column in columns]
                foreign = [column for column, operand in zip(columns, operands, strict=True) if operand is None]
                yield _Term(at, conjunct, [one for one in operands if one is not None], foreign, queries)

    def _filters(self, scope: Scope) -> BlockFilters:
        return self._filter_finder.filters_of(scope)

    def _cited(self, term: _Term) -> str:
        return cited(term.conjunct.text(self._scopes.statement))


def _lack_of_names(term: _Term, leaf: Leaf) -> str | None:
    """The reason why a list of partitions cannot stand in the fact's place, or beside the other table."""
    if leaf.reference is not None and leaf.reference.is_named_by_database:
        return "the statement names the table's columns by database, which a list of its partitions would hide"
    if not leaf.alias:
        return "the derived table has no name that a list of partitions could have"
    if not all(map(is_plain_name, term.columns_of(leaf))):
        return "the name of a column may be a pattern for several in a query that shows it"
    padded = next((other for other in term.others(leaf) if other.is_padded_below(term.at)), None)
    return (
        f"an outer join may put nulls in place of {padded.alias or '(..)'} before it is tested" if padded else None
    )


def _useless_columns(term: _Term, leaf: Leaf, facts: TableFacts) -> list[str]:
    """The columns of the fact that a condition reads and by which the fact cannot be narrowed."""
    columns = ((name, facts.column(name)) for name in term.columns_of(leaf))
    return [
        name
        for name, column in columns
        if column is None or not (facts.is_partition_column(column) or facts.is_data_column(column))
    ]
