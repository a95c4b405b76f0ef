"""Shadow mode: runs the rewritten text beside the original, whose answer the client gets. No sockets, no asyncio.

Spark computes a checksum of each answer in the client's own session. A difference is a defect of ours only if each
answer is the same when it is computed again, the keys in the rewritten text are still those that Spark answers,
and nothing in the statement makes its answer depend on the order in which rows are read. On any doubt nothing is
blamed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, Rows, ask_driver
from proxy.operations.spark_versions import is_filter_refused
from proxy.session.catalog.iceberg_snapshots import SCAN_ROWS_MAX, SnapshotRead, read_scan, scan_sql
from proxy.session.shadow.checksum import Checksum, Columns
from proxy.session.shadow.order_dependence import doubts, unbounded
from rewriter import KeyQuery, Keys, Rewrite, TableName

Clock: TypeAlias = Callable[[], float]

# A table has a few thousand columns at most, and each takes three words of the query for a checksum.
_COLUMNS_MAX: Final = 2_000
# Descriptions of so many columns, and the plan of a statement that is worth a second look.
_TOLD_BYTES_MAX: Final = 4 * 1024 * 1024
# One step of rounding to cents in one group is up to this share of a small answer.
_ROUNDING_STEP: Final = 0.01


class ShadowVerdict(Enum):
    """The result of a comparison."""

    EQUAL = "equal"
    DIFFERENT = "different, and nothing but the rewrite explains it"
    FAILED = "the rewritten statement fails where the original answers"
    REFUSED = "the metastore refuses the rewritten statement's filter, and that of the original not"
    UNSTABLE = "different, but the data, chance or the order of rows may be why"
    UNCOMPARABLE = "one of the answers could not be had"


@dataclass(frozen=True)
class Comparison:
    """The outcome of a comparison. `why` quotes nothing of the statement."""

    verdict: ShadowVerdict
    why: str = ""
    original: Checksum | None = None
    # None where the rewritten statement fails.
    rewritten: Checksum | None = None
    seconds: float = 0.0
    # Seconds of the first run of each text, the original's first; None where it has no answer.
    original_s: float | None = None
    rewritten_s: float | None = None

    @property
    def blames_us(self) -> bool:
        """True if the rules that rewrote the statement have to be quarantined."""
        return self.verdict in {ShadowVerdict.DIFFERENT, ShadowVerdict.FAILED}


@dataclass(frozen=True)
class Pair:
    """The original and the rewritten text of a statement, with the keys that the rewritten text holds."""

    original: str = field(repr=False)
    rewritten: str = field(repr=False)
    keys: Mapping[KeyQuery, Keys] = field(default_factory=dict, repr=False)
    # The scans of the names that the rewritten text reads at a snapshot.
    reads: Mapping[TableName, SnapshotRead] = field(default_factory=dict, repr=False)
    # Names the statement in log lines and in the history.
    statement_id: str = "-"

    @classmethod
    def of(cls, original: str, rewrite: Rewrite, reads: Mapping[TableName, SnapshotRead] | None = None) -> Pair:
        """The pair of a statement and its rewrite."""
        asked = (pair for outcome in rewrite.scans for pair in outcome.reducers)
        keys = {r.key_query: keys for r, keys in asked if keys is not None}
        return cls(original, rewrite.text, keys, reads or {})


@dataclass(frozen=True)
class ShadowLimits:
    """Limits of the cost of a comparison. Their reasons stand in the configuration."""

    statement_s: float = 60.0
    total_s: float = 300.0
    # As for any key query: the keys are asked for once more before anybody is blamed.
    key_query_bytes_max: int = 1024 * 1024


async def compare(pair: Pair, limits: ShadowLimits, clock: Clock) -> Comparison:
    """Compare the answers of both texts. The statement must be one that only reads."""
    return await _Comparing(pair, limits, clock).run()


class _EndedError(Exception):
    """The comparison has come to an end before its last step."""

    def __init__(self, verdict: ShadowVerdict, why: str) -> None:
        super().__init__(why)
        self.verdict = verdict


class _Comparing:
    """One comparison on its way."""

    def __init__(self, pair: Pair, limits: ShadowLimits, clock: Clock) -> None:
        self._pair = pair
        self._limits = limits
        self._clock = clock
        self._started = clock()
        self._columns = Columns((), (), ())
        self._original: Checksum | None = None
        self._rewritten: Checksum | None = None
        # Seconds of the answers that were checksums, in their order.
        self._answers_s: list[float] = []

    async def run(self) -> Comparison:
        try:
            why = ""
            verdict = await self._verdict()
        except _EndedError as end:
            verdict, why = end.verdict, str(end)
        seconds = self._clock() - self._started
        original_s = self._answers_s[0] if self._original is not None else None
        rewritten_s = self._answers_s[1] if self._rewritten is not None else None
        return Comparison(verdict, why, self._original, self._rewritten, seconds, original_s, rewritten_s)

    async def _verdict(self) -> ShadowVerdict:
        original, rewritten = self._texts()
        self._columns = await self._described(original)
        self._original = await self._answer(original)
        self._rewritten = await self._answer_or_failure(rewritten)
        if self._rewritten is not None and self._columns.same(self._original, self._rewritten):
            return ShadowVerdict.EQUAL
        await self._once_more(original, rewritten)
        await self._same_keys()
        await self._same_snapshots()
        if self._rewritten is None:
            return ShadowVerdict.FAILED
        await self._no_other_reason(original, self._original, self._rewritten)
        return ShadowVerdict.DIFFERENT

    def _texts(self) -> tuple[str, str]:
        """Both without the LIMIT and the semicolons at their common end, so that they can stand in parentheses."""
        found = unbounded(self._pair.original)
        if found is None or not self._pair.rewritten.endswith(found[1]):
            raise _EndedError(ShadowVerdict.UNCOMPARABLE, "the two texts do not end alike")
        return found[0], self._pair.rewritten.removesuffix(found[1])

    async def _described(self, original: str) -> Columns:
        answer = await ask_driver(self._query(f"DESCRIBE QUERY {original}", _COLUMNS_MAX))
        rows = _rows(answer, "what columns the original has")
        return Columns.of([str(row[1]).lower() for row in rows.rows])

    async def _answer(self, original: str) -> Checksum:
        answer = await ask_driver(self._query(self._columns.query(original), 1))
        return self._checksum(answer, "the original's answer")

    async def _answer_or_failure(self, rewritten: str) -> Checksum | None:
        """The checksum, or None where the server rejects the statement."""
        answer = await ask_driver(self._query(self._columns.query(rewritten), 1))
        if isinstance(answer, QueryFailed) and answer.kind is FailureKind.REJECTED:
            if is_filter_refused(answer.message):
                raise _EndedError(ShadowVerdict.REFUSED, "a shorter filter may pass")
            return None
        return self._checksum(answer, "the rewritten text's answer")

    def _checksum(self, answer: QueryResult, what: str) -> Checksum:
        rows = _rows(answer, what).rows
        checksum = self._columns.read(rows[0]) if rows else None
        if checksum is None:
            raise _EndedError(ShadowVerdict.UNCOMPARABLE, f"{what} is no checksum")
        self._answers_s.append(answer.seconds)
        return checksum

    async def _once_more(self, original: str, rewritten: str) -> None:
        """Ends the comparison if either side is not what it was."""
        first, second = self._original, self._rewritten
        again = await self._answer(original)
        if first is None or not self._columns.same(first, again):
            raise _EndedError(ShadowVerdict.UNSTABLE, "the original's own answer has changed")
        rewritten_again = await self._answer_or_failure(rewritten)
        if second is None or rewritten_again is None:
            stable = second is rewritten_again
        else:
            stable = self._columns.same(second, rewritten_again)
        if not stable:
            raise _EndedError(ShadowVerdict.UNSTABLE, "the rewritten text's own answer has changed")

    async def _same_keys(self) -> None:
        """Ends the comparison if a small side was written since its keys were fetched."""
        for question, keys in self._pair.keys.items():
            answer = await ask_driver(
                self._query(question.sql, question.answer_rows_max, self._limits.key_query_bytes_max)
            )
            rows = _rows(answer, "the keys, asked for once more,")
            if question.read(rows.rows) != keys:
                raise _EndedError(ShadowVerdict.UNSTABLE, "a small side has other keys by now")

    async def _same_snapshots(self) -> None:
        """Ends the comparison if the original by now reads other snapshots than the rewritten text names."""
        for name, scanned in self._pair.reads.items():
            answer = await ask_driver(self._query(scan_sql(name), SCAN_ROWS_MAX))
            if read_scan(answer) != scanned:
                raise _EndedError(ShadowVerdict.UNSTABLE, "a small side has another snapshot by now")

    async def _no_other_reason(self, text: str, one: Checksum, other: Checksum) -> None:
        """Ends the comparison if order, chance or rounding may explain the difference."""
        answer = await ask_driver(self._query(f"EXPLAIN EXTENDED {text}", 1))
        plan = "\n".join(str(row[0]) for row in _rows(answer, "the plan of the original").rows)
        doubt = doubts(text, plan)
        if doubt.chosen:
            raise _EndedError(ShadowVerdict.UNSTABLE, "rows are chosen by their order or by chance")
        distance = self._columns.float_distance(one, other)
        explained = distance <= _ROUNDING_STEP if doubt.rounds else distance == 0.0
        if one.rows == other.rows and explained and (doubt.floats or one.hash == other.hash):
            raise _EndedError(
                ShadowVerdict.UNSTABLE, "floating-point numbers may have been rounded to either side"
            )

    def _query(self, sql: str, rows_max: int, bytes_max: int = _TOLD_BYTES_MAX) -> Query:
        left_s = self._started + self._limits.total_s - self._clock()
        if left_s <= 0:
            raise _EndedError(ShadowVerdict.UNCOMPARABLE, f"not finished within {self._limits.total_s:g} s")
        return Query(sql, rows_max, bytes_max, deadline_s=min(self._limits.statement_s, left_s))


def _rows(answer: QueryResult, what: str) -> Rows:
    if isinstance(answer, QueryFailed):
        raise _EndedError(ShadowVerdict.UNCOMPARABLE, f"{what} could not be had: {answer.kind.value}")
    return answer
