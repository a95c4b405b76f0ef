"""Snapshot pins: the statement names the snapshot of each Iceberg table that its key queries read.

`VERSION AS OF n` is inserted behind each reference to such a table, in the client's text. The result is planned
like any statement: key queries and narrowed scans have the version in their text, so both read the same rows. The
caller makes sure that the table at the snapshot has the columns of the plain name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from rewriter.catalog.table_facts import Catalog, TableFacts, TableKind, may_read_anything
from rewriter.scopes.join_tree import TableReference, name_parts, table_name
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.semijoins.reducer import Reducer
from rewriter.sql.statement import Statement, parse_any
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.skip_reason import SkipReason, UnpinnedReason


def pins(
    scopes: Scopes, scans: Iterable[PlannedScan], *, reads_unnamed: bool
) -> Mapping[TableName, UnpinnedReason | None]:
    """The Iceberg tables that key queries read, each with the reason why it is not pinned, or None if it can be.

    A table is pinned if every reference to it can be, to the same snapshot. If one reference stayed plain, the
    statement could read the table as of two snapshots, as no statement does by itself. The same could happen if
    the table had two names here: a writer may commit between the look-ups of the two. With `reads_unnamed` the
    statement may read any table without naming it.
    """
    asked = {name for scan in scans for tables in _asked(scan.reducers) for name in tables}
    tables = {name: facts for name in asked if (facts := scopes.catalog.get(name)) and _is_of_iceberg(facts)}
    found = {name: _refusal(scopes.statement, name, facts) for name, facts in tables.items()}
    if None not in found.values():
        return found
    elsewhere = _elsewhere(scopes, _tables(scopes.catalog, tables), reads_unnamed=reads_unnamed)
    return {name: why or elsewhere.get(tables[name].full_name or name) for name, why in found.items()}


def pin_snapshots(statement: Statement, snapshots: Mapping[TableName, int]) -> Statement | None:
    """The statement with each plain reference to these tables at its snapshot; None if that is not certain.

    References of other kinds are unchanged, and so are all to a name that some CTE of the statement has.
    """
    found = [r for r in _references(Scopes(statement, {})) if r.name in snapshots]
    references = sorted(found, key=lambda reference: reference.stop)
    if not references:
        return None
    pieces, copied = [], 0
    for reference in references:
        version = reference.name.at(snapshots[reference.name]).version
        pieces += [statement.text[copied : reference.stop], " ", version]
        copied = reference.stop
    result = parse_any("".join([*pieces, statement.text[copied:]]))
    if result is None or not _is_original_pinned(statement, result.tree.copy(), snapshots, references):
        return None
    return replace(result, client_text=statement.original)


def catalog_at_snapshots(catalog: Catalog, snapshots: Mapping[TableName, int]) -> Catalog:
    """The catalog with these tables at their snapshots added, with the columns that they have now."""
    known = dict(catalog)
    for name, snapshot_id in snapshots.items():
        facts = catalog.get(name)
        if facts is not None and facts.iceberg is not None:
            known[name.at(snapshot_id)] = replace(facts, iceberg=replace(facts.iceberg, snapshot_id=snapshot_id))
    return known


def _is_of_iceberg(facts: TableFacts) -> bool:
    """True if it is an Iceberg table, a branch or a tag of one, or one of its metadata tables."""
    return facts.kind is TableKind.TABLE and facts.provider == "iceberg"


def _refusal(statement: Statement, name: TableName, facts: TableFacts) -> UnpinnedReason | None:
    """The reason why a table that a key query reads cannot be pinned, whatever the statement's references."""
    if not statement.only_reads:
        return UnpinnedReason.STATEMENT_WRITES
    if name.version:
        return UnpinnedReason.VERSION_CAN_MOVE
    if not facts.has_snapshots:
        return UnpinnedReason.NOT_THE_TABLE
    return None if _has_snapshot(facts) else UnpinnedReason.NO_SNAPSHOT


