"""Rewrites that did harm are quarantined for a while: statements of a fingerprint, or a rule for all statements.

A rewritten statement that failed and whose original worked shows that something was wrong with the rewrite, but
not what. Its user's statements of its fingerprint are left alone at once. A rule is left out of all statements of
a user when statements of several fingerprints have failed with it within minutes. Example: three different queries
of ann's fail with the rule `exists` in ten minutes, so `exists` is quarantined for ann, and her queries without it
are rewritten as before. Anybody can write statements that fail at times, so no user's failures decide about
others: a rule is left out of all statements once it is left out of those of two users. After an answer that
differs, there is no time to find the cause: all rules of the statement are quarantined for all users, until the
proxy is restarted (docs/decisions/0053).

Everything else is released by itself, and is quarantined for twice as long where it does harm again soon after. An
administrator may release anything. Replicas that share a store tell one another (docs/decisions/0044).
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.spark_versions import is_filter_refused
from proxy.session.feedback.cost_gate import StatementKey
from proxy.session.feedback.metastore_limits import MetastoreLimits
from proxy.session.feedback.quarantine_list import (
    Blamed,
    Cause,
    QuarantineEntry,
    QuarantineKind,
    QuarantineList,
    SharedEntry,
    UsersRule,
)
from rewriter import Rewrite, Rule, TableName

_log = logging.getLogger(__name__)

# Different fingerprints that fail with a rule before it is quarantined: one or two may fail for reasons
# of their own, and by then they are quarantined themselves.
RULE_FINGERPRINTS: Final = 3
# Users whose statements have failed so before a rule is quarantined for all.
RULE_OWNERS: Final = 2
# They fail within this time. A rule that is wrong shows within minutes on a server that is in use; failures that
# are hours apart rarely have one cause.
RULE_WINDOW_S: Final = 600.0
# How often to look for items to release: the look goes through all that is kept, a millisecond or two.
_RELEASED_EVERY_S: Final = 1.0
# Entries of other replicas that are learned in one piece, some milliseconds: statements wait for it.
_LEARNED_AT_ONCE_MAX: Final = 500
# Pairs of a rule and a user whose failures are remembered. The oldest goes, and then has to fail anew.
_FAILURES_MAX: Final = 10_000


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
        self._rules = QuarantineList[UsersRule](QuarantineKind.RULE, lambda item: item.name)
        self._fingerprints = QuarantineList[str](QuarantineKind.FINGERPRINT, str)
        self._lists = (self._rules, self._fingerprints)
        # Fingerprints that failed with each rule of a user lately, and when; fewer than RULE_FINGERPRINTS of each.
        self._failures: OrderedDict[UsersRule, dict[str, float]] = OrderedDict()
        # The rules that are left out of statements, by user.
        self._rules_off: dict[str, frozenset[Rule]] = {}
        self._look_at = math.inf
        # The times of the last exchange, and of the last one whose result the other replicas know.
        self._asked_at = self._told_until = -math.inf

    def blame(self, rules: frozenset[Rule], key: StatementKey, cause: Cause = Cause.FAILED) -> None:
        """A statement that was rewritten by these rules did harm."""
        with self._lock:
            now, at = self._released_until(), self._time_of_day()
            is_wrong = cause is Cause.DIFFERENT
            period_s = math.inf if is_wrong else self.period_s
            blamed = Blamed(rules, key.fingerprint, key.owner)
            self._fingerprints.quarantine(key.name, cause, now, period_s, at, blamed)
            for rule in rules:
                item = UsersRule(rule, key.owner)
                if is_wrong:
                    self._rules.quarantine(UsersRule(rule), cause, now, period_s, at)
                elif self._failed_widely_at(item, key.fingerprint, now, now) is not None:
                    self._quarantine(item, now, at)
            self._update()

    def rules_off(self, owner: str = "") -> frozenset[Rule]:
        """The rules that no statement of a user is to be rewritten by now."""
        with self._lock:
            self._released_until()
            return self._rules_off.get("", frozenset()) | self._rules_off.get(owner, frozenset())

    def has_statement(self, key: StatementKey) -> bool:
        """True if statements of the fingerprint are to be left alone now."""
        with self._lock:
            self._released_until()
            return key.name in self._fingerprints

    def current(self) -> tuple[QuarantineEntry, ...]:
        """All that is quarantined now."""
        with self._lock:
            now = self._released_until()
            return (*self._rules.current(now), *self._fingerprints.current(now))

    def sentences(self) -> tuple[list[str], list[str]]:
        """All that is quarantined now, as users read it: rules, and what is of single users."""
        for_all: list[str] = []
        of_users: list[str] = []
        for one in self.current():
            is_for_all = one.kind is QuarantineKind.RULE and not one.owner
            (for_all if is_for_all else of_users).append(one.sentence)
        return for_all, of_users

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
                freed = [self._free_rule(item, at) for item in self._named(name)]
                is_found = any(freed)
            self._update()
            return is_found

    def exchange(self, entries: Iterable[SharedEntry]) -> list[SharedEntry]:
        """Learn the entries that replicas share, and return those that they have to be told, rules first."""
        known = {(entry.kind, entry.name): entry for entry in entries}
        # Rules first: failures from before a rule's release do not count.
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
            item = UsersRule.of_name(entry.name)
            # A rule of another version is ignored.
            return item is not None and self._is_rule_learned(item, entry, now, since)
        if entry.is_release:
            return self._fingerprints.learn_release(entry.name, entry, self._told_until)
        is_news = self._fingerprints.learn(entry.name, entry, now, since)
        if is_news and entry.cause is Cause.FAILED and now - since < RULE_WINDOW_S:
            self._count_failure(entry, now, since)
        return is_news

    def _is_rule_learned(self, item: UsersRule, entry: SharedEntry, now: float, since: float) -> bool:
        if not entry.is_release:
            is_news = self._rules.learn(item, entry, now, since)
            if is_news and item.owner:
                self._quarantine_for_all(item.rule, since, entry.at)
            return is_news
        is_news = self._rules.learn_release(item, entry, self._told_until)
        if is_news:
            failed = self._failures.get(item, {})
            self._failures[item] = {one: at for one, at in failed.items() if since < at}
        return is_news

    def _count_failure(self, entry: SharedEntry, now: float, since: float) -> None:
        for rule in entry.blamed.rules:
            item = UsersRule(rule, entry.blamed.owner)
            if entry.at <= self._rules.freed_at(item):
                continue
            failed_at = self._failed_widely_at(item, entry.blamed.fingerprint, since, now)
            if failed_at is not None:
                # Dated as on the replica that saw the last of the failures: a later release counts.
                self._quarantine(item, failed_at, self._time_of_day() - (now - failed_at))

    def _failed_widely_at(self, item: UsersRule, fingerprint: str, failed_at: float, now: float) -> float | None:
        """The time of the last of the failures that show a rule to be wrong; None while they are too few."""
        before = self._failures.pop(item, {})
        failed = {one: at for one, at in before.items() if now - at < RULE_WINDOW_S} | {fingerprint: failed_at}
        is_wide = len(failed) >= RULE_FINGERPRINTS
        self._failures[item] = {} if is_wide else failed
        if len(self._failures) > _FAILURES_MAX:
            _ = self._failures.popitem(last=False)
        return max(failed.values()) if is_wide else None

    def _quarantine(self, item: UsersRule, now: float, at: float) -> None:
        """Quarantine a rule that failed widely for its user, and for all users where it did for others too."""
        self._rules.quarantine(item, Cause.FAILED, now, self.period_s, at)
        if item.owner:
            self._quarantine_for_all(item.rule, now, at)

    def _quarantine_for_all(self, rule: Rule, now: float, at: float) -> None:
        owners = {item.owner for item in self._rules.quarantined if item.rule is rule} - {""}
        if len(owners) >= RULE_OWNERS:
            self._rules.quarantine(UsersRule(rule), Cause.FAILED, now, self.period_s, at)

    def _named(self, name: str) -> list[UsersRule]:
        """The rules that a release of a name is about: a rule for all is released for each of its users, too."""
        named = UsersRule.of_name(name)
        if named is None:
            return []
        known = self._rules.quarantined | self._failures.keys()
        return [named] if named.owner else [item for item in known if item.rule is named.rule]

    def _free_rule(self, item: UsersRule, at: float) -> bool:
        _ = self._failures.pop(item, None)
        return self._rules.free(item, at)

    def _released_until(self) -> float:
        """The time now. Everything whose time is over has been released by then."""
        now = self._clock()
        if now >= self._look_at:
            for each in self._lists:
                each.release_due(now)
            self._update(now + _RELEASED_EVERY_S)
        return now

    def _update(self, not_before: float = -math.inf) -> None:
        off: dict[str, frozenset[Rule]] = {}
        for item in self._rules.quarantined:
            off[item.owner] = off.get(item.owner, frozenset()) | {item.rule}
        self._rules_off = off
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


@dataclass(frozen=True)
class Suspects:
    """The rules and tables that may be to blame where a rewritten statement fails."""

    rules: frozenset[Rule]
    key: StatementKey
    # The tables of which the metastore was sent a filter.
    sent: frozenset[TableName] = frozenset()

    @classmethod
    def of(cls, rewrite: Rewrite, key: StatementKey) -> Suspects:
        """The suspects of one rewrite. Tables that only its session knows say nothing of rules to others."""
        return cls(rewrite.rules if rewrite.tables else frozenset(), key, rewrite.tables_sent_to_metastore)


def learn(outcome: Outcome, suspects: Suspects, quarantine: Quarantine, metastore: MetastoreLimits) -> None:
    """Learn from the end of a statement that was rewritten.

    Where the metastore refused a filter that it was sent, nothing else is to blame.
    """
    if (
        is_filter_refused(outcome.message)
        and suspects.sent
        and outcome.kind in {OutcomeKind.RECOVERED, OutcomeKind.FAILED}
    ):
        metastore.refused(suspects.sent, suspects.key.owner)
    elif outcome.kind is OutcomeKind.RECOVERED:
        quarantine.blame(suspects.rules, suspects.key)
