"""The key queries of one statement: remembered keys are used, and the rest is asked for.

Trusted keys are used without a query. By default there are none: `rewrite.key_staleness_s` is 0, and so is
`rewrite.key_snapshot_s`, which counts for keys at a snapshot, since no write can change these. Other remembered
keys may be used where they are checked later, while the statement runs (`proxy.operations.key_check`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, TypeAlias

from proxy.operations.dispatch import always
from proxy.operations.key_check import CheckVerdict
from proxy.operations.query import Ask, FailureKind, Query, QueryFailed, QueryResult
from proxy.session.catalog.metadata_cache import SessionMetadata
from proxy.session.consistency.write_fence import Fence
from proxy.session.feedback.spark_errors import error_of
from proxy.session.shared_state import SharedState
from rewriter import KeyQuery, Keys, Plan, SkipReason
from rewriter.domains.keys import are_among
from rewriter.vocabulary.cited import listed

_log = logging.getLogger(__name__)

KeyAnswers: TypeAlias = dict[KeyQuery, Keys | SkipReason]

# Time for a question's second form where the first has taken all of it: long enough to be counted as late.
_DEADLINE_MIN_S: Final = 0.1

_FAILURES = {
    FailureKind.DEADLINE: SkipReason.KEY_QUERY_DEADLINE,
    FailureKind.BUSY: SkipReason.KEY_QUERY_DEADLINE,
    FailureKind.TOO_MANY_ROWS: SkipReason.TOO_MANY_KEYS,
    FailureKind.TOO_MANY_BYTES: SkipReason.TOO_MANY_KEYS,
}


@dataclass(frozen=True)
class UsableKeys:
    """The remembered keys that a statement may use: those of a session state, up to an age in seconds."""

    state: bytes
    # The session of the statement. Keys that it asked for itself, up to so many seconds ago, need no check.
    asker: str
    staleness_s: float
    # Keys that it asked for since this moment of the clock need no check either. Infinite where there are none.
    asked_since: float = inf
    # Keys of this age may be used if they are asked for again while the statement runs; 0 where none may.
    checked_s: float = 0.0


@dataclass(frozen=True)
class KeyQueries:
    """The key queries of one statement; `fence` was opened before the first of them."""

    shared: SharedState
    known: SessionMetadata
    usable: UsableKeys | None
    fence: Fence
    ask: Ask
    # Keys that came after a change of the session are not remembered.
    is_session_unchanged: Callable[[], bool] = always
    # The remembered keys that were used so far and are to be checked.
    to_check: dict[KeyQuery, Keys] = field(default_factory=dict)
    # Failures in the place of answers, in words for explain.
    errors: dict[KeyQuery, str] = field(default_factory=dict)

    def are_all_checked_later(self, planned: Plan) -> bool:
        """True if the statement's first questions all have remembered answers that are to be checked."""
        return all(self._checked_later(question) is not None for question in planned.key_queries)

    async def answers(self, planned: Plan, known: KeyAnswers | None = None) -> KeyAnswers:
        """The keys of all small sides, or the reasons for none; `known` are answers that are there already.

        Keys of a side that is being written are not asked for: every fence sees a running write.
        """
        answers = dict(known or {})
        while pending := planned.pending(answers):
            for question in pending:
                answers[question] = await self._keys(question)
        return answers

    async def _keys(self, question: KeyQuery) -> Keys | SkipReason:
        if not self.fence.holds(question.tables):
            return SkipReason.SMALL_SIDE_WRITTEN
        remembered = self._trusted(question)
        if remembered is not None:
            return remembered
        likely = self._checked_later(question)
        if likely is not None:
            self.to_check[question] = likely
            return likely
        return await self._asked(question)

    async def check(self, used: Mapping[KeyQuery, Keys]) -> CheckVerdict:
        """Ask again for keys that a statement uses, while it runs."""
        for question, keys in used.items():
            now = await self._asked(question)
            if isinstance(now, SkipReason):
                return CheckVerdict.UNANSWERED
            if not are_among(now, keys):
                return CheckVerdict.CHANGED
        return CheckVerdict.HELD

    def _age_s(self, question: KeyQuery) -> float:
        """The age in seconds that a remembered answer may have; 0 where none may be used."""
        allowed_s = self.usable.staleness_s if self.usable is not None else 0.0
        if self.usable is None or not question.is_fixed:
            return allowed_s
        return max(allowed_s, self.shared.config.rewrite.key_snapshot_s)

    def _trusted(self, question: KeyQuery) -> Keys | None:
        if self.usable is None:
            return None
        age_s, since = self._age_s(question), self.usable.asked_since
        since = min(since, self.shared.clock() - age_s) if age_s else since
        state, asker = self.usable.state, self.usable.asker
        return self.shared.keys.trusted(state, question, asker=asker, asked_since=since)

    def _checked_later(self, question: KeyQuery) -> Keys | None:
        if self.usable is None or not self.usable.checked_s:
            return None
        since = self.shared.clock() - self.usable.checked_s
        return self.shared.keys.checked_later(self.usable.state, question, asked_since=since)

    async def _asked(self, question: KeyQuery) -> Keys | SkipReason:
        asked_at = self.shared.clock()
        keys = await self._answer(question)
        is_remembered = self.usable is not None and (
            self._age_s(question) or self.shared.config.rewrite.keys_remembered_s
        )
        if not self.is_session_unchanged():
            return keys
        if self.usable is not None and is_remembered and not isinstance(keys, SkipReason):
            self.shared.keys.put(
                self.usable.state,
                question,
                keys,
                asker=self.usable.asker,
                asked_at=asked_at,
                fence=self.fence,
            )
        return keys

    async def _answer(self, question: KeyQuery) -> Keys | SkipReason:
        """The keys, asked for in the cheapest form whose answer is not known to be too long or an error."""
        settings, clock = self.shared.config.rewrite, self.shared.clock
        deadline = clock() + settings.key_query_deadline_s
        for sql in filter(None, (question.sql_with_repeats, question.sql)):
            failure = self.known.without_keys.recent_failure(sql)
            if failure is not None and failure.value:
                age_s, left_s = clock() - failure.came_at, failure.until - clock()
                self.errors[question] = f"{failure.value} {age_s:.0f} s ago, and is asked again in {left_s:.0f} s"
                return failure_of(question)
            if failure is not None:
                continue
            answer = await self.ask(
                Query(
                    sql,
                    rows_max=question.answer_rows_max,
                    bytes_max=settings.key_query_bytes_max,
                    deadline_s=max(_DEADLINE_MIN_S, deadline - clock()),
                    needs_slot=True,
                    is_for_client=True,
                    reads=question.tables,
                )
            )
            self.shared.metrics.key_query_answered(answer)
            keys = _keys(question, answer)
            if keys is SkipReason.TOO_MANY_KEYS:
                self.known.without_keys.add(sql)
                continue
            if isinstance(answer, QueryFailed) and answer.kind not in _FAILURES:
                self._failed(question, sql, answer)
            return keys
        return SkipReason.TOO_MANY_KEYS

    def _failed(self, question: KeyQuery, sql: str, failed: QueryFailed) -> None:
        """Note the error of a key query. It is not asked again for a while if the error would come again."""
        is_told, error = failed.kind is FailureKind.REJECTED, error_of(failed.message)
        self.errors[question] = told = f"Spark said {error}" if is_told else "its answer could not be read"
        _log.info("a key query of %s failed: %s", listed(sorted(map(str, question.tables))) or "no table", told)
        if is_told and error.is_lasting and self.is_session_unchanged():
            self.known.without_keys.add(sql, told)


def _keys(question: KeyQuery, answer: QueryResult) -> Keys | SkipReason:
    """The keys in an answer, or why there are none that can be used."""
    if isinstance(answer, QueryFailed):
        return failure_of(question, answer.kind)
    return question.read(answer.rows)


def failure_of(question: KeyQuery, kind: FailureKind = FailureKind.REJECTED) -> SkipReason:
    """The reason for which a question that failed has no keys."""
    error = SkipReason.SCALAR_SUBQUERY_ROWS if question.may_fail else SkipReason.KEY_QUERY_FAILED
    return _FAILURES.get(kind, error)
