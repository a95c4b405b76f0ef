"""Answers about statements, for the JSON routes and the pages alike: each for one visitor."""

from __future__ import annotations

import asyncio
import csv
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from io import StringIO
from math import ceil
from typing import Any, Final, TypeVar

import msgspec

from proxy.admin.formats import iso
from proxy.admin.tickets import Visitor
from proxy.history.digests import Digest
from proxy.history.groups import By, Group
from proxy.history.history import History, ProcessState, SessionRow
from proxy.history.queries import (
    COMPARED_DAYS,
    DAY_S,
    PAGE_ROWS,
    Filter,
    HistoryError,
    HistoryReader,
    ReasonLine,
    StatementLine,
    StatementPage,
    Sums,
    midnight,
    today,
)
from proxy.history.record import Record
from proxy.history.savings import Savings, total
from proxy.history.shadow_report import ShadowReport
from proxy.history.stakes import Stake
from proxy.session.shared_state import SharedState
from rewriter import SkipReason
from rewriter.vocabulary.remedies import REMEDIES

T = TypeVar("T")

# Queries to the history's file at a time: more would only wait for the disk.
_READERS: Final = 2
# Lines of the lists on the front page.
_FRONT_LINES: Final = 5
REASON_DAYS: Final = 7
_CHART_DAYS_MAX: Final = 30
# Statements of one file of CSV: some 3 MB.
CSV_ROWS_MAX: Final = 5_000
# A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class RewrittenDashboard(msgspec.Struct):
    """Rewritten statements of one fingerprint: their number, and one of them."""

    fingerprint: str | None
    statements: int
    partitions_spared: int
    partitions_total: int
    last_id: str
    excerpt: str
    savings: Savings = msgspec.field(default_factory=Savings)


class NowView(msgspec.Struct):
    """The statements that run and the open sessions, the newest first (some of them), and both counts."""

    running: list[Record]
    sessions: list[SessionRow]
    running_count: int
    session_count: int
    # False while all statements go as they came (rewrite.off_file).
    is_rewriting: bool = True
    # Sentences about what is not shown.
    notes: list[str] = []


class QuarantineView(msgspec.Struct):
    """Sentences about what is quarantined. Those of single users are for administrators alone."""

    rules: list[str]
    fingerprints: list[str]


class TodayView(msgspec.Struct):
    """The statements since midnight: their sums, those that gained most, and the slowest."""

    sums: Sums
    # By originals of the last seven days.
    savings: Savings
    dashboards: list[RewrittenDashboard]
    slowest: list[StatementLine]
    # Among the slowest, those that stayed original although there was something to decide.
    slowest_originals: list[StatementLine]
    # The time of those that stayed original: first of all together, then by reason.
    stakes: list[Stake]


class ReasonView(ReasonLine, kw_only=True):
    """A reason with its counts, with its sentence, and with advice."""

    sentence: str
    remedy: str


