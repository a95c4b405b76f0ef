"""Advisor: from recorded statements to proposals, by questions that read only.

The stages are generators: they yield the queries that they need answered in a session of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.advice.commands import commands, notes, shown_name
from proxy.advice.forecast import SPARED_SHARE_MIN, Forecast, TableForecasts, table_forecasts
from proxy.advice.needed_rows import (
    LAYOUT_REASONS,
    LeftScan,
    NeededRows,
    ask_keys,
    key_columns,
    left_as_they_are,
    needed_rows,
    plan_with_all_columns,
    wanted_tables,
)
from proxy.advice.recorded import Recorded, RecordedStatement
from proxy.advice.report import (
    Advice,
    ColumnOfJoins,
    HistoryPart,
    Measured,
    NotMeasured,
    NotProposed,
    Proposal,
    ScanOfStatement,
)
from proxy.advice.table_sample import TableSample, UnmeasuredError, sample
from proxy.session.catalog.table_sizes import read_size, size_query
from proxy.session.decision import DecisionTerms
from proxy.session.decision_run import limits_of
from proxy.session.session_catalog import Queries, SessionCatalog, SessionCatalogs
from proxy.session.session_settings import SessionSettings
from proxy.session.shared_state import SharedState
from rewriter import KeyQuery, Keys, Plan, SkipReason, TableFacts, TableName, parse

# Joins of one column that the advice names.
_JOINS_MAX: Final = 3
_NOT_LOOKED_AT: Final = "statements on other tables took more seconds (--tables)"
_ONE_FILE: Final = "all of it fits into one file, of which nothing could be left out (--file-mb)"


@dataclass(frozen=True)
class AdviceSettings:
    """The limits of the work, and the names that commands use."""

    days: float
    index: str
    # Files of a layout have about this size, and a table of less has one file.
    file_bytes: int
    # Bytes of each table's files that are read for its sample.
    sample_bytes: int
    tables_max: int
    query_deadline_s: float


@dataclass
class Found:
    """What was found of the statements: the rows that they need, by table, and scans that no layout helps."""

    needed: dict[TableName, list[NeededRows]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[TableName, TableFacts] = field(default_factory=dict)
    left: list[LeftScan] = field(default_factory=list)

    def tables(self) -> list[TableName]:
        """The tables that a layout may help, those whose statements took most seconds first."""
        refused = {table for table, all_of in self.needed.items() if any(_is_candidate(one) for one in all_of)}
        return sorted(refused, key=lambda table: -_seconds(self.needed[table]))


def _is_candidate(needed: NeededRows) -> bool:
    told = {name for restriction in needed.today for name in restriction.columns}
    return needed.skip in LAYOUT_REASONS or bool(needed.columns - told)


class Advisor:
    """Looks at the statements of one database after the other, and then at the tables."""

    def __init__(self, shared: SharedState, settings: AdviceSettings, progress: Callable[[str], None]) -> None:
        self._shared = shared
        self._settings = settings
        self._progress = progress
        terms = DecisionTerms(SessionSettings.configured(shared.config, {}), scope="")
        self._limits = limits_of(shared, terms)
        # Tables without partitions by their sizes, as Spark estimates them.
        self._sizes: dict[TableName, int | None] = {}

    def look_at(self, statements: Sequence[RecordedStatement], found: Found) -> Queries[None]:
        """Plan the statements of one database, and ask for their keys."""
        catalog = SessionCatalogs(self._shared).of_state(None)
        # Names mean the same in all statements of a database.
        keys: dict[KeyQuery, Keys | SkipReason] = {}
        for number, statement in enumerate(statements, 1):
            where = f" of {statement.database}" if statement.database else ""
            self._progress(f"Statement {number} of {len(statements)}{where}: asking for its keys")
            yield from self._look_at_one(catalog, statement, keys, found)

    def _look_at_one(
        self,
        catalog: SessionCatalog,
        statement: RecordedStatement,
        keys: dict[KeyQuery, Keys | SkipReason],
        found: Found,
    ) -> Queries[None]:
        chars_max = self._shared.config.rewrite.statement_chars_max
        parsed = parse(statement.text, chars_max=chars_max, has_file_index=True, has_views=True)
        if isinstance(parsed, SkipReason):
            found.left.append(LeftScan(statement, None, parsed, None))
            return
        planned = yield from catalog.plan(parsed, self._limits)
        if isinstance(planned, SkipReason):
            found.left.append(LeftScan(statement, None, planned, None))
            return
        found.left += left_as_they_are(statement, planned)
        for name, facts in wanted_tables(planned).items():
            if (yield from self._is_one_file(name, facts)):
                continue
            yield from self._look_at_table(statement, planned, name, keys, found)

    def _look_at_table(
        self,
        statement: RecordedStatement,
        planned: Plan,
        name: TableName,
        keys: dict[KeyQuery, Keys | SkipReason],
        found: Found,
    ) -> Queries[None]:
        possible = plan_with_all_columns(planned, name, self._limits)
        bytes_max, deadline_s = self._shared.config.rewrite.key_query_bytes_max, self._settings.query_deadline_s
        for each in (planned, possible):
            yield from ask_keys(each, keys, bytes_max=bytes_max, deadline_s=deadline_s)
        for one in needed_rows(statement, planned, possible, name, keys):
            if isinstance(one, LeftScan):
                found.left.append(one)
            else:
                facts = planned.catalog[name]
                assert facts is not None  # noqa: S101 - one of the wanted tables
                found.facts[one.table] = facts
                found.needed[one.table].append(one)

    def _is_one_file(self, name: TableName, facts: TableFacts) -> Queries[bool]:
        """True if a table is known to be so small that no file of it can be left out, as most dimensions are."""
        table = facts.full_name or name
        if table not in self._sizes:
            size_bytes = facts.size_bytes
            if size_bytes is None and not facts.partition_columns:
                size_bytes = read_size((yield size_query(table, self._shared.config.catalog)))
            self._sizes[table] = size_bytes
        size_bytes = self._sizes[table]
        return size_bytes is not None and size_bytes < self._settings.file_bytes

    def measure(self, table: TableName, found: Found) -> Queries[TableSample | str]:
        """Look at a table in the columns that statements join and filter it by; a sentence where that fails."""
        facts = found.facts[table]
        partitions = tuple(name.lower() for name in facts.partition_columns)
        told = frozenset[str]().union(*(needed.columns for needed in found.needed[table]))
        known = set(key_columns(facts))
        names = [name for name in dict.fromkeys((*partitions, *sorted(told))) if name in known]
        settings = self._settings
        try:
            return (
                yield from sample(
                    facts, names, bytes_max=settings.sample_bytes, deadline_s=settings.query_deadline_s
                )
            )
        except UnmeasuredError as error:
            return str(error)

    def advice(self, recorded: Recorded, found: Found, samples: dict[TableName, TableSample | str]) -> Advice:
        """The proposals, with the reasons why there are no others."""
        proposals, not_proposed, not_measured = [], [], _left(found.left)
        for table in found.tables():
            needed, measured = found.needed[table], samples.get(table, _NOT_LOOKED_AT)
            if isinstance(measured, TableSample) and measured.bytes < self._settings.file_bytes:
                measured = _ONE_FILE
            if isinstance(measured, str):
                not_measured.append(NotMeasured(shown_name(table), measured, len(_statements(needed)), []))
                continue
            self._progress(f"Comparing layouts of {shown_name(table)}")
            forecasts = self._forecasts(measured, needed)
            best = forecasts.best
            if best.is_worth_it:
                proposals.append(self._proposal(measured, forecasts))
            else:
                share = best.spared_bytes / max(1, best.read_bytes)
                not_proposed.append(NotProposed(_measured(measured), _columns(forecasts, needed), share))
        proposals.sort(key=lambda proposal: -proposal.spared_bytes)
        return Advice(
            _history(recorded, self._settings.days), proposals, not_proposed, not_measured, SPARED_SHARE_MIN
        )

    def _forecasts(self, measured: TableSample, needed: Sequence[NeededRows]) -> TableForecasts:
        hint_chars_max = self._shared.config.files.hint_chars_max
        return table_forecasts(
            measured, needed, file_bytes=self._settings.file_bytes, hint_chars_max=hint_chars_max
        )

    def _proposal(self, measured: TableSample, forecasts: TableForecasts) -> Proposal:
        best, settings = forecasts.best, self._settings
        helped = [scan.needed for scan in best.helped]
        statements = _statements(helped)
        return Proposal(
            measured=_measured(measured),
            layout=best.layout.kind.value,
            column=best.layout.column,
            columns=_columns(forecasts, helped),
            statements=len(statements),
            runs=sum(each.runs for each in statements),
            seconds=sum(each.seconds for each in statements),
            read_bytes=best.read_bytes,
            spared_bytes=best.spared_bytes,
            scans=_scans(best),
            commands=commands(measured, best.layout, settings.index, settings.file_bytes),
            notes=notes(measured, best.layout, settings.index),
        )


def _scans(best: Forecast) -> list[ScanOfStatement]:
    return [
        ScanOfStatement(
            scan.needed.statement.last_id,
            scan.needed.statement.runs,
            scan.needed.statement.seconds,
            scan.share_today,
            scan.share_then,
        )
        for scan in best.helped
    ]


def _columns(forecasts: TableForecasts, needed: Sequence[NeededRows]) -> list[ColumnOfJoins]:
    found = []
    for column, best in forecasts.by_column:
        by_it = [one for one in needed if column in one.columns]
        told = [each for one in by_it for each in one.possible if column in each.columns]
        counts = [each.keys for each in told if each.keys is not None]
        if not by_it:
            continue
        found.append(
            ColumnOfJoins(
                column,
                len(_statements(by_it)),
                max(counts, default=None),
                list(dict.fromkeys(each.join for each in told))[:_JOINS_MAX],
                best.layout.kind.value,
                best.spared_bytes / max(1, best.read_bytes),
            )
        )
    return sorted(found, key=lambda one: -one.spared_share)


def _measured(measured: TableSample) -> Measured:
    return Measured(
        shown_name(measured.name),
        measured.file_count,
        measured.bytes,
        measured.row_count,
        len(measured.files),
        len(measured.rows),
    )


def _left(left: Iterable[LeftScan]) -> list[NotMeasured]:
    """The scans that no layout helps, by table and reason."""
    grouped: dict[tuple[str, SkipReason], list[LeftScan]] = defaultdict(list)
    for scan in left:
        name = "(all tables)" if scan.table is None else shown_name(scan.table)
        grouped[name, scan.reason].append(scan)
    return [
        NotMeasured(
            table,
            reason.name,
            len({scan.statement.fingerprint for scan in scans}),
            list(dict.fromkeys(scan.cause for scan in scans if scan.cause is not None)),
        )
        for (table, reason), scans in sorted(grouped.items(), key=lambda pair: (pair[0][0], pair[0][1].name))
    ]


def _history(recorded: Recorded, days: float) -> HistoryPart:
    statements = recorded.statements
    runs, seconds = sum(each.runs for each in statements), sum(each.seconds for each in statements)
    return HistoryPart(days, len(statements), runs, seconds, recorded.left_out, recorded.unusable)


def _statements(needed: Iterable[NeededRows]) -> list[RecordedStatement]:
    return list(dict.fromkeys(one.statement for one in needed))


def _seconds(needed: Iterable[NeededRows]) -> float:
    return sum(statement.seconds for statement in _statements(needed))
