"""Facts of Iceberg tables, from their descriptions.

Nothing here decides which rows a statement reads: the snapshot of a name is asked anew with each statement
(`proxy.session.catalog.iceberg_snapshots`). A description that is a minute old may at most cost pruning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from rewriter import TableFacts, TableKind, TableName
from rewriter.catalog.table_facts import IcebergFacts
from rewriter.domains.literals import is_data_key_type
from rewriter.vocabulary.identifiers import Column

PROVIDER: Final = "iceberg"
# Spark's heading of a partitioning by transforms: rows of `Part 0`, `bucket(8, k)`.
TRANSFORMS_HEADING: Final = "# Partitioning"

_SNAPSHOT = re.compile(r"[\[,]current-snapshot-id=(\d+)[,\]]", re.ASCII)
# The first column of `[.., sort-order=k ASC NULLS FIRST, v DESC NULLS LAST, ..]`; a transform is in no line with
# bounds of the column.
_SORTED_BY = re.compile(r"[\[,]sort-order=(\w+) (?:ASC|DESC) NULLS ", re.ASCII)
# The format that writers choose: files of before it was set may have another one.
_WRITES_ORC = re.compile(r"[\[,]format=iceberg/orc[,\]]", re.ASCII)
# Metadata tables, which list the files or snapshots of another one, have no version of the format themselves.
_VERSION = re.compile(r"[\[,]format-version=\d", re.ASCII)


def with_iceberg(described: TableFacts, transforms: Iterable[str], details: Mapping[str, str]) -> TableFacts:
    """The facts of a table whose provider is Iceberg, with the properties that only such a table has.

    Columns by which it is partitioned are columns like any other here: Iceberg prunes by transforms of its own,
    and has no partitions that could be listed.
    """
    name, properties = details.get("Name", ""), details.get("Table Properties", "")
    full_name = TableName(tuple(name.split("."))) if name else described.full_name
    facts = replace(described, partition_columns=(), full_name=full_name)
    if facts.kind is not TableKind.TABLE or _VERSION.search(properties) is None:
        return facts
    current = _SNAPSHOT.search(properties)
    partitioning = (*transforms, *described.partition_columns)
    sorted_by = _SORTED_BY.search(properties)
    iceberg = IcebergFacts(
        int(current[1]) if current is not None else None,
        partitioning,
        sorted_by[1].lower() if sorted_by is not None else None,
        writes_orc=_WRITES_ORC.search(properties) is not None,
    )
    return replace(facts, iceberg=iceberg, indexed_columns=_key_columns(facts.columns))


def at_version(facts: TableFacts, columns: tuple[Column, ...], snapshot_id: int | None) -> TableFacts:
    """The facts of a table as of a version, which has these columns and is this snapshot, if it is one."""
    facts = replace(facts, columns=columns)
    if facts.iceberg is None:
        # The files, buckets and partitions of then are not known.
        may_generate = facts.may_generate or (facts.delta is not None and facts.delta.may_have_generated)
        unknown = replace(facts, indexed_columns=(), bucket_columns=(), partition_columns=())
        return replace(unknown, may_generate=may_generate)
    iceberg = replace(facts.iceberg, snapshot_id=snapshot_id)
    return replace(facts, iceberg=iceberg, indexed_columns=_key_columns(columns))


def _key_columns(columns: Iterable[Column]) -> tuple[str, ...]:
    """The columns by whose bounds files are skipped: Iceberg keeps bounds of all types that keys can have."""
    return tuple(column.name for column in columns if is_data_key_type(column.type_name))
