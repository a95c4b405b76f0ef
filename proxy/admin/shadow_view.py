"""The report of shadow mode in sentences, as the page and the terminal show it."""

from __future__ import annotations

from proxy.admin.formats import count, percent, plural, seconds
from proxy.history.shadow_report import ShadowReport


def sentences(report: ShadowReport, days: int) -> list[str]:
    """The report in short, for somebody who decides about rewriting. The first sentence can stand alone."""
    if not report.statements:
        return [f"No statement has run in shadow mode in the last {plural(days, 'day')}."]
    ran = f"{plural(report.statements, 'statement')} ran in shadow mode"
    newest = ", the newest that are kept" if report.is_cut else ""
    told = [f"In the last {plural(days, 'day')} {ran}{newest}; {_answers(report)}.", _times(report)]
    left = (
        (report.unchanged, "would have gone as they came"),
        (report.not_compared, "could not be compared"),
        (report.unknown, "are not known: their second run had not ended, or found no room"),
    )
    others = [f"{count(number)} {what}" for number, what in left if number]
    return [*told, f"Of the others, {', '.join(others)}."] if others else told


def _answers(report: ShadowReport) -> str:
    both = report.equal + report.wrong
    if not both:
        return "none of them had two answers to compare"
    ran = f"{count(both)} of them ran a second time, rewritten"
    if not report.wrong:
        return f"{ran}, and none gave another answer"
    return f"{ran}, and {count(report.wrong)} gave another answer or failed"


def _times(report: ShadowReport) -> str:
    times = report.times
    if not times.statements:
        return "How long they would have taken when rewritten is not known."
    took = f"{seconds(times.rewritten_s)} in place of {seconds(times.original_s)}"
    less = f"{percent(times.saved_s, times.original_s)} less" if times.saved_s > 0 else "no less"
    return f"Rewritten, {count(times.statements)} of them would have taken {took}, which is {less}."
