"""The report of shadow mode: what rewriting would have saved, by the runs that it made of both texts.

Like is compared with like: both runs of a pair were made in the client's session, one after the other, beside the
one that the client waited for. Pairs with equal answers count, the time for deciding with the rewritten run.
"""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from proxy.history.record import UNCHANGED, ShadowRecord, id_of_time
from proxy.session.shadow.compare import ShadowVerdict

# The newest statements that a report is made of, so that it is there within a second or two.
STATEMENTS_MAX: Final = 50_000
# Statements that are named, of those that were wrong.
_NAMED_MAX: Final = 20
# Tables and users that are named: those that save most.
_PARTS_MAX: Final = 30

_IN_SHADOW: Final = """
SELECT s.id, s.user, s.record FROM reasons AS r JOIN statements AS s ON s.id = r.id
WHERE r.reason = 'IN_SHADOW' AND r.id >= ? AND coalesce(? = r.user, 1) ORDER BY r.id DESC LIMIT ?
"""


class ShadowTimes(msgspec.Struct):
    """Pairs of runs with equal answers: how long the originals took, and the rewritten ones with deciding."""

    statements: int = 0
    original_s: float = 0.0
    rewritten_s: float = 0.0

    @property
    def saved_s(self) -> float:
        """The seconds that the rewritten runs took less."""
        return self.original_s - self.rewritten_s


class ShadowReport(msgspec.Struct, kw_only=True):
    """The statements that ran as they came, in shadow mode, and what rewriting them would have done."""

    # Seconds since 1970.
    since: float
    statements: int = 0
    # Both texts ran, and gave equal answers; or the rewritten one gave another one, or failed.
    equal: int = 0
    wrong: int = 0
    # The newest of the wrong ones.
    wrong_ids: list[str] = []
    # Statements of which nothing would be narrowed, and how often each reason for that was met.
    unchanged: int = 0
    reasons: dict[str, int] = {}
    # Statements whose answers could not be compared, by the cause.
    not_compared: int = 0
    causes: dict[str, int] = {}
    # Nothing is known: their shadows had not ended, or there was no room for them.
    unknown: int = 0
    # Of all pairs; by table, where a statement counts for each that it narrows; by user.
    times: ShadowTimes = msgspec.field(default_factory=ShadowTimes)
    tables: dict[str, ShadowTimes] = {}
    users: dict[str, ShadowTimes] = {}
    # True if there are more statements, which are older.
    is_cut: bool = False


class _Kept(msgspec.Struct):
    shadow: ShadowRecord | None = None


_KEPT: Final = msgspec.json.Decoder(_Kept)


def shadow_report(connection: sqlite3.Connection, seen_by: str | None, since: float) -> ShadowReport:
    """The report since a time, of the statements of one user or of all."""
    report = ShadowReport(since=since)
    rows = connection.execute(_IN_SHADOW, (id_of_time(since), seen_by, STATEMENTS_MAX + 1))
    for identifier, user, kept in rows:
        if report.statements == STATEMENTS_MAX:
            report.is_cut = True
            break
        report.statements += 1
        _count(report, identifier, user, _KEPT.decode(kept).shadow)
    for parts in (report.tables, report.users):
        ranked = sorted(parts.items(), key=lambda part: part[1].saved_s, reverse=True)
        parts.clear()
        parts.update(ranked[:_PARTS_MAX])
    return report


def _count(report: ShadowReport, identifier: str, user: str, shadow: ShadowRecord | None) -> None:
    if shadow is None:
        report.unknown += 1
    elif shadow.verdict == UNCHANGED:
        report.unchanged += 1
        for reason in shadow.reasons:
            report.reasons[reason] = report.reasons.get(reason, 0) + 1
    elif shadow.verdict == ShadowVerdict.EQUAL.name.lower():
        report.equal += 1
        _add_times(report, user, shadow)
    elif shadow.verdict in {ShadowVerdict.DIFFERENT.name.lower(), ShadowVerdict.FAILED.name.lower()}:
        report.wrong += 1
        report.wrong_ids += [identifier] * (len(report.wrong_ids) < _NAMED_MAX)
    else:
        report.not_compared += 1
        report.causes[shadow.why] = report.causes.get(shadow.why, 0) + 1


def _add_times(report: ShadowReport, user: str, shadow: ShadowRecord) -> None:
    # Those of an older version have no times.
    if shadow.original_s is None or shadow.rewritten_s is None:
        return
    of_tables = [report.tables.setdefault(table, ShadowTimes()) for table in shadow.tables]
    for times in (report.times, report.users.setdefault(user, ShadowTimes()), *of_tables):
        times.statements += 1
        times.original_s += shadow.original_s
        times.rewritten_s += shadow.rewritten_s + shadow.deciding_s
