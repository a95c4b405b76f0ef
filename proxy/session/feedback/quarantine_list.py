"""Things of one kind that are quarantined for a while, and those that were released lately."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Final, Generic, TypeVar

from proxy.session.feedback.metastore_limits import PERIOD_MAX_S

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Hashable)

# Things of one kind that are remembered, some 300 bytes each. The oldest goes, and then has to do harm again.
KEPT_MAX: Final = 10_000


class Cause(Enum):
    """The harm that a rewritten statement did."""

    FAILED = "a rewritten statement failed with it, and its original worked"
    DIFFERENT = "a rewritten statement gave another answer with it than its original"


class QuarantineKind(Enum):
    """The kinds of things that can be quarantined."""

    RULE = "rule"
    FINGERPRINT = "fingerprint"


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
        return f"The {self.kind.value} {self.name} is quarantined {left}: {self.cause.value}."


@dataclass(frozen=True)
class _Stay:
    cause: Cause
    since: float
    until: float
    period_s: float

    @property
    def forgotten_at(self) -> float:
        """The time at which it has been free as long as quarantined, so that its past no longer counts."""
        return self.until + self.period_s


class QuarantineList(Generic[T]):
    """The things of one kind: those that are quarantined, and those that were released lately."""

    def __init__(self, kind: QuarantineKind, name: Callable[[T], str]) -> None:
        self.kind = kind
        self._name = name
        self._quarantined: dict[T, _Stay] = {}
        self._released: dict[T, _Stay] = {}

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

    def quarantine(self, item: T, cause: Cause, now: float, period_s: float) -> None:
        """Quarantine it for the period, or for twice its last one if it was released lately."""
        known = self._quarantined.get(item)
        if known is not None and (cause is not Cause.DIFFERENT or math.isinf(known.until)):
            return  # a statement that was under way as it was quarantined says nothing new
        before = self._released.pop(item, None)
        if before is not None and not math.isinf(period_s):
            period_s = max(period_s, min(2 * before.period_s, PERIOD_MAX_S))
        _keep(self._quarantined, item, _Stay(cause, now, now + period_s, period_s))
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


def _keep(kept: dict[T, _Stay], item: T, stay: _Stay) -> None:
    """Remember it as the newest; the oldest goes where there are too many."""
    _ = kept.pop(item, None)
    if len(kept) >= KEPT_MAX:
        del kept[next(iter(kept))]
    kept[item] = stay
