"""Causes of refusals within one block: an outer join that keeps rows, and filters that a key query cannot use.

They are texts for users, and are made only where something is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rewriter.catalog.table_facts import Catalog, TableFacts
from rewriter.scopes.blocks import Operand, Scope, own_parts
from rewriter.scopes.join_rules import CONDITION_HOLDS, JoinKind
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.readers import ReadingItem
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.side_filters import BlockFilters, condition_holds
from rewriter.semijoins.small_sides import known_bytes, subquery_refusal
from rewriter.sql.conditions import Conjunct
from rewriter.vocabulary.cited import cited, listed
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

_OUTER_WORDS = {JoinKind.LEFT: "LEFT JOIN", JoinKind.RIGHT: "RIGHT JOIN", JoinKind.FULL: "FULL JOIN"}
_NAMELESS = "the derived table"

# Items whose conditions are looked at for one cause: the first ones tell enough.
_ITEMS_MAX = 10
# Conditions on one of them.
_CONDITIONS_MAX = 20


@dataclass(frozen=True, eq=False)
class BlockCauses:
    """The causes for which conditions of one block do not narrow a fact, or do not restrict a small side."""

    _scopes: Scopes
    _filter_finder: OuterFilterFinder
    _scope: Scope

    def kept(self, join: Join, leaf: Leaf) -> str:
        """The join that keeps the rows of an item without a partner, and a filter above that lets them pass."""
        name = leaf.alias or _NAMELESS
        is_left = leaf.position < join.middle
        if join.kind is JoinKind.ANTI and is_left:
            return f"an anti join keeps the rows of {name} that have no partner"
        if join.kind not in _OUTER_WORDS:
            return f"{name} is on the right of {'an anti' if join.kind is JoinKind.ANTI else 'a semi'} join"
        leaves = self._scope.block.tree.leaves
        left, right = leaves[join.start : join.middle], leaves[join.middle : join.stop]
        joined = f"{_names(left)} {_OUTER_WORDS[join.kind]} {_names(right)}"
        kept = f"{joined} keeps rows of {name} that have no partner"
        others = right if is_left else left
        above = next(self._filters_above(join, others), None)
        if above is not None:
            return f"{kept}, and the filter {self._cited(above)} is not known to reject them"
        outside = next(self._outside(others), None)
        if outside is not None:
            cause = self._lost_outside()
            kept = f"{kept}, and the filter {self._cited(outside)} outside is not known to reject them"
            return f"{kept}: {cause}" if cause is not None else kept
        return f"{kept}, and no filter on {_names(others)} rejects them"

    def _filters_above(self, join: Join, leaves: Sequence[Leaf]) -> Iterator[Conjunct]:
        """The conditions that read one of the items, and that every row of an outer join must pass."""
        for leaf in leaves[:_ITEMS_MAX]:
            for at, conjunct in self._filters.reading(leaf)[:_CONDITIONS_MAX]:
                if at.stands_above(join) and at.side_of_join(join) in CONDITION_HOLDS[at.kind]:
                    yield conjunct

    def _outside(self, leaves: Sequence[Leaf]) -> Iterator[Conjunct]:
        """The filters outside the block on columns that it shows of the items."""
        for reader in self._readers:
            names = [column.name.lower() for column in self._scopes.columns_of(reader.item) or ()]
            filters = self._filter_finder.filters_of(reader.scope)
            for at, conjunct in filters.reading(reader.item)[:_CONDITIONS_MAX]:
                if _items_read(reader.scope, conjunct.tree, at) != {reader.item}:
                    continue  # it compares the item with another one
                read = {column.name.lower() for column in self._scopes.own_parts(conjunct.tree)[0]}
                shown = (self._items_shown(position) for position, name in enumerate(names) if name in read)
                if any(leaf in found for found in shown for leaf in leaves):
                    yield conjunct

    @property
    def _readers(self) -> list[ReadingItem]:
        return self._filter_finder.readers.known_readers_of(self._scope.block.select)[:_ITEMS_MAX]

    def _items_shown(self, position: int) -> set[Leaf]:
        """The items that an output of the block is a column of, or is computed from."""
        outputs = self._scopes.outputs_of(self._scope.block.select) or ()
        shown = outputs[position].shows if position < len(outputs) else None
        if isinstance(shown, Operand):
            return {shown.leaf}
        return _items_read(self._scope, shown, self._scope.block.tree.joins[-1]) if shown is not None else set()

    def unfiltered(self, join: Join, leaf: Leaf, tables: Iterable[TableName]) -> str:
        """A filter on an item that its key query cannot use, and why; or the lack of one, and the tables' size."""
        name = leaf.alias or _NAMELESS
        for at, conjunct in self._filters.reading(leaf)[:_CONDITIONS_MAX]:
            cause = self._unused(conjunct, at, join, leaf)
            if cause is not None:
                return f"the filter {self._cited(conjunct)} was not used: {cause}"
        if any(
            _items_read(self._scope, condition, at) == {leaf}
            for at, condition in self._filters.unplaced[:_CONDITIONS_MAX]
        ):
            return f"the conditions on {name} were not used: their places in the text are not certain"
        outside = next(self._outside([leaf]), None)
        if outside is not None:
            cause = self._filters.uncertain_word(outside) or self._lost_outside()
            cause = cause or "it is not certain to mean the same within"
            return f"the filter {self._cited(outside)} outside was not used: {cause}"
        return f"its SELECT has no filter on {name} alone, and {_size(self._scopes.catalog, tables)}"

    def _unused(self, conjunct: Conjunct, at: Join, join: Join, leaf: Leaf) -> str | None:
        """The reason why a condition that reads the item does not restrict it; None if it does."""
        columns, queries = self._scopes.own_parts(conjunct.tree)
        name = leaf.alias or _NAMELESS
        if len(_items_read(self._scope, conjunct.tree, at)) > 1:
            is_or = isinstance(conjunct.tree, exp.Or)
            return f"a branch of its OR says nothing of {name} alone" if is_or else None
        foreign = [column for column in columns if self._scope.resolve(column, at) is None]
        if foreign:
            return f"it is not certain that {cited(foreign[0].sql())} is a column of {name}"
        for query in queries:
            refusal = subquery_refusal(self._scopes, query)
            if refusal is not None:
                return f"its subquery may answer otherwise: {refusal.cause or refusal.reason.sentence}"
        uncertain = self._filters.uncertain_word(conjunct)
        if uncertain is not None or condition_holds(at, join, leaf):
            return uncertain
        return f"an outer join may put nulls in place of {name} before it is tested"

    def _lost_outside(self) -> str | None:
        """The reason why filters outside the block are not used within, if it is one of the common ones."""
        if len(self._filter_finder.readers.readers_of(self._scope.block.select)) != 1:
            return "another reader of the same SELECT may have no such filter"
        return between(self._scope.block.select)

    @property
    def _filters(self) -> BlockFilters:
        return self._filter_finder.filters_of(self._scope)

    def _cited(self, conjunct: Conjunct) -> str:
        return cited(conjunct.text(self._scopes.statement))


