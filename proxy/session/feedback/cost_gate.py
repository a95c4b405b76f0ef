"""The cost gate: keeps the original where asking for keys is likely to take longer than the rewrite saves.

It decides by the statement's fingerprint, before anything is asked of the backend. The policy stands in
`proxy.session.feedback.cost_model`; here are the records of all sessions of the process.

Calls may come from several threads at once. Each step on the dictionaries is atomic, since their keys are plain
tuples and strings, and records are never changed but replaced: of two runs of one fingerprint that end at the same
moment one may go unrecorded, and nothing worse. Only the steps that keep a record are under a lock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import blake2b
from math import inf, isinf
from threading import Lock
from typing import NamedTuple, Protocol, TypeVar

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.feedback.cost_model import GateVerdict, Moment, RunRecord
from proxy.session.feedback.spark_errors import is_write_conflict
from proxy.session.feedback.spark_listings import Listing, SessionListings
from rewriter import SkipReason

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

# Fingerprints that are remembered, of all sessions: dashboards have some thousands. A record takes about 1 KB.
RECORDS_MAX = 10_000
# Facts whose last write is remembered. A warehouse has some hundreds.
FACTS_MAX = 10_000

# Time of Spark to list the files of one partition that it does not have in its cache (18 s for 10,000).
PARTITION_LISTED_S = 0.0018
# To list partitions costs as much as some key queries, and tells nothing of a statement that is not seen again.
_RUNS_BEFORE_COUNTING = 2
# A fact whose partitions were never counted is taken for a large one.
_PARTITIONS_UNKNOWN = 10_000
# Parquet bytes that one core reads per second at least. A fact that one core reads in no time is not worth a
# query.
_BYTES_READ_PER_S = 100e6

# The time of a description and a key query on an idle server; the weight of one more run in the measured time; and
# the least time that counts. Keys that nobody waits for cost the server as much, so small facts are left alone in
# any case.
_ASKING_S = 0.2
_ASKING_WEIGHT = 0.125
_ASKING_MIN_S = 0.05

# Begins the scopes of sessions whose states are like no other: one for each user.
PRIVATE_SCOPE = "private "
# A statement that has run once may never come again: other replicas are not told of it.
_RUNS_BEFORE_TELLING = 2

# Enough that two subjects of a process never have one name.
_NAME_BYTES = 12


def owner_of(user: str) -> str:
    """The name by which lessons of a user are kept: nobody reads the user's own name in logs or rows."""
    return blake2b(user.encode(errors="surrogatepass"), digest_size=_NAME_BYTES).hexdigest()


class StatementKey(NamedTuple):
    """The key of a statement: its scope, its fingerprint and its user (`owner_of`).

    One user's runs say nothing about another's. The owner is empty where an earlier version did not tell.
    """

    scope: str
    fingerprint: str
    owner: str = ""

    @property
    def is_private(self) -> bool:
        """True if it is of a user's sessions with states like no other: replicas do not tell one another of it."""
        return self.scope.startswith(PRIVATE_SCOPE)

    @property
    def name(self) -> str:
        """A digest for logs and the quarantine: it reveals nothing of the statement, and no two keys share one."""
        return blake2b(f"{self.scope} {self.fingerprint}".encode(), digest_size=_NAME_BYTES).hexdigest()


@dataclass(frozen=True)
class Fact:
    """A table that a statement narrows, or would: the last part of its name, and its size as far as known."""

    name: str
    # Partitions whose files Spark lists for each session: 0 for Delta and Iceberg, whose metadata lists the files
    # for all sessions.
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
    # The reason why nothing was inserted, although keys or descriptions were asked for.
    reason: SkipReason | None = None
    # True if the statement may write.
    writes: bool = False


@dataclass(frozen=True)
class GateReport:
    """The verdict on a statement, why, and the runs that it rests on. A trial measures the other way."""

    verdict: GateVerdict
    why: str
    record: RunRecord = field(default=RunRecord(), repr=False)
    is_trial: bool = False

    @property
    def leaves(self) -> bool:
        """True if the original goes on, and nothing is asked."""
        return self.verdict is GateVerdict.ORIGINAL

    @property
    def skip(self) -> SkipReason:
        """The reason for which it leaves a statement alone: that of its last plan, if nothing can be inserted."""
        if self.is_trial:
            return SkipReason.TRIAL
        return self.record.reason if self.record.is_in_vain and self.record.reason else SkipReason.NOT_WORTH_IT

    @property
    def sentence(self) -> str:
        """The report in words."""
        record, ways = self.record, []
        if record.is_in_vain and record.reason is not None:
            return f"It was planned {_times(record.rewritten_count)}, and nothing could be inserted: {self.why}."
        if record.rewritten:
            took = "without gain" if record.is_in_vain else f"in {record.rewritten_s:.2f} s"
            asking = f"of which asking for keys took {record.overhead_s:.2f} s"
            ways.append(f"{_times(record.rewritten_count)} rewritten {took}, {asking}")
        if record.originals or record.cold_s is not None:
            took = f"in {record.warm_s:.2f} s" if record.originals else f"in {record.cold_s:.2f} s, files listed"
            ways.append(f"{_times(record.original_count)} as the original {took}")
        unseen = "was not seen before" if isinf(record.conflicted_at) else "has not finished so far"
        seen = f"ran {', and '.join(ways)}" if ways else unseen
        return f"It {seen}: {self.why}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


