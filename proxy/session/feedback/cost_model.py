"""What earlier runs of a statement tell: whether it pays to ask for its keys. Pure values, without a clock.

A statement runs in one of two ways: narrowed, for which its keys are asked first, or as it came. The second is
never worse than to be without us, but where Spark has to list all files of a large fact, it forgoes most of what
narrowing is for. So the second way is tried only when it is paid for: what each narrowed run may have cost too
much is added up, for the statement and for the session, and a trial is made once the sums reach what the trial and
the listing may cost. Whichever way is the better one, both together then take at most about twice its time (who
rents skis until the rent has reached their price, and then buys them, never spends more than twice what was
needed), and each trial that changes nothing doubles the price of the next.
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
# A run as it came that takes this many times as long as a narrowed one is not explained by chance.
_SURPRISE = 2.0

# Asking that takes this part of a narrowed run, or more, may well be worth sparing.
_LARGE_PART = 0.1
# This part of a narrowed run is taken for too much while nothing better is known, even where asking takes less:
# literals can slow a plan down, by a factor of four at the worst seen.
_SUSPECTED_PART = 0.2
# What a run as it came is taken to need where asking is a small part, in narrowed runs.
_DEARER = 4.0

# What a user bears once.
_BORNE_S = 4.0
# A listing that takes longer is paid for first, and decides for narrowing where both ways are even.
_CONSIDERABLE_S = 1.0

# Doublings after which trials no longer become rarer: then one run in 64, or one each time their price is saved
# 64 times over.
_DOUBLINGS_MAX = 6


class GateVerdict(Enum):
    """What to do with a statement."""

    NARROW = "narrow"
    LEAVE = "leave"


@dataclass(frozen=True)
class RewrittenRun:
    """A run for which keys were asked. `run_s` is infinite where they were of no use."""

    overhead_s: float
    run_s: float

    @property
    def seconds(self) -> float:
        """What it took in all."""
        return self.overhead_s + self.run_s


@dataclass(frozen=True)
class Choice:
    """What to do with the next statement of a shape, and why. A trial tells what the other way takes now."""

    verdict: GateVerdict
    why: str
    is_trial: bool = False


@dataclass(frozen=True)
class CostReport:
    """What a decision rests on: how many runs of each way there were, and what the last ones took."""

    narrowed_count: int = 0
    # Asking included; infinite where it was in vain.
    narrowed_s: float | None = None
    asking_s: float | None = None
    direct_count: int = 0
    direct_s: float | None = None
    why: str = ""

    @property
    def sentence(self) -> str:
        """All of it in words."""
        ways = []
        if self.narrowed_s is not None:
            took = f"in {self.narrowed_s:.2f} s" if isfinite(self.narrowed_s) else "in vain"
            asking = f"of which asking for keys took {self.asking_s:.2f} s"
            ways.append(f"{_times(self.narrowed_count)} narrowed {took}, {asking}")
        if self.direct_s is not None:
            ways.append(f"{_times(self.direct_count)} as it came in {self.direct_s:.2f} s")
        seen = f"ran {', and '.join(ways)}" if ways else "was not seen before"
        return f"It {seen}: {self.why}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


@dataclass(frozen=True)
class Record:
    """What is known of the statements of one shape. A record never changes: each run makes another one."""

    # The facts' names, and what it takes to list their files where Spark does not have them.
    facts: frozenset[str] = frozenset()
    listing_s: float = inf
    # Whether that rests on counted partitions, or the facts were taken for large ones.
    is_counted: bool = False
    narrowed: tuple[RewrittenRun, ...] = ()
    direct: tuple[float, ...] = ()
    narrowed_count: int = 0
    direct_count: int = 0
    # None until both ways were compared.
    verdict: GateVerdict | None = None
    # Trials of the other way that did not change the verdict.
    confirmed: int = 0
    # What narrowed runs may have cost too much since the other way was tried, and what a trial may cost.
    debt_s: float = 0.0
    price_s: float = inf
    # Runs as it came since the last narrowed one, and when it last ran in each way.
    left_count: int = 0
    narrowed_at: float = -inf
    direct_at: float = -inf
    # What the last run as it came took that had the facts' files listed.
    cold_s: float | None = None

    @property
    def narrowed_s(self) -> float:
        """What a narrowed run takes, asking included."""
        return median_low(run.seconds for run in self.narrowed)

    @property
    def overhead_s(self) -> float:
        """What asking takes."""
        return median_low(run.overhead_s for run in self.narrowed)

    @property
    def direct_s(self) -> float:
        """What a run as it came takes. One that had to list files is outvoted by two that had not."""
        return median_low(self.direct)

    def choice(self, now: float, *, asking_s: float, retry_s: float) -> Choice:
        """What to do with the next one, where asking for keys usually takes so long."""
        if not self.narrowed:
            if self.direct and self.direct_s <= asking_s:
                return Choice(GateVerdict.LEAVE, "left alone: to ask for keys takes longer than that")
            return Choice(GateVerdict.NARROW, "narrowed, to see what that takes")
        if self.verdict is not GateVerdict.LEAVE:
            if 0.0 < self.debt_s >= self.price_s:
                return Choice(GateVerdict.LEAVE, "left alone this time, to see what it takes so", is_trial=True)
            return Choice(GateVerdict.NARROW, "narrowed")
        rest_s, rest = self.narrowed_at + retry_s - now, self.patience - self.left_count
        if rest_s > 0.0 or rest > 0:
            return Choice(GateVerdict.LEAVE, f"left alone for {_rest(rest_s, rest)}")
        return Choice(GateVerdict.NARROW, "narrowed this time, to see what that takes now", is_trial=True)

    def trying(self, verdict: GateVerdict, now: float) -> Record:
        """The record once a trial was begun: until another is due, no other statement makes one."""
        if verdict is GateVerdict.LEAVE:
            return replace(self, debt_s=0.0)
        return replace(self, narrowed_at=now, left_count=0)

    def reckoning(self, why: str) -> CostReport:
        """What was seen, for the user."""
        return CostReport(
            narrowed_count=self.narrowed_count,
            narrowed_s=self.narrowed_s if self.narrowed else None,
            asking_s=self.overhead_s if self.narrowed else None,
            direct_count=self.direct_count,
            direct_s=self.direct_s if self.direct else None,
            why=why,
        )

    def unlisted(self, choice: Choice, owed_s: float) -> Choice:
        """The choice in a session that has not had the facts' files listed, and may have paid so much for that."""
        rest_s = self.dearer_cold_s - owed_s
        if (
            choice.verdict is GateVerdict.NARROW
            or not self.listing_is_considerable
            or rest_s <= self.last_excess_s
        ):
            return choice
        if choice.is_trial and self.debt_s >= self.price_s + self.dearer_cold_s:
            # Of many short sessions none earns it alone, and it may take less than it seems.
            return choice
        return Choice(
            GateVerdict.NARROW, f"narrowed, since in this session files would be listed for {rest_s:.1f} s"
        )

    @property
    def listing_is_considerable(self) -> bool:
        """Whether a run as it came that has files listed tells nothing of others."""
        return self.dearer_cold_s > _CONSIDERABLE_S

    @property
    def dearer_cold_s(self) -> float:
        """What a run as it came takes longer than a narrowed one where it has files listed."""
        if self.cold_s is None and not self.direct:
            return self.listing_s
        cold_s = self.cold_s if self.cold_s is not None else self.direct_s + self.listing_s
        return max(0.0, cold_s - self.narrowed_s) if self.narrowed else cold_s

    def after_narrowed(self, run: RewrittenRun, now: float) -> Record:
        """The record after a narrowed run."""
        narrowed = (*self.narrowed, run)[-_KEPT_MAX:]
        count = self.narrowed_count + 1
        found = replace(self, narrowed=narrowed, narrowed_count=count, narrowed_at=now, left_count=0)
        if self.verdict is GateVerdict.NARROW:
            return replace(found, debt_s=self.debt_s + found.excess_s(run))
        if self.direct:
            return found.compared(is_trial=self.verdict is GateVerdict.LEAVE)
        return replace(found, debt_s=self.debt_s + found.excess_s(run), price_s=found.first_price_s)

    def after_direct(self, run_s: float, now: float) -> Record:
        """The record after a run as it came."""
        found = replace(
            self,
            direct=(*self.direct, run_s)[-_KEPT_MAX:],
            direct_count=self.direct_count + 1,
            direct_at=now,
            left_count=self.left_count + 1,
            debt_s=0.0,
        )
        return found.compared(is_trial=self.verdict is GateVerdict.NARROW) if self.narrowed else found

    def after_listing(self, run_s: float, now: float) -> Record:
        """The record after a run as it came that had files listed: it tells nothing of those that follow."""
        found = replace(self, cold_s=run_s, direct_count=self.direct_count + 1, direct_at=now)
        if not (self.narrowed and self.verdict is None):
            return found
        # The next one in the same session is the trial, unless it is likely to take long as well.
        price_s = max(0.0, run_s - self.listing_s - self.narrowed_s - _BORNE_S)
        return replace(found, debt_s=self.overhead_s, price_s=price_s)

    def compared(self, *, is_trial: bool) -> Record:
        """The record with the verdict that the runs of both ways come to."""
        verdict = self._better()
        confirmed = 0 if verdict is not self.verdict else self.confirmed + is_trial
        found = replace(self, verdict=verdict, confirmed=confirmed)
        price_s = max(self.direct[-1], self.direct_s) - self.narrowed_s
        return replace(found, price_s=price_s * found.patience)

    def _better(self) -> GateVerdict:
        narrowed_s, direct_s = self.narrowed_s, self.direct_s
        if direct_s > narrowed_s * _EVEN or self.direct[-1] > narrowed_s * _SURPRISE:
            return GateVerdict.NARROW
        if direct_s * _EVEN < narrowed_s:
            return GateVerdict.LEAVE
        if self.verdict is not None:
            return self.verdict
        return GateVerdict.NARROW if self.listing_s > _CONSIDERABLE_S else GateVerdict.LEAVE

    @property
    def patience(self) -> int:
        """How much more than the first the next trial must have earned."""
        return 1 << min(self.confirmed, _DOUBLINGS_MAX)

    def excess_s(self, run: RewrittenRun) -> float:
        """What a narrowed run may have taken more than one as it came."""
        known_s = run.seconds - min(self.direct) if self.direct else 0.0
        if known_s > 0.0:
            return known_s
        # Runs as it came are unknown, or were slower.
        return max(known_s, run.overhead_s, run.seconds * _SUSPECTED_PART)

    @property
    def last_excess_s(self) -> float:
        """What one more narrowed run may take more than one as it came."""
        return self.excess_s(self.narrowed[-1]) if self.narrowed else 0.0

    @property
    def first_price_s(self) -> float:
        """What the first run as it came may take more than a narrowed one."""
        dearer = 1.0 if _is_large_part(self.narrowed[-1]) else _DEARER
        return max(0.0, dearer * self.narrowed_s - _BORNE_S)


def _rest(seconds: float, runs: int) -> str:
    return f"another {seconds:.0f} s" if seconds > 0.0 else f"{runs} more of its runs"


def _is_large_part(run: RewrittenRun) -> bool:
    return run.overhead_s >= run.seconds * _LARGE_PART
