"""Advice as it is shown: as JSON, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from proxy.advice.commands import Command

_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")
_WHOLE_FROM: Final = 100
# Statements of a proposal, and causes of a reason, that lines name.
_SHOWN_MAX: Final = 5


class HistoryPart(msgspec.Struct):
    """The statements that the advice rests on; a fingerprint counts by its newest text."""

    days: float
    fingerprints: int
    runs: int
    seconds: float
    # Fingerprints that took less time than those, and those whose texts were not kept whole.
    left_out: int
    without_literals: int


class Measured(msgspec.Struct):
    """A table and how much of it was looked at."""

    table: str
    files: int
    bytes: int
    rows: int
    files_sampled: int
    rows_sampled: int


class ScanOfStatement(msgspec.Struct):
    """A scan of a recorded statement: the part of the table's bytes that it reads today, and would read then."""

    statement: str
    runs: int
    seconds: float
    share_today: float
    share_then: float


class ColumnOfJoins(msgspec.Struct):
    """A column that statements join or filter a table by, and the layout by it alone that spares most."""

    column: str
    statements: int
    keys_max: int | None
    joins: list[str]
    best_layout: str
    spared_share: float


class Proposal(msgspec.Struct):
    """A layout of a table. Bytes are those of files, of all recorded runs together."""

    measured: Measured
    layout: str
    # The column of the layout; null for an index of the files as they lie.
    column: str | None
    columns: list[ColumnOfJoins]
    statements: int
    runs: int
    seconds: float
    read_bytes: int
    spared_bytes: int
    scans: list[ScanOfStatement]
    commands: list[Command]
    notes: list[str]


class NotProposed(msgspec.Struct):
    """A table that was measured, and of which no layout spares enough."""

    measured: Measured
    columns: list[ColumnOfJoins]
    spared_share: float


class NotMeasured(msgspec.Struct):
    """A table, or scans of it, of which nothing can be said, and why."""

    table: str
    reason: str
    statements: int
    causes: list[str]


class Advice(msgspec.Struct):
    """All of it; proposals that spare most bytes come first."""

    history: HistoryPart
    proposals: list[Proposal]
    not_proposed: list[NotProposed]
    not_measured: list[NotMeasured]
    spared_share_min: float


def text(advice: Advice) -> str:
    """The advice as lines for a terminal."""
    return "\n".join(_lines(advice))


def _lines(advice: Advice) -> Iterator[str]:
    history = advice.history
    yield (
        f"History of {history.days:g} days: {history.fingerprints:,} different statements, {history.runs:,} runs,"
        f" {history.seconds:,.0f} s"
    )
    if history.left_out:
        yield f"  {history.left_out:,} more took less time and were not looked at (--statements)"
    if history.without_literals:
        yield f"  {history.without_literals:,} more were kept without literals, or not as a whole"
    for number, proposal in enumerate(advice.proposals, 1):
        yield from ("", *_proposal(number, proposal))
    if not advice.proposals:
        yield from (
            "",
            f"No layout would spare {_percent(advice.spared_share_min)} of what these statements read.",
        )
    if advice.not_proposed:
        yield from (
            "",
            f"Measured, and not proposed: less than {_percent(advice.spared_share_min)} would be spared",
        )
    for one in advice.not_proposed:
        yield f"  {one.measured.table}: {_percent(one.spared_share)}; {_sampled(one.measured)}"
        yield from (f"    {_column(column)}" for column in one.columns)
    if advice.not_measured:
        yield from ("", "Not measured")
    for left in advice.not_measured:
        yield f"  {left.table}: {left.reason} ({_statements(left.statements)})"
        yield from (f"    {cause}" for cause in left.causes[:_SHOWN_MAX])


def _proposal(number: int, proposal: Proposal) -> Iterator[str]:
    by = f" of {proposal.column}" if proposal.column is not None else ""
    yield f"{number}. {proposal.measured.table}: {proposal.layout}{by}"
    yield (
        f"   spares {_size(proposal.spared_bytes)} of {_size(proposal.read_bytes)}"
        f" ({_percent(proposal.spared_bytes / max(1, proposal.read_bytes))}) that recorded runs read of its files:"
        f" {_statements(proposal.statements)}, {proposal.runs:,} runs, {proposal.seconds:,.0f} s"
    )
    yield f"   {_sampled(proposal.measured)}"
    yield from (f"   {_column(column)}" for column in proposal.columns)
    helped = sorted(proposal.scans, key=lambda scan: scan.runs * (scan.share_then - scan.share_today))
    for scan in helped[:_SHOWN_MAX]:
        yield (
            f"   statement {scan.statement}: {_percent(scan.share_today)} of the table today,"
            f" {_percent(scan.share_then)} then; {scan.runs:,} runs, {scan.seconds:,.0f} s"
        )
    if len(helped) > _SHOWN_MAX:
        yield f"   and {len(helped) - _SHOWN_MAX} more scans"
    yield from _commands(proposal.commands)
    yield from (f"   {note}" for note in proposal.notes)


def _commands(found: Sequence[Command]) -> Iterator[str]:
    before = None
    for command in found:
        if command.kind != before:
            yield "   in Spark SQL:" if command.kind == "sql" else "   in a shell:"
        before = command.kind
        yield f"     {command.text}{';' if command.kind == 'sql' else ''}"


def _column(found: ColumnOfJoins) -> str:
    keys = (
        f", at most {found.keys_max:,} key{'' if found.keys_max == 1 else 's'}"
        if found.keys_max is not None
        else ""
    )
    joins = f", {found.joins[0]}" if found.joins else ", filters alone"
    best = (
        f"{found.best_layout}, {_percent(found.spared_share)} spared" if found.spared_share else "nothing spared"
    )
    return f"{found.column}: {_statements(found.statements)}{keys}{joins}; by it alone: {best}"


def _sampled(measured: Measured) -> str:
    return (
        f"measured on {measured.files_sampled:,} of {measured.files:,} files ({_size(measured.bytes)}) and"
        f" {measured.rows_sampled:,} of {measured.rows:,} rows"
    )


def _statements(count: int) -> str:
    return f"{count:,} statement{'' if count == 1 else 's'}"


def _percent(share: float) -> str:
    """Whole percents; some of what is less than one.

    >>> _percent(0.123), _percent(0.004), _percent(0)
    ('12 %', '0.4 %', '0 %')
    """
    return f"{share * 100:.1f} %" if 0 < share < 0.01 else f"{share * 100:.0f} %"  # noqa: PLR2004 - one percent


def _size(size_bytes: int) -> str:
    """Three digits or so.

    >>> _size(1_234_567), _size(999_999), _size(12)
    ('1.23 MB', '1000 KB', '12 B')
    """
    power = min(len(_UNITS) - 1, (len(str(size_bytes)) - 1) // 3)
    size = size_bytes / 1_000**power
    return f"{size:.{0 if size >= _WHOLE_FROM or not power else 2}f} {_UNITS[power]}"
