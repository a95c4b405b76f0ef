"""The record of one statement: who sent it, what was decided, how it ended, what it spared. Plain values."""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from random import getrandbits
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from proxy.limits.limits import Finding
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.decision import Decision
from proxy.session.explain.text import without_files
from proxy.session.explain.view import CountView, LimitView, ScanView, view
from proxy.session.feedback.known_texts import without_constants
from proxy.session.shadow.compare import Comparison, ShadowVerdict
from proxy.session.statement_log import LoggedStatement
from proxy.session.timings import AskedQuery
from rewriter import SkipReason

# Characters of a text that are kept: as many as the longest statement that is rewritten by default has. Longer
# ones are mostly INSERT .. VALUES, of which the beginning tells enough.
TEXT_CHARS_MAX: Final = 262_144
# Characters of a predicate, a key query or a server's message. The rewritten text has the whole predicate.
PART_CHARS_MAX: Final = 4_000
# The beginning of fingerprints of statements that were not parsed: the digest of a text.
TEXT_FINGERPRINT: Final = "text-"
_DIGEST_BYTES: Final = 8
_order = count()
# Characters of a statement that its own session is shown.
LAST_CHARS_MAX: Final = 300
# Scans of a statement that are kept: a text of 256 KB could name tens of thousands.
SCANS_MAX: Final = 100
# Queries of a decision that are kept. Most have fewer than ten.
ASKED_MAX: Final = 50

_ORIGINAL_INSTEAD: Final = "the rewritten text was too long to be sent, or too many others may have to fall back"

_OUTCOMES: Final = {
    OutcomeKind.FAILED: "failed",
    OutcomeKind.FAILED_TWICE: "failed",
    OutcomeKind.RECOVERED: "fallback",
    OutcomeKind.OVERTAKEN: "fallback",
    OutcomeKind.NOT_SENT: "cancelled",
    OutcomeKind.LOST: "unseen",
    OutcomeKind.REFUSED: "refused",
}
OutcomeName: TypeAlias = Literal[
    "rewritten", "original", "answered", "fallback", "failed", "cancelled", "unseen", "refused"
]
OUTCOMES: Final[tuple[str, ...]] = get_args(OutcomeName)


# The verdict about a statement of which nothing would be narrowed.
UNCHANGED: Final = "unchanged"


class ShadowRecord(msgspec.Struct):
    """The verdict of a shadow run: both texts ran, and their answers were compared, if anything is narrowed."""

    verdict: str
    why: str
    # Of both runs and their comparison together.
    seconds: float
    # Of the statement, which the shadow run alone has parsed.
    fingerprint: str | None = None
    # Of the first run of each text, and of the decision. Null where the run has no answer.
    original_s: float | None = None
    rewritten_s: float | None = None
    deciding_s: float = 0.0
    # The tables that would be narrowed, or else the codes of the reasons why none would be.
    tables: list[str] = []
    reasons: list[str] = []


