"""Rows that a statement needs of a table, by keys of any column: as if the table could be narrowed by all of them.

The rewriter plans the statement once more, with every column of the table counting as one that the file index
knows. So its own rules decide which joins give keys, and the rows are those that a real layout would be read for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from proxy.advice.recorded import RecordedStatement
from proxy.operations.query import Query, Rows, ask_driver
from proxy.session.key_queries import failure_of
from rewriter import (
    Column,
    KeyQuery,
    Keys,
    KeySet,
    Plan,
    PlannedScan,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    plan,
)
from rewriter.domains.cover import Box, Cover
from rewriter.domains.literals import UnreadableKeyError, is_key_type
from rewriter.plan import effective_reducers
from rewriter.predicates.delta_predicate import delta_predicate
from rewriter.predicates.predicate import Restriction, require_kept_by_delta

KeyAnswers: TypeAlias = Mapping[KeyQuery, Keys | SkipReason]

# Formats of which the file index can tell files apart.
_LAID_OUT: Final = frozenset({"parquet", "orc"})
# Boxes of two covers that are intersected: more take seconds, and one cover alone is right too.
_BOXES_INTERSECTED_MAX: Final = 10_000
# The limit of a condition for Delta, whose few ranges never reach it.
_CHARS_MAX: Final = 1_000_000
# Reasons for which another layout of the table may help. Most tables that are not partitioned are dimensions.
LAYOUT_REASONS: Final = frozenset(
    {SkipReason.NOT_A_PARTITION_COLUMN, SkipReason.NOT_PARTITIONED, SkipReason.OWN_FILTERS_ALONE}
)

# Reasons that are worth telling of a table without a computed layout (`wanted_tables`), or of a name.
_LEFT: Final = frozenset(
    {
        SkipReason.NOT_A_PARTITION_COLUMN,
        SkipReason.OWN_FILTERS_ALONE,
        SkipReason.HIVE_FORMAT,
        SkipReason.UNKNOWN_TABLE,
        SkipReason.DESCRIPTION_LATE,
    }
)


@dataclass(frozen=True)
class RowFilter:
    """The rows that one join, or the statement's own filters, let through: by columns in lower case."""

    columns: tuple[str, ...]
    cover: Cover
    # The condition of the join, empty for filters; and the number of keys, None where they are ranges.
    join: str = ""
    keys: int | None = None


@dataclass(frozen=True)
class NeededRows:
    """One scan of a table by a statement: what narrows it today, and what could if the table were laid out so."""

    statement: RecordedStatement
    table: TableName
    today: tuple[RowFilter, ...]
    possible: tuple[RowFilter, ...]
    # The statement's own filters, on partition columns too.
    own: Cover
    # The reason for which it is not narrowed today.
    skip: SkipReason | None = None

    @property
    def columns(self) -> frozenset[str]:
        """The columns by which a layout may help."""
        own = {name for box in self.own.boxes for name, _ in box.domains}
        return frozenset(own).union(*(restriction.columns for restriction in self.possible))

    def cover_today(self, columns: AbstractSet[str]) -> Cover:
        """The rows that are read today, as far as files differ by these columns."""
        return _intersection([*(one.cover for one in self.today), projected(self.own, columns)])

    def cover_by(self, columns: AbstractSet[str]) -> Cover:
        """The rows that a layout by these columns would be read for."""
        told = (one.cover for one in self.possible if not columns.isdisjoint(one.columns))
        return _intersection([self.cover_today(columns), *told])


@dataclass(frozen=True)
class LeftScan:
    """A scan for which no layout helps: the reason, with its cause in the statement."""

    statement: RecordedStatement
    # None where not even its tables are known.
    table: TableName | None
    reason: SkipReason
    cause: str | None


def wanted_tables(planned: Plan) -> dict[TableName, TableFacts]:
    """The tables of a statement that could be laid out, by the names that it uses."""
    found = {scan.reference.name: planned.catalog.get(scan.reference.name) for scan in planned.scans}
    return {name: facts for name, facts in found.items() if facts is not None and _can_be_laid_out(facts)}


def _can_be_laid_out(facts: TableFacts) -> bool:
    is_laid_out = facts.delta is not None or facts.provider in _LAID_OUT
    is_native = facts.kind is TableKind.TABLE and is_laid_out and facts.iceberg is None
    is_told_apart = facts.column("_metadata") is None and not facts.columns_differ_by_case
    return is_native and is_told_apart and not facts.is_off and facts.full_name is not None


def as_laid_out(facts: TableFacts) -> TableFacts:
    """The facts with the columns that Delta partitions a table by as its partition columns."""
    return facts if facts.delta is None else replace(facts, partition_columns=facts.delta.partitioned_by)


def left_as_they_are(statement: RecordedStatement, planned: Plan) -> Iterator[LeftScan]:
    """The scans of tables, views and names of which no layout is computed."""
    wanted = wanted_tables(planned)
    for scan in planned.scans:
        if scan.skip in _LEFT and scan.reference.name not in wanted:
            yield LeftScan(statement, scan.table or scan.reference.name, scan.skip, scan.cause)