class StatementsView:
    """The history and the present of statements. Methods raise HistoryError."""

    def __init__(self, history: History, shared: SharedState) -> None:
        self.history = history
        self._shared = shared
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="history-reader")

    @property
    def has_shadows(self) -> bool:
        """True if there is, or will be, something to report of shadow mode."""
        return self.history.has_shadows or self._shared.config.rewrite.mode == "shadow"

    async def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def notices(self) -> dict[str, Any]:
        """The values of notices.html: why nothing is rewritten, and why statements are missing."""
        losses = sum(count for _, count in self.history.losses_by_reason())
        told = {"trouble": self.history.error, "losses": losses, "notes": self.history.notes}
        return {"is_off": self._shared.off_switch.is_off, **told}

    async def now(self, visitor: Visitor) -> NowView:
        """The statements and sessions of all processes that share the history."""
        states = await self._states()
        seen = visitor.seen_by
        running = [one for state in states for one in state.running if seen in {None, one.user}]
        sessions = [one for state in states for one in state.sessions if seen in {None, one.user}]
        counts = sum(state.running_count for state in states), sum(state.session_count for state in states)
        if seen is not None:
            counts = len(running), len(sessions)
        newest = sorted(running, key=lambda record: record.id, reverse=True)
        opened = sorted(sessions, key=lambda one: one.id, reverse=True)
        notes = list(dict.fromkeys(note for state in states for note in state.notes))
        return NowView(newest, opened, *counts, is_rewriting=not self._shared.off_switch.is_off, notes=notes)

    async def quarantine(self, visitor: Visitor) -> QuarantineView:
        """The rules and fingerprints that are quarantined in any process."""
        states = await self._states()
        rules = {sentence: None for state in states for sentence in state.quarantined_rules}
        if not visitor.is_administrator:
            return QuarantineView(list(rules), [])
        return QuarantineView(list(rules), [sentence for state in states for sentence in state.quarantined])

    async def statements(self, wanted: Filter, rows: int = PAGE_ROWS) -> StatementPage:
        """A page of the history."""
        return await self._asked(lambda reader: reader.statements(wanted, rows))

    async def csv(self, wanted: Filter) -> bytes:
        """The first of the statements as CSV."""
        return await self._asked(partial(_csv, wanted))

    async def groups(self, visitor: Visitor, by: By, days: int = REASON_DAYS) -> list[Group]:
        """The statements of the last days by table, by user, by client or by label."""
        wanted = Filter(seen_by=visitor.seen_by, since=time.time() - days * DAY_S)
        return await self._asked(lambda reader: reader.groups(wanted, by))

    async def statement(self, identifier: str, visitor: Visitor) -> Record | None:
        """One statement, that may still run; None where there is none that the visitor may see."""
        error: HistoryError | None = None
        try:
            found = await self._asked(lambda reader: reader.statement(identifier, visitor.seen_by))
        except HistoryError as unreadable:
            found = None
            if self.history.path is not None and self.history.path.exists():
                error = unreadable
        if found is not None:
            return found
        # The file comes first: another process tells only every other second what runs there.
        for record in (await self.now(visitor)).running:
            if record.id == identifier:
                return record
        if error is not None:
            raise error
        return None

    async def today(self, visitor: Visitor) -> TodayView:
        """The statements since midnight."""
        wanted = Filter(seen_by=visitor.seen_by, since=today())
        return await self._asked(partial(_today, wanted))

    async def savings_over_time(self, visitor: Visitor) -> tuple[dict[float, Savings], dict[float, Savings]]:
        """The time saved in the last 24 hours, and in the days that are kept."""
        # Two days cover the last 24 hours. The front page compares with a week of originals: with the same week,
        # both show one sum for the last day.
        days = min(_CHART_DAYS_MAX, max(2, ceil(self.history.days)))
        wanted = Filter(seen_by=visitor.seen_by, since=time.time() - max(days, COMPARED_DAYS) * DAY_S)
        return await self._asked(lambda reader: reader.savings_over_time(wanted, days))

    async def reasons(self, visitor: Visitor, days: int = REASON_DAYS) -> list[ReasonView]:
        """The reasons for which statements stayed as they were."""
        lines = await self._asked(lambda reader: reader.reasons(Filter(seen_by=visitor.seen_by), days))
        return [_reason(line) for line in lines]

    async def shadows(self, visitor: Visitor, days: int = REASON_DAYS) -> ShadowReport:
        """The report of the runs in shadow mode of the last days."""
        wanted = Filter(seen_by=visitor.seen_by, since=time.time() - days * DAY_S)
        return await self._asked(lambda reader: reader.shadows(wanted))

    async def digests(
        self, visitor: Visitor, days: int = REASON_DAYS, compared: tuple[date, date] | None = None
    ) -> list[Digest]:
        """One line for each fingerprint of the last days, an earlier and a later day compared."""
        since = time.time() - days * DAY_S
        if compared is not None:
            since = min(since, *map(midnight, compared))
        wanted = Filter(seen_by=visitor.seen_by, since=since)
        return await self._asked(lambda reader: reader.digests(wanted, compared))

    async def _states(self) -> list[ProcessState]:
        own = await asyncio.get_running_loop().run_in_executor(self._pool, self.history.state)
        try:
            others = await self._asked(lambda reader: reader.others(self.history.process))
        except HistoryError:
            # Nothing is kept, or nothing yet: only this process is known.
            others = []
        return [own, *others]

    async def _asked(self, question: Callable[[HistoryReader], T]) -> T:
        if self.history.path is None:
            raise HistoryError("The history is switched off (history.enabled), so no statement is kept.")
        if self.history.error is not None and not self.history.path.exists():
            raise HistoryError(f"Statements are not kept now: {self.history.error}.")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, question, HistoryReader(self.history.path))


def sentence_of(code: str) -> str:
    """The sentence of a reason; the code itself for one of another version."""
    return SkipReason[code].sentence if code in SkipReason.__members__ else code


def remedy_of(code: str) -> str:
    """The remedy that a user has for a reason; empty for a code of another version."""
    return REMEDIES[SkipReason[code]] if code in SkipReason.__members__ else ""


def _csv(wanted: Filter, reader: HistoryReader) -> bytes:
    written = StringIO()
    writer = csv.writer(written)
    writer.writerow(StatementLine.__struct_fields__)
    for line in reader.statements(wanted, CSV_ROWS_MAX).statements:
        changed = {"started_at": iso(line.started_at), "reasons": ", ".join(line.reasons)}
        cells = {**msgspec.structs.asdict(line), **changed}.values()
        writer.writerow(f"'{one}" if isinstance(one, str) and one.startswith(_FORMULA) else one for one in cells)
    return written.getvalue().encode(errors="replace")


def _today(wanted: Filter, reader: HistoryReader) -> TodayView:
    sums = reader.sums(wanted)
    saved = reader.savings(wanted.since or 0.0, wanted.seen_by)
    rewritten = [RewrittenDashboard(*row, saved.get(row[0], Savings())) for row in reader.rewritten(wanted)]
    # The sort is stable: statements without a known time stay in the order of partitions left out.
    dashboards = sorted(rewritten, key=lambda one: one.savings.rank, reverse=True)[:_FRONT_LINES]
    slowest = reader.slowest(wanted, _FRONT_LINES)
    left = reader.slowest(msgspec.structs.replace(wanted, outcome="original", only_candidates=True), _FRONT_LINES)
    return TodayView(sums, total(saved.values()), dashboards, slowest, left, reader.stakes(wanted))


def _reason(line: ReasonLine) -> ReasonView:
    told = msgspec.structs.asdict(line)
    return ReasonView(**told, sentence=sentence_of(line.reason), remedy=remedy_of(line.reason))