class Record(msgspec.Struct, kw_only=True):
    """A statement in the history. Seconds are null until they are known; `outcome` is "running" until its end.

    The outcome is "rewritten" or "original" for a statement that finished, by the text that was sent; "answered"
    for one that the proxy answered itself, such as EXPLAIN REWRITE; "fallback" where the original was run after
    the rewritten text failed or was out of date; "failed"; "cancelled" where the client cancelled or left, or an
    administrator cancelled it; "unseen" where nobody saw its end, as of a statement that is not waited for;
    "refused" for one that a limit rejected, and that was not sent.
    """

    id: str
    # Seconds since 1970, of its arrival.
    started_at: float
    user: str
    session: str
    client: str
    database: str
    # The address of the Spark Thrift Server that ran it, and the ids by which its UI shows the runs ("GroupID"):
    # none of a statement that was not followed, two of one that fell back.
    backend: str = ""
    spark_ids: list[str] = []
    outcome: str = "running"
    # The end in more detail: a name of OutcomeKind, in lower case.
    end: str = ""
    # The administrator who cancelled it: "an administrator (anna)"; empty where none did.
    cancelled_by: str = ""
    original: str
    # The dashboard, model or program that it comes from, where it is known (`proxy.history.labels`).
    label: str = ""
    # True if the proxy answers it itself.
    is_answered: bool = False
    # Null where the original was sent.
    rewritten: str | None = None
    # Equal for statements whose texts differ in constants alone; begins with "text-" for one that was not parsed.
    fingerprint: str | None = None
    # The code of the reason for which the statement as a whole stayed original.
    skip_reason: str | None = None
    cause: str | None = None
    rules: list[str] = []
    scans: list[ScanView] = []
    cost_report: str | None = None
    # True if Spark has to list files for its original; null where that is not known.
    lists_files: bool | None = None
    # From its arrival until it was sent, the next two included; of a rewritten one, key queries too.
    deciding_s: float = 0.0
    descriptions_s: float = 0.0
    key_queries_s: float = 0.0
    # The queries of the decision, some of them where there are very many.
    asked: list[AskedQuery] = []
    # From when it was sent until its end was seen; of a fallback the first run alone.
    run_s: float | None = None
    # The second run of a fallback.
    fallback_s: float | None = None
    # The server's message of the first failure.
    message: str | None = None
    shadow: ShadowRecord | None = None
    # The limits on what it may read that it met; missing in a history that an earlier version wrote.
    limits: list[LimitView] = []

    @property
    def total_s(self) -> float:
        """From its arrival to its end, as far as it was seen: with both runs of one that fell back."""
        return self.deciding_s + (self.run_s or 0.0) + (self.fallback_s or 0.0)

    @property
    def sent_as(self) -> str:
        """The text that is sent: also its outcome, if it finishes."""
        if self.is_answered:
            return "answered"
        return "original" if self.rewritten is None else "rewritten"

    @property
    def chars(self) -> int:
        """Roughly the memory that it takes."""
        return len(self.original) + len(self.rewritten or "") + 500 + 1_000 * len(self.scans)


def new_id(now: float) -> str:
    """An id that sorts by time, and within a millisecond of a process mostly by its order.

    >>> new_id(1.5)[:12]
    '0000000005dc'
    """
    return f"{int(now * 1000):012x}{next(_order) & 0xFFFF:04x}{getrandbits(32):08x}"


def text_fingerprint(text: str) -> str:
    """The fingerprint of a text that was not parsed: equal for texts that differ in constants alone.

    >>> text_fingerprint("SELECT 1") == text_fingerprint("SELECT 2")
    True
    """
    like = without_constants(text)
    digest = blake2b((text if like is None else like).encode(errors="replace"), digest_size=_DIGEST_BYTES)
    return f"{TEXT_FINGERPRINT}{digest.hexdigest()}"


def id_of_time(at: float) -> str:
    """The lowest id of that time."""
    return f"{max(0, int(at * 1000)):012x}"


