"""Exchange of lessons between replicas, by rows in HBase: a thread of its own reads and writes them now and then.

No statement waits for it: statements ask the quarantine and the cost gate of their own process, which this thread
tells what others have learned. While HBase is away each replica goes on by itself, and tells the others later.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from enum import Enum
from itertools import chain, islice
from typing import Final, Protocol

from proxy.hbase.calls import Cell, Row
from proxy.hbase.table import PAGE_ROWS, HBaseTable
from proxy.session.feedback.cost_gate import RECORDS_MAX
from proxy.session.feedback.cost_model import RunRecord
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.feedback.quarantine_list import KEPT_MAX, QuarantineKind, SharedEntry
from proxy.session.sharing import lesson_rows

# The quarantine has few rows, and a fault has to stop everywhere soon.
_EVERY_S: Final = 3.0
# There may be 10,000 records, which take some tenths of a second to read. Nothing is wrong without them.
_RECORDS_EVERY_S: Final = 60.0
# Each exchange takes a twentieth of the time at most, however much there is to read. But a slow HBase delays the
# quarantine by `_REST_MAX_S` at most.
_REST_PART: Final = 19.0
_REST_MAX_S: Final = 30.0
# Each is a call of its own, since each has a time to live of its own. The others come with the next exchange.
_TOLD_AT_ONCE_MAX: Final = 200
# Replicas of several versions may have different rules, some dozens each.
_RULE_ROWS_MAX: Final = 1_000
# Values have 64 KB at most, and an answer of the gateway 16 MB.
_PAGE_ROWS: Final = 200


class LessonResult(Enum):
    """The outcome of a row, or of an exchange."""

    TOLD = "told"
    LEARNED = "learned"
    # A row that no replica of this version has written.
    INVALID = "invalid"


class RunRecords(Protocol):
    """The records of a cost gate."""

    def changed(self) -> dict[str, RunRecord]:
        """The records that have changed since the last call, by name."""
        ...

    def learn(self, records: dict[str, RunRecord]) -> None:
        """Use the records of other replicas where there are none of this one."""
        ...


class LessonExchange:
    """Exchanges what is quarantined, and the runs of statements. Used by one thread."""

    def __init__(
        self,
        quarantine: Quarantine,
        records: RunRecords,
        steady_clock: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`steady_clock` is the one of the quarantine and the records; `clock` is the time of day."""
        self._quarantine = quarantine
        self._records = records
        self._steady_clock = steady_clock
        self._clock = clock
        self._next_at = self._records_at = steady_clock()
        # Records that others have not been told of.
        self._untold: dict[str, RunRecord] = {}
        self._results = Counter[LessonResult]()

    def results(self) -> Iterable[tuple[str, float]]:
        """How many rows were written and read, by what came of them."""
        return tuple((result.value, self._results[result]) for result in LessonResult)

    def due(self) -> Callable[[HBaseTable], None] | None:
        """The next exchange, where it is time for it."""
        return self.exchange if self._steady_clock() >= self._next_at else None

    def exchange(self, table: HBaseTable) -> None:
        """Read what other replicas have learned, and write what they have not. Raises HBaseError."""
        begun = self._steady_clock()
        try:
            self._exchange_quarantine(table)
        finally:
            self._next_at = self._steady_clock() + min(self._rest_s(begun, _EVERY_S), _REST_MAX_S)
        begun = self._steady_clock()
        if begun >= self._records_at:
            try:
                self._tell_records(table)
                self._learn_records(table)
            finally:
                self._records_at = self._steady_clock() + self._rest_s(begun, _RECORDS_EVERY_S)

    def _rest_s(self, begun: float, every_s: float) -> float:
        return max(every_s, (self._steady_clock() - begun) * _REST_PART)

    def _exchange_quarantine(self, table: HBaseTable) -> None:
        offset_s, now = self._clock() - self._steady_clock(), self._steady_clock()
        column = lesson_rows.QUARANTINE_COLUMN
        entries: list[SharedEntry] = []
        rules = _rows(table, lesson_rows.ALL_RULES, _RULE_ROWS_MAX)
        fingerprints = list(_rows(table, lesson_rows.ALL_FINGERPRINTS, KEPT_MAX))
        for row in chain(rules, fingerprints):
            entry = lesson_rows.read_quarantine(row.key, row.cells.get(column, b""), now, offset_s)
            self._results[LessonResult.INVALID if entry is None else LessonResult.LEARNED] += 1
            if entry is not None:
                entries.append(entry)
        told = self._quarantine.exchange(entries)
        if len(fingerprints) >= KEPT_MAX:
            # Nobody reads further than that.
            read_to = fingerprints[-1].key
            told = [
                entry
                for entry in told
                if entry.kind is QuarantineKind.RULE or lesson_rows.quarantine_row(entry) <= read_to
            ]
        for entry in told[:_TOLD_AT_ONCE_MAX]:
            value = lesson_rows.quarantine_value(entry, now, offset_s)
            cell = Cell(lesson_rows.quarantine_row(entry), column, value)
            table.put(iter([cell]), lesson_rows.ttl_s(entry, now))
            self._results[LessonResult.TOLD] += 1
        if len(told) <= _TOLD_AT_ONCE_MAX:
            self._quarantine.exchanged()

    def _tell_records(self, table: HBaseTable) -> None:
        self._untold.update(self._records.changed())
        for name in list(islice(self._untold, max(0, len(self._untold) - RECORDS_MAX))):
            del self._untold[name]
        offset_s = self._clock() - self._steady_clock()
        told = self._untold | self._completed(table)
        values = {name: lesson_rows.record_value(name, record, offset_s) for name, record in told.items()}
        table.put(
            (
                Cell(lesson_rows.record_row(name), lesson_rows.RECORD_COLUMN, value)
                for name, value in values.items()
                if lesson_rows.is_short(value)
            ),
            lesson_rows.RECORD_TTL_S,
        )
        self._results[LessonResult.TOLD] += len(self._untold)
        self._untold.clear()

    def _completed(self, table: HBaseTable) -> dict[str, RunRecord]:
        """The untold records that lack a way, with what others have told of it, which must not be overwritten."""
        lacking = [name for name, record in self._untold.items() if not record.has_both_ways]
        found: dict[str, RunRecord] = {}
        for start in range(0, len(lacking), PAGE_ROWS):
            page = [lesson_rows.record_row(name) for name in lacking[start : start + PAGE_ROWS]]
            found |= self._read(table.rows(page).values())
        return {name: self._untold[name].completed_by(record) for name, record in found.items()}

    def _learn_records(self, table: HBaseTable) -> None:
        self._records.learn(self._read(_rows(table, lesson_rows.ALL_RECORDS, RECORDS_MAX)))

    def _read(self, rows: Iterable[Row]) -> dict[str, RunRecord]:
        offset_s, now = self._clock() - self._steady_clock(), self._steady_clock()
        values = ((row.key, row.cells.get(lesson_rows.RECORD_COLUMN, b"")) for row in rows)
        read = [lesson_rows.read_record(key, value, now, offset_s) for key, value in values]
        found = dict(each for each in read if each is not None)
        self._results[LessonResult.LEARNED] += len(found)
        self._results[LessonResult.INVALID] += len(read) - len(found)
        return found


def _rows(table: HBaseTable, rows: tuple[bytes, bytes], rows_max: int) -> Iterator[Row]:
    """The rows of a range with their values, up to so many."""
    with closing(table.scan(*rows, filter_text=b"", page_rows=_PAGE_ROWS)) as scan:
        yield from islice(scan, rows_max)
