"""Things of one kind that are quarantined for a while, and those that were released lately.

Replicas may tell one another of them (`SharedEntry`). Of two entries about one thing the later one counts: an
administrator's release ends an earlier quarantine, and no later one. A release of a failure ends no wrong answer,
and no release ends harm of which the other replicas have not heard: the administrator did not know of it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

from proxy.session.feedback.metastore_limits import PERIOD_MAX_S
from rewriter import Rule

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Hashable)
U = TypeVar("U")

# Things of one kind that are remembered, some 300 bytes each. The oldest goes, and then has to do harm again.
KEPT_MAX: Final = 10_000


# If only a restart releases a thing, other replicas quarantine it for so long after they last heard of it. The one
# that saw the harm tells it again as long as it runs.
LEASE_S: Final = PERIOD_MAX_S
# An entry is news only if it ends later than the known one by more than this.
_EVEN_S: Final = 1.0
# Later harm is dated this long after a release, also where the own clock is behind that of another replica.
_LATER_S: Final = 0.001
# Between a rule and the user of whose statements it is left out.
_OF: Final = "@"


class Cause(Enum):
    """The harm that a rewritten statement did."""

    FAILED = "a rewritten statement failed with it, and its original worked"
    # It may have committed all the same: its original is sent where its own check failed it, and nowhere else.
    MERGE_FAILED = "a rewritten MERGE failed with it, and its original was not sent, or failed too"
    DIFFERENT = "a rewritten statement gave another answer with it than its original"


class QuarantineKind(Enum):
    """The kinds of things that can be quarantined."""

    RULE = "rule"
    FINGERPRINT = "fingerprint"


class UsersRule(NamedTuple):
    """A rule as it is left out of one user's statements (`owner_of`), or of all if the owner is empty."""

    rule: Rule
    owner: str = ""

    @property
    def name(self) -> str:
        """The name in logs, on pages and in rows that replicas share."""
        return f"{self.rule.value}{_OF}{self.owner}" if self.owner else self.rule.value

    @classmethod
    def of_name(cls, name: str) -> UsersRule | None:
        """The rule of a name; None for a rule of another version."""
        named, _, owner = name.partition(_OF)
        return next((cls(rule, owner) for rule in Rule if rule.value == named), None)


@dataclass(frozen=True)
class QuarantineEntry:
    """Something that is quarantined now. `left_s` is infinite for what only a restart releases."""

    kind: QuarantineKind
    name: str
    cause: Cause
    age_s: float
    left_s: float

    @property
    def sentence(self) -> str:
        """The entry as users read it."""
        left = "until a restart" if math.isinf(self.left_s) else f"for another {self.left_s:.0f} s"
        whose = " for statements of one user" if self.owner else ""
        return f"The {self.kind.value} {self.name} is quarantined{whose} {left}: {self.cause.value}."

    @property
    def owner(self) -> str:
        """The user of whose statements alone a rule is left out; empty for all."""
        return self.name.partition(_OF)[2]


@dataclass(frozen=True)
class Blamed:
    """The rules that rewrote a statement, its fingerprint and its user: rules that fail widely go too."""

    rules: frozenset[Rule] = frozenset()
    fingerprint: str = ""
    owner: str = ""


@dataclass(frozen=True)
class SharedEntry:
    """Something that is quarantined, or that an administrator has released, as replicas tell one another of it."""

    kind: QuarantineKind
    name: str
    # The harm, also of something that was released.
    cause: Cause
    # The time of day when it was quarantined, or released. `until` is a time of the own clock.
    at: float
    until: float = 0.0
    period_s: float = 0.0
    blamed: Blamed = Blamed()
    # An administrator has released it.
    is_release: bool = False

    def is_news(self, known: SharedEntry | None, now: float) -> bool:
        """True if replicas that know the other entry have to be told this one."""
        if known is None:
            return True
        if self.is_release:
            return known.at < self.at if known.is_release else self.ends(known.cause, known.at)
        if known.is_release:
            return not known.ends(self.cause, self.at)
        return known.until < (now + LEASE_S / 2 if math.isinf(self.until) else self.until - _EVEN_S)

    def ends(self, cause: Cause, at: float) -> bool:
        """True if a release ends a quarantine that began at that time of day."""
        return at <= self.at and (cause is not Cause.DIFFERENT or self.cause is Cause.DIFFERENT)


@dataclass(frozen=True)
class _Stay:
    cause: Cause
    since: float
    until: float
    period_s: float
    # The time of day, by which replicas know it.
    at: float
    blamed: Blamed = Blamed()
    # Another replica has seen the harm, and tells the others of it.
    is_learned: bool = False

    @property
    def forgotten_at(self) -> float:
        """The time at which it has been free as long as quarantined, so that its past no longer counts."""
        return self.until + self.period_s


