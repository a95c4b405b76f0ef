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
# The first column of `[.., sort-order=k ASC NULLS FIRST, v DESC NULLS LAST, ..]`; an order by a transform says
# nothing of the column's bounds.
_SORTED_BY = re.compile(r"[\[,]sort-order=(\w+) (?:ASC|DESC) NULLS ", re.ASCII)
# The format that writers choose, and the mapping of names that a table gets when it takes over files of another
# one (`migrate`, `snapshot`, `add_files`). Files from before the format was set may have another one.
_MAY_HOLD_ORC = re.compile(r"[\[,](?:format=iceberg/orc[,\]]|schema\.name-mapping\.default=)", re.ASCII)
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
        may_hold_orc=_MAY_HOLD_ORC.search(properties) is not None,
    )
    return replace(facts, iceberg=iceberg, indexed_columns=key_columns(facts.columns))


def key_columns(columns: Iterable[Column]) -> tuple[str, ...]:
    """The columns by whose bounds files are skipped: Iceberg keeps bounds of all types that keys can have."""
    return tuple(column.name for column in columns if is_data_key_type(column.type_name))
