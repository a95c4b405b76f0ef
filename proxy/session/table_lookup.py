"""Descriptions of names in a session: of a table, a view with its text, or a version of a table.

Each description is a dialogue: `ask` answers its queries.
"""

from __future__ import annotations

from dataclasses import replace

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import Ask, Rows
from proxy.operations.spark_versions import read_older_view_text
from proxy.session.catalog.describe import (
    columns_query,
    describe_query,
    older_view_text_query,
    read_columns,
    read_description,
    read_identity,
    read_view_text,
    view_text_query,
)
from proxy.session.catalog.describe_iceberg import key_columns
from proxy.session.catalog.facts_cache import DescribedTable
from proxy.session.catalog.late_answers import is_late
from proxy.session.catalog.metadata_cache import SessionMetadata
from proxy.session.layout.file_lists import FileLists
from rewriter import TableFacts, TableKind, TableName
from rewriter.vocabulary.identifiers import Column


async def describe(
    ask: Ask, name: TableName, known: SessionMetadata, files: FileLists, settings: CatalogSection
) -> DescribedTable:
    """Describe a name, which may be one with a version."""
    if name.version:
        return await _version(ask, name, known, files, settings)
    answer = await ask(describe_query(name, settings))
    facts = read_description(answer)
    if facts is None:
        return DescribedTable(name, None, is_late=is_late(answer))
    if facts.kind is TableKind.TABLE:
        facts = await with_indexed(ask, _as_named(facts, name), known, files)
    if facts.kind is TableKind.TABLE or facts.view is not None:
        return DescribedTable(name, facts, read_identity(answer))
    return await _with_text(ask, name, facts, known, settings)


def at_version(facts: TableFacts, columns: tuple[Column, ...], snapshot_id: int | None) -> TableFacts:
    """The facts of a table as of a version, which has these columns and is this snapshot, if it is one."""
    facts = replace(facts, columns=columns)
    if facts.iceberg is None:
        # The files, buckets and partitions of then are not known.
        return replace(facts, indexed_columns=(), bucket_columns=(), partition_columns=(), delta=None)
    iceberg = replace(facts.iceberg, snapshot_id=snapshot_id)
    return replace(facts, iceberg=iceberg, indexed_columns=key_columns(columns))


def _as_named(facts: TableFacts, name: TableName) -> TableFacts:
    """The facts of a name, which may denote a branch, a tag or a version: `db.t.branch_audit`.

    DESCRIBE tells the facts of the table itself for these, so the facts of its format are not used.
    """
    if not facts.skips_files_itself or facts.full_name is None:
        return facts
    is_table = facts.full_name.parts[-1].lower() == name.parts[-1].lower()
    return facts if is_table else replace(facts, iceberg=None, delta=None, indexed_columns=())


async def _with_text(
    ask: Ask, name: TableName, facts: TableFacts, known: SessionMetadata, settings: CatalogSection
) -> DescribedTable:
    """A view with its text, as far as the server tells it. The query that was answered last comes first."""
    newer, older = view_text_query(name, settings), older_view_text_query(name, settings)
    for query in (older, newer) if known.has_older_views else (newer, older):
        answer = None if query is None else await ask(query)
        if answer is not None and is_late(answer):
            return DescribedTable(name, None, is_late=True)
        if isinstance(answer, Rows):
            view = read_view_text(answer) if query is newer else read_older_view_text(answer, name)
            known.has_older_views = query is older and view is not None
            return DescribedTable(name, replace(facts, view=view))
    return DescribedTable(name, facts)


async def with_indexed(
    ask: Ask, facts: TableFacts, known: SessionMetadata, files: FileLists, grace_s: float = 0.0
) -> TableFacts:
    """The facts with the columns of the file index; some formats have bounds of their own instead."""
    if facts.skips_files_itself:
        return facts
    columns = await files.columns(ask, facts, known, grace_s)
    return replace(facts, indexed_columns=columns)


async def _version(
    ask: Ask, name: TableName, known: SessionMetadata, files: FileLists, settings: CatalogSection
) -> DescribedTable:
    """A table as of the version that a statement names, which has columns of its own."""
    described = known.facts.described(name.unversioned)
    if described.facts is None or name.unversioned not in known.facts.current():
        described = await describe(ask, name.unversioned, known, files, settings)
    facts = described.facts
    if facts is None or facts.kind is not TableKind.TABLE:
        return DescribedTable(name, None, is_late=described.is_late)
    answer = await ask(columns_query(name, settings))
    columns = read_columns(answer)
    at = at_version(facts, columns, name.snapshot_id) if columns else None
    return DescribedTable(name, at, is_late=is_late(answer))
