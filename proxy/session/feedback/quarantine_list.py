"""Things of one kind of which some are put aside for a while, and those that are suspected or came back lately."""

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
V = TypeVar("V")

# Things of one kind that are remembered, some 300 bytes each. The oldest goes, and then has to do harm again.
KEPT_MAX: Final = 10_000


class Cause(Enum):
    """What a rewritten statement did."""

    FAILED = "a statement failed with it, and worked as it came"
    DIFFERENT = "a statement gave another answer with it than as it came"


class QuarantineKind(Enum):
    """What can be put aside."""

    RULE = "rule"
    TABLE = "table"
    SHAPE = "shape"


@dataclass(frozen=True)
class QuarantineEntry:
    """Something that is put aside now. `left_s` is infinite for what only a restart brings back."""

    kind: QuarantineKind
    name: str
    cause: Cause
    age_s: float
    left_s: float

    @property
    def sentence(self) -> str:
        """What a user is told of it."""
        left = "until a restart" if math.isinf(self.left_s) else f"for another {self.left_s:.0f} s"
        return f"The {self.kind.value} {self.name} is put aside {left}: {self.cause.value}."


@dataclass(frozen=True)
class _Stay:
    cause: Cause
    since: float
    until: float
    period_s: float

    @property
    def well_at(self) -> float:
        """When it has been back for as long as it was away, so that its past no longer counts."""
        return self.until + self.period_s


@dataclass(frozen=True)
class _Suspicion:
    at: float
    # What else may be to blame: all failures so far had these in common.
    explanations: frozenset[Hashable]


class QuarantineList(Generic[T]):
    """The things of one kind: those put aside, those that came back lately, and those under suspicion."""

    def __init__(self, kind: QuarantineKind, name: Callable[[T], str]) -> None:
        self.kind = kind
        self._name = name
        self._aside: dict[T, _Stay] = {}
        self._back: dict[T, _Stay] = {}
        self._suspected: dict[T, _Suspicion] = {}

    def __len__(self) -> int:
        return len(self._aside)

    @property
    def aside(self) -> frozenset[T]:
        """All that is put aside."""
        return frozenset(self._aside)

    @property
    def due(self) -> float:
        """When to look after them next."""
        ends = (stay.until for stay in self._aside.values())
        return min(chain(ends, (stay.well_at for stay in self._back.values())), default=math.inf)

    def has_aside(self, item: T) -> bool:
        """Whether it is put aside."""
        return item in self._aside

    def is_explained_by_nothing_else(
        self, item: T, explanations: frozenset[Hashable], now: float, period_s: float
    ) -> bool:
        """Whether the failures that the item had a part in lately have nothing else in common."""
        before = self._suspected.pop(item, None)
        if before is not None and now - before.at < period_s:
            explanations &= before.explanations
        if not explanations:
            return True
        _keep(self._suspected, item, _Suspicion(now, explanations))
        return False

    def quarantined(self, item: T, cause: Cause, now: float, period_s: float) -> None:
        """Put it aside for the period, or for longer if it has been before."""
        known = self._aside.get(item)
        if known is not None and (cause is not Cause.DIFFERENT or math.isinf(known.until)):
            return  # what was under way as it was put aside says nothing new
        before = self._back.pop(item, None)
        if before is not None and not math.isinf(period_s):
            period_s = max(period_s, min(2 * before.period_s, PERIOD_MAX_S))
        _keep(self._aside, item, _Stay(cause, now, now + period_s, period_s))
        until = "until a restart" if math.isinf(period_s) else f"for {period_s:g} s"
        _log.warning("the %s %s is put aside %s: %s", self.kind.value, self._name(item), until, cause.value)

    def current(self, now: float) -> Iterator[QuarantineEntry]:
        """What is put aside, the oldest first."""
        for item, stay in self._aside.items():
            yield QuarantineEntry(
                self.kind, self._name(item), stay.cause, now - stay.since, max(0.0, stay.until - now)
            )

    def look_after(self, now: float) -> None:
        """Let those come back whose time is over, and forget those that have been well for as long."""
        for item, stay in [(item, stay) for item, stay in self._aside.items() if stay.until <= now]:
            del self._aside[item]
            _keep(self._back, item, stay)
            _log.info("the %s %s is back after %g s", self.kind.value, self._name(item), stay.period_s)
        self._back = {item: stay for item, stay in self._back.items() if stay.well_at > now}


def _keep(kept: dict[T, V], item: T, value: V) -> None:
    """Remember it as the newest; the oldest goes where there are too many."""
    _ = kept.pop(item, None)
    if len(kept) >= KEPT_MAX:
        del kept[next(iter(kept))]
    kept[item] = value
