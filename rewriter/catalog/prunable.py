"""Tests whether a table can be narrowed at all, and by keys of which of its columns."""

from __future__ import annotations

from rewriter.catalog.table_facts import TableFacts, TableKind
from rewriter.domains.literals import compares_exactly, is_key_type
from rewriter.vocabulary.identifiers import Column
from rewriter.vocabulary.skip_reason import SkipReason

# Formats whose partitions Spark prunes by the catalog's partition columns. Delta does otherwise; so does Iceberg,
# which skips files by columns of any kind.
_PROVIDERS = frozenset({"parquet", "orc", "hive", "csv", "json", "avro", "text"})


def fact_refusal(facts: TableFacts | None) -> SkipReason | None:
    """The reason why a table cannot be narrowed, whatever it is joined with; None if it can."""
    if facts is None:
        return SkipReason.UNKNOWN_TABLE
    if facts.is_off:
        return SkipReason.TABLE_OFF
    if facts.kind is TableKind.VIEW:
        # `key_refusal` looks at each column of the view by itself.
        refusal = SkipReason.VIEW_NOT_FOLLOWED if facts.behind is None else None
    else:
        refusal = _table_refusal(facts)
    if refusal is not None:
        return refusal
    return SkipReason.COLUMNS_DIFFER_BY_CASE if facts.columns_differ_by_case else None


def _table_refusal(facts: TableFacts) -> SkipReason | None:
    if facts.iceberg is not None:
        return _iceberg_refusal(facts)
    if facts.provider not in _PROVIDERS:
        return SkipReason.PROVIDER
    if facts.partition_columns or facts.has_layout:
        return None
    return SkipReason.HIVE_FORMAT if facts.is_hive else SkipReason.NOT_PARTITIONED


def _iceberg_refusal(facts: TableFacts) -> SkipReason | None:
    if not facts.has_snapshots:
        return SkipReason.ICEBERG_METADATA
    return None if facts.has_layout else SkipReason.NOT_A_PARTITION_COLUMN


def key_refusal(facts: TableFacts, column: Column, other_type: str | None) -> SkipReason | None:
    """The reason why keys of the column cannot narrow the table, if it is compared with the other type.

    The other type is None where only Spark knows it: the answer of the key query then has it.
    """
    refusal = fact_refusal(facts)
    if refusal is not None:
        return refusal
    if not (facts.is_partition_column(column) or facts.is_data_column(column)):
        return _column_refusal(facts, column)
    if other_type is not None and not compares_exactly(column.type_name, other_type):
        return SkipReason.TYPES_DIFFER
    return None if is_key_type(column.type_name) else SkipReason.TYPE_REFUSED


def _column_refusal(facts: TableFacts, column: Column) -> SkipReason:
    is_indexed = column.name.lower() in {name.lower() for name in facts.indexed_columns}
    return SkipReason.HIVE_FORMAT if is_indexed and facts.is_hive else SkipReason.NOT_A_PARTITION_COLUMN


# Spark has the hidden column `_metadata` for files that it lists itself, not for tables that it reads as Hive
# does.
_WITHOUT_METADATA = frozenset({"hive"})


def can_be_checked(facts: TableFacts | None) -> bool:
    """True if a scan of the table can carry a check. A view has no `_metadata`."""
    return (
        facts is not None
        and facts.kind is TableKind.TABLE
        and facts.provider not in _WITHOUT_METADATA
        and facts.iceberg is None
        and facts.column("_metadata") is None
    )