class QuarantineList(Generic[T]):
    """The things of one kind: those that are quarantined, and those that were released, lately or by hand."""

    def __init__(self, kind: QuarantineKind, name: Callable[[T], str]) -> None:
        self.kind = kind
        self._name = name
        self._quarantined: dict[T, _Stay] = {}
        self._released: dict[T, _Stay] = {}
        # Released by an administrator.
        self._freed: dict[T, SharedEntry] = {}

    def __len__(self) -> int:
        return len(self._quarantined)

    def __contains__(self, item: T) -> bool:
        return item in self._quarantined

    @property
    def quarantined(self) -> frozenset[T]:
        """All that is quarantined."""
        return frozenset(self._quarantined)

    @property
    def due(self) -> float:
        """The time of the next release, or of the next item whose past is forgotten."""
        ends = (stay.until for stay in self._quarantined.values())
        return min(chain(ends, (stay.forgotten_at for stay in self._released.values())), default=math.inf)

    def quarantine(  # noqa: PLR0913, PLR0917 - the harm, and what is told of it
        self, item: T, cause: Cause, now: float, period_s: float, at: float = 0.0, blamed: Blamed = Blamed()
    ) -> None:
        """Quarantine it for the period, or for twice its last one if it was released lately.

        `now` is of the own clock, and `at` the time of day.
        """
        known = self._quarantined.get(item)
        if known is not None and (cause is not Cause.DIFFERENT or math.isinf(known.until)):
            return  # a statement that was under way as it was quarantined says nothing new
        at = max(at, self.freed_at(item) + _LATER_S)
        _ = self._freed.pop(item, None)
        before = self._released.pop(item, None)
        if before is not None and not math.isinf(period_s):
            period_s = max(period_s, min(2 * before.period_s, PERIOD_MAX_S))
        _keep(self._quarantined, item, _Stay(cause, now, now + period_s, period_s, at, blamed))
        until = "until a restart" if math.isinf(period_s) else f"for {period_s:g} s"
        _log.warning("the %s %s is quarantined %s: %s", self.kind.value, self._name(item), until, cause.value)

    def current(self, now: float) -> Iterator[QuarantineEntry]:
        """The entries, the oldest first."""
        for item, stay in self._quarantined.items():
            yield QuarantineEntry(
                self.kind, self._name(item), stay.cause, now - stay.since, max(0.0, stay.until - now)
            )

    def release_due(self, now: float) -> None:
        """Release items whose time is over, and forget those that have been free for as long."""
        for item, stay in [(item, stay) for item, stay in self._quarantined.items() if stay.until <= now]:
            del self._quarantined[item]
            _keep(self._released, item, stay)
            _log.info("the %s %s is released after %g s", self.kind.value, self._name(item), stay.period_s)
        self._released = {item: stay for item, stay in self._released.items() if stay.forgotten_at > now}

    def freed_at(self, item: T) -> float:
        """The time of day when an administrator released it, minus infinity where none has."""
        return self._freed[item].at if item in self._freed else -inf

    def free(self, item: T, at: float) -> bool:
        """Release it for an administrator, with its past. False where it is not quarantined."""
        stay = self._quarantined.get(item)
        if stay is not None:
            # The clock of the replica that quarantined it may be ahead.
            at = max(at, stay.at)
            self._free(item, SharedEntry(self.kind, self._name(item), stay.cause, at, is_release=True))
        return stay is not None

    def learn(self, item: T, entry: SharedEntry, now: float, since: float) -> bool:
        """Learn that another replica has quarantined it since then. Returns whether that is news here."""
        own, freed = self._quarantined.get(item), self._freed.get(item)
        until = min(entry.until, now + LEASE_S)
        if until <= now or (freed is not None and freed.ends(entry.cause, entry.at)):
            return False
        if len(self) >= KEPT_MAX if own is None else own.until >= until:
            return False
        period_s = max(0.0, min(entry.period_s, PERIOD_MAX_S))
        _ = self._freed.pop(item, None), self._released.pop(item, None)
        self._quarantined[item] = _Stay(
            entry.cause, since, until, period_s, entry.at, entry.blamed, is_learned=True
        )
        return own is None

    def learn_release(self, item: T, entry: SharedEntry, told_until: float) -> bool:
        """Learn of a release. Returns whether that is news here.

        Harm that was done here since the others were told last (by the own clock) counts as later, and stays.
        """
        own = self._quarantined.get(item)
        if entry.at <= self.freed_at(item) or (own is not None and not entry.ends(own.cause, own.at)):
            return False
        if own is not None and not own.is_learned and own.since > told_until:
            self._quarantined[item] = replace(own, at=entry.at + _LATER_S)
            return False
        self._free(item, entry)
        return True

    def entries(self, time_of_day: float) -> Iterator[SharedEntry]:
        """All that other replicas are to be told, but for what they have told this one."""
        for item, stay in self._quarantined.items():
            if not stay.is_learned:
                times = (stay.at, stay.until, stay.period_s)
                yield SharedEntry(self.kind, self._name(item), stay.cause, *times, stay.blamed)
        # A release is told for LEASE_S: after that no replica has an earlier entry.
        yield from (entry for entry in self._freed.values() if entry.at + LEASE_S > time_of_day)

    def _free(self, item: T, entry: SharedEntry) -> None:
        if self._quarantined.pop(item, None) is not None:
            _log.warning("the %s %s is released by an administrator", self.kind.value, self._name(item))
        # In HBase the row of a release is seen again once the time to live of a later one is over.
        if item in self._released and self._released[item].at <= entry.at:
            del self._released[item]
        _keep(self._freed, item, entry)


def _keep(kept: dict[T, U], item: T, stay: U) -> None:
    """Remember it as the newest; the oldest goes where there are too many."""
    _ = kept.pop(item, None)
    if len(kept) >= KEPT_MAX:
        del kept[next(iter(kept))]
    kept[item] = stay
