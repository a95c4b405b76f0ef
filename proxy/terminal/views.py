"""Views of the admin port's answers as lines: Now, Digests, and the report of shadow mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proxy.admin.formats import UNKNOWN, clock, code, count, now, percent, plural, seconds
from proxy.admin.shadow_view import sentences
from proxy.admin.statements_view import NowView
from proxy.backends.backend import BackendView
from proxy.history.digests import Digest, RunTimes
from proxy.history.record import Record
from proxy.history.shadow_report import ShadowReport
from proxy.terminal.tables import plain, table

# Characters of a statement in a list that is not cut to a terminal.
_TEXT_CHARS_MAX: Final = 1_000


def now_lines(found: NowView, backends: Sequence[BackendView], chars_max: int | None) -> list[str]:
    """The running statements, the backends, and the open sessions."""
    healthy = sum(backend.healthy for backend in backends)
    running = plural(found.running_count, "statement runs", "statements run")
    sessions = plural(found.session_count, "session is open", "sessions are open")
    lines = [f"{clock(now())}: {running}, {sessions}, {healthy} of {plural(len(backends), 'backend')} healthy"]
    lines += map(plain, found.notes)
    if found.running:
        headers = ["SINCE", "FOR>", "USER", "CLIENT", "SENT AS", "STATEMENT"]
        lines += ["", *table(headers, [_running(record) for record in found.running], chars_max)]
    headers = ["BACKEND", "STATE", "BREAKER", "PROBES", "CONNECTIONS>", "FAILURES>", "LAST FAILURE"]
    lines += ["", *table(headers, [_backend(backend) for backend in backends], chars_max)]
    if found.sessions:
        headers = ["OPEN SINCE", "USER", "CLIENT", "STATEMENTS>", "DATABASE"]
        rows = [
            [clock(one.opened_at), one.user or "-", one.client or "-", count(one.statements), one.database]
            for one in found.sessions
        ]
        lines += ["", *table(headers, rows, chars_max)]
    return lines


def digest_lines(digests: Sequence[Digest], compared: tuple[str, str], chars_max: int | None) -> list[str]:
    """One line for each fingerprint, those that took most seconds in all first; `compared` names the two times."""
    if not digests:
        return ["No statement with something to decide has been kept yet."]
    headers = [
        *("RUNS>", "IN ALL>", "REWRITTEN>", "AS REWRITTEN>", "AS ORIGINAL>", "SAVED>"),
        *(f"{time}>" for time in compared),
        *("NOT READ>", "LEFT ALONE BECAUSE", "STATEMENT"),
    ]
    return table(headers, [_digest(one) for one in digests], chars_max)


def shadow_lines(report: ShadowReport, days: int) -> list[str]:
    """The report of shadow mode: sentences, the times by table and by user, and why others were left."""
    lines = sentences(report, days)
    if report.wrong_ids:
        lines.append(f"Another answer, or a failure: {', '.join(report.wrong_ids)}")
    for name, parts in (("TABLE", report.tables), ("USER", report.users)):
        rows = [
            [part or "-", count(one.statements), *map(seconds, (one.original_s, one.rewritten_s, one.saved_s))]
            for part, one in parts.items()
        ]
        if rows:
            lines += ["", *table([name, "STATEMENTS>", "AS ORIGINALS>", "REWRITTEN>", "SAVED"], rows, None)]
    left = [(number, f"as they came: {code(reason)}") for reason, number in report.reasons.items()]
    left += [(number, f"not compared: {cause}") for cause, number in report.causes.items()]
    if left:
        rows = [[count(number), why] for number, why in sorted(left, reverse=True)]
        lines += ["", *table(["STATEMENTS>", "OTHERS, AND WHY"], rows, None)]
    return lines


def _running(record: Record) -> list[str]:
    return [
        clock(record.started_at),
        # Two machines may differ in their clocks.
        seconds(max(0.0, now() - record.started_at)),
        record.user or "-",
        record.client or "-",
        record.sent_as,
        record.original[:_TEXT_CHARS_MAX],
    ]


def _backend(backend: BackendView) -> list[str]:
    state = "draining" if backend.draining else "healthy" if backend.healthy else "not healthy"
    connections = f"{count(backend.connections)} of {count(backend.connections_max)}"
    failure = backend.last_failures[0].reason if backend.last_failures else "-"
    return [backend.name, state, backend.breaker, backend.probes, connections, count(backend.failures), failure]


def _digest(one: Digest) -> list[str]:
    return [
        count(one.runs),
        seconds(one.seconds),
        percent(one.rewritten, one.runs),
        _median(one.times_rewritten),
        _median(one.times_original),
        seconds(one.savings.measured_s) if one.savings.is_known else UNKNOWN,
        f"{'slower, ' if one.is_slower else ''}{_median(one.times_later)}",
        _median(one.times_earlier),
        percent(one.partitions_spared, one.partitions_total),
        _shortened(one.reasons),
        one.excerpt,
    ]


def _shortened(reasons: Sequence[str]) -> str:
    if not reasons:
        return "-"
    more = f" +{len(reasons) - 1}" if len(reasons) > 1 else ""
    return f"{code(reasons[0])}{more}"


def _median(times: RunTimes | None) -> str:
    return seconds(None if times is None else times.median_s)
