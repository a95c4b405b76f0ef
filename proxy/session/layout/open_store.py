"""The store of partition lists that the configuration names, opened and closed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic, time
from typing import Final

from proxy.config.address import address
from proxy.config.rewriting import CatalogSection
from proxy.hbase.connection import GatewayConnection
from proxy.hbase.gateway_thread import GatewayThread
from proxy.hbase.table import HBaseTable
from proxy.session.layout.hbase_lists import TABLE_TTL_S
from proxy.session.layout.hbase_scans import HBaseScans
from proxy.session.layout.hbase_store import GatewayThreads, HBasePartitionStore
from proxy.session.layout.lmdb_store import LmdbPartitionStore, lmdb_store

# A read takes a millisecond. One that takes longer than this has failed: the next one connects anew.
_READ_S: Final = 1.0
# A page of a thousand rows takes some hundredths of a second, and making the table some seconds.
_WORK_S: Final = 30.0
# Lessons are small rows: some thousands of them take a second or two. The thread looks every `_LESSONS_LOOK_S`
# whether an exchange is due.
_LESSON_S: Final = 5.0
_LESSONS_LOOK_S: Final = 1.0
# All pages of one read of lessons: what is quarantined waits for a read of runs.
_LESSON_PAGES_S: Final = 10.0
# All pages of one list, or of a search for lists to drop. A million rows took 65 s, on a busy machine.
_PAGES_S: Final = 300.0
# All calls for one filter have less together: HBase may take all of that for one page of a scan.
_SCANS_S: Final = 5.0
# Reads of headers, and lists to load or publish, that may wait. If more would wait, HBase is too slow. Lists that
# are not shared are only asked for more often.
_READS_WAITING_MAX: Final = 64
_WORK_WAITING_MAX: Final = 32


@contextmanager
def open_store(
    settings: CatalogSection, clock: Callable[[], float] = time
) -> Generator[LmdbPartitionStore | HBasePartitionStore]:
    """The store, this replica's own or that of all replicas. The clock is the time of day.

    Raises ConfigError where the own one cannot be opened. HBase may be away, also from the start.
    """
    with lmdb_store(settings, clock) as own:
        if settings.store == "lmdb":
            yield own
            return
        reads = GatewayThread("reads", _table(settings, _READ_S, _PAGES_S), _READS_WAITING_MAX)
        work = GatewayThread("work", _table(settings, _WORK_S, _PAGES_S), _WORK_WAITING_MAX, prepare=_make_table)
        lessons = GatewayThread("lessons", _table(settings, _LESSON_S, _LESSON_PAGES_S), 1, idle_s=_LESSONS_LOOK_S)
        threads = GatewayThreads(reads, work, lessons)
        scans = HBaseScans(_table(settings, _SCANS_S, _SCANS_S), settings.partitions_max, clock)
        store = HBasePartitionStore(own, threads, scans, settings, clock)
        threads.start()
        try:
            yield store
        finally:
            store.close()


def _table(settings: CatalogSection, call_s: float, pages_s: float) -> HBaseTable:
    connection = GatewayConnection(address(settings.store_gateway), monotonic)
    return HBaseTable(connection, settings.store_table, call_s, pages_s=pages_s)


def _make_table(table: HBaseTable) -> None:
    table.create(TABLE_TTL_S)
