"""Filters answered by range scans of a partition list in HBase, for people who ask about a list that is not here.

Statements need a list whole, so a replica loads it. EXPLAIN PARTITIONS wants the few partitions of one filter, and
finds them in the list that replicas share before this one holds it. Scans cannot check the checksum of the whole
list. They check that each row is the entry of its own name, in order, and that there are no more than the header
says. So an answer may lack partitions where rows were lost in HBase, and no decision rests on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from threading import Lock
from typing import Final

from proxy.hbase.errors import HBaseError
from proxy.hbase.table import HBaseTable
from proxy.session.layout import hbase_lists, shared_rows
from proxy.session.layout.partition_store import ListKey, ScannedPartitions
from proxy.session.layout.row_filters import row_filter
from proxy.session.layout.shared_rows import SharedHeader
from rewriter.partitions.index import PartitionIndex, SortedEntries
from rewriter.partitions.key_encoding import END, PartitionKeys
from rewriter.partitions.scan_plan import ScanPlan

# One of the two threads that decide about statements waits meanwhile. HBase tests some hundred thousand rows in
# this time, or some ten thousand come from it.
_ANSWER_S: Final = 2.0
# A scan takes some milliseconds, however few rows it has.
_SCANS_MAX: Final = 100
# More rows do not come in time, nor are more tested by HBase: a full scan that is longer is not begun.
_ROWS_MAX: Final = 50_000
_ROWS_TESTED_MAX: Final = 300_000


class HBaseScans:
    """Range scans by a connection of their own, one answer at a time. Any thread may ask, and waits."""

    def __init__(self, table: HBaseTable, partitions_max: int, clock: Callable[[], float] = time.time) -> None:
        """`clock` is the time of day."""
        self._table = table
        self._partitions_max = partitions_max
        self._clock = clock
        self._is_scanning = Lock()

    def find(
        self, key: ListKey, keys: PartitionKeys, plan: ScanPlan, is_wanted: Callable[[SharedHeader], bool]
    ) -> ScannedPartitions | None:
        """The partitions in a plan's scans, at least those that it keeps, of the list that replicas share.

        None where none is shared that `is_wanted` accepts, or HBase is away, slow, or busy with another answer.
        """
        if len(plan.scans) > _SCANS_MAX or not self._is_scanning.acquire(blocking=False):
            return None
        try:
            with self._table.within(_ANSWER_S):
                header = hbase_lists.read_header(self._table, key, self._partitions_max).header
                if header is None or not header.is_believed(self._clock()) or not is_wanted(header):
                    return None
                if (header.columns, header.type_names) != (keys.columns, keys.type_names):
                    return None
                return _scanned(self._table, header, keys, plan)
        except HBaseError:
            return None
        finally:
            self._is_scanning.release()

    def close(self) -> None:
        """End the scans under way, and all that follow."""
        self._table.cut_off()
        with self._is_scanning:
            self._table.close()


def _scanned(
    table: HBaseTable, header: SharedHeader, keys: PartitionKeys, plan: ScanPlan
) -> ScannedPartitions | None:
    rows_left = min(_ROWS_MAX, header.count)
    # Many scans share few conditions.
    filters: dict[tuple[int, ...], bytes] = {}
    found: list[bytes] = []
    counts: list[int | None] = []
    for start, stop, conditions in plan.scans:
        shared = tuple(map(id, conditions))
        if shared not in filters:
            filters[shared] = row_filter(conditions, keys)
        pushed_down, is_whole = filters[shared], (start, stop) == (b"", END)
        if is_whole and header.count > (_ROWS_TESTED_MAX if pushed_down else _ROWS_MAX):
            return None
        entries = list(islice(hbase_lists.scan(table, header, start, stop, pushed_down), rows_left + 1))
        rows_left -= len(entries)
        if rows_left < 0 or not all(shared_rows.is_entry(keys, entry) for entry in entries):
            return None
        found += entries
        if is_whole and not pushed_down and len(entries) != header.count:
            return None
        counts.append(header.count if is_whole else None if pushed_down else len(entries))
    count = header.count + len(header.unreadable)
    return ScannedPartitions(PartitionIndex(keys, SortedEntries(found), header.unreadable, count), tuple(counts))
