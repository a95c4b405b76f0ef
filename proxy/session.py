"""One HiveServer2 session as the proxy sees it: it rules on each statement. No sockets, no asyncio.

A ruling is a generator: it yields the queries that it needs answered in the client's own session, and returns
what to send. Whoever holds the connection drives it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from proxy.decision import Decider, Decision, Queries
from proxy.knobs import Knobs, Turned, of_session, turned
from proxy.metastore import FILTER_REFUSED
from proxy.rulings import End, Ending, Ruling
from proxy.shared import Shared
from rewriter.keys import literal
from rewriter.statement import first_word

_log = logging.getLogger(__name__)

# Statements that leave the meaning of names and settings as it was. After any other, facts are asked again.
_READING_WORDS = frozenset({"select", "with", "from", "values", "show", "describe", "desc", "explain"})


class Session:
    """The rewriting side of one client session: what it has set for itself, and what becomes of its statements."""

    def __init__(self, shared: Shared, configuration: Mapping[str, str] | None = None) -> None:
        self._shared = shared
        self._decider = Decider(shared)
        # What the client has set for itself, by the knobs' names.
        self._own: Mapping[str, str]
        self._own, errors = of_session(configuration or {})
        for error in errors:
            _log.warning("a client opened a session with a setting that is not understood: %s", error)

    def rewrite(self, sql: str) -> Queries[Ruling]:
        """Rule on a statement of the client: its text goes on, or that text with insertions."""
        turn = turned(sql, self._own)
        if turn is not None:
            return self._turn(sql, turn)
        if first_word(sql) not in _READING_WORDS:
            self._decider.forget(sql)
        knobs = self._knobs
        if not knobs.enabled:
            return Ruling(sql)
        decision = yield from self._decider.decide(sql)
        _log_decision(decision)
        if decision.text == sql or decision.plan is None:
            return Ruling(sql)
        return Ruling(decision.text, may_rerun=decision.plan.statement.only_reads, ended=self._ended)

    def closed(self) -> None:
        """The session has ended."""

    def _ended(self, ending: Ending) -> None:
        """A rewritten statement has ended. One that fails as it came too has failed by no doing of ours."""
        if FILTER_REFUSED in ending.message and ending.end is not End.FAILED_TWICE:
            self._shared.metastore.refused()

    def explain(self, sql: str, *, run_key_queries: bool) -> Queries[Decision]:
        """Decide as `rewrite` does, and tell everything; without key queries nothing is inserted."""
        return (yield from self._decider.explain(sql, run_key_queries=run_key_queries))

    @property
    def _knobs(self) -> Knobs:
        return Knobs.configured(self._shared.config, self._own)

    def _turn(self, sql: str, turn: Turned) -> Ruling:
        """A knob is turned here and in Spark, which keeps any setting; what it cannot tell is said by a query."""
        self._own = turn.own
        if turn.error:
            return Ruling(f"SELECT raise_error({literal('string', turn.error)})")
        if turn.verb != "show":
            return Ruling(sql)
        key = literal("string", f"starpruner.{turn.name}")
        value = literal("string", _shown(getattr(self._knobs, turn.name)))
        return Ruling(f"SELECT {key} AS key, {value} AS value")


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _log_decision(decision: Decision) -> None:
    if decision.rewrite is None:
        reason = decision.skip.name if decision.skip is not None else "none"
        _log.debug("left %d characters as they are: %s", len(decision.original), reason)
        return
    _log.info(
        "narrowed %d of %d scans; key queries took %.3f s, table descriptions %.3f s",
        sum(outcome.predicate is not None for outcome in decision.rewrite.scans),
        len(decision.rewrite.scans),
        decision.timings.key_queries_s,
        decision.timings.catalog_s,
    )
