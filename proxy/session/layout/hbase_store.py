"""Partition lists that all replicas share, in a table of HBase, beside this replica's own store.

The own store (LMDB) answers statements, also while HBase is away. HBase is asked for the header of a list, which
says whether the own copy is still the one that replicas share. A statement waits for that up to
`catalog.store_deadline_s`, for all its lists together. Everything else happens in the background: lists that other
replicas asked for are loaded, own lists are published, and those of written tables are dropped.

A replica that cannot reach HBase goes on as it would alone. Its copies of lists that other replicas have dropped
or replaced since are as old as `catalog.partitions_ttl_s` allows: that costs pruning, never rows
(docs/decisions/0042).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum
from threading import Lock
from typing import Any, Final, TypeVar

from proxy.config.rewriting import CatalogSection
from proxy.hbase.gateway_thread import GatewayThread, Task
from proxy.hbase.table import HBaseTable
from proxy.session.layout import hbase_lists
from proxy.session.layout.dropped_tables import DroppedTables
from proxy.session.layout.hbase_lists import ReadHeader
from proxy.session.layout.hbase_scans import HBaseScans
from proxy.session.layout.lmdb_store import FoundList, ListTimes, LmdbPartitionStore, StoredList
from proxy.session.layout.partition_store import ListKey, PartitionStore, ScannedPartitions, StoreWait
from proxy.session.layout.shared_rows import SharedHeader, is_named, new_version
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import END, PartitionKeys
from rewriter.partitions.scan_plan import ScanPlan

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

# How long a header that was read is believed. Several reads of one statement are one question, and a list that
# another replica dropped is used for so long at most.
_HEADER_BELIEVED_S: Final = 1.0
# Lists whose headers, reads and loads are remembered; as many as the own store has. With more, all are forgotten.
_LISTS_MAX: Final = 10_000


class SharedListResult(Enum):
    """The outcome of a look into HBase for a list, of loading one, and of telling the other replicas."""

    # Looked up: the own copy is the one that is shared, nothing is shared, no answer in time, not to be believed.
    FOUND = "found"
    ABSENT = "absent"
    LATE = "late"
    INVALID = "invalid"
    # A list of another replica is in the own store by now, or has answered one filter by scans.
    LOADED = "loaded"
    SCANNED = "scanned"
    # Other replicas can find a list of this one, or cannot.
    PUBLISHED = "published"
    UNPUBLISHED = "unpublished"
    # A list of a table that was written.
    DROPPED = "dropped"


@dataclass(frozen=True)
class GatewayThreads:
    """Three threads: neither reads, which a statement may wait for, nor lessons may stand behind long work."""

    reads: GatewayThread
    # Makes the table before anything else.
    work: GatewayThread
    # Tells other replicas what this one has learned: it begins once there is anything to tell.
    lessons: GatewayThread

    def start(self) -> None:
        """Begin."""
        self.reads.start()
        self.work.start()
        self.make_table()

    def make_table(self) -> None:
        """Make the table, where that has not been done."""
        self.work.prepare()

    def read(self, work: Callable[[HBaseTable], Result]) -> Task[Result] | None:
        """Read from the table. None where there is none so far, or the gateway is left alone."""
        if not self.work.is_prepared:
            self.make_table()
            return None
        return self.reads.do(work)

    @property
    def is_away(self) -> bool:
        """True if HBase is left alone by any of them."""
        return self.reads.is_away or self.work.is_away or self.lessons.is_away

    def close(self) -> None:
        """End all of them, at once. Takes up to a few seconds: not on the event loop."""
        threads = (self.reads, self.work, self.lessons)
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join()


@dataclass
class _HeaderRead:
    """A read of headers, and the moment up to which it is waited for, by whichever statement wants it."""

    task: Task[dict[ListKey, ReadHeader]]
    waited_until: float
    # True if it was late for a statement that had all its time: it counts once.
    is_missed: bool = False


class HBasePartitionStore:
    """See PartitionStore. Any thread may use it; only `look_up`, for so long as is configured, and `scan` wait."""

    def __init__(  # noqa: PLR0913, PLR0917 - the own store, HBase, and two clocks
        self,
        own: LmdbPartitionStore,
        threads: GatewayThreads,
        scans: HBaseScans,
        settings: CatalogSection,
        clock: Callable[[], float] = time.time,
        steady_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` is the time of day, which replicas share. `steady_clock` is never set."""
        self._own = own
        self._threads = threads
        self._scans = scans
        self._settings = settings
        self._clock = clock
        self._steady_clock = steady_clock
        self._lock = Lock()
        self._headers: dict[ListKey, tuple[ReadHeader, float]] = {}
        self._reads: dict[ListKey, _HeaderRead] = {}
        self._loads: dict[ListKey, Task[None]] = {}
        # Versions whose rows are not what the header says: they are not loaded again.
        self._broken: set[bytes] = set()
        self._dropped = DroppedTables()
        self._dropping: Task[None] | None = None
        self._results = Counter[SharedListResult]()
        # A drop that failed is tried again, also where nobody uses this replica any more.
        threads.work.when_idle(lambda: self._drop if self._dropped.has_waiting else None)

    def put(self, key: ListKey, columns: Sequence[str], type_names: Sequence[str], specs: Sequence[str]) -> bool:
        """See PartitionStore. Other replicas find the list some time later."""
        read = self._own.read(columns, type_names, specs)
        if read is None:
            return False
        times = replace(read.times, version=new_version())
        if not self._own.keep(key, replace(read, times=times)):
            return False
        self._drop_waiting()
        if is_named(key.name) and self._threads.work.do(lambda table: self._publish(table, key, times)) is None:
            self._count(SharedListResult.UNPUBLISHED)
        return True

    def get(self, key: ListKey, *, or_old: bool = False) -> PartitionIndex | None:
        """See PartitionStore. HBase is not asked."""
        return self._own.get(key, or_old=or_old)

    def ask_ahead(self, keys: Sequence[ListKey]) -> None:
        """See PartitionStore. One call reads all headers."""
        with self._lock:
            self._ask(keys)

    def look_up(self, key: ListKey, wait: StoreWait) -> PartitionIndex | None:
        """See PartitionStore."""
        found = self._looked_up(key, wait)
        return None if found is None else found.index

    def scan(self, key: ListKey, keys: PartitionKeys, plan: ScanPlan) -> ScannedPartitions | None:
        """See PartitionStore. Waits for some seconds at most, and not at all while HBase is left alone."""
        self._drop_waiting()
        drop = self._dropped.moment(key.name)
        if self.is_away or not is_named(key.name) or self._dropped.is_waiting(key.name):
            return None
        found = self._scans.find(key, keys, plan, lambda header: not self._is_at_hand(key, header))
        if found is None or self._dropped.moment(key.name) != drop:
            return None
        self._count(SharedListResult.SCANNED)
        return found

    def forget(self, names: AbstractSet[str]) -> None:
        """See PartitionStore. Until the lists are dropped in HBase too, this replica uses none of them there."""
        self._own.forget(names)
        self._dropped.add(frozenset(filter(is_named, names)))
        with self._lock:
            for key in [key for key in self._headers if key.name in names]:
                del self._headers[key]
        self._drop_waiting()

    @property
    def is_away(self) -> bool:
        """True if HBase is left alone for now, since it did not answer, or not in time."""
        return self._threads.is_away

    def share_lessons(self, due: Callable[[], Callable[[HBaseTable], None] | None]) -> None:
        """Ask for an exchange of lessons every few seconds from now on, once there is a table."""

        def due_with_table() -> Callable[[HBaseTable], None] | None:
            self._threads.make_table()
            return due() if self._threads.work.is_prepared else None

        self._threads.lessons.when_idle(due_with_table)
        self._threads.lessons.start()

    def close(self) -> None:
        """End the work on HBase. It takes up to a few seconds; a second call returns at once."""
        self._scans.close()
        self._threads.close()

    def results(self) -> Iterable[tuple[str, float]]:
        """How often lists were looked up, loaded, published and dropped, by what came of it."""
        with self._lock:
            return tuple((result.value, self._results[result]) for result in SharedListResult)

    def _looked_up(self, key: ListKey, wait: StoreWait) -> FoundList | None:
        self._drop_waiting()
        # All that is read from here on may have been dropped by the time it is used.
        drop = self._dropped.moment(key.name)
        own = self._own.found(key)
        if not is_named(key.name) or self._dropped.is_waiting(key.name):
            return own
        read = self._header(key, wait)
        if read is None:
            self._count(SharedListResult.LATE)
            return own
        header = read.header
        if header is None or not header.is_believed(self._clock()):
            self._count(_without_list(read))
            # A list that other replicas could find, and now cannot, was dropped by one of them.
            return None if own is not None and own.is_shared and not read.is_there else own
        return self._of_header(key, header, own, wait, drop)

    def _of_header(
        self, key: ListKey, header: SharedHeader, own: FoundList | None, wait: StoreWait, drop: int
    ) -> FoundList | None:
        """The list of a header: the own copy if it is of that version, else once it is loaded."""
        if own is not None and own.times.version == header.version:
            self._count(SharedListResult.FOUND)
            return own
        if _is_newer(own, header):
            # The own list is newer, and on its way to the others.
            return own
        old = self._own.found(key, or_old=True)
        if old is not None and old.times.version == header.version:
            self._count(SharedListResult.FOUND)
            self._own.mark_shared(key, header.version, self._times(header))
            return self._own.found(key)
        load = self._load(key, header, drop)
        is_loaded = load is not None and self._has_ended(load, wait.left_s, wait)
        return self._own.found(key) if is_loaded else own

    def _has_ended(self, task: Task[Any], within_s: float, wait: StoreWait) -> bool:
        """True if a task ends within so many seconds, which count as waited."""
        if within_s <= 0:
            return task.is_over
        begun = self._steady_clock()
        try:
            return task.wait(within_s)
        finally:
            wait.waited(self._steady_clock() - begun)

    def _is_at_hand(self, key: ListKey, header: SharedHeader) -> bool:
        """True if the own copy is of the version that replicas share, or newer."""
        own = self._own.found(key, or_old=True)
        is_same = own is not None and own.times.version == header.version
        return is_same or _is_newer(self._own.found(key), header)

    def _header(self, key: ListKey, wait: StoreWait) -> ReadHeader | None:
        """The header of a list in HBase; None where it is not known in time."""
        with self._lock:
            known = self._known_header(key)
            if known is not None:
                return known
            self._ask([key])
            read = self._reads.get(key)
        if read is None:
            return None
        # Only a whole wait tells of the gateway: after waits for other lists, less of it is left.
        is_telling = wait.is_whole and not read.is_missed
        if not self._has_ended(read.task, min(wait.left_s, read.waited_until - self._steady_clock()), wait):
            if is_telling:
                read.is_missed = True
                self._threads.reads.missed()
            return None
        return read.task.result[key] if read.task.result is not None else None

    def _known_header(self, key: ListKey) -> ReadHeader | None:
        known = self._headers.get(key)
        is_believed = known is not None and self._steady_clock() - known[1] < _HEADER_BELIEVED_S
        return known[0] if known is not None and is_believed else None

    def _ask(self, keys: Sequence[ListKey]) -> None:
        """Ask for the headers of these lists that are neither known nor asked for already."""
        asked = [key for key in keys if is_named(key.name) and self._known_header(key) is None]
        asked = [key for key in asked if key not in self._reads or self._reads[key].task.is_over]
        if not asked:
            return
        task = self._threads.read(lambda table: self._read_headers(table, asked))
        _make_room(self._reads)
        for key in asked:
            # Headers of an older read do not count any more.
            _ = self._reads.pop(key, None)
        if task is not None:
            read = _HeaderRead(task, self._steady_clock() + self._settings.store_deadline_s)
            self._reads.update(dict.fromkeys(asked, read))

    def _read_headers(self, table: HBaseTable, keys: Sequence[ListKey]) -> dict[ListKey, ReadHeader]:
        drops = {key: self._dropped.moment(key.name) for key in keys}
        read = hbase_lists.read_headers(table, keys, self._settings.partitions_max)
        with self._lock:
            for key in keys:
                if self._dropped.moment(key.name) == drops[key]:
                    _make_room(self._headers)
                    self._headers[key] = (read[key], self._steady_clock())
        return read

    def _load(self, key: ListKey, header: SharedHeader, drop: int) -> Task[None] | None:
        with self._lock:
            load = self._loads.get(key)
            if load is not None and not load.is_over:
                return load
            if header.version in self._broken:
                return None
            load = self._threads.work.do(lambda table: self._loaded(table, key, header, drop))
            if load is not None:
                _make_room(self._loads)
                self._loads[key] = load
            return load

    def _loaded(self, table: HBaseTable, key: ListKey, header: SharedHeader, drop: int) -> None:
        entries = hbase_lists.load(table, header)
        if entries is None:
            self._count(SharedListResult.INVALID)
            _log.warning("a partition list in HBase is not what its header says, and is not used")
            with self._lock:
                _make_room(self._broken)
                self._broken.add(header.version)
            return
        keys = PartitionKeys(header.columns, header.type_names)
        loaded = StoredList(keys, entries, header.unreadable, self._times(header), is_shared=True)
        if _is_newer(self._own.found(key), header):
            # A statement did not wait for this, and asked Spark itself.
            return
        if self._dropped.moment(key.name) == drop and self._own.keep(key, loaded):
            self._count(SharedListResult.LOADED)

    def _times(self, header: SharedHeader) -> ListTimes:
        """The times of a list that another replica asked for, by this replica's clock and settings."""
        filled_at = min(header.filled_at, self._clock())
        return ListTimes(
            header.version, filled_at, min(header.expires_at, filled_at + self._settings.partitions_ttl_s)
        )

    def _publish(self, table: HBaseTable, key: ListKey, times: ListTimes) -> None:
        """Publish the list that the own store has of this version."""
        found = self._own.found(key)
        if found is None or found.times.version != times.version or self._dropped.is_waiting(key.name):
            return
        drop = self._dropped.moment(key.name)
        entries = tuple(found.index.entries.scan(b"", END))
        kept = StoredList(found.index.keys, entries, found.index.unreadable, times)
        version = hbase_lists.publish(
            table, key, kept, self._clock(), lambda: self._dropped.moment(key.name) != drop
        )
        if version is None:
            self._count(SharedListResult.UNPUBLISHED)
            return
        self._own.mark_shared(key, times.version, ListTimes(version, times.filled_at, times.expires_at))
        with self._lock:
            _ = self._headers.pop(key, None)
        self._count(SharedListResult.PUBLISHED)

    def _drop_waiting(self) -> None:
        """Drop the lists of written tables in HBase, where that has not been done."""
        if not self._dropped.has_waiting:
            return
        with self._lock:
            if self._dropping is None or self._dropping.is_over:
                self._dropping = self._threads.work.do(self._drop)

    def _drop(self, table: HBaseTable) -> None:
        while self._dropped.has_waiting:
            until, names = self._dropped.waiting()
            count = hbase_lists.drop(table, names)
            self._dropped.dropped(until)
            self._count(SharedListResult.DROPPED, count)

    def _count(self, result: SharedListResult, count: int = 1) -> None:
        with self._lock:
            self._results[result] += count


