"""Rows as golden files record them, and plans over catalogs that are known without a server."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from rewriter import Catalog, PartitionIndexes, Plan, RewriteLimits, SkipReason, TableName, parse, plan

# A row of a key query's answer, dates and decimals as strings.
RecordedRow: TypeAlias = tuple[str | int | bool | None, ...]

CHARS_MAX = 100_000


def recorded_value(value: object) -> str | int | bool | None:
    """A value of PyHive's as a golden file records it."""
    return value if value is None or isinstance(value, int | bool) else str(value)


def recorded_rows(rows: Iterable[Sequence[object]]) -> tuple[RecordedRow, ...]:
    """The answer of a key query in order, each row once: it may give a key as often as it comes."""
    return tuple(sorted({tuple(map(recorded_value, row)) for row in rows}, key=repr))


def planned_with(
    sql: str,
    catalog: Callable[[frozenset[TableName]], Catalog],
    limits: RewriteLimits,
    *,
    has_file_index: bool = False,
    partitions: PartitionIndexes | None = None,
) -> Plan:
    """The plan of a statement that is not refused as a whole, with its tables looked up as the proxy does."""
    statement = parse(sql, chars_max=CHARS_MAX, has_file_index=has_file_index)
    assert not isinstance(statement, SkipReason), statement.sentence
    names: frozenset[TableName] = frozenset()
    found = plan(statement, {}, limits)
    while found.missing:
        assert not found.missing & names, "what was looked up is looked up again"
        names |= found.missing
        found = plan(statement, catalog(names), limits, partitions or {})
    return found