def _elsewhere(
    scopes: Scopes, tables: frozenset[TableName], *, reads_unnamed: bool
) -> Mapping[TableName, UnpinnedReason]:
    """The tables that cannot be pinned in every reference, with the reason, and maybe other tables."""
    catalog, mentions = scopes.catalog, Counter(_mentions(scopes))
    if reads_unnamed or any(may_read_anything(catalog.get(name)) for name in mentions):
        return dict.fromkeys(tables, UnpinnedReason.UNKNOWN_BESIDE_IT)
    references = list(_references(scopes))
    plain = Counter(reference.name for reference in references)
    unversioned = (name for name in mentions if mentions[name] > plain[name] or scopes.is_cte(name.parts[-1]))
    names = Counter(table for name in plain for table in _tables(catalog, [name]))
    # Spark finds the table of a hint by its alias, or by its name where that has no version (ResolveHints).
    is_hinted = next(scopes.statement.find_all(exp.Hint), None) is not None
    nameless = (reference.name for reference in references if is_hinted and not reference.has_alias)
    reasons = (
        (UnpinnedReason.VIEW_READS_IT, _tables(catalog, _behind(catalog, mentions))),
        (UnpinnedReason.TAKES_NO_VERSION, _tables(catalog, unversioned)),
        (UnpinnedReason.HINT_NEEDS_ALIAS, _tables(catalog, nameless)),
        (UnpinnedReason.TWO_NAMES, {table for table in tables if names[table] != 1}),
    )
    found: dict[TableName, UnpinnedReason] = {}
    for reason, kept in reasons:
        for table in kept:
            _ = found.setdefault(table, reason)
    return found


def _asked(reducers: Iterable[Reducer]) -> Iterator[frozenset[TableName]]:
    """The tables that each key query reads, and each query that may be run in its place."""
    for reducer in reducers:
        yield reducer.key_query.tables
        yield from (alternatives.key_query.tables for alternatives in reducer.alternatives)


def _mentions(scopes: Scopes) -> Iterator[TableName]:
    """The tables and views that the statement may read, once for each time, in blocks of every kind."""
    return map(table_name, scopes.statement.tables_read)


def _behind(catalog: Catalog, names: Iterable[TableName]) -> Iterator[TableName]:
    """The tables that views among the names read."""
    for name in names:
        facts = catalog.get(name)
        yield from facts.behind.tables if facts is not None and facts.behind is not None else ()


def _tables(catalog: Catalog, names: Iterable[TableName]) -> frozenset[TableName]:
    """The Iceberg tables with a snapshot among names without a version, each by one name for all its spellings."""
    plain = ((name, catalog.get(name)) for name in names if not name.version)
    return frozenset(
        facts.full_name or name for name, facts in plain if facts is not None and _has_snapshot(facts)
    )


def _references(scopes: Scopes) -> Iterator[TableReference]:
    """The references that a version can be put behind: tables' names with nothing but an alias, in any FROM."""
    for block in scopes.blocks:
        for leaf in block.tree.leaves:
            reference = leaf.reference
            if reference is None or reference.name.version or scopes.is_cte_name(leaf):
                continue
            if reference.refusal in _PINNED_THOUGH_REFUSED:
                yield reference


# Refusals of references that cannot be narrowed, but can be read at a snapshot.
_PINNED_THOUGH_REFUSED = frozenset({None, SkipReason.METADATA_IN_USE, SkipReason.COLUMN_ALIASES})


def _has_snapshot(facts: TableFacts) -> bool:
    return facts.has_snapshots and facts.iceberg is not None and facts.iceberg.snapshot_id is not None


def _is_original_pinned(
    statement: Statement, tree: exp.Expr, snapshots: Mapping[TableName, int], references: Iterable[TableReference]
) -> bool:
    """True if the tree equals the original's except for the versions, each of them behind its own table.

    It differs if the alias has no space before it: the x of "`d`x" would become a part of the number.
    """
    tables = {_name_stop(table): table for table in tree.find_all(exp.Table)}
    shift = 0
    for reference in references:
        pinned_name = reference.name.at(snapshots[reference.name])
        table = tables.get(reference.stop + shift)
        if table is None or table_name(table) != pinned_name:
            return False
        table.set("version", None)
        shift += len(pinned_name.version) + 1
    return tree == statement.tree


def _name_stop(table: exp.Table) -> int | None:
    end = name_parts(table)[-1].meta.get("end")
    return end + 1 if end is not None else None
