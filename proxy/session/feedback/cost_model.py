"""The cost model: the policy of the cost gate, as a value for each fingerprint. No clock, no table of records.

A statement runs rewritten, after its keys were asked for, or as the original, which is never worse than without
the proxy. It is left alone where the original was faster, by the last three runs of each way. Originals for which
Spark had to list the files of the facts count apart. In a session that has not listed these files, such a run
decides, or an estimate while none was seen. If only the listing makes the original slower, it runs once the
session's rewritten runs have lost as much, since its start or the last write. The other way is tried when it is
expected to cost at most 1 % of the time of all runs since the last trial. The first trial may cost as much as
rewritten runs may have lost: the time of asking, or a tenth of each run if that is more. On listed files an
original that only reads, and was never seen, is tried after two rewritten runs in any case: it is not slower than
without the proxy. Trials take less than 2 % of the time once the first is made up for. A statement that is left
alone is tried no sooner than after `rewrite.gate_retry_s`; but if an original took twice as long as a rewritten
run, and more than originals gained before, the next run is rewritten at once. No original is tried that would list
files after a write through the proxy, if such a run was seen before.

A MERGE whose original failed by a conflict with another writer is rewritten for two days, whatever that takes, if
its keys are of use: one that names the partitions of its target does not conflict with writers of others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import inf, isinf
from statistics import median_low
from typing import Final, NamedTuple

from proxy.session.feedback.spark_listings import Listing
from rewriter import SkipReason

# Runs that count, of each way: a median of three lets one outlier pass, and follows a change after two runs.
RUNS_KEPT_MAX: Final = 3
# Part of the time of all runs since the last trial that a trial may cost.
_TRIAL_PART: Final = 0.01
# Part of a rewritten run that counts as lost while no original is known, even where asking takes less: literals
# can slow a plan down, by a factor of four at the worst seen.
_RISKED_PART: Final = 0.1
# Rewritten runs on listed files before the first original is tried. If nobody waits for asking, it takes no time
# of its own, but slows the statement down by what the key query takes of the server.
_RUNS_BEFORE_TRIAL: Final = 2
# Times that differ by less than this factor are even. Then the last decision stays. Before the first one the
# original is better, since it asks for nothing.
_EVEN: Final = 1.1
# A time so many times as long as expected is not explained by chance. Until an original is seen, it is taken to
# run so many times as long as the rewritten statement.
_SURPRISE: Final = 2.0
# Gains that make up for one slow original, in rewritten runs: more of them would hide a change for too long.
_GAINED_RUNS_MAX: Final = 100
# Time for which a conflict of writers counts: loads that meet do so again the next day.
_CONFLICT_S: Final = 172_800.0


class GateVerdict(Enum):
    """The verdict on a statement."""

    REWRITE = "rewrite"
    ORIGINAL = "original"


class Choice(NamedTuple):
    """The way of the next statement of a fingerprint, and why. A trial measures the other way."""

    verdict: GateVerdict
    why: str
    is_trial: bool = False


class Moment(NamedTuple):
    """The moment and the session in which a statement comes."""

    now: float
    listing: Listing
    # Seconds that rewritten runs of the session have lost while the facts' files were not listed.
    lost_s: float
    # The usual time of asking for keys.
    asking_s: float
    retry_s: float


@dataclass(frozen=True)
class RunRecord:
    """The runs of the statements of one fingerprint. A record never changes: each run makes another one."""

    # The facts' names; the time to list their files where Spark does not have them, and to read them whole.
    facts: frozenset[str] = frozenset()
    listing_s: float = inf
    reading_s: float = inf
    # True if the listing rests on counted partitions; else facts without a count are taken for large ones.
    is_counted: bool = False
    # Rewritten runs, asking included, and asking alone. Infinite where the keys were of no use.
    rewritten: tuple[float, ...] = ()
    overheads: tuple[float, ...] = ()
    # Originals on listed files, and the time of the last one that had them listed.
    originals: tuple[float, ...] = ()
    cold_s: float | None = None
    rewritten_count: int = 0
    original_count: int = 0
    # True if the original is better on listed files; None until both ways were compared.
    is_left: bool | None = None
    # Since the last trial: the time of all runs, and the part of it that rewritten runs may have lost.
    since_s: float = 0.0
    risked_s: float = 0.0
    # Seconds that originals on listed files have gained against rewritten runs, less what they have lost.
    gained_s: float = 0.0
    # When the statement was last planned, or a trial begun.
    planned_at: float = -inf
    # When an original last failed by a conflict with another writer.
    conflicted_at: float = -inf
    # The reason for which nothing was inserted, where the keys of the last run were of no use.
    reason: SkipReason | None = None
    # True if the last rewritten run wrote: an original that reads more may conflict with other writers.
    writes: bool = False

    @property
    def rewritten_s(self) -> float:
        """The time of a rewritten run, asking included."""
        return median_low(self.rewritten)

    @property
    def overhead_s(self) -> float:
        """The time of asking."""
        return median_low(self.overheads)

    @property
    def is_in_vain(self) -> bool:
        """True if it was planned, or its keys asked for, to no use."""
        return bool(self.rewritten) and isinf(self.rewritten_s)

    @property
    def is_measured(self) -> bool:
        """True if an original was seen."""
        return bool(self.originals) or self.cold_s is not None

    @property
    def warm_s(self) -> float:
        """The time of an original on listed files."""
        if self.originals:
            return median_low(self.originals)
        if self.cold_s is not None:
            return max(0.0, self.cold_s - self.listing_s)
        return _SURPRISE * max(0.0, self.rewritten_s - self.overhead_s)

    def original_s(self, listing: Listing) -> float:
        """The time of an original in such a session."""
        if listing is Listing.LISTED:
            return self.warm_s
        return self.warm_s + self.listing_s if self.cold_s is None else max(self.cold_s, self.warm_s)

    def is_small(self, asking_s: float) -> bool:
        """True if the facts are too small to gain by keys, and no original has shown that there is more to gain.

        Small facts may have thousands of files, which nobody has counted.
        """
        most_s = self.listing_s + self.reading_s
        return most_s < asking_s and not (self.is_measured and self.warm_s > _SURPRISE * (most_s + asking_s))

    def has_conflicted(self, now: float) -> bool:
        """True if an original failed lately by a conflict with another writer."""
        return now - self.conflicted_at < _CONFLICT_S

    def choice(self, moment: Moment) -> Choice:
        """The way of the next statement."""
        if self.is_in_vain:
            return self._left(self.overhead_s, moment)
        if self.has_conflicted(moment.now):
            return Choice(GateVerdict.REWRITE, "rewritten, since its original conflicted with another writer")
        if not self.rewritten:
            return self._unseen(moment)
        original_s = self.original_s(moment.listing)
        if self._is_better(original_s, moment):
            return self._left(_price_s(self.rewritten_s, original_s), moment)
        return self._narrowed(original_s, moment)

    def _unseen(self, moment: Moment) -> Choice:
        """The way of a statement that was not rewritten so far."""
        if self.is_measured and self.original_s(moment.listing) <= moment.asking_s:
            return Choice(GateVerdict.ORIGINAL, "left alone: to ask for keys takes longer than that")
        if self.is_measured and self.is_small(moment.asking_s) and self._rest_s(moment) > 0.0:
            return Choice(GateVerdict.ORIGINAL, "left alone: its facts are too small to gain by keys")
        return Choice(GateVerdict.REWRITE, "rewritten, to see what that takes")

    def _is_better(self, original_s: float, moment: Moment) -> bool:
        """True if the original is better, or slower by no more than the session's rewritten runs have lost."""
        if moment.listing is Listing.LISTED:
            return self.is_left is True
        return self.is_measured and (
            original_s < self.rewritten_s or original_s - self.rewritten_s <= moment.lost_s
        )

    def _left(self, price_s: float, moment: Moment) -> Choice:
        """The way of a statement that is left alone, unless it is time for a trial."""
        rest_s, lacking_s = self._rest_s(moment), price_s / _TRIAL_PART - self.since_s
        if max(rest_s, lacking_s) <= 0.0:
            why = "rewritten this time, to see what that takes now"
            return Choice(GateVerdict.REWRITE, why, is_trial=True)
        rest = f"{rest_s:.0f} s" if rest_s > 0.0 else f"{lacking_s:.1f} s of its runs"
        return Choice(GateVerdict.ORIGINAL, f"left alone for another {rest}")

    def _narrowed(self, original_s: float, moment: Moment) -> Choice:
        """The way of a statement that is rewritten, unless it is time for a trial."""
        is_listed, has_listed = moment.listing is Listing.LISTED, self.cold_s is not None
        # One original is no comparison yet, unless it took far longer: Spark compiles a plan when it is new.
        is_first = not self.originals if is_listed else not self.is_measured
        is_second = is_listed and len(self.originals) == 1 and original_s <= _SURPRISE * self.rewritten_s
        risked_s = self.risked_s if is_listed else max(self.risked_s, moment.lost_s)
        allowed_s = risked_s if is_first or is_second else self.since_s * _TRIAL_PART
        is_due = _price_s(max((original_s, *self.originals[-1:])), self.rewritten_s) <= allowed_s
        # An original on listed files is never worse than without the proxy, while a rewritten run may be.
        is_unseen = is_listed and not self.is_measured and not self.writes
        is_due |= is_unseen and self.rewritten_count >= _RUNS_BEFORE_TRIAL
        if is_due and not (moment.listing is Listing.WRITTEN and has_listed):
            return Choice(GateVerdict.ORIGINAL, "left alone this time, to see what it takes so", is_trial=True)
        listed = f", since in this session files would be listed for {original_s - self.warm_s:.1f} s"
        return Choice(GateVerdict.REWRITE, "rewritten" if is_listed else f"rewritten{listed}")

    def _rest_s(self, moment: Moment) -> float:
        """The time until a statement that is left alone is planned once more."""
        return self.planned_at + moment.retry_s - moment.now

    def trying(self, now: float) -> RunRecord:
        """The record once a trial was begun: until another is due, no other statement makes one."""
        return replace(self, since_s=0.0, risked_s=0.0, planned_at=now)

    def after_rewritten(self, overhead_s: float, run_s: float, now: float) -> RunRecord:
        """The record after a run for which keys were asked. `run_s` is infinite where they were of no use."""
        known_s = overhead_s if isinf(run_s) else overhead_s + run_s
        return replace(
            self,
            rewritten=(*self.rewritten, overhead_s + run_s)[-RUNS_KEPT_MAX:],
            overheads=(*self.overheads, overhead_s)[-RUNS_KEPT_MAX:],
            rewritten_count=self.rewritten_count + 1,
            since_s=self.since_s + known_s,
            risked_s=self.risked_s + max(overhead_s, known_s * _RISKED_PART),
            planned_at=now,
        ).compared()

    def after_original(self, run_s: float, listing: Listing) -> RunRecord:
        """The record after an original."""
        found = replace(self, original_count=self.original_count + 1, since_s=self.since_s + run_s)
        is_slow = bool(self.rewritten) and run_s > _SURPRISE * self.rewritten_s
        if listing is not Listing.LISTED and (is_slow or self.listing_s > run_s * (_EVEN - 1.0)):
            return replace(found, cold_s=run_s)
        if self.rewritten and not isinf(self.rewritten_s):
            gained_s = min(self.gained_s + self.rewritten_s - run_s, _GAINED_RUNS_MAX * self.rewritten_s)
            found = replace(found, gained_s=gained_s)
        return replace(found, originals=(*self.originals, run_s)[-RUNS_KEPT_MAX:]).compared()

    @property
    def run_count(self) -> int:
        """The runs of both ways."""
        return self.rewritten_count + self.original_count

    @property
    def has_both_ways(self) -> bool:
        """True if runs of both ways were seen."""
        return bool(self.rewritten) and self.is_measured

    def completed_by(self, other: RunRecord) -> RunRecord:
        """The record with the runs that another replica saw, of each way that was not seen here.

        The time since the last trial, by which the next one is paid, stays that of this replica: several of them
        must not pay by the same runs.
        """
        found = self
        if not self.rewritten and other.rewritten:
            found = replace(
                found,
                rewritten=other.rewritten,
                overheads=other.overheads,
                rewritten_count=self.rewritten_count + other.rewritten_count,
                planned_at=max(self.planned_at, other.planned_at),
            )
        if not self.is_measured and other.is_measured:
            found = replace(
                found,
                originals=other.originals,
                cold_s=other.cold_s,
                original_count=self.original_count + other.original_count,
                gained_s=other.gained_s,
            )
        if found is self:
            return self
        if not self.facts or (self.facts == other.facts and not self.is_counted):
            sizes = (other.listing_s, other.reading_s, other.is_counted)
            found = replace(found, facts=other.facts, listing_s=sizes[0], reading_s=sizes[1], is_counted=sizes[2])
        # Times that are even by now may not have been even when the other replica decided.
        return replace(found, is_left=other.is_left if self.is_left is None else self.is_left).compared()

    def compared(self) -> RunRecord:
        """The record with the better way on listed files, once both were seen."""
        if not (self.rewritten and self.originals):
            return self
        # A first run also asks for descriptions, which later ones remember.
        is_first = self.rewritten_count == 1 and self.rewritten_s - self.overhead_s < self.warm_s
        if is_first and self.is_left is None:
            return self
        is_slow = self.originals[-1] > _SURPRISE * self.rewritten_s and self.gained_s < 0.0
        factor = 1 / _EVEN if self.is_left is False else _EVEN
        return replace(self, is_left=not is_slow and self.warm_s < self.rewritten_s * factor)


def _price_s(other_s: float, better_s: float) -> float:
    """The seconds that the other way may take longer, at least what tells both apart."""
    return max(other_s - better_s, better_s * (_EVEN - 1.0))
