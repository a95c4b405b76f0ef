"""Questions to the history: one statement, pages of them, sums of a day, and reasons by day.

Each opens the file for itself, and gives up after a while: a search through a gigabyte takes seconds.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from proxy.history.digests import EXCERPT_CHARS, Digest, TimeSpan, digests
from proxy.history.groups import By, Group, groups
from proxy.history.history import LOST_AFTER_S, ProcessState
from proxy.history.record import TEXT_FINGERPRINT, Record, id_of_time
from proxy.history.savings import Savings, savings, savings_over_time
from proxy.history.shadow_report import ShadowReport, shadow_report
from proxy.history.stakes import Stake, stakes
from proxy.history.store import connect

# Statements of one page.
PAGE_ROWS: Final = 50
PAGE_ROWS_MAX: Final = 500
# A question is given up after this time, which SQLite checks after each so many steps of its virtual machine.
QUESTION_S: Final = 3.0
_STEPS: Final = 10_000
# Fingerprints of one list.
DIGESTS_MAX: Final = 200
DAY_S: Final = 86_400.0
# Runs of today, and of the last 24 hours, are compared with originals of these days.
COMPARED_DAYS: Final = 7
# Sorts behind every id.
_LAST_ID: Final = "~"


_ID: Final = re.compile("[0-9a-f]{24}")
_SPARK_ID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOTHING_YET: Final = "No statement has been kept yet."
Order: TypeAlias = Literal["newest", "slowest"]


class HistoryError(Exception):
    """A question has no answer. The message is a sentence for the user."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """The statements that are asked for; empty fields do not restrict."""

    # The user whose statements may be seen; None for those of all.
    seen_by: str | None = None
    user: str = ""
    outcome: str = ""
    reason: str = ""
    table: str = ""
    # The name of a limit that they met.
    limit_met: str = ""
    fingerprint: str = ""
    client: str = ""
    label: str = ""
    # A part of the original, the statement's id, or an id by which Spark's UI shows it.
    text: str = ""
    # Seconds since 1970; up to and without the second.
    since: float | None = None
    until: float | None = None
    # In all, at least.
    least_s: float = 0.0
    # Leaves out statements that nobody would rewrite, as those without a join.
    only_candidates: bool = False
    order: Order = "newest"
    # Only those that come behind this one, which the last page ended with (`StatementPage.next`).
    before: str = ""


class StatementLine(msgspec.Struct):
    """A statement as a list shows it. Counts are null where they are not known."""

    id: str
    started_at: float
    user: str
    session: str
    outcome: str
    fingerprint: str | None
    skip_reason: str | None
    deciding_s: float
    key_queries_s: float
    run_s: float | None
    # From its arrival to its end, as far as it was seen: with both runs of one that fell back.
    total_s: float
    partitions_total: int | None
    partitions_kept: int | None
    files_total: int | None
    files_kept: int | None
    bytes_total: int | None
    bytes_kept: int | None
    client: str | None
    label: str | None
    # The beginning of the original.
    excerpt: str
    # Reasons for which it, or fact scans of it, stayed as they were.
    reasons: list[str] = []


class StatementPage(msgspec.Struct):
    """Statements in the order asked for; `next` is `before` of the page behind, null on the last one."""

    statements: list[StatementLine]
    next: str | None = None


class Sums(msgspec.Struct):
    """The statements of a time, by outcome, and data that finished rewritten ones did not read.

    The sums are of statements of which both numbers were known, as they were decided: the partitions, files and
    bytes of a table, and those that its predicate keeps. Nothing is estimated.
    """

    since: float
    outcomes: dict[str, int]
    # Statements that had a join, a subquery or an indexed table, so that there was something to decide.
    candidates: int
    partitions_spared: int
    partitions_total: int
    partitions_known: int
    files_spared: int
    files_total: int
    bytes_spared: int
    bytes_total: int
    bytes_known: int


class ReasonLine(msgspec.Struct):
    """A reason, and how often it was met."""

    reason: str
    statements: int
    # By day, the oldest first.
    days: list[int]
    tables: list[str]
    last_id: str


_LINE_COLUMNS: Final = ", ".join(StatementLine.__struct_fields__[:-2])
# Reasons that are no loss: statements that nobody would rewrite.
NOTHING_TO_DECIDE: Final = ("NOT_A_QUERY", "NO_JOIN_IN_TEXT", "OWN_FILTERS_ALONE")


_NAMED: Final = ", ".join(f"'{reason}'" for reason in NOTHING_TO_DECIDE)
_IS_PARSED: Final = f"coalesce(s.fingerprint, '{TEXT_FINGERPRINT}') NOT LIKE '{TEXT_FINGERPRINT}%'"
_IS_CANDIDATE: Final = f"({_IS_PARSED} AND coalesce(s.skip_reason, '') NOT IN ({_NAMED}))"


class HistoryReader:
    """The questions to one file. Every method raises HistoryError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def statements(self, wanted: Filter, rows: int = PAGE_ROWS) -> StatementPage:
        """A page of statements."""
        where, values = _where(wanted)
        order = "s.id DESC" if wanted.order == "newest" else "s.total_s DESC, s.id DESC"
        with self._connected() as connection:
            # An index finds the ids first: each row that is not of the page would cost kilobytes.
            found = connection.execute(
                f"SELECT {_LINE_COLUMNS}, substr(original, 1, {EXCERPT_CHARS}) FROM statements AS s"  # noqa: S608
                f" WHERE s.id IN (SELECT s.id FROM statements AS s WHERE {where} ORDER BY {order} LIMIT ?)"
                f" ORDER BY {order}",
                (*values, rows + 1),
            ).fetchall()
            lines = self._lines(connection, found[:rows])
        return StatementPage(lines, f"{lines[-1].total_s!r}~{lines[-1].id}" if len(found) > rows else None)

    def slowest(self, wanted: Filter, rows: int) -> list[StatementLine]:
        """The statements that took longest in all; of each fingerprint the slowest."""
        where, values = _where(wanted)
        with self._connected() as connection:
            found = connection.execute(
                f"SELECT {_LINE_COLUMNS}, substr(original, 1, {EXCERPT_CHARS}), max(total_s)"  # noqa: S608
                f" FROM statements AS s WHERE {where} AND run_s IS NOT NULL"
                # SQLite takes the other columns from the row of the maximum.
                " GROUP BY coalesce(fingerprint, original) ORDER BY max(total_s) DESC LIMIT ?",
                (*values, rows),
            ).fetchall()
            return self._lines(connection, [row[:-1] for row in found])

    def rewritten(self, wanted: Filter, rows: int = DIGESTS_MAX) -> list[tuple[str, int, int, int, str, str]]:
        """Fingerprints of rewritten statements: runs, partitions spared and in all, the last id, an excerpt."""
        where, values = _where(wanted)
        with self._connected() as connection:
            return connection.execute(
                "SELECT fingerprint, count(*), coalesce(sum(partitions_total - partitions_kept), 0),"  # noqa: S608
                f" coalesce(sum(partitions_total), 0), max(id), substr(original, 1, {EXCERPT_CHARS})"
                f" FROM statements AS s WHERE {where} AND outcome = 'rewritten'"
                " GROUP BY fingerprint ORDER BY 3 DESC LIMIT ?",
                (*values, rows),
            ).fetchall()

    def statement(self, identifier: str, seen_by: str | None) -> Record | None:
        """One statement; None where there is none, or the user may not see it."""
        with self._connected() as connection:
            row = connection.execute(
                "SELECT record, original, user, fingerprint FROM statements WHERE id = ?", (identifier,)
            ).fetchone()
        if row is None or (seen_by is not None and row[2] != seen_by):
            return None
        record = msgspec.json.decode(row[0], type=Record)
        record.original, record.fingerprint = row[1], row[3]
        return record

    def sums(self, wanted: Filter) -> Sums:
        """The sums of statements since a time."""
        where, values = _where(wanted)
        with self._connected() as connection:
            outcomes = dict(
                connection.execute(
                    f"SELECT outcome, count(*) FROM statements AS s WHERE {where} GROUP BY outcome",  # noqa: S608
                    values,
                ).fetchall()
            )
            row = connection.execute(
                "SELECT count(*),"  # noqa: S608
                " total(partitions_total - partitions_kept), total(partitions_total), count(partitions_kept),"
                " total(files_total - files_kept), total(files_total),"
                " total(bytes_total - bytes_kept), total(bytes_total), count(bytes_kept)"
                f" FROM statements AS s WHERE {where} AND outcome = 'rewritten'",
                values,
            ).fetchone()
            (candidates,) = connection.execute(
                f"SELECT count(*) FROM statements AS s WHERE {where} AND {_IS_CANDIDATE}",  # noqa: S608
                values,
            ).fetchone()
        return Sums(wanted.since or 0.0, outcomes, candidates, *map(int, row[1:]))

    def reasons(self, wanted: Filter, days: int) -> list[ReasonLine]:
        """The reasons of the last days, those that are met most often first."""
        starts = _days(days)
        seen = "" if wanted.seen_by is None else " AND user = ?"
        values = (id_of_time(starts[0]), *(() if wanted.seen_by is None else (wanted.seen_by,)))
        found: dict[str, ReasonLine] = {}
        day = "".join(f" WHEN id < '{id_of_time(start)}' THEN {number}" for number, start in enumerate(starts[1:]))
        of_day = f"CASE{day} ELSE {len(starts) - 1} END" if day else "0"
        with self._connected() as connection:
            rows = connection.execute(
                f"SELECT reason, {of_day}, count(DISTINCT id), max(id) FROM reasons"  # noqa: S608
                f" WHERE id >= ?{seen} GROUP BY 1, 2",
                values,
            ).fetchall()
            named = connection.execute(
                f"SELECT reason, table_name, count(*) FROM reasons WHERE id >= ?{seen} AND table_name <> ''"  # noqa: S608
                " GROUP BY 1, 2 ORDER BY 3 DESC",
                values,
            ).fetchall()
        for reason, number, count, last in rows:
            line = found.setdefault(reason, ReasonLine(reason, 0, [0] * len(starts), [], ""))
            line.statements += count
            line.days[number] = count
            line.last_id = max(line.last_id, last)
        for reason, table, _ in named:
            if len(found[reason].tables) < 3:  # noqa: PLR2004 - as many as a line of a table bears
                found[reason].tables.append(table)
        return sorted(found.values(), key=lambda line: (line.reason in NOTHING_TO_DECIDE, -line.statements))

    def digests(
        self, wanted: Filter, days: tuple[date, date] | None = None, rows: int = DIGESTS_MAX
    ) -> list[Digest]:
        """One line for each fingerprint, those that took most seconds in all first.

        Compared are an earlier and a later day, or else the last 24 hours and all before.
        """
        where, values = _where(wanted)
        with self._connected() as connection:
            return digests(connection, where, values, _compared(days), rows)

    def groups(self, wanted: Filter, by: By) -> list[Group]:
        """The statements by table, by user, by client or by label, those that took most seconds in all first."""
        where, values = _where(wanted)
        with self._connected() as connection:
            return groups(connection, by, where, values, _IS_CANDIDATE)

    def savings(self, since: float, seen_by: str | None = None) -> dict[str, Savings]:
        """The savings since then by fingerprint, by originals of the last days (COMPARED_DAYS)."""
        where, values = _where(Filter(seen_by=seen_by, since=time.time() - COMPARED_DAYS * DAY_S))
        with self._connected() as connection:
            return savings(connection, where, values, id_of_time(since))

    def savings_over_time(self, wanted: Filter, days: int) -> tuple[dict[float, Savings], dict[float, Savings]]:
        """The savings of the last 24 hours and days by start, by originals among the statements asked for."""
        where, values = _where(wanted)
        with self._connected() as connection:
            return savings_over_time(connection, where, values, _days(days))

    def stakes(self, wanted: Filter) -> list[Stake]:
        """The time of statements that finished as originals though there was something to decide."""
        where, values = _where(wanted)
        with self._connected() as connection:
            return stakes(connection, where, values, NOTHING_TO_DECIDE)

    def shadows(self, wanted: Filter) -> ShadowReport:
        """The report of what rewriting would have saved since a time, by runs in shadow mode."""
        with self._connected() as connection:
            return shadow_report(connection, wanted.seen_by, wanted.since or 0.0)

    def others(self, process: str) -> list[ProcessState]:
        """The states of the other processes that share the file."""
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT state FROM processes WHERE process <> ? AND seen_at >= ?",
                (process, time.time() - LOST_AFTER_S),
            ).fetchall()
        return [msgspec.json.decode(row[0], type=ProcessState) for row in rows]

    def _lines(self, connection: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> list[StatementLine]:
        lines = [StatementLine(*row) for row in rows]
        marks = ", ".join("?" * len(lines))
        reasons: dict[str, list[str]] = {}
        for identifier, reason in connection.execute(
            f"SELECT DISTINCT id, reason FROM reasons WHERE id IN ({marks}) ORDER BY reason",  # noqa: S608
            [line.id for line in lines],
        ):
            reasons.setdefault(identifier, []).append(reason)
        for line in lines:
            line.reasons = reasons.get(line.id, [])
        return lines

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        until = time.monotonic() + QUESTION_S
        if not self._path.exists():
            raise HistoryError(_NOTHING_YET)
        try:
            with closing(connect(self._path, reads_only=True)) as connection:
                connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
                yield connection
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                sentence = (
                    f"The question took longer than {QUESTION_S:g} s; ask for fewer days, or filter by a user."
                )
                raise HistoryError(sentence) from error
            if "no such table" in str(error):
                # The file is being made.
                raise HistoryError(_NOTHING_YET) from error
            raise HistoryError(f"The history cannot be read: {error}.") from error
        except (sqlite3.Error, msgspec.DecodeError) as error:
            raise HistoryError(f"The history cannot be read: {error}.") from error


def today() -> float:
    """Midnight, by the clock and the time zone of this machine."""
    return _days(1)[0]


def _days(count: int) -> list[float]:
    """The beginnings of the last days, today's the last one."""
    year, month, day, *_ = time.localtime()
    return [time.mktime((year, month, day - back, 0, 0, 0, 0, 0, -1)) for back in reversed(range(count))]


def _compared(days: tuple[date, date] | None) -> tuple[TimeSpan, TimeSpan]:
    if days is None:
        a_day_ago = id_of_time(time.time() - DAY_S)
        return TimeSpan("", a_day_ago), TimeSpan(a_day_ago, _LAST_ID)
    earlier, later = (TimeSpan(*(id_of_time(midnight(one, after)) for after in (0, 1))) for one in days)
    return earlier, later


def midnight(day: date, days_after: int = 0) -> float:
    """The beginning of a day, by the time zone of this machine."""
    return time.mktime((day.year, day.month, day.day + days_after, 0, 0, 0, 0, 0, -1))


def _place(before: str) -> tuple[float, str]:
    """The time in all and the id of the statement that a page ended with; no text makes it fail."""
    total, _, identifier = before.rpartition("~")
    try:
        return float(total), identifier
    except ValueError:
        return 0.0, identifier


def _where(wanted: Filter) -> tuple[str, list[object]]:
    terms: list[tuple[str, object]] = []
    place, is_newest = _place(wanted.before) if wanted.before else None, wanted.order == "newest"
    for column, value in (
        ("s.user = ?", wanted.seen_by),
        ("s.user = ?", wanted.user or None),
        ("s.outcome = ?", wanted.outcome or None),
        ("s.fingerprint = ?", wanted.fingerprint or None),
        ("s.id < ?", place[1] if place is not None and is_newest else None),
        ("(s.total_s, s.id) < (?, ?)", None if is_newest else place),
        ("s.client = ?", wanted.client or None),
        ("s.label = ?", wanted.label or None),
        ("s.total_s >= ?", wanted.least_s or None),
        ("s.id >= ?", None if wanted.since is None else id_of_time(wanted.since)),
        ("s.id < ?", None if wanted.until is None else id_of_time(wanted.until)),
        ("EXISTS (SELECT 1 FROM reasons AS r WHERE r.id = s.id AND r.reason = ?)", wanted.reason or None),
        ("EXISTS (SELECT 1 FROM tables AS t WHERE t.id = s.id AND t.name = ?)", wanted.table.lower() or None),
        ("EXISTS (SELECT 1 FROM limits_met AS l WHERE l.id = s.id AND l.name = ?)", wanted.limit_met or None),
        _text_term(wanted.text),
    ):
        if value is not None:
            terms.append((column, value))
    conditions = [column for column, _ in terms] + ([_IS_CANDIDATE] if wanted.only_candidates else [])
    values = [one for _, value in terms for one in (value if isinstance(value, tuple) else (value,))]
    return " AND ".join(conditions) or "1", values


def _text_term(text: str) -> tuple[str, str | None]:
    """The condition of a search: for a statement's id, for an id of Spark's, or for a part of the text."""
    if _ID.fullmatch(text):
        return "s.id = ?", text
    if _SPARK_ID.fullmatch(text):
        return "EXISTS (SELECT 1 FROM spark_ids AS i WHERE i.id = s.id AND i.spark_id = ?)", text
    return "s.original LIKE ? ESCAPE '\\'", _contains(text) if text else None


def _contains(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
