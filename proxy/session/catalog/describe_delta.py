"""Facts of Delta tables, from their descriptions.

Delta reads the bounds of its files from the table's log while Spark plans, so nothing here decides which rows a
statement reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rewriter import TableFacts, TableKind, TableName
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.domains.literals import is_data_key_type

PROVIDER: Final = "delta"

# The name of a table of a catalog. A table that a statement names by its path, delta.`/lake/sales`, may be the
# same table under another name, which no write fence would know.
_NAME: Final = re.compile(r"(\w+)\.(\w+)\.(\w+)")

# A table may have generated columns if its protocol has them: that of writers 4 to 6 has all features up to its
# version.
_WRITER: Final = re.compile(r"delta\.minWriterVersion=(\d+)", re.ASCII)
_GENERATES: Final = "delta.feature.generatedColumns="
_GENERATES_FROM, _GENERATES_TO = 4, 6


def with_delta(described: TableFacts, details: Mapping[str, str]) -> TableFacts:
    """The facts of a table whose provider is Delta.

    Columns by which it is partitioned are columns like any other here: Delta lists no partitions. A partition
    column may be generated from another column. Then Delta turns a filter on that column into one on the partition
    column, and loses rows if the partition column is TRUNC of a text, or the start of a day in a time zone
    (delta-io/delta 2343, 7610). DESCRIBE does not tell.
    """
    if described.kind is not TableKind.TABLE:
        return described
    described = replace(described, allows_generated=_allows_generated(details.get("Table Properties", "")))
    name = _NAME.fullmatch(details.get("Name", ""))
    if name is None or (described.allows_generated and described.partition_columns):
        return described
    return replace(
        described,
        full_name=TableName(name.groups()),
        partition_columns=(),
        indexed_columns=tuple(c.name for c in described.columns if is_data_key_type(c.type_name)),
        delta=DeltaFacts(described.partition_columns),
    )


def _allows_generated(properties: str) -> bool:
    versions = list(map(int, _WRITER.findall(properties)))
    is_old = bool(versions) and max(versions) < _GENERATES_FROM
    return _GENERATES in properties or not (is_old or (versions and min(versions) > _GENERATES_TO))