def shared_list_results(store: PartitionStore) -> Iterable[tuple[str, float]]:
    """The results of a store; zeros for a store that shares nothing."""
    if isinstance(store, HBasePartitionStore):
        return store.results()
    return tuple((result.value, 0.0) for result in SharedListResult)


def is_hbase_away(store: PartitionStore) -> bool:
    """True if the store shares its lists in HBase, and leaves that alone for now."""
    return isinstance(store, HBasePartitionStore) and store.is_away


def share_lessons(store: PartitionStore, due: Callable[[], Callable[[HBaseTable], None] | None]) -> None:
    """Share lessons by a store that replicas share; by one of this proxy alone, none."""
    if isinstance(store, HBasePartitionStore):
        store.share_lessons(due)


def close_store(store: PartitionStore) -> None:
    """End the work of a store in other threads. It takes up to a few seconds: not on the event loop."""
    if isinstance(store, HBasePartitionStore):
        store.close()


def _is_newer(own: FoundList | None, header: SharedHeader) -> bool:
    """True if the own list is newer than the one that replicas share, and not published so far."""
    return own is not None and not own.is_shared and own.times.filled_at > header.filled_at


def _without_list(read: ReadHeader) -> SharedListResult:
    """The outcome of a look that has found no list to believe."""
    is_broken = read.is_there and read.header is None
    return SharedListResult.INVALID if is_broken else SharedListResult.ABSENT


def _make_room(remembered: dict[ListKey, Any] | set[bytes]) -> None:
    if len(remembered) >= _LISTS_MAX:
        remembered.clear()
