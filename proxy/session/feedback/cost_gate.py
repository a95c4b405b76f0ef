"""The cost gate: keeps the original where asking for keys is likely to take longer than the rewrite saves.

It decides by the statement's fingerprint, before anything is asked of the backend. The policy stands in
`proxy.session.feedback.cost_model`; here are the records of all sessions of the process.

Calls may come from several threads at once. Each step on the dictionaries is atomic, since their keys are plain
tuples and strings, and records are never changed but replaced: of two runs of one fingerprint that end at the same
moment one may go unrecorded, and nothing worse.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import blake2b
from math import inf
from typing import NamedTuple

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.feedback.cost_model import Choice, CostReport, GateVerdict, Record, RewrittenRun
from proxy.session.feedback.spark_listings import SessionListings

# Fingerprints that are remembered, of all sessions: dashboards have some thousands. A record takes about 1 KB.
RECORDS_MAX = 10_000
# Facts whose last write is remembered. A warehouse has some hundreds.
FACTS_MAX = 10_000

# Time of Spark to list the files of one partition that it does not have in its cache (18 s for 10,000).
_PARTITION_LISTED_S = 0.0018
# To list partitions costs as much as some key queries, and tells nothing of a statement that is not seen again.
_RUNS_BEFORE_COUNTING = 2
# A fact whose partitions were never counted is taken for a large one.
_PARTITIONS_UNKNOWN = 10_000
# Parquet bytes that one core reads per second at least. A fact that one core reads in no time is not worth a
# query.
_BYTES_READ_PER_S = 100e6

# A statement that takes so many times what its facts take to read and to ask for is not explained by their size.
_BELIED = 2.0

# A description and a key query on an idle server; how much one more run changes what is known instead.
_ASKING_S = 0.2
_ASKING_WEIGHT = 0.125

# Enough that two subjects of a process never have one name.
_NAME_BYTES = 12


class StatementKey(NamedTuple):
    """The key of a statement: its scope and its fingerprint. One user's runs say nothing about another's."""

    scope: str
    fingerprint: str

    @property
    def name(self) -> str:
        """A digest for logs and the quarantine: it reveals nothing of the statement, and no two keys share one."""
        return blake2b(f"{self.scope} {self.fingerprint}".encode(), digest_size=_NAME_BYTES).hexdigest()


@dataclass(frozen=True)
class Fact:
    """A table that a statement narrows, or would: the last part of its name, and its size as far as known."""

    name: str
    partitions: int | None = None
    size_bytes: int | None = None


class Way(Enum):
    """The way in which a statement ran."""

    REWRITTEN = "rewritten"
    ASKED_ONLY = "keys were asked for, and the original ran"
    ORIGINAL = "original"


@dataclass(frozen=True)
class Run:
    """A statement that was sent. `overhead_s` is the time for descriptions, keys, lists and planning."""

    subject: StatementKey
    way: Way
    listings: SessionListings = field(repr=False)
    overhead_s: float = 0.0
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class GateReport:
    """The verdict on a statement, and the runs that it rests on."""

    verdict: GateVerdict
    cost_report: CostReport

    @property
    def leaves(self) -> bool:
        """Whether the original goes on, and nothing is asked."""
        return self.verdict is GateVerdict.ORIGINAL


class CostGate:
    """The records of the runs of all sessions of a process."""

    def __init__(self, clock: Callable[[], float], retry_s: float = 600.0) -> None:
        self._clock = clock
        # May be changed at any time.
        self.retry_s = retry_s
        self._records: OrderedDict[StatementKey, Record] = OrderedDict()
        self._written_at: OrderedDict[str, float] = OrderedDict()
        self._asking_s = _ASKING_S

    def report(self, subject: StatementKey, listings: SessionListings) -> GateReport:
        """The verdict of earlier runs on a statement of that session. Changes no record."""
        record = self._record(subject)
        choice = self._choice(record, listings)
        return GateReport(choice.verdict, record.cost_report(choice.why))

    def decide(self, subject: StatementKey, listings: SessionListings) -> GateReport:
        """The opinion on a statement that will be treated so: of a trial, others need not make another one."""
        record = self._record(subject)
        choice = self._choice(record, listings)
        if choice.is_trial:
            self._keep(subject, record.trying(choice.verdict, self._clock()))
        return GateReport(choice.verdict, record.cost_report(choice.why))

    def lacks_counts(self, subject: StatementKey) -> bool:
        """Whether a statement comes often enough that the partitions of its facts are worth being counted."""
        record = self._record(subject)
        return record.rewritten_count >= _RUNS_BEFORE_COUNTING and not record.is_counted

    def estimate(self, subject: StatementKey, facts: Iterable[Fact]) -> GateReport:
        """The verdict by the sizes of the facts, once a statement was planned; unknown sizes count as large.

        They tell nothing where the statement was seen to take far longer than to read them whole: they may stand
        in thousands of files, which nobody has counted.
        """
        facts = tuple(facts)
        listing_s = sum(inf if fact.partitions is None else _listing_s(fact) for fact in facts)
        reading_s = sum(inf if fact.size_bytes is None else fact.size_bytes / _BYTES_READ_PER_S for fact in facts)
        most_s, asking_s = listing_s + reading_s, self._asking_s
        record = self._record(subject)
        if record.direct and record.original_s > _BELIED * (most_s + asking_s):
            return GateReport(GateVerdict.REWRITE, record.cost_report("rewritten, to see what that takes"))
        verdict = GateVerdict.ORIGINAL if most_s < asking_s else GateVerdict.REWRITE
        why = f"to ask for keys takes about {asking_s:.2f} s, and at most {most_s:.2f} s can be saved"
        return GateReport(verdict, CostReport(why=why))

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Learn from the end of a statement. One that failed or was cancelled teaches nothing."""
        if outcome.kind is OutcomeKind.FINISHED and run.way is Way.ORIGINAL:
            self._learn_original(run, outcome.seconds)
        elif outcome.kind is OutcomeKind.FINISHED and run.way is Way.REWRITTEN:
            self._learn_rewritten(run, outcome.seconds)
        elif outcome.kind is OutcomeKind.FINISHED:
            self._learn_rewritten(run, inf)
            self._learn_original(run, outcome.seconds)
        elif outcome.kind in {OutcomeKind.RECOVERED, OutcomeKind.OVERTAKEN}:
            self._learn_rewritten(run, inf)

    def _learn_rewritten(self, run: Run, run_s: float) -> None:
        """Learn from a run for which keys were asked; `run_s` is infinite where they were of no use."""
        record, narrowed = self._about(run), RewrittenRun(run.overhead_s, run_s)
        self._asking_s += (run.overhead_s - self._asking_s) * _ASKING_WEIGHT
        if not run.listings.has(record.facts, self._written_at):
            run.listings.owe(record.facts, record.excess_s(narrowed))
        self._keep(run.subject, record.after_rewritten(narrowed, self._clock()))

    def _learn_original(self, run: Run, run_s: float) -> None:
        """Learn from a run of the original. Its facts are known only where it was planned."""
        record, now = self._about(run), self._clock()
        has_listed = not run.listings.has(record.facts, self._written_at) and record.listing_is_considerable
        run.listings.note(record.facts)
        self._keep(
            run.subject, record.after_listing(run_s, now) if has_listed else record.after_original(run_s, now)
        )

    def cold(self, words: Iterable[str]) -> None:
        """Count the tables among these words as written: Spark lists their files again."""
        now = self._clock()
        for word in words:
            name = word.lower()
            if name in self._written_at:
                self._written_at[name] = now

    def _choice(self, record: Record, listings: SessionListings) -> Choice:
        choice = record.choice(self._clock(), asking_s=self._asking_s, retry_s=self.retry_s)
        if listings.has(record.facts, self._written_at):
            return choice
        return record.unlisted(choice, listings.owed_s(record.facts))

    def _record(self, subject: StatementKey) -> Record:
        return self._records.get(subject, _UNSEEN)

    def _about(self, run: Run) -> Record:
        """The record of a statement and its facts, once it has run."""
        record = _about(self._record(run.subject), run.facts)
        self._note_names(record.facts)
        return record

    def _keep(self, subject: StatementKey, record: Record) -> None:
        _ = self._records.pop(subject, None)
        self._records[subject] = record
        if len(self._records) > RECORDS_MAX:
            _ = self._records.popitem(last=False)

    def _note_names(self, names: Iterable[str]) -> None:
        for name in names:
            _ = self._written_at.setdefault(name, -inf)
        while len(self._written_at) > FACTS_MAX:
            _ = self._written_at.popitem(last=False)


_UNSEEN = Record()


def _about(record: Record, facts: tuple[Fact, ...]) -> Record:
    """The record with what is known of the facts now."""
    if not facts:
        return record
    names = frozenset(fact.name.lower() for fact in facts)
    is_counted = all(fact.partitions is not None for fact in facts)
    if record.is_counted and not is_counted and names == record.facts:
        return record
    return replace(record, facts=names, listing_s=sum(map(_listing_s, facts)), is_counted=is_counted)


def _listing_s(fact: Fact) -> float:
    return _PARTITION_LISTED_S * (_PARTITIONS_UNKNOWN if fact.partitions is None else fact.partitions)
