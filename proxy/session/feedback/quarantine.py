"""Rewrites that did harm are quarantined for a while: statements of a fingerprint, or a rule for all statements.

A rewritten statement that failed and whose original worked shows that something was wrong with the rewrite, but
not what. Its user's statements of its fingerprint are left alone at once. A rule is left out of all statements
when statements of several fingerprints have failed with it within minutes. Example: three different queries fail
with the rule `exists` in ten minutes, so `exists` is quarantined, and queries without it are rewritten as before.
An answer that differs leaves no time to find out: all rules of the statement go, until the proxy is restarted.

Everything else is released by itself, and is quarantined for twice as long where it does harm again soon after. An
administrator may release anything. Replicas that share a store tell one another (docs/decisions/0044).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.feedback.cost_gate import StatementKey
from proxy.session.feedback.metastore_limits import FILTER_REFUSED, MetastoreLimits
from proxy.session.feedback.quarantine_list import (
    Blamed,
    Cause,
    QuarantineEntry,
    QuarantineKind,
    QuarantineList,
    SharedEntry,
)
from rewriter import Rewrite, Rule, TableName

_log = logging.getLogger(__name__)

# Different fingerprints that fail with a rule before it is quarantined: one or two may fail for reasons
# of their own, and by then they are quarantined themselves.
RULE_FINGERPRINTS: Final = 3
# They fail within this time. A rule that is wrong shows within minutes on a server that is in use; failures that
# are hours apart rarely have one cause.
RULE_WINDOW_S: Final = 600.0
# How often to look for items to release: the look goes through all that is kept, a millisecond or two.
_RELEASED_EVERY_S: Final = 1.0
# Entries of other replicas that are learned in one piece, some milliseconds: statements wait for it.
_LEARNED_AT_ONCE_MAX: Final = 500


class Quarantine:
    """Lessons of all sessions of the process about what to leave alone. Safe to use from several threads."""

    def __init__(
        self, period_s: float, clock: Callable[[], float], time_of_day: Callable[[], float] = time.time
    ) -> None:
        """`clock` is one that is never set. Replicas compare entries by the time of day."""
        # The first quarantine of a thing lasts this long; may be changed at any time.
        self.period_s = period_s
        self._clock = clock
        self._time_of_day = time_of_day
        self._lock = Lock()
        self._rules = QuarantineList[Rule](QuarantineKind.RULE, lambda rule: rule.value)
        self._fingerprints = QuarantineList[str](QuarantineKind.FINGERPRINT, str)
        self._lists = (self._rules, self._fingerprints)
        # Fingerprints that failed with each rule lately, and when; fewer than RULE_FINGERPRINTS of each rule.
        self._failures: dict[Rule, dict[str, float]] = {}
        self._rules_off: frozenset[Rule] = frozenset()
        self._look_at = math.inf
        # The last exchange, and the last one of which the others know the answer.
        self._asked_at = self._told_until = -math.inf

    def blame(self, rules: frozenset[Rule], key: StatementKey, cause: Cause = Cause.FAILED) -> None:
        """A statement that was rewritten by these rules did harm."""
        with self._lock:
            now, at = self._released_until(), self._time_of_day()
            is_wrong = cause is Cause.DIFFERENT
            period_s = math.inf if is_wrong else self.period_s
            self._fingerprints.quarantine(key.name, cause, now, period_s, at, Blamed(rules, key.fingerprint))
            for rule in rules:
                if is_wrong or self._failed_widely_at(rule, key.fingerprint, now, now) is not None:
                    self._rules.quarantine(rule, cause, now, period_s, at)
            self._update()

    def rules_off(self) -> frozenset[Rule]:
        """The rules that no statement is to be rewritten by now."""
        with self._lock:
            self._released_until()
            return self._rules_off

    def has_statement(self, key: StatementKey) -> bool:
        """Whether statements of the fingerprint are to be left alone now."""
        with self._lock:
            self._released_until()
            return key.name in self._fingerprints

    def current(self) -> tuple[QuarantineEntry, ...]:
        """All that is quarantined now."""
        with self._lock:
            now = self._released_until()
            return (*self._rules.current(now), *self._fingerprints.current(now))

    def sentences(self) -> tuple[list[str], list[str]]:
        """All that is quarantined now, as users read it: rules, and fingerprints."""
        current = self.current()
        rules = [one.sentence for one in current if one.kind is QuarantineKind.RULE]
        return rules, [one.sentence for one in current if one.kind is QuarantineKind.FINGERPRINT]

    def count(self, kind: QuarantineKind) -> int:
        """The number of things of a kind that are quarantined now."""
        with self._lock:
            self._released_until()
            return next(len(each) for each in self._lists if each.kind is kind)

    def release(self, kind: QuarantineKind, name: str) -> bool:
        """Release something for an administrator. False where it is not quarantined."""
        with self._lock:
            _ = self._released_until()
            at = self._time_of_day()
            if kind is QuarantineKind.FINGERPRINT:
                is_found = self._fingerprints.free(name, at)
            else:
                rule = _rule(name)
                is_found = rule is not None and self._rules.free(rule, at)
                if rule is not None:
                    _ = self._failures.pop(rule, None)
            self._update()
            return is_found

    def exchange(self, entries: Iterable[SharedEntry]) -> list[SharedEntry]:
        """Learn the entries that replicas share, and return those that they have to be told, rules first."""
        known = {(entry.kind, entry.name): entry for entry in entries}
        # Rules first: failures of before a rule's release do not count.
        ordered = sorted(known.values(), key=lambda entry: entry.kind is not QuarantineKind.RULE)
        news: list[SharedEntry] = []
        for start in range(0, len(ordered), _LEARNED_AT_ONCE_MAX):
            with self._lock:
                page = ordered[start : start + _LEARNED_AT_ONCE_MAX]
                news += [entry for entry in page if self._is_learned(entry)]
                self._update()
        _log_learned([entry for entry in news if not entry.is_release])
        with self._lock:
            now, at = self._released_until(), self._time_of_day()
            self._asked_at = now
            own = [entry for each in self._lists for entry in each.entries(at)]
        return [entry for entry in own if entry.is_news(known.get((entry.kind, entry.name)), now)]

    def exchanged(self) -> None:
        """Others can know by now what the last exchange returned."""
        with self._lock:
            self._told_until = self._asked_at

    def _is_learned(self, entry: SharedEntry) -> bool:
        """Learn an entry. Returns whether it was news here."""
        now = self._released_until()
        since = now - max(0.0, self._time_of_day() - entry.at)
        if entry.kind is QuarantineKind.RULE:
            rule = _rule(entry.name)
            # A rule of another version is passed by.
            return rule is not None and self._is_rule_learned(rule, entry, now, since)
        if entry.is_release:
            return self._fingerprints.learn_release(entry.name, entry, self._told_until)
        is_news = self._fingerprints.learn(entry.name, entry, now, since)
        if is_news and entry.cause is Cause.FAILED and now - since < RULE_WINDOW_S:
            self._count_failure(entry, now, since)
        return is_news

    def _is_rule_learned(self, rule: Rule, entry: SharedEntry, now: float, since: float) -> bool:
        if not entry.is_release:
            return self._rules.learn(rule, entry, now, since)
        is_news = self._rules.learn_release(rule, entry, self._told_until)
        if is_news:
            failed = self._failures.get(rule, {})
            self._failures[rule] = {one: at for one, at in failed.items() if since < at}
        return is_news

    def _count_failure(self, entry: SharedEntry, now: float, since: float) -> None:
        for rule in entry.blamed.rules:
            if entry.at <= self._rules.freed_at(rule):
                continue
            failed_at = self._failed_widely_at(rule, entry.blamed.fingerprint, since, now)
            if failed_at is not None:
                # As the replica that saw the last of the failures: a release of after it counts.
                at = self._time_of_day() - (now - failed_at)
                self._rules.quarantine(rule, Cause.FAILED, failed_at, self.period_s, at)

    def _failed_widely_at(self, rule: Rule, fingerprint: str, failed_at: float, now: float) -> float | None:
        """The time of the last of the failures that show a rule to be wrong; None while they are too few."""
        before = self._failures.get(rule, {})
        failed = {one: at for one, at in before.items() if now - at < RULE_WINDOW_S} | {fingerprint: failed_at}
        is_wide = len(failed) >= RULE_FINGERPRINTS
        self._failures[rule] = {} if is_wide else failed
        return max(failed.values()) if is_wide else None

    def _released_until(self) -> float:
        """The time now, at which everything has been released whose time is over."""
        now = self._clock()
        if now >= self._look_at:
            for each in self._lists:
                each.release_due(now)
            self._update(now + _RELEASED_EVERY_S)
        return now

    def _update(self, not_before: float = -math.inf) -> None:
        self._rules_off = self._rules.quarantined
        self._look_at = max(min(each.due for each in self._lists), not_before)


def _log_learned(news: list[SharedEntry]) -> None:
    for entry in news:
        if entry.kind is QuarantineKind.RULE:
            _log.warning("the rule %s is quarantined, as another replica says: %s", entry.name, entry.cause.value)
    fingerprints = [entry.name for entry in news if entry.kind is QuarantineKind.FINGERPRINT]
    if fingerprints:
        # There may be thousands.
        words = (len(fingerprints), fingerprints[0])
        _log.warning("%d fingerprints are quarantined, as other replicas say, the first one %s", *words)


def _rule(name: str) -> Rule | None:
    return next((rule for rule in Rule if rule.value == name), None)


@dataclass(frozen=True)
class Suspects:
    """The rules and tables that may be to blame where a rewritten statement fails."""

    rules: frozenset[Rule]
    key: StatementKey
    # The tables of which the metastore was sent a filter.
    sent: frozenset[TableName] = frozenset()

    @classmethod
    def of(cls, rewrite: Rewrite, key: StatementKey) -> Suspects:
        """The suspects of one rewrite. Tables that its session alone knows say nothing of rules to others."""
        return cls(rewrite.rules if rewrite.tables else frozenset(), key, rewrite.tables_sent_to_metastore)


def learn(
    outcome: Outcome, suspects: Suspects, quarantine: Quarantine, metastore: MetastoreLimits, *, expected: str = ""
) -> None:
    """Learn from the end of a statement that was rewritten. `expected` marks a failure that we provoked ourselves.

    Where the metastore refused a filter that it was sent, nothing else is to blame.
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
        quarantine.blame(suspects.rules, suspects.key)
