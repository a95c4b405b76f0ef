"""The partition lists that sessions were given, kept in an embedded ordered store (LMDB) until they expire."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import time

import lmdb
import msgspec
from msgspec.structs import replace

from proxy.config.errors import ConfigError
from proxy.config.rewriting import CatalogSection
from proxy.session.layout.partition_store import ListKey, StoreWait
from proxy.session.layout.store_check import check_store
from rewriter.partitions.index import PartitionIndex, in_order
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.partitions.scan_plan import ScanPlan
from rewriter.partitions.value_encoding import NotIndexableError

_log = logging.getLogger(__name__)

# Snapshots in use at a time, over all processes that share the store. Twice the connections that Spark serves.
_READERS_MAX = 1_000

# Keeping or dropping a list looks at the headers of all, a microsecond each.
_LISTS_MAX = 10_000

# The part of the room that lists may take. To drop one takes pages before it gives any back, and a list that is
# replaced stands there twice: a store that is full to the last page can be read and never changed again.
_ROOM_TAKEN_MAX = 0.5

# Lists that have expired are kept for the history of statements: a list of yesterday tells well enough how many
# partitions a statement left out.
_OLD_S = 86_400.0

# The layout of what is stored. A store that an older version left behind is passed by.
_LISTS, _ENTRIES = b"lists.1", b"entries.1"

# The transaction that a list was written in stands before each of its entries: no two lists share one.
_GENERATION_BYTES = 8


class _Header(msgspec.Struct, frozen=True):
    """The properties of one list. Its entries stand elsewhere, behind its generation."""

    # The table's own name, in lower case.
    table: str
    generation: bytes
    filled_at: float
    expires_at: float
    columns: tuple[str, ...]
    type_names: tuple[str, ...]
    unreadable: tuple[str, ...]
    # Its name among replicas, and whether they can find it by now (proxy/session/layout/hbase_store.py).
    version: bytes = b""
    is_shared: bool = False

    def is_believed(self, now: float) -> bool:
        # A clock that was set back would make a list live longer.
        return self.filled_at <= now < self.expires_at

    def is_kept(self, now: float) -> bool:
        return self.filled_at <= now < self.expires_at + _OLD_S


@dataclass(frozen=True)
class _Snapshot:
    """The entries of one list, in the state that the store had when the list was looked up.

    It stays so while lists are replaced and forgotten, and it holds the pages that they would free. It may pass
    from one thread to another but serves one at a time.
    """

    transaction: lmdb.Transaction[bytes]
    entries: lmdb._Database
    generation: bytes

    def scan(self, start: bytes, stop: bytes) -> Iterator[bytes]:
        """See rewriter.partitions.index.OrderedEntries."""
        last = self.generation + stop
        with self.transaction.cursor(self.entries) as cursor:
            if not cursor.set_range(self.generation + start):
                return
            for key in cursor.iternext(keys=True, values=False):
                if key >= last:
                    return
                yield key[_GENERATION_BYTES:]


@dataclass(frozen=True)
class ListTimes:
    """The version of a list among replicas, and when it is believed."""

    version: bytes
    filled_at: float
    expires_at: float


@dataclass(frozen=True)
class StoredList:
    """A list that is to be kept."""

    keys: PartitionKeys
    entries: Sequence[bytes]
    unreadable: Sequence[str]
    times: ListTimes
    # True if other replicas can find it.
    is_shared: bool = False


@dataclass(frozen=True)
class FoundList:
    """A list that was found, and its place among the versions of other replicas."""

    index: PartitionIndex
    times: ListTimes
    is_shared: bool


class LmdbPartitionStore:
    """See PartitionStore. Processes and threads may share one; a writer waits for another one to finish."""

    def __init__(
        self, environment: lmdb.Environment, settings: CatalogSection, clock: Callable[[], float]
    ) -> None:
        self._environment = environment
        self._settings = settings
        self._clock = clock
        self._lists = environment.open_db(_LISTS)
        self._entries = environment.open_db(_ENTRIES)
        self.entry_bytes_max = environment.max_key_size() - _GENERATION_BYTES
        self._pages_max = int(settings.store_bytes_max * _ROOM_TAKEN_MAX) // environment.stat()["psize"]
        # One thread drops at a time, and sets whether the lists that are found can be trusted.
        self._lock = Lock()
        self._is_trusted = True

    def put(self, key: ListKey, columns: Sequence[str], type_names: Sequence[str], specs: Sequence[str]) -> bool:
        """See PartitionStore."""
        read = self.read(columns, type_names, specs)
        return read is not None and self.keep(key, read)

    def read(self, columns: Sequence[str], type_names: Sequence[str], specs: Sequence[str]) -> StoredList | None:
        """A list of now, from the rows of SHOW PARTITIONS. None where it is too long, or has no certain order."""
        if len(specs) > self._settings.partitions_max:
            return None
        try:
            keys = PartitionKeys(tuple(columns), tuple(type_names))
        except NotIndexableError:
            return None
        entries, unreadable = in_order(keys, specs, entry_bytes_max=self.entry_bytes_max)
        now = self._clock()
        times = ListTimes(b"", now, now + self._settings.partitions_ttl_s)
        return StoredList(keys, entries, unreadable, times)

    def keep(self, key: ListKey, kept: StoredList) -> bool:
        """Keep a list in the place of an earlier one, and say whether it is kept."""
        try:
            return self._written(key, kept)
        except lmdb.Error as error:
            _log.warning("a list of %d partitions is not kept: %s", len(kept.entries), error)
            return False

    def mark_shared(self, key: ListKey, version: bytes, shared: ListTimes) -> None:
        """Other replicas can find the list of a version by now, under a version of theirs, and for so long."""
        with suppress(lmdb.Error), self._environment.begin(write=True, db=self._lists) as transaction:
            header = _header(transaction.get(key.digest))
            if header is not None and header.version == version:
                changed = replace(
                    header,
                    version=shared.version,
                    filled_at=shared.filled_at,
                    expires_at=shared.expires_at,
                    is_shared=True,
                )
                _ = transaction.put(key.digest, msgspec.msgpack.encode(changed))

    def get(self, key: ListKey, *, or_old: bool = False) -> PartitionIndex | None:
        """See PartitionStore."""
        found = self.found(key, or_old=or_old)
        return None if found is None else found.index

    def ask_ahead(self, keys: Sequence[ListKey]) -> None:
        """See PartitionStore. Nothing is waited for here."""

    def look_up(self, key: ListKey, _: StoreWait) -> PartitionIndex | None:
        """See PartitionStore. There are no other replicas."""
        return self.get(key)

    def scan(self, key: ListKey, keys: PartitionKeys, plan: ScanPlan) -> None:
        """See PartitionStore. There are no other replicas."""

    def found(self, key: ListKey, *, or_old: bool = False) -> FoundList | None:
        """The list as `get` gives it, with its version."""
        if not self._is_trusted:
            return None
        try:
            transaction = self._environment.begin()
            found = transaction.get(key.digest, db=self._lists)
        except lmdb.Error as error:
            _log.warning("partition lists cannot be read: %s", error)
            return None
        header = _header(found)
        now = self._clock()
        if header is None or not (header.is_kept(now) if or_old else header.is_believed(now)):
            transaction.abort()
            return None
        snapshot = _Snapshot(transaction, self._entries, header.generation)
        index = PartitionIndex(PartitionKeys(header.columns, header.type_names), snapshot, header.unreadable)
        times = ListTimes(header.version, header.filled_at, header.expires_at)
        return FoundList(index, times, header.is_shared)

    def forget(self, names: AbstractSet[str]) -> None:
        """Drop everyone's lists of the tables of these names, in lower case, in any database.

        A statement that holds these words may have changed their partitions.
        """
        self._drop(lambda _, header: header.table in names)

    def _written(self, key: ListKey, kept: StoredList) -> bool:
        """Keep a list, beside those that have expired where there is room for them."""
        for stays in (_Header.is_kept, _Header.is_believed):
            try:
                with self._environment.begin(write=True) as transaction:
                    if self._write(transaction, key, kept, stays=stays):
                        return True
            except lmdb.MapFullError:
                if stays is _Header.is_believed:
                    raise
        return False

    def _write(
        self,
        transaction: lmdb.Transaction[bytes],
        key: ListKey,
        kept: StoredList,
        *,
        stays: Callable[[_Header, float], bool],
    ) -> bool:
        now, digest = self._clock(), key.digest
        self._drop_in(transaction, lambda found, header: found == digest or not stays(header, now))
        if transaction.stat(self._lists)["entries"] >= _LISTS_MAX:
            return False
        generation = transaction.id().to_bytes(_GENERATION_BYTES)
        header = _Header(
            table=key.name,
            generation=generation,
            filled_at=kept.times.filled_at,
            expires_at=kept.times.expires_at,
            columns=kept.keys.columns,
            type_names=kept.keys.type_names,
            unreadable=tuple(kept.unreadable),
            version=kept.times.version,
            is_shared=kept.is_shared,
        )
        transaction.put(digest, msgspec.msgpack.encode(header), db=self._lists)
        with transaction.cursor(self._entries) as cursor:
            # Behind all others, since transactions count upwards: pages are filled one after the other.
            cursor.putmulti(((generation + entry, b"") for entry in kept.entries), append=True)
        if self._pages_taken(transaction) > self._pages_max:
            raise lmdb.MapFullError("it would fill the store")
        return True

    def _pages_taken(self, transaction: lmdb.Transaction[bytes]) -> int:
        stats = [transaction.stat(database) for database in (self._lists, self._entries)]
        return sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)

    def _drop(self, is_dropped: Callable[[bytes, _Header], bool]) -> None:
        """Drop lists. One that cannot be dropped must not be found: then none is, until all can be dropped."""
        with self._lock:
            wanted = is_dropped if self._is_trusted else lambda *_: True
            try:
                with self._environment.begin(write=True) as transaction:
                    self._drop_in(transaction, wanted)
            except lmdb.Error as error:
                if self._is_trusted:
                    _log.warning("partition lists are not used for now, since one could not be dropped: %s", error)
                self._is_trusted = False
            else:
                self._is_trusted = True

    def _drop_in(self, transaction: lmdb.Transaction[bytes], is_dropped: Callable[[bytes, _Header], bool]) -> None:
        with transaction.cursor(self._lists) as lists, transaction.cursor(self._entries) as entries:
            more = lists.first()
            while more:
                header = _header(lists.value())
                if header is None or is_dropped(lists.key(), header):
                    if header is not None:
                        _delete(entries, header.generation)
                    # `delete` moves the cursor to the next one.
                    more = lists.delete()
                else:
                    more = lists.next()


def _delete(entries: lmdb.Cursor[bytes], generation: bytes) -> None:
    more = entries.set_range(generation)
    while more and entries.key().startswith(generation):
        more = entries.delete()


def _header(encoded: bytes | None) -> _Header | None:
    """A header, or None for none that is understood."""
    with suppress(msgspec.DecodeError):
        return msgspec.msgpack.decode(encoded, type=_Header) if encoded is not None else None
    return None


@contextmanager
def lmdb_store(settings: CatalogSection, clock: Callable[[], float] = time) -> Generator[LmdbPartitionStore]:
    """The store in the configured directory, or in a temporary one that is deleted with it.

    The clock is the time of day: processes share the store. One that is damaged is put aside.
    Raises ConfigError where it cannot be opened.
    """
    with _directory(settings.store_path) as directory:
        try:
            check_store(directory)
            environment = lmdb.open(
                str(directory),
                map_size=settings.store_bytes_max,
                max_dbs=2,
                max_readers=_READERS_MAX,
                mode=0o600,
                # A crash may lose the last lists, never the order of the others.
                metasync=False,
                # Nothing outlives a temporary directory.
                sync=bool(settings.store_path),
            )
        except (lmdb.Error, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"catalog.store_path: {directory} cannot be opened: {reason}") from error
        try:
            # Readers of processes that were killed would hold their pages for ever.
            environment.reader_check()
            yield LmdbPartitionStore(environment, settings, clock)
        finally:
            environment.close()


@contextmanager
def _directory(configured: str) -> Generator[Path]:
    if not configured:
        with TemporaryDirectory(prefix="starpruner-") as temporary:
            yield Path(temporary)
        return
    path = Path(configured)
    try:
        # Only the user of the proxy may read partition values.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"catalog.store_path: {path} cannot be made: {error.strerror}") from error
    yield path
