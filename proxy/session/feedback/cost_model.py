"""The cost model: decides by earlier runs of a statement whether asking for its keys pays. Pure values, no clock.

A statement runs in one of two ways: rewritten, after its keys were asked for, or as the original. The original is
never worse than without us, but where Spark has to list all files of a large fact, it loses most of the gain. So
the model follows the ski-rental rule: after each rewritten run it credits the seconds that the run may have lost,
to the statement and to the session. When the credit reaches the price of one original run, listing included, one
is made as a trial. Both ways together then take at most about twice the time of the better one. Each trial that
confirms the verdict doubles the price of the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import inf, isfinite
from statistics import median_low

# Runs that count, of each way: a median of three lets one outlier pass, and follows a change after two runs.
_KEPT_MAX = 3

# Times that differ by less than this factor are even, and then what was decided stays.
_EVEN = 1.1
# An original run that takes this many times as long as a rewritten one is not explained by chance.
_SURPRISE = 2.0

# Asking that takes this part of a rewritten run, or more, may well be worth sparing.
_LARGE_PART = 0.1
# This part of a rewritten run is taken for too much while nothing better is known, even where asking takes less:
# literals can slow a plan down, by a factor of four at the worst seen.
_SUSPECTED_PART = 0.2
# Assumed time of an original run, in rewritten runs, where asking is a small part of these.
_DEARER = 4.0

# Seconds that a user bears once.
_BORNE_S = 4.0
# A listing that takes longer is paid for first, and decides for narrowing where both ways are even.
_CONSIDERABLE_S = 1.0

# Doublings after which trials no longer become rarer: then one run in 64, or one each time their price is saved
# 64 times over.
_DOUBLINGS_MAX = 6


class GateVerdict(Enum):
    """The verdict on a statement."""

    REWRITE = "rewrite"
    ORIGINAL = "original"


@dataclass(frozen=True)
class RewrittenRun:
    """A run for which keys were asked. `run_s` is infinite where they were of no use."""

    overhead_s: float
    run_s: float

    @property
    def seconds(self) -> float:
        """The time of the run in all."""
        return self.overhead_s + self.run_s


@dataclass(frozen=True)
class Choice:
    """The way of the next statement of a fingerprint, and why. A trial measures the other way."""

    verdict: GateVerdict
    why: str
    is_trial: bool = False


@dataclass(frozen=True)
class CostReport:
    """The runs that a verdict rests on: their number in each way, and the times of the last ones."""

    rewritten_count: int = 0
    # Asking included; infinite where the keys were of no use.
    rewritten_s: float | None = None
    asking_s: float | None = None
    original_count: int = 0
    original_s: float | None = None
    why: str = ""

    @property
    def sentence(self) -> str:
        """The report in words."""
        ways = []
        if self.rewritten_s is not None:
            took = f"in {self.rewritten_s:.2f} s" if isfinite(self.rewritten_s) else "without gain"
            asking = f"of which asking for keys took {self.asking_s:.2f} s"
            ways.append(f"{_times(self.rewritten_count)} rewritten {took}, {asking}")
        if self.original_s is not None:
            ways.append(f"{_times(self.original_count)} as the original in {self.original_s:.2f} s")
        seen = f"ran {', and '.join(ways)}" if ways else "was not seen before"
        return f"It {seen}: {self.why}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


@dataclass(frozen=True)
class Record:
    """The runs of the statements of one fingerprint. A record never changes: each run makes another one."""

    # The facts' names, and the time to list their files where Spark does not have them.
    facts: frozenset[str] = frozenset()
    listing_s: float = inf
    # Whether that rests on counted partitions, or the facts were taken for large ones.
    is_counted: bool = False
    narrowed: tuple[RewrittenRun, ...] = ()
    direct: tuple[float, ...] = ()
    rewritten_count: int = 0
    original_count: int = 0
    # None until both ways were compared.
    verdict: GateVerdict | None = None
    # Trials of the other way that did not change the verdict.
    confirmed: int = 0
    # Seconds that rewritten runs may have lost since the last trial, and the price of a trial.
    trial_credit_s: float = 0.0
    trial_price_s: float = inf
    # Original runs since the last rewritten one, and the time of the last run in each way.
    original_since_count: int = 0
    narrowed_at: float = -inf
    direct_at: float = -inf
    # Time of the last original run that had the facts' files listed.
    cold_s: float | None = None

    @property
    def rewritten_s(self) -> float:
        """The time of a rewritten run, asking included."""
        return median_low(run.seconds for run in self.narrowed)

    @property
    def overhead_s(self) -> float:
        """The time of asking."""
        return median_low(run.overhead_s for run in self.narrowed)

    @property
    def original_s(self) -> float:
        """The time of an original run. One that had to list files is outvoted by two that had not."""
        return median_low(self.direct)

    def choice(self, now: float, *, asking_s: float, retry_s: float) -> Choice:
        """The way of the next statement, where asking for keys usually takes so long."""
        if not self.narrowed:
            if self.direct and self.original_s <= asking_s:
                return Choice(GateVerdict.ORIGINAL, "left alone: to ask for keys takes longer than that")
            return Choice(GateVerdict.REWRITE, "rewritten, to see what that takes")
        if self.verdict is not GateVerdict.ORIGINAL:
            if 0.0 < self.trial_credit_s >= self.trial_price_s:
                return Choice(GateVerdict.ORIGINAL, "left alone this time, to see what it takes so", is_trial=True)
            return Choice(GateVerdict.REWRITE, "rewritten")
        rest_s, rest = self.narrowed_at + retry_s - now, self.backoff - self.original_since_count
        if rest_s > 0.0 or rest > 0:
            return Choice(GateVerdict.ORIGINAL, f"left alone for {_rest(rest_s, rest)}")
        return Choice(GateVerdict.REWRITE, "rewritten this time, to see what that takes now", is_trial=True)

    def trying(self, verdict: GateVerdict, now: float) -> Record:
        """The record once a trial was begun: until another is due, no other statement makes one."""
        if verdict is GateVerdict.ORIGINAL:
            return replace(self, trial_credit_s=0.0)
        return replace(self, narrowed_at=now, original_since_count=0)

    def cost_report(self, why: str) -> CostReport:
        """The report for the user."""
        return CostReport(
            rewritten_count=self.rewritten_count,
            rewritten_s=self.rewritten_s if self.narrowed else None,
            asking_s=self.overhead_s if self.narrowed else None,
            original_count=self.original_count,
            original_s=self.original_s if self.direct else None,
            why=why,
        )

    def unlisted(self, choice: Choice, owed_s: float) -> Choice:
        """The choice in a session that has not had the facts' files listed, and may have paid so much for that."""
        rest_s = self.dearer_cold_s - owed_s
        if (
            choice.verdict is GateVerdict.REWRITE
            or not self.listing_is_considerable
            or rest_s <= self.last_excess_s
        ):
            return choice
        if choice.is_trial and self.trial_credit_s >= self.trial_price_s + self.dearer_cold_s:
            # In many short sessions none earns it alone, and it may take less than it seems.
            return choice
        return Choice(
            GateVerdict.REWRITE, f"rewritten, since in this session files would be listed for {rest_s:.1f} s"
        )

    @property
    def listing_is_considerable(self) -> bool:
        """Whether an original run that has files listed tells nothing of others."""
        return self.dearer_cold_s > _CONSIDERABLE_S

    @property
    def dearer_cold_s(self) -> float:
        """The time that an original run with a listing takes longer than a rewritten one."""
        if self.cold_s is None and not self.direct:
            return self.listing_s
        cold_s = self.cold_s if self.cold_s is not None else self.original_s + self.listing_s
        return max(0.0, cold_s - self.rewritten_s) if self.narrowed else cold_s

    def after_rewritten(self, run: RewrittenRun, now: float) -> Record:
        """The record after a rewritten run."""
        narrowed = (*self.narrowed, run)[-_KEPT_MAX:]
        count = self.rewritten_count + 1
        found = replace(self, narrowed=narrowed, rewritten_count=count, narrowed_at=now, original_since_count=0)
        if self.verdict is GateVerdict.REWRITE:
            return replace(found, trial_credit_s=self.trial_credit_s + found.excess_s(run))
        if self.direct:
            return found.compared(is_trial=self.verdict is GateVerdict.ORIGINAL)
        return replace(
            found, trial_credit_s=self.trial_credit_s + found.excess_s(run), trial_price_s=found.first_price_s
        )

    def after_original(self, run_s: float, now: float) -> Record:
        """The record after an original run."""
        found = replace(
            self,
            direct=(*self.direct, run_s)[-_KEPT_MAX:],
            original_count=self.original_count + 1,
            direct_at=now,
            original_since_count=self.original_since_count + 1,
            trial_credit_s=0.0,
        )
        return found.compared(is_trial=self.verdict is GateVerdict.REWRITE) if self.narrowed else found

    def after_listing(self, run_s: float, now: float) -> Record:
        """The record after an original run that had files listed: it tells nothing of those that follow."""
        found = replace(self, cold_s=run_s, original_count=self.original_count + 1, direct_at=now)
        if not (self.narrowed and self.verdict is None):
            return found
        # The next one in the same session is the trial, unless it is likely to take long as well.
        trial_price_s = max(0.0, run_s - self.listing_s - self.rewritten_s - _BORNE_S)
        return replace(found, trial_credit_s=self.overhead_s, trial_price_s=trial_price_s)

    def compared(self, *, is_trial: bool) -> Record:
        """The record with the verdict that the runs of both ways come to."""
        verdict = self._better()
        confirmed = 0 if verdict is not self.verdict else self.confirmed + is_trial
        found = replace(self, verdict=verdict, confirmed=confirmed)
        trial_price_s = max(self.direct[-1], self.original_s) - self.rewritten_s
        return replace(found, trial_price_s=trial_price_s * found.backoff)

    def _better(self) -> GateVerdict:
        rewritten_s, original_s = self.rewritten_s, self.original_s
        if original_s > rewritten_s * _EVEN or self.direct[-1] > rewritten_s * _SURPRISE:
            return GateVerdict.REWRITE
        if original_s * _EVEN < rewritten_s:
            return GateVerdict.ORIGINAL
        if self.verdict is not None:
            return self.verdict
        return GateVerdict.REWRITE if self.listing_s > _CONSIDERABLE_S else GateVerdict.ORIGINAL

    @property
    def backoff(self) -> int:
        """The price of the next trial in prices of the first."""
        return 1 << min(self.confirmed, _DOUBLINGS_MAX)

    def excess_s(self, run: RewrittenRun) -> float:
        """The seconds that a rewritten run may have lost against the original."""
        known_s = run.seconds - min(self.direct) if self.direct else 0.0
        if known_s > 0.0:
            return known_s
        # Original runs are unknown, or were slower.
        return max(known_s, run.overhead_s, run.seconds * _SUSPECTED_PART)

    @property
    def last_excess_s(self) -> float:
        """The seconds that one more rewritten run may lose against the original."""
        return self.excess_s(self.narrowed[-1]) if self.narrowed else 0.0

    @property
    def first_price_s(self) -> float:
        """The seconds that the first original run may take longer than a rewritten one."""
        dearer = 1.0 if _is_large_part(self.narrowed[-1]) else _DEARER
        return max(0.0, dearer * self.rewritten_s - _BORNE_S)


def _rest(seconds: float, runs: int) -> str:
    return f"another {seconds:.0f} s" if seconds > 0.0 else f"{runs} more of its runs"


def _is_large_part(run: RewrittenRun) -> bool:
    return run.overhead_s >= run.seconds * _LARGE_PART
