"""Block -> fact scans with their reducers, or the reason why a table reference is left alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from rewriter.catalog import Catalog, TableFacts, TableKind, quoted
from rewriter.conditions import conjuncts, is_repeatable, located
from rewriter.joins import Block, Operand, Reference, Scope
from rewriter.keyquery import KeyQuery, key_query
from rewriter.keys import is_key_type
from rewriter.skip import SkipReason
from rewriter.statement import Statement

# Formats whose partitions Spark prunes by the catalog's partition columns. Iceberg and Delta do otherwise.
_PROVIDERS = frozenset({"parquet", "orc", "hive", "csv", "json", "avro", "text"})


@dataclass(frozen=True)
class Reducer:
    """What shrinks a fact scan: an equality with a filtered small table, and the query for its keys."""

    column: str
    join: str
    key_query: KeyQuery


@dataclass(frozen=True)
class PlannedScan:
    """A fact scan that may be narrowed by its reducers, or a table reference with the reason why not."""

    reference: Reference
    reducers: tuple[Reducer, ...] = ()
    skip: SkipReason | None = None


@dataclass(frozen=True)
class BlockPlanner:
    """Finds the scans of one block. The tables of a block that may narrow are all in the catalog."""

    statement: Statement
    block: Block
    catalog: Catalog
    key_rows_max: int

    def scans(self) -> Iterator[PlannedScan]:
        """One for each table reference of the block, in its order."""
        for reference in self.block.references:
            skip = self.block.refusal or reference.refusal
            if skip is None and not self.block.may_narrow:
                skip = SkipReason.NO_EQUALITY
            if skip is None:
                skip = _fact_refusal(self.catalog.get(reference.name))
            yield PlannedScan(reference, skip=skip) if skip is not None else self._scan(reference)

    @cached_property
    def _scope(self) -> Scope:
        return Scope(self.block, self.catalog)

    @cached_property
    def _partners(self) -> dict[Reference, list[tuple[Operand, Operand]]]:
        """For each reference its columns that are compared, each with the column on the other side."""
        found = defaultdict(list)
        for equality in self._scope.equalities:
            found[equality.left.reference].append((equality.left, equality.right))
            found[equality.right.reference].append((equality.right, equality.left))
        return found

    def _scan(self, fact: Reference) -> PlannedScan:
        found = [self._reducer(own, other) for own, other in self._partners.get(fact, ())]
        reducers = tuple(dict.fromkeys(r for r in found if isinstance(r, Reducer)))
        if reducers:
            return PlannedScan(fact, reducers)
        return PlannedScan(fact, skip=_most_telling([r for r in found if isinstance(r, SkipReason)]))

    def _reducer(self, fact: Operand, small: Operand) -> Reducer | SkipReason:
        refusal = self._equality_refusal(fact, small)
        if refusal is not None:
            return refusal
        filters = self._filters.get(small.reference)
        if not filters:
            return SkipReason.REDUCER_UNFILTERED
        alias = small.reference.alias_text(self.statement)
        return Reducer(
            column=fact.column.name,
            join=f"{fact} = {small}",
            key_query=key_query(
                source=small.reference.source(self.statement),
                key=f"{alias}.{quoted(small.column.name)}",
                filters=tuple(filters),
                type_name=fact.column.type_name,
                rows_max=self.key_rows_max,
            ),
        )

    def _equality_refusal(self, fact: Operand, small: Operand) -> SkipReason | None:
        facts, small_facts = self.catalog.get(fact.reference.name), self.catalog.get(small.reference.name)
        if facts is None or not facts.is_partition_column(fact.column):
            return SkipReason.NOT_A_PARTITION_COLUMN
        if small_facts is None or small.reference.refusal or small_facts.kind is not TableKind.TABLE:
            return SkipReason.NOT_A_TABLE
        if fact.column.type_name != small.column.type_name:
            return SkipReason.TYPES_DIFFER
        if not is_key_type(fact.column.type_name):
            return SkipReason.TYPE_REFUSED
        if small_facts.partition_columns:
            return SkipReason.REDUCER_PARTITIONED
        return SkipReason.COLUMNS_DIFFER_BY_CASE if small_facts.columns_differ_by_case else None

    @cached_property
    def _filters(self) -> dict[Reference, list[str]]:
        """The conjuncts that read one reference alone and mean the same in a query of its own."""
        found = defaultdict(list)
        for condition in self.block.conditions:
            readers = [self._only_reader(term) for term in conjuncts(condition)]
            if not any(readers):
                continue
            # Conjuncts whose place is uncertain are not located, and then none of them is used.
            for conjunct, reader in zip(located(self.statement, condition), readers, strict=False):
                if reader is not None and is_repeatable(self.statement, conjunct):
                    found[reader].append(conjunct.text(self.statement))
        return found

    def _only_reader(self, term: exp.Expr) -> Reference | None:
        """The one reference whose columns the term reads, if it reads nothing else."""
        operands = [self._scope.resolve(column) for column in term.find_all(exp.Column)]
        references = {operand.reference if operand is not None else None for operand in operands}
        return references.pop() if len(references) == 1 and term.find(exp.Query) is None else None


def _fact_refusal(facts: TableFacts | None) -> SkipReason | None:
    if facts is None:
        return SkipReason.UNKNOWN_TABLE
    if facts.kind is not TableKind.TABLE:
        return SkipReason.NOT_A_TABLE
    if facts.provider not in _PROVIDERS:
        return SkipReason.PROVIDER
    if not facts.partition_columns:
        return SkipReason.NOT_PARTITIONED
    return SkipReason.COLUMNS_DIFFER_BY_CASE if facts.columns_differ_by_case else None


def _most_telling(skips: list[SkipReason]) -> SkipReason:
    """Of several refusals the one that came furthest: the enum lists them in the order of the checks."""
    ranked = list(SkipReason)
    return max(skips, key=ranked.index, default=SkipReason.NO_EQUALITY)