def _items_read(scope: Scope, tree: exp.Expr, at: Join) -> set[Leaf]:
    operands = (scope.resolve(column, at) for column in own_parts(tree)[0])
    return {operand.leaf for operand in operands if operand is not None}


def between(select: exp.Select) -> str | None:
    """The clause of a SELECT for which a condition outside it is not used within."""
    if select.args.get("limit") or select.args.get("offset"):
        return "LIMIT within would choose other rows"
    if select.find(exp.Window):
        return "a window function within looks at other rows too"
    if select.args.get("group") or select.find(exp.AggFunc):
        return "an aggregate within puts rows together"
    return None


def unfiltered_subquery(catalog: Catalog, tables: Iterable[TableName], condition: str) -> Refusal:
    """The refusal of a subquery without a filter, by the condition that has it."""
    cause = f"the subquery in {cited(condition)} has no filter, and {_size(catalog, tables)}"
    return SkipReason.REDUCER_UNFILTERED.because(cause)


def _size(catalog: Catalog, tables: Iterable[TableName]) -> str:
    """The size of a small side without a filter, which would have to be known and tiny."""
    names = sorted(tables, key=str)
    facts = [catalog.get(name) for name in names]
    unknown = [
        str(name)
        for name, known in zip(names, facts, strict=True)
        if known is None or (known.behind is None and (known.partition_columns or known.size_bytes is None))
    ]
    if unknown:
        return f"the size of {listed(unknown)} is not known"
    bytes_known = f"{known_bytes(catalog, names):,} bytes of {listed(map(str, names))}"
    return f"{bytes_known} are more than rewrite.tiny_side_bytes_max"


def too_large(catalog: Catalog, tables: Iterable[TableName]) -> Refusal:
    """The refusal of a small side for its size."""
    names = sorted(map(str, tables))
    return SkipReason.SMALL_SIDE_TOO_LARGE.because(f"{listed(names)}: {known_bytes(catalog, tables):,} bytes")


def size_beside(catalog: Catalog, tables: Iterable[TableName], fact: TableFacts) -> str:
    """The size of a small side beside that of the fact, as far as they are known."""
    small, large = known_bytes(catalog, tables), fact.size_bytes
    names = listed(sorted(map(str, tables)))
    shown = (f"{size:,} bytes" if size else "a size that is not known" for size in (small, large))
    return f"{names} has {next(shown)}, and this table {next(shown)}"


def rule_off(rules: Iterable[Rule]) -> Refusal:
    """The refusal for rules that are off."""
    names = sorted(rule.value for rule in rules)
    return SkipReason.RULE_OFF.because(listed(names)) if names else SkipReason.RULE_OFF


def _names(leaves: Iterable[Leaf]) -> str:
    return listed(leaf.alias or "(..)" for leaf in leaves)
