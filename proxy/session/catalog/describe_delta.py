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

# A table of a catalog. One that a statement names by its path, delta.`/lake/sales`, may be the same one by another
# name, which no write fence would know.
_NAME: Final = re.compile(r"(\w+)\.(\w+)\.(\w+)")


def with_delta(described: TableFacts, details: Mapping[str, str]) -> TableFacts:
    """The facts of a table whose provider is Delta.

    Columns by which it is partitioned are columns like any other here: Delta lists no partitions.
    """
    name = _NAME.fullmatch(details.get("Name", ""))
    if name is None or described.kind is not TableKind.TABLE:
        return described
    return replace(
        described,
        full_name=TableName(name.groups()),
        partition_columns=(),
        indexed_columns=tuple(c.name for c in described.columns if is_data_key_type(c.type_name)),
        delta=DeltaFacts(described.partition_columns),
    )