def key_columns(facts: TableFacts) -> tuple[str, ...]:
    """The columns whose type can be a key, in lower case."""
    return tuple(column.name.lower() for column in facts.columns if is_key_type(column.type_name))


def plan_with_all_columns(planned: Plan, name: TableName, limits: RewriteLimits) -> Plan:
    """The plan of a statement for which files of the table can be told apart by every column."""
    facts = planned.catalog[name]
    assert facts is not None  # noqa: S101 - one of the wanted tables
    told, limits = replace(facts, indexed_columns=key_columns(facts)), replace(limits, has_file_index=True)
    possible = plan(planned.statement, {**planned.catalog, name: told}, limits)
    # `own_cover` leaves out filters on partition columns alone, by which Spark prunes. So this plan has none of
    # these columns, and takes a Delta table, which uses all filters, for one of Parquet.
    provider = "parquet" if told.delta is not None else told.provider
    whole = {**planned.catalog, name: replace(told, partition_columns=(), provider=provider, delta=None)}
    own = {scan.reference: scan.own_cover for scan in plan(planned.statement, whole, limits).scans}
    return replace(possible, scans=tuple(replace(scan, own_cover=own[scan.reference]) for scan in possible.scans))


async def ask_keys(
    planned: Plan, known: dict[KeyQuery, Keys | SkipReason], *, bytes_max: int, deadline_s: float
) -> None:
    """Ask for the keys of a plan that are not known yet, and add them."""
    while pending := planned.pending(known):
        for asked in pending:
            answer = await ask_driver(Query(asked.sql, asked.answer_rows_max, bytes_max, deadline_s))
            known[asked] = asked.read(answer.rows) if isinstance(answer, Rows) else failure_of(asked, answer.kind)


def needed_rows(
    statement: RecordedStatement, today: Plan, possible: Plan, name: TableName, keys: KeyAnswers
) -> Iterator[NeededRows | LeftScan]:
    """The scans of one table, by the plan as it is and by the one with all columns; both have their keys."""
    facts = today.catalog[name]
    assert facts is not None  # noqa: S101 - one of the wanted tables
    table = facts.full_name or name
    is_at = {scan.reference.start: scan for scan in today.scans}
    for scan in possible.scans:
        if scan.reference.name != name or scan.conjunct_start is not None:
            continue
        now = is_at[scan.reference.start]
        restrictions, refusal = _restrictions(scan, keys)
        if restrictions or not scan.own_cover.is_all:
            told, _ = _restrictions(now, keys)
            yield NeededRows(statement, table, told, restrictions, scan.own_cover, now.skip)
        elif now.skip in LAYOUT_REASONS:
            reason, cause = refusal or (scan.skip, scan.cause)
            if reason is not None:
                yield LeftScan(statement, table, reason, cause)


def _restrictions(
    scan: PlannedScan, keys: KeyAnswers
) -> tuple[tuple[RowFilter, ...], tuple[SkipReason, str | None] | None]:
    """The joins of a scan that have keys, and the reason for which one has none."""
    found, refusal = [], None
    for reducer in effective_reducers(scan, keys):
        answer = keys.get(reducer.key_query, SkipReason.KEYS_NOT_ASKED)
        if isinstance(answer, SkipReason):
            refusal = answer, reducer.join
            continue
        columns = tuple(name.lower() for name in reducer.columns)
        try:
            cover = _cover(scan.facts, columns, answer)
        except UnreadableKeyError:
            refusal = SkipReason.UNREADABLE_KEY, reducer.join
            continue
        count = len(answer.rows) if isinstance(answer, KeySet) else None
        found.append(RowFilter(columns, cover, reducer.join, count))
    return tuple(found), refusal


def _cover(facts: TableFacts | None, columns: Sequence[str], answer: Keys) -> Cover:
    """The rows that keys let through: of a Delta table, those of the few ranges that it is sent.

    Raises UnreadableKeyError.
    """
    if facts is None or facts.delta is None:
        return answer.cover(columns)
    restriction = Restriction(tuple(map(Column, columns, answer.type_names)), answer)
    require_kept_by_delta([restriction])
    sent = delta_predicate([restriction], facts.delta.partitioned_by, _CHARS_MAX)
    return Cover.all() if sent is None else sent.cover


def projected(cover: Cover, columns: AbstractSet[str]) -> Cover:
    """The cover with all other columns free to hold anything."""
    return Cover.of(Box(tuple(pair for pair in box.domains if pair[0] in columns)) for box in cover.boxes)


def _intersection(covers: Sequence[Cover]) -> Cover:
    """The rows of all covers; one that would take too long is left out."""
    found = Cover.all()
    for cover in covers:
        if len(found.boxes) * len(cover.boxes) <= _BOXES_INTERSECTED_MAX:
            found = found.intersection(cover)
    return found
