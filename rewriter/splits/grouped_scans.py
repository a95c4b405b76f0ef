"""Scans that may be read in fewer splits although nothing narrows them.

`SELECT a FROM t` -> `SELECT a FROM (SELECT /*+ COALESCE(8) */ * FROM t) AS t`

The hint changes no row wherever it stands (a plan keeps splits where a result shows them). A narrowed scan has a
SELECT of its own; here it is put in for the hint alone, so nothing else of Spark's plan may get worse by it:

* Scalar subqueries over one table are merged into one scan (`MergeScalarSubqueries`) where their plans differ in
  aggregates and columns alone. Columns are pruned below a hint, so that the plans differ there too.
* Iceberg answers `count(*)`, `min` and `max` without GROUP BY from its metadata (`V2ScanRelationPushDown`) where
  nothing stands between the aggregate and the scan.
* Tables in buckets have a split for each bucket, by which Spark spares shuffles (`TableFacts.packs_files`).
* Aggregates over one table in FROM are merged likewise (`MergeSubplans`), and fields of variants are read alone
  where nothing stands between.
* Spark 4.3 reads the field x alone for `element_at(pairs, 1).x`, and through some other functions, where nothing
  stands between.
* Spark makes a Bloom filter of a small filtered table for a large one (`InjectRuntimeFilter`), but not behind a
  hint. So of several tables only the largest one is read in fewer splits.

A table whose size is not known may have grown since it was indexed, and a user's function may count the rows of
its task. Sums of floating-point numbers depend on the order in which they are added. Spark shows the first one of
texts that are equal by their collation, and of zeros that differ in their sign. LIMIT takes any of the rows that
are equal in their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from sqlglot import exp

from rewriter.catalog.prunable import fact_refusal
from rewriter.catalog.table_facts import TableFacts, TableKind
from rewriter.domains.cover import Cover
from rewriter.scopes.blocks import Block
from rewriter.scopes.join_tree import Leaf, TableReference
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.literal_filters import partition_cover
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.splits.chosen_rows import takes_certain_rows
from rewriter.splits.exact_sums import are_sums_exact, of_tables_alone
from rewriter.splits.fewer_splits import may_be_grouped
from rewriter.splits.signed_zeros import are_extremes_exact, is_without_floats, makes_floats, may_make_floats
from rewriter.sql.statement import Statement
from rewriter.sql.task_dependence import calls_unknown_functions

# The number of scalar subqueries from which on Spark merges some.
_MERGED_MIN = 2

# Matched from the start of a type: a search would go on to its end from each of many arrays.
_STRUCTS_WITHIN = re.compile(r"(?:(?!array<|map<).)*+(?:array|map)<.*struct<", re.DOTALL)
# Functions that give elements of what they take (`SchemaPruning`); `filter` is also the word of FILTER (WHERE ..).
_PASSING_FIELDS = frozenset({"element_at", "filter", "reverse", "slice", "try_element_at"})

_COLLATING = frozenset({"collate", "collation"})

# The parents of a query in parentheses that is a FROM item, or a part of a larger query.
_OF_ROWS = (exp.From, exp.Join, exp.SetOperation, exp.Subquery, exp.CTE, exp.DDL, exp.Lateral, exp.In)


def grouped_scans(
    scopes: Scopes, filter_finder: OuterFilterFinder, limits: RewriteLimits
) -> Iterator[tuple[TableReference, Cover]]:
    """The scans of the statement, each with the partitions that its own filters let through, or more."""
    if not may_be_grouped(limits) or _may_be_merged(scopes.statement) or not _reads_known_tables_once(scopes):
        return
    if calls_unknown_functions(scopes.statement) or not _answers_alike_in_any_order(scopes):
        return
    size_max = max((facts.size_bytes or 0 for facts in _tables(scopes)), default=0)
    for block in scopes.blocks:
        for leaf in block.tree.leaves:
            if leaf.reference is not None and _is_plain_table(scopes, leaf, leaf.reference, size_max):
                yield leaf.reference, _partitions(scopes, filter_finder, block, leaf)


def _answers_alike_in_any_order(scopes: Scopes) -> bool:
    """True if no value and no row of the answer depends on the order in which rows are read."""
    statement = scopes.statement
    if _compares_by_collation(scopes):
        return False
    type_of = of_tables_alone(statement, partial(_type_of, scopes))
    may_be_floats = _reads_floats(scopes) or makes_floats(statement)

    def is_told_apart(value: exp.Expr) -> bool:
        return not may_be_floats or is_without_floats(value, type_of)

    return (
        are_sums_exact(statement, type_of)
        and are_extremes_exact(statement, is_told_apart)
        and takes_certain_rows(statement, is_told_apart)
    )


def _reads_floats(scopes: Scopes) -> bool:
    """True if a column of a table that the statement names may hold floating-point numbers, or become one."""
    return any(may_make_floats(column.type_name) for facts in _tables(scopes) for column in facts.columns)


def _tables(scopes: Scopes) -> list[TableFacts]:
    """The facts of the tables that the statement names, as far as they are known."""
    return [facts for facts in map(scopes.catalog.get, scopes.tables) if facts is not None]


def _type_of(scopes: Scopes, column: exp.Column) -> str | None:
    """The type of a column of a table in the FROM of the SELECT around it; None for any other column."""
    select = column.find_ancestor(exp.Select)
    scope = scopes.scope_of(select) if select is not None else None
    if scope is None or column.args.get("db") or scope.block.select.args.get("laterals"):
        return None
    operand = scope.resolve(column, scope.block.tree.joins[-1])
    if operand is None or operand.leaf.reference is None or scopes.is_cte_name(operand.leaf):
        return None
    facts = scopes.catalog.get(operand.leaf.reference.name)
    is_plain = facts is not None and facts.kind is TableKind.TABLE and operand.leaf.reference.refusal is None
    return operand.type_name if is_plain else None


def _compares_by_collation(scopes: Scopes) -> bool:
    """True if texts that differ may be equal: of these DISTINCT, GROUP BY, `min` and `max` keep the first one."""
    if any(token.text.lower() in _COLLATING for token in scopes.statement.tokens):
        return True
    return any("collate" in column.type_name for facts in _tables(scopes) for column in facts.columns)


def _is_plain_table(scopes: Scopes, leaf: Leaf, reference: TableReference, size_max: int) -> bool:
    if reference.refusal is not None or reference.is_named_by_database or scopes.is_cte_name(leaf):
        return False
    facts = scopes.catalog.get(reference.name)
    if facts is None or not facts.packs_files or fact_refusal(facts) is not None:
        return False
    if facts.iceberg is not None and not _is_plain_iceberg(scopes, reference, facts):
        return False
    # The files of an Iceberg table are those of a known snapshot.
    if facts.iceberg is None and (facts.size_bytes is None or facts.size_bytes < size_max):
        return False
    return not any("variant" in one.type_name for one in facts.columns) and not _reads_fields_apart(scopes, facts)


def _reads_fields_apart(scopes: Scopes, facts: TableFacts) -> bool:
    """True if Spark may read single fields of structs in an array or a map, although a function takes it whole."""
    if not any(_STRUCTS_WITHIN.match(column.type_name) for column in facts.columns):
        return False
    return any(token.text.lower() in _PASSING_FIELDS for token in scopes.statement.tokens)


def _is_plain_iceberg(scopes: Scopes, reference: TableReference, facts: TableFacts) -> bool:
    """True if an Iceberg table is read alone, by its current rows and its own columns."""
    statement = scopes.statement
    if reference.name.version or not facts.has_snapshots or len(scopes.tables) > 1:
        return False
    if any(facts.column(name) is None for name in statement.iceberg_metadata):
        return False
    selects = statement.find_all(exp.Select)
    return all(select.args.get("group") or select.find(exp.AggFunc) is None for select in selects)


def _partitions(scopes: Scopes, filter_finder: OuterFilterFinder, block: Block, leaf: Leaf) -> Cover:
    """The partitions that the block's own filters let through: Spark packs the files of these alone."""
    scope = scopes.scope_of(block.select)
    facts = scopes.catalog.get(leaf.reference.name) if leaf.reference is not None else None
    if scope is None or facts is None or not facts.partition_columns or not block.has_conditions:
        return Cover.all()
    return partition_cover(scopes.statement, scope, filter_finder.filters_of(scope), leaf, facts)


def _reads_known_tables_once(scopes: Scopes) -> bool:
    """True if each FROM is understood and reads tables with known columns, no table or CTE by its name twice.

    A view may read any table.
    """
    if any(block.refusal is not None for block in scopes.blocks):
        return False
    leaves = [leaf for block in scopes.blocks for leaf in block.tree.leaves if leaf.reference is not None]
    names = [leaf.reference.name for leaf in leaves if leaf.reference is not None]
    if len({str(name.parts[-1]).lower() for name in names}) < len(names):
        return False
    of_tables = (name for name, leaf in zip(names, leaves, strict=True) if not scopes.is_cte_name(leaf))
    facts = (None if name.is_uncertain else scopes.catalog.get(name) for name in of_tables)
    return all(one is not None and one.kind is TableKind.TABLE for one in facts)


def _may_be_merged(statement: Statement) -> bool:
    """True if the statement has several scalar subqueries."""
    found = (node for node in statement.find_all(exp.Subquery) if _is_scalar(node))
    return sum(1 for _ in found) >= _MERGED_MIN


def _is_scalar(node: exp.Subquery) -> bool:
    return node.parent is not None and not isinstance(node.parent, _OF_ROWS)
