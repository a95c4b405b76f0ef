"""What did harm is put aside for a while: shapes of statements, fact tables, ways to narrow.

A rewritten statement that failed and then worked as it came has shown that something was wrong with the rewrite,
but not what. So the smallest suspect goes first: statements of that shape are left alone at once. The table
follows when a statement of another shape fails, and the rule when no one table explains the failures. An answer
that differs leaves no time to find out: then all rules of the statement go, until the proxy is restarted.

Everything else comes back by itself, and is put aside for twice as long where it does harm again soon after.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.feedback.metastore_limits import FILTER_REFUSED, MetastoreLimits
from proxy.session.feedback.quarantine_list import Cause, QuarantineEntry, QuarantineKind, QuarantineList
from rewriter import Rule, TableName

# How often it is looked whose time is over: the look goes through all that is kept, a millisecond or two.
_LOOKED_AFTER_S: Final = 1.0


@dataclass(frozen=True)
class QuarantinedParts:
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
        self._rules = QuarantineList[Rule](QuarantineKind.RULE, lambda rule: rule.value)
        self._tables = QuarantineList[TableName](QuarantineKind.TABLE, str)
        self._shapes = QuarantineList[str](QuarantineKind.SHAPE, str)
        self._wards = (self._rules, self._tables, self._shapes)
        self._off = QuarantinedParts()
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
            self._shapes.quarantined(shape, cause, now, period_s)
            for table in tables if not is_wrong else ():
                if self._tables.is_explained_by_nothing_else(table, frozenset({shape}), now, period_s):
                    self._tables.quarantined(table, cause, now, period_s)
            for rule in rules if tables or is_wrong else ():
                if is_wrong or self._rules.is_explained_by_nothing_else(rule, tables, now, period_s):
                    self._rules.quarantined(rule, cause, now, period_s)
            self._note()

    def off(self) -> QuarantinedParts:
        """The rules and tables that no statement is to be narrowed by now."""
        with self._lock:
            self._looked_after()
            return self._off

    def is_shape_off(self, shape: str) -> bool:
        """Whether statements of the shape are to be left alone now."""
        with self._lock:
            self._looked_after()
            return self._shapes.has_aside(shape)

    def current(self) -> tuple[QuarantineEntry, ...]:
        """All that is put aside now. It names tables, which not every user may know of."""
        with self._lock:
            now = self._looked_after()
            return (*self._rules.current(now), *self._tables.current(now), *self._shapes.current(now))

    def count(self, kind: QuarantineKind) -> int:
        """How many things of a kind are put aside now."""
        with self._lock:
            self._looked_after()
            return next(len(ward) for ward in self._wards if ward.kind is kind)

    def _looked_after(self) -> float:
        """The time now, at which everything has come back whose time is over."""
        now = self._clock()
        if now >= self._look_at:
            for ward in self._wards:
                ward.look_after(now)
            self._note(now + _LOOKED_AFTER_S)
        return now

    def _note(self, not_before: float = -math.inf) -> None:
        self._off = QuarantinedParts(self._rules.aside, self._tables.aside)
        due = min(ward.due for ward in self._wards)
        self._look_at = max(due, not_before)


@dataclass(frozen=True)
class Suspects:
    """What may be to blame where a rewritten statement fails."""

    rules: frozenset[Rule]
    tables: frozenset[TableName]
    shape: str
    # Those of the tables of which the metastore was sent a filter.
    sent: frozenset[TableName] = frozenset()


def learn(
    outcome: Outcome, suspects: Suspects, quarantine: Quarantine, metastore: MetastoreLimits, *, expected: str = ""
) -> None:
    """Learn from the end of a statement that was rewritten. `expected` marks a failure that we provoked ourselves.

    Where the metastore refused what it was sent, nothing else is to blame.
    """
    if expected and expected in outcome.message:
        return
    if (
        FILTER_REFUSED in outcome.message
        and suspects.sent
        and outcome.kind in {OutcomeKind.RECOVERED, OutcomeKind.FAILED}
    ):
        metastore.refused(suspects.sent)
    elif outcome.kind is OutcomeKind.RECOVERED:
        quarantine.blame(suspects.rules, suspects.tables, suspects.shape, Cause.FAILED)
