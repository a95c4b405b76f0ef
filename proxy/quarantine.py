"""What did harm is put aside for a while: shapes of statements, fact tables, ways to narrow.

A rewritten statement that failed and then worked as it came has shown that something was wrong with the rewrite,
but not what. So the smallest suspect goes first: statements of that shape are left alone at once. The table follows
when a statement of another shape fails, and the rule when no one table explains the failures. An answer that
differs leaves no time to find out: then all rules of the statement go, until the proxy is restarted.

Everything else comes back by itself, and is put aside for twice as long where it does harm again soon after.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import Final, Generic, TypeVar

from proxy.metastore import FILTER_REFUSED, PERIOD_MAX_S, Metastore
from proxy.rulings import End, Ending
from rewriter import Rewrite, Rule, TableName

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Hashable)

# Things of one kind that are remembered, some 300 bytes each. The oldest goes, and then has to do harm again.
KEPT_MAX: Final = 10_000
# How often it is looked whose time is over: the look goes through all that is kept, a millisecond or two.
_LOOKED_AFTER_S: Final = 1.0


class Cause(Enum):
    """What a rewritten statement did."""

    FAILED = "a statement failed with it, and worked as it came"
    SLOWER = "a statement took longer with it than as it came"
    DIFFERENT = "a statement gave another answer with it than as it came"


class Kind(Enum):
    """What can be put aside."""

    RULE = "rule"
    TABLE = "table"
    SHAPE = "shape"


@dataclass(frozen=True)
class PutAside:
    """Something that is put aside now. `left_s` is infinite for what only a restart brings back."""

    kind: Kind
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
class Off:
    """The rules and tables that are put aside, as `rewriter.Limits` takes them."""

    rules: frozenset[Rule] = frozenset()
    tables: frozenset[TableName] = frozenset()


class Quarantine:
    """What all sessions of the process have learned to leave alone. Safe to use from several threads."""

    def __init__(self, period_s: float, clock: Callable[[], float]) -> None:
        # For how long a thing is put aside the first time; may be changed at any time.
        self.period_s = period_s
        self._clock = clock
        self._lock = Lock()
        self._rules = _Ward[Rule](Kind.RULE, lambda rule: rule.value)
        self._tables = _Ward[TableName](Kind.TABLE, str)
        self._shapes = _Ward[str](Kind.SHAPE, str)
        self._off = Off()
        self._look_at = math.inf

    def blame(
        self, rules: frozenset[Rule], tables: frozenset[TableName], shape: str, cause: Cause = Cause.FAILED
    ) -> None:
        """A rewritten statement did harm: by these rules, on these tables, and of this shape.

        A shape is any string that statements have in common; it is logged, so it must not quote them.
        """
        with self._lock:
            now = self._looked_after()
            is_wrong = cause is Cause.DIFFERENT
            period_s = math.inf if is_wrong else self.period_s
            self._shapes.put_aside(shape, cause, now, period_s)
            for table in tables if not is_wrong else ():
                if self._tables.is_explained_by_nothing_else(table, frozenset({shape}), now, period_s):
                    self._tables.put_aside(table, cause, now, period_s)
            for rule in rules if tables or is_wrong else ():
                if is_wrong or self._rules.is_explained_by_nothing_else(rule, tables, now, period_s):
                    self._rules.put_aside(rule, cause, now, period_s)
            self._note()

    def off(self) -> Off:
        """The rules and tables that no statement is to be narrowed by now."""
        with self._lock:
            self._looked_after()
            return self._off

    def is_shape_off(self, shape: str) -> bool:
        """Whether statements of the shape are to be left alone now."""
        with self._lock:
            self._looked_after()
            return self._shapes.has_aside(shape)

    def current(self) -> tuple[PutAside, ...]:
        """All that is put aside now. It names tables, which not every user may know of."""
        with self._lock:
            now = self._looked_after()
            return (*self._rules.current(now), *self._tables.current(now), *self._shapes.current(now))

    def _looked_after(self) -> float:
        """The time now, at which everything has come back whose time is over."""
        now = self._clock()
        if now >= self._look_at:
            for ward in (self._rules, self._tables, self._shapes):
                ward.look_after(now)
            self._note(now + _LOOKED_AFTER_S)
        return now

    def _note(self, not_before: float = -math.inf) -> None:
        self._off = Off(self._rules.aside, self._tables.aside)
        due = min(ward.due for ward in (self._rules, self._tables, self._shapes))
        self._look_at = max(due, not_before)


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


class _Ward(Generic[T]):
    """The things of one kind: those put aside, those that came back lately, and those under suspicion."""

    def __init__(self, kind: Kind, name: Callable[[T], str]) -> None:
        self._kind = kind
        self._name = name
        self._aside: dict[T, _Stay] = {}
        self._back: dict[T, _Stay] = {}
        self._suspected: dict[T, _Suspicion] = {}

    @property
    def aside(self) -> frozenset[T]:
        """All that is put aside."""
        return frozenset(self._aside)

    @property
    def due(self) -> float:
        """When to look after them next."""
        ends = (stay.until for stay in self._aside.values())
        return min(
            min(ends, default=math.inf), min((stay.well_at for stay in self._back.values()), default=math.inf)
        )

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

    def put_aside(self, item: T, cause: Cause, now: float, period_s: float) -> None:
        """Put it aside for the period, or for longer if it has been before."""
        known = self._aside.get(item)
        if known is not None and (cause is not Cause.DIFFERENT or math.isinf(known.until)):
            return  # what was under way as it was put aside says nothing new
        before = self._back.pop(item, None)
        if before is not None and not math.isinf(period_s):
            period_s = max(period_s, min(2 * before.period_s, PERIOD_MAX_S))
        _keep(self._aside, item, _Stay(cause, now, now + period_s, period_s))
        until = "until a restart" if math.isinf(period_s) else f"for {period_s:g} s"
        _log.warning("the %s %s is put aside %s: %s", self._kind.value, self._name(item), until, cause.value)

    def current(self, now: float) -> Iterator[PutAside]:
        """What is put aside, the oldest first."""
        for item, stay in self._aside.items():
            yield PutAside(self._kind, self._name(item), stay.cause, now - stay.since, stay.until - now)

    def look_after(self, now: float) -> None:
        """Let those come back whose time is over, and forget those that have been well for as long."""
        for item, stay in [(item, stay) for item, stay in self._aside.items() if stay.until <= now]:
            del self._aside[item]
            _keep(self._back, item, stay)
            _log.info("the %s %s is back after %g s", self._kind.value, self._name(item), stay.period_s)
        self._back = {item: stay for item, stay in self._back.items() if stay.well_at > now}


V = TypeVar("V")


def _keep(kept: dict[T, V], item: T, value: V) -> None:
    """Remember it as the newest; the oldest goes where there are too many."""
    _ = kept.pop(item, None)
    if len(kept) >= KEPT_MAX:
        del kept[next(iter(kept))]
    kept[item] = value


def learn(  # noqa: PLR0913 - who ended, how, and the two that learn from it
    ending: Ending,
    rewrite: Rewrite,
    shape: str,
    quarantine: Quarantine,
    metastore: Metastore,
    *,
    expected: str = "",
) -> None:
    """Learn from the end of a statement that was rewritten. `expected` marks a failure that we provoked ourselves.

    What the metastore refused is known to be too long, and nothing else is to blame.
    """
    if expected and expected in ending.message:
        return
    if FILTER_REFUSED in ending.message and ending.end in {End.RESCUED, End.FAILED}:
        metastore.refused()
    elif ending.end is End.RESCUED:
        quarantine.blame(rewrite.rules, rewrite.tables, shape, Cause.FAILED)
