"""Tests whether a table can be narrowed at all, and by keys of which of its columns."""

from __future__ import annotations

from rewriter.catalog.table_facts import TableFacts, TableKind
from rewriter.domains.literals import compares_exactly, is_data_key_type, is_key_type, is_rounded_in_delta
from rewriter.vocabulary.cited import listed
from rewriter.vocabulary.identifiers import Column
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# Formats whose partitions Spark prunes by the catalog's partition columns. Iceberg and Delta do otherwise: they
# skip files by columns of any kind.
_PROVIDERS = frozenset({"parquet", "orc", "hive", "csv", "json", "avro", "text"})

# The cause of a refusal, for users, by a format that is left alone for a reason of its own: decision 0068.
_CAUSES = {
    "hudi": "its format is Hudi, which may keep a row in a partition of another value, and does not tell where",
    "paimon": "its format is Paimon, whose partition pruning was not tried",
}


def fact_refusal(facts: TableFacts | None) -> Refusal | None:
    """The reason why a table cannot be narrowed, whatever it is joined with; None if it can."""
    if facts is None:
        return SkipReason.UNKNOWN_TABLE
    if facts.is_off or facts.is_written:
        return SkipReason.TABLE_OFF if facts.is_off else SkipReason.WRITES_WHAT_IT_READS
    # `key_refusal` looks at each column of a view by itself.
    refusal = _view_refusal(facts) if facts.kind is TableKind.VIEW else _table_refusal(facts)
    if refusal is not None:
        return refusal
    return SkipReason.COLUMNS_DIFFER_BY_CASE if facts.columns_differ_by_case else None


def _view_refusal(facts: TableFacts) -> Refusal | None:
    if facts.behind is None:
        return SkipReason.VIEW_NOT_FOLLOWED.because(unfollowed_because(facts))
    if facts.behind.reads_unpartitioned_alone:
        return SkipReason.NOT_PARTITIONED.because("it is a view, and no table behind it is partitioned")
    return None


def unfollowed_because(facts: TableFacts) -> str:
    """The reason why a view was not followed to its tables, for a user."""
    if facts.view is None:
        return "its text is not known"
    if facts.view.query is None:
        return "its text is not understood, or has quotes or backslashes that a setting may change"
    return "it stands on too many other views"


def _table_refusal(facts: TableFacts) -> Refusal | None:
    if facts.iceberg is not None:
        return _iceberg_refusal(facts)
    if facts.delta is not None:
        return None if facts.has_layout else SkipReason.NOT_A_PARTITION_COLUMN
    if facts.provider not in _PROVIDERS:
        cause = _CAUSES.get(facts.provider, f"its format is {facts.provider or 'not told'}")
        return SkipReason.PROVIDER.because(cause)
    if facts.partition_columns or facts.has_layout:
        return None
    return SkipReason.HIVE_FORMAT if facts.is_hive else SkipReason.NOT_PARTITIONED


def _iceberg_refusal(facts: TableFacts) -> SkipReason | None:
    if not facts.has_snapshots:
        return SkipReason.ICEBERG_METADATA
    return None if facts.has_layout else SkipReason.NOT_A_PARTITION_COLUMN


def key_refusal(facts: TableFacts, column: Column, other_type: str | None) -> Refusal | None:
    """The reason why keys of the column cannot narrow the table, if it is compared with the other type.

    The other type is None where only Spark knows it; the key query then answers with it.
    """
    refusal = fact_refusal(facts)
    if refusal is not None:
        return refusal
    if not (facts.is_partition_column(column) or facts.is_data_column(column)):
        return _column_refusal(facts, column)
    if other_type is not None and not compares_exactly(column.type_name, other_type):
        cause = f"{column.name} is of type {column.type_name}, and the other side of type {other_type}"
        return SkipReason.TYPES_DIFFER.because(cause)
    if is_key_type(column.type_name):
        is_misjudged = facts.is_beside_delta and is_rounded_in_delta(column.type_name)
        return _of_type(column, "a Delta table of the statement may round its bounds") if is_misjudged else None
    is_on_data = not facts.is_partition_column(column)
    if is_on_data and is_data_key_type(column.type_name) and _finds_times(facts):
        return None
    beside = "a table of the statement may be in ORC or Delta" if facts.is_beside_lost_times else ""
    return _of_type(column, beside)


def _of_type(column: Column, beside: str) -> Refusal:
    also = f", and {beside}" if beside else ""
    return SkipReason.TYPE_REFUSED.because(f"{column.name} is of type {column.type_name}{also}")


def _finds_times(facts: TableFacts) -> bool:
    """True if a filter on a timestamp finds each row with that timestamp, in all tables of the statement.

    Spark infers the filter for the small side too, from the equality.
    """
    return not facts.is_beside_lost_times and (facts.iceberg is not None or facts.provider == "parquet")


def _column_refusal(facts: TableFacts, column: Column) -> Refusal:
    is_indexed = column.name.lower() in {name.lower() for name in facts.indexed_columns}
    if is_indexed and facts.is_hive:
        return SkipReason.HIVE_FORMAT
    return SkipReason.NOT_A_PARTITION_COLUMN.because(f"the equality is on {column.name}; {known_columns(facts)}")


def known_columns(facts: TableFacts) -> str:
    """The columns by which a table can be narrowed, for a user."""
    if facts.behind is not None:
        found = [column.name for column in facts.columns if facts.is_partition_column(column)]
        return f"by its text the view can be narrowed by {listed(found) or 'no column'}"
    found = list(facts.partition_columns)
    found += [column.name for column in facts.columns if facts.is_data_column(column)]
    return f"it can be narrowed by {listed(found)}"