def cut(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """The text, or its beginning where it is longer."""
    return text if len(text) <= chars_max else f"{text[:chars_max]} .."


def decide(record: Record, decision: Decision) -> None:
    """Add the decision about it. Nothing of the statement's tree or the lists of partitions is kept."""
    timings, key = decision.timings, decision.key
    record.deciding_s = timings.total_s
    record.descriptions_s = timings.catalog_s + timings.files_s
    record.key_queries_s = timings.key_queries_s
    record.asked = timings.asked[:ASKED_MAX]
    record.started_at -= timings.total_s
    record.skip_reason = decision.skip.name if decision.skip is not None else None
    record.fingerprint = key.fingerprint if key is not None else None
    record.cost_report = decision.cost_report
    if decision.rewrite is None:
        return
    explained = view(decision)
    record.cause = explained.cause
    record.scans = [_short(scan) for scan in explained.scans[:SCANS_MAX]]
    if decision.is_narrowed:
        record.rewritten = cut(without_files(decision.text))
        record.rules = sorted(rule.value for rule in decision.rewrite.rules)


def answer(record: Record, deciding_s: float) -> None:
    """Add that the proxy answers it itself, and how long it took to find the answer."""
    record.is_answered = True
    record.deciding_s = deciding_s
    record.started_at -= deciding_s


def limit(record: Record, findings: Sequence[Finding]) -> None:
    """Add the limits that it met."""
    record.limits = [LimitView.of(one) for one in findings[:SCANS_MAX]]


def end(record: Record, outcome: Outcome) -> None:
    """Add its end."""
    record.end, record.cancelled_by = outcome.kind.name.lower(), outcome.cancelled_by
    record.run_s, record.fallback_s = outcome.seconds, outcome.fallback_s
    if outcome.original_instead:
        record.rewritten, record.rules, record.cause = None, [], _ORIGINAL_INSTEAD
    if outcome.kind is OutcomeKind.FINISHED:
        record.outcome = record.sent_as
    elif outcome.kind is OutcomeKind.UNKNOWN:
        # A statement that is not tracked has no time at all.
        record.outcome = "cancelled" if outcome.seconds else "unseen"
    else:
        record.outcome = _OUTCOMES[outcome.kind]
    if record.outcome == "unseen":
        record.run_s = None
    if outcome.message:
        record.message = cut(outcome.message, PART_CHARS_MAX)


def shadow_of(comparison: Comparison | None, decision: Decision) -> ShadowRecord:
    """The verdict of a shadow run; without a comparison, that of a statement that was only decided about."""
    fingerprint = decision.key.fingerprint if decision.key is not None else None
    scans = view(decision).scans[:SCANS_MAX] if decision.rewrite is not None else []
    found = ShadowRecord(UNCHANGED, "", 0.0, fingerprint, deciding_s=decision.timings.total_s)
    if comparison is not None:
        found.verdict, found.why = comparison.verdict.name.lower(), comparison.why
        found.seconds = comparison.seconds
        found.original_s, found.rewritten_s = comparison.original_s, comparison.rewritten_s
        found.tables = sorted({scan.table for scan in scans if scan.predicate is not None})
    elif decision.is_narrowed:
        found.verdict, found.why = ShadowVerdict.UNCOMPARABLE.name.lower(), "the statement does not only read"
    elif decision.skip is not None:
        found.reasons = [decision.skip.name]
    else:
        found.reasons = sorted({one.skip_reason for one in scans if one.is_fact and one.skip_reason is not None})
    return found


def add_verdict(record: Record, verdict: ShadowRecord) -> None:
    """Add the verdict, and the fingerprint that came with it."""
    record.shadow = verdict
    record.fingerprint = verdict.fingerprint or record.fingerprint


def reasons_of(record: Record) -> list[tuple[str, str]]:
    """The reasons for which it, or fact scans of it, stayed as they were, each with the table or an empty string.

    A statement that was left alone as a whole has that reason alone: its scans repeat it.
    """
    if record.skip_reason is not None:
        tables = {scan.table for scan in record.scans if scan.is_fact} or {""}
        return [(record.skip_reason, table) for table in sorted(tables)]
    left = {(scan.skip_reason, scan.table) for scan in record.scans if scan.is_fact and scan.predicate is None}
    return sorted((reason, table) for reason, table in left if reason is not None)


def tables_of(record: Record) -> set[str]:
    """The tables that its scans name, those of CTEs left out."""
    return {scan.table for scan in record.scans if scan.skip_reason != SkipReason.NOT_A_TABLE.name}


def counted(record: Record, part: str) -> CountView:
    """The partitions, files or bytes of all scans with a predicate, of which both numbers are known."""
    counts = [getattr(scan, part) for scan in record.scans if scan.predicate is not None]
    known = [(one.total, one.kept) for one in counts if one.total is not None and one.kept is not None]
    if not known:
        return CountView()
    return CountView(sum(total for total, _ in known), sum(kept for _, kept in known))


def logged(record: Record) -> LoggedStatement:
    """The statement as its own session is shown it, its literals included."""
    partitions = counted(record, "partitions")
    return LoggedStatement(
        id=record.id,
        started_at=record.started_at,
        outcome=record.outcome,
        seconds=None if record.run_s is None else record.total_s,
        deciding_s=record.deciding_s,
        partitions_kept=partitions.kept,
        partitions_total=partitions.total,
        reasons=", ".join(dict.fromkeys(reason for reason, _ in reasons_of(record))),
        statement=cut(record.original, LAST_CHARS_MAX),
    )


def now() -> float:
    """The time of day, by which processes that share a history agree."""
    return time.time()


def _short(scan: ScanView) -> ScanView:
    reducers = [
        msgspec.structs.replace(
            one, key_query=cut(one.key_query, PART_CHARS_MAX), join=cut(one.join, PART_CHARS_MAX)
        )
        for one in scan.reducers
    ]
    would = None if scan.would is None else msgspec.structs.replace(scan.would, predicate=None)
    predicate = None if scan.predicate is None else cut(without_files(scan.predicate), PART_CHARS_MAX)
    cause = None if scan.cause is None else cut(scan.cause, PART_CHARS_MAX)
    return msgspec.structs.replace(scan, reducers=reducers, would=would, predicate=predicate, cause=cause)
