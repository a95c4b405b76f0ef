"""Proposals from what was found of statements and tables, with the reasons why there are no others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from proxy.advice.advisor import AdviceSettings, Found, statements_of
from proxy.advice.commands import commands, notes, shown_name
from proxy.advice.forecast import SPARED_SHARE_MIN, Forecast, TableForecasts, table_forecasts
from proxy.advice.needed_rows import LeftScan, NeededRows
from proxy.advice.recorded import Recorded
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
from proxy.advice.table_sample import TableSample
from rewriter import SkipReason, TableName

# Joins of one column that the advice names.
_JOINS_MAX: Final = 3
_NOT_LOOKED_AT: Final = "statements on other tables took more seconds (--tables)"
_ONE_FILE: Final = "all of it fits into one file, of which nothing could be left out (--file-mb)"


def advice(
    recorded: Recorded,
    found: Found,
    samples: Mapping[TableName, TableSample | str],
    settings: AdviceSettings,
    progress: Callable[[str], None],
) -> Advice:
    """Compare the layouts of each table; `samples` has a sentence for a table that could not be looked at."""
    proposals, not_proposed, not_measured = [], [], _left(found.left)
    for table in found.tables():
        needed, measured = found.needed[table], samples.get(table, _NOT_LOOKED_AT)
        if isinstance(measured, TableSample) and measured.bytes < settings.file_bytes:
            measured = _ONE_FILE
        if isinstance(measured, str):
            not_measured.append(NotMeasured(shown_name(table), measured, len(statements_of(needed)), []))
            continue
        progress(f"Comparing layouts of {shown_name(table)}")
        forecasts = table_forecasts(
            measured, needed, file_bytes=settings.file_bytes, hint_chars_max=settings.hint_chars_max
        )
        if forecasts.best.is_worth_it:
            proposals.append(_proposal(measured, forecasts, settings))
        else:
            columns = _columns(forecasts, needed)
            not_proposed.append(NotProposed(_measured(measured), columns, forecasts.best.spared_share))
    proposals.sort(key=lambda proposal: -proposal.spared_bytes)
    history = _history(recorded, settings.days)
    return Advice(history, proposals, not_proposed, not_measured, SPARED_SHARE_MIN)


def _proposal(measured: TableSample, forecasts: TableForecasts, settings: AdviceSettings) -> Proposal:
    best = forecasts.best
    helped = [scan.needed for scan in best.helped]
    statements = statements_of(helped)
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
                len(statements_of(by_it)),
                max(counts, default=None),
                list(dict.fromkeys(each.join for each in told))[:_JOINS_MAX],
                best.layout.kind.value,
                best.spared_share,
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