class Gate(Protocol):
    """Decides which statements are left alone, and is told how they ran."""

    # May be changed at any time.
    retry_s: float

    def report(self, subject: StatementKey, listings: SessionListings) -> GateReport:
        """The verdict of earlier runs on a statement of that session. Changes nothing."""
        ...

    def decide(self, subject: StatementKey, listings: SessionListings) -> GateReport:
        """The verdict on a statement that will be treated so. A trial is noted: others need not make one."""
        ...

    def lacks_counts(self, subject: StatementKey) -> bool:
        """True if a statement comes often enough that the partitions of its facts are worth being counted."""
        ...

    def estimate(self, subject: StatementKey, facts: Iterable[Fact]) -> GateReport:
        """The verdict by the sizes of the facts, once a statement was planned; unknown sizes count as large."""
        ...

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Learn from the end of a statement. Of failures, conflicts with other writers alone teach something."""
        ...

    def lists_files(self, run: Run) -> bool:
        """True if Spark has to list files for the original of a run that begins.

        For a rewritten run: if Spark had to, had all earlier statements of its session run as originals.
        """
        ...

    def files_listed(self, run: Run) -> None:
        """Count the files of its facts as listed: the statement was not planned, and the original has run."""
        ...

    def facts_among(self, words: Collection[str]) -> tuple[Fact, ...]:
        """The facts among these words that other statements have named so far."""
        ...

    def written(self, words: Iterable[str]) -> None:
        """Count the tables among these words as written: Spark lists their files again."""
        ...


class CostGate:
    """The records of the runs of all sessions of a process, as a `Gate`."""

    def __init__(self, clock: Callable[[], float], retry_s: float = 600.0) -> None:
        self._clock = clock
        self.retry_s = retry_s
        self._records: OrderedDict[StatementKey, RunRecord] = OrderedDict()
        self._written_at: OrderedDict[str, float] = OrderedDict()
        # The usual time of asking, by user: nobody's slow keys make those of others look slow.
        self._asking_s: OrderedDict[str, float] = OrderedDict()
        # Records of other replicas, by name; and the statements of whose runs the others were not told. None until
        # somebody asks for them: a proxy that shares nothing keeps none.
        self._learned: dict[str, RunRecord] = {}
        self._untold: OrderedDict[StatementKey, None] | None = None
        # Threads of several sessions keep records at once.
        self._keeping = Lock()

    def changed(self) -> dict[str, RunRecord]:
        """The records that have changed since the last call, by name, of statements that others may run too."""
        told: dict[str, RunRecord] = {}
        with self._keeping:
            untold = self._records if self._untold is None else self._untold
            subjects, self._untold = list(untold), OrderedDict()
        for subject in subjects:
            record = self._records.get(subject)
            if record is not None and record.run_count >= _RUNS_BEFORE_TELLING and not subject.is_private:
                told[subject.name] = record
        return told

    def learn(self, records: dict[str, RunRecord]) -> None:
        """Use the records of other replicas where there are none of this one."""
        self._learned = records
        # From now on writes of their facts are noticed.
        for name in frozenset[str]().union(*(record.facts for record in records.values())):
            if len(self._written_at) < FACTS_MAX:
                _ = self._written_at.setdefault(name, -inf)

    def report(self, subject: StatementKey, listings: SessionListings) -> GateReport:
        """See Gate."""
        record = self._record(subject)
        listing, lost_s = self._listing(record, listings), listings.lost_s(record.facts, self._written_at)
        asking_s = self._asking_s.get(subject.owner, _ASKING_S)
        choice = record.choice(Moment(self._clock(), listing, lost_s, asking_s, self.retry_s))
        return GateReport(choice.verdict, choice.why, record, choice.is_trial)

    def decide(self, subject: StatementKey, listings: SessionListings) -> GateReport:
        """See Gate."""
        report = self.report(subject, listings)
        if report.is_trial:
            self._keep(subject, report.record.trying(self._clock()))
        if report.leaves:
            listings.drop_lost(report.record.facts)
        return report

    def lacks_counts(self, subject: StatementKey) -> bool:
        """See Gate."""
        record = self._record(subject)
        return record.rewritten_count >= _RUNS_BEFORE_COUNTING and not record.is_counted

    def estimate(self, subject: StatementKey, facts: Iterable[Fact]) -> GateReport:
        """See Gate."""
        record = _about(self._record(subject), tuple(facts))
        asking_s = self._asking_s.get(subject.owner, _ASKING_S)
        leaves = record.is_small(asking_s) and not record.has_conflicted(self._clock())
        verdict = GateVerdict.ORIGINAL if leaves else GateVerdict.REWRITE
        most_s = record.listing_s + record.reading_s
        why = f"to ask for keys takes about {asking_s:.2f} s, and at most {most_s:.2f} s can be saved"
        return GateReport(verdict, why, record)

    def ended(self, run: Run, outcome: Outcome) -> None:
        """See Gate."""
        is_finished, is_rewritten = outcome.kind is OutcomeKind.FINISHED, run.way is Way.REWRITTEN
        if run.way is not Way.ORIGINAL and (is_finished or outcome.kind in _IN_VAIN):
            self._learn_rewritten(run, outcome.seconds if is_finished and is_rewritten else inf)
        if is_finished and not is_rewritten:
            self._learn_original(run, outcome.seconds)
        if outcome.kind is OutcomeKind.FAILED and not is_rewritten and is_write_conflict(outcome.message):
            self._keep(run.subject, replace(self._record(run.subject), conflicted_at=self._clock()))

    def lists_files(self, run: Run) -> bool:
        """See Gate."""
        record = self._about(run)
        if run.way is Way.REWRITTEN:
            return not run.listings.were_read(record.facts, self._written_at)
        return self._listing(record, run.listings) is not Listing.LISTED

    def files_listed(self, run: Run) -> None:
        """See Gate."""
        run.listings.tables_listed(self._about(run).facts)

    def facts_among(self, words: Collection[str]) -> tuple[Fact, ...]:
        """See Gate."""
        return tuple(Fact(name) for name in words if name in self._written_at)

    def written(self, words: Iterable[str]) -> None:
        """See Gate."""
        now = self._clock()
        for word in words:
            name = word.lower()
            if name in self._written_at:
                self._written_at[name] = now

    def _learn_rewritten(self, run: Run, run_s: float) -> None:
        """Learn from a run for which keys were asked; `run_s` is infinite where they were of no use."""
        record = self._about(run)
        asking_s = self._asking_s.get(run.subject.owner, _ASKING_S)
        run.listings.tables_read(record.facts)
        asking_s += (run.overhead_s - asking_s) * _ASKING_WEIGHT
        with self._keeping:
            _keep_newest(self._asking_s, run.subject.owner, max(asking_s, _ASKING_MIN_S))
        after = record.after_rewritten(run.overhead_s, run_s, self._clock())
        after = replace(after, reason=run.reason, writes=run.writes)
        if self._listing(record, run.listings) is not Listing.LISTED:
            lost_s = (
                run_s + run.overhead_s - record.warm_s if record.originals else after.risked_s - record.risked_s
            )
            run.listings.add_lost(record.facts, lost_s, self._written_at)
        self._keep(run.subject, after)

    def _learn_original(self, run: Run, run_s: float) -> None:
        """Learn from a run of the original. Its facts are known only where it was planned."""
        record = self._about(run)
        listing = self._listing(record, run.listings)
        run.listings.tables_listed(record.facts)
        self._keep(run.subject, record.after_original(run_s, listing))

    def _listing(self, record: RunRecord, listings: SessionListings) -> Listing:
        return listings.listing(record.facts, self._written_at)

    def _record(self, subject: StatementKey) -> RunRecord:
        own = self._records.get(subject, _UNSEEN)
        # Statements that have run both ways need nothing of others.
        if not self._learned or own.has_both_ways:
            return own
        learned = self._learned.get(subject.name)
        return own if learned is None else own.completed_by(learned)

    def _about(self, run: Run) -> RunRecord:
        """The record of a statement and its facts, once it has run."""
        record = self._record(run.subject)
        if run.facts:
            record = replace(_about(record, run.facts), planned_at=self._clock())
        for name in record.facts:
            _ = self._written_at.setdefault(name, -inf)
        while len(self._written_at) > FACTS_MAX:
            _ = self._written_at.popitem(last=False)
        return record

    def _keep(self, subject: StatementKey, record: RunRecord) -> None:
        with self._keeping:
            _keep_newest(self._records, subject, record)
            if self._untold is not None:
                _keep_newest(self._untold, subject, None)


def _keep_newest(kept: OrderedDict[K, T], key: K, value: T) -> None:
    """Keep it as the newest; the oldest goes where there are too many."""
    _ = kept.pop(key, None)
    kept[key] = value
    if len(kept) > RECORDS_MAX:
        _ = kept.popitem(last=False)


_UNSEEN = RunRecord()
# Ends of a rewritten statement whose client has the original's answer.
_IN_VAIN = frozenset({OutcomeKind.RECOVERED, OutcomeKind.OVERTAKEN})


def _about(record: RunRecord, facts: tuple[Fact, ...]) -> RunRecord:
    """The record with what is known of the facts now."""
    names = frozenset(fact.name.lower() for fact in facts if fact.partitions != 0)
    is_counted = all(fact.partitions is not None for fact in facts)
    if record.is_counted and not is_counted and names == record.facts:
        return record
    reading_s = sum(inf if fact.size_bytes is None else fact.size_bytes / _BYTES_READ_PER_S for fact in facts)
    listing_s = sum(map(_listing_s, facts))
    return replace(record, facts=names, listing_s=listing_s, reading_s=reading_s, is_counted=is_counted)


def _listing_s(fact: Fact) -> float:
    return PARTITION_LISTED_S * (_PARTITIONS_UNKNOWN if fact.partitions is None else fact.partitions)
