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
from proxy.session.layout.hbase_store import GatewayThreads, HBasePartitionStore
from proxy.session.layout.lmdb_store import LmdbPartitionStore, lmdb_store

# A read takes a millisecond. One that takes longer than this has failed: the next one connects anew.
_READ_S: Final = 1.0
# A page of a thousand rows takes some hundredths of a second, and a table to be made some seconds.
_WORK_S: Final = 30.0
# Each is one list whose header is read, and one that is loaded or published. With more waiting than that, HBase is
# too slow, and lists that are not shared are only asked for more often.
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
        reads = GatewayThread("reads", _table(settings, _READ_S), _READS_WAITING_MAX)
        work = GatewayThread("work", _table(settings, _WORK_S), _WORK_WAITING_MAX, prepare=_make_table)
        threads = GatewayThreads(reads, work)
        store = HBasePartitionStore(own, threads, settings, clock)
        threads.start()
        try:
            yield store
        finally:
            threads.close()


def _table(settings: CatalogSection, call_s: float) -> HBaseTable:
    return HBaseTable(GatewayConnection(address(settings.store_gateway), monotonic), settings.store_table, call_s)


def _make_table(table: HBaseTable) -> None:
    table.create(TABLE_TTL_S)
