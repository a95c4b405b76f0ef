"""The partition lists that sessions were given, kept in an embedded ordered store (LMDB) until they expire.

Who may see what: a list was asked for in one client's session, and it is found again under the same `ListKey`
alone. That is who the backend took the session for, and which table the session's own DESCRIBE said the name to
be. So nobody is handed a list of a table that they could not describe themselves, nor another user's view of it.
The keys are digests, and nothing here enumerates them for a caller.

The store is a cache: whatever goes wrong with it means that a list is not kept, or not found, and is asked for
again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import time

import lmdb
import msgspec

from proxy.config.errors import ConfigError
from proxy.config.rewriting import CatalogSection
from rewriter.partitions.index import PartitionIndex, in_order
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.partitions.value_encoding import NotIndexableError

_log = logging.getLogger(__name__)

# Snapshots in use at a time, over all processes that share the store. Twice the connections that Spark serves.
_READERS_MAX = 1_000

# Each list that is kept or dropped has the headers of all looked at, a microsecond each.
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


@dataclass(frozen=True)
class ListKey:
    """The key of a list: user and table. Both are compared part by part, verbatim."""

    # All that the backend knows the session by: the user who logged in, and the user whom the session acts for.
    owner: tuple[str, ...]
    # The answer of DESCRIBE: the table's own name first, then database, catalog, and best also location and time
    # of creation, by which a table that was dropped and created again is another one.
    table: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.owner or not self.table:
            raise ValueError("a list without an owner, or of no table, could be anyone's")

    @property
    def digest(self) -> bytes:
        """A name of fixed length, that of the table first."""
        return _digest(self.table) + _digest(self.owner)


def _digest(parts: tuple[str, ...]) -> bytes:
    return sha256(msgspec.msgpack.encode(parts)).digest()


class _Header(msgspec.Struct, frozen=True):
    """The properties of one list. Its entries stand elsewhere, behind its generation."""

    # Its name alone, in lower case.
    table: str
    generation: bytes
    filled_at: float
    expires_at: float
    columns: tuple[str, ...]
    type_names: tuple[str, ...]
    unreadable: tuple[str, ...]

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


class PartitionStore:
    """Partition lists by key. Processes and threads may share one; a writer waits for another one to finish."""

    def __init__(
        self, environment: lmdb.Environment, settings: CatalogSection, clock: Callable[[], float]
    ) -> None:
        self._environment = environment
        self._settings = settings
        self._clock = clock
        self._lists = environment.open_db(_LISTS)
        self._entries = environment.open_db(_ENTRIES)
        self._entry_bytes_max = environment.max_key_size() - _GENERATION_BYTES
        self._pages_max = int(settings.store_bytes_max * _ROOM_TAKEN_MAX) // environment.stat()["psize"]
        # One drops at a time, and says whether what is found can be trusted.
        self._lock = Lock()
        self._is_trusted = True

    def put(self, key: ListKey, columns: Sequence[str], type_names: Sequence[str], specs: Sequence[str]) -> bool:
        """Keep a list in the place of an earlier one, and say whether it is kept.

        If not, an earlier one stays until it expires. A million partitions take seconds: not on the event loop.
        """
        if len(specs) > self._settings.partitions_max:
            return False
        try:
            keys = PartitionKeys(tuple(columns), tuple(type_names))
        except NotIndexableError:
            return False
        entries, unreadable = in_order(keys, specs, entry_bytes_max=self._entry_bytes_max)
        try:
            return self._written(key, keys, entries, unreadable)
        except lmdb.Error as error:
            _log.warning("a list of %d partitions is not kept: %s", len(specs), error)
            return False

    def get(self, key: ListKey, *, or_old: bool = False) -> PartitionIndex | None:
        """The list as it is now, or None where there is none that is still believed.

        With `or_old` also one that has expired within a day, for numbers that people look at.
        """
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
        return PartitionIndex(PartitionKeys(header.columns, header.type_names), snapshot, header.unreadable)

    def forget(self, names: AbstractSet[str]) -> None:
        """Drop everyone's lists of the tables of these names, in lower case, in any database.

        A statement that holds these words may have changed their partitions.
        """
        self._drop(lambda _, header: header.table in names)

    def clear(self) -> None:
        """Drop all lists: a statement may have changed what nobody can tell."""
        self._drop(lambda *_: True)

    def _written(self, key: ListKey, keys: PartitionKeys, entries: list[bytes], unreadable: list[str]) -> bool:
        """Keep a list, beside those that have expired where there is room for them."""
        for stays in (_Header.is_kept, _Header.is_believed):
            try:
                with self._environment.begin(write=True) as transaction:
                    if self._write(transaction, key, keys, entries, unreadable, stays=stays):
                        return True
            except lmdb.MapFullError:
                if stays is _Header.is_believed:
                    raise
        return False

    def _write(  # noqa: PLR0913 - a list's parts, and which others stay
        self,
        transaction: lmdb.Transaction[bytes],
        key: ListKey,
        keys: PartitionKeys,
        entries: list[bytes],
        unreadable: list[str],
        *,
        stays: Callable[[_Header, float], bool],
    ) -> bool:
        now, digest, table = self._clock(), key.digest, key.table[0].lower()
        self._drop_in(transaction, lambda found, header: found == digest or not stays(header, now))
        if transaction.stat(self._lists)["entries"] >= _LISTS_MAX:
            return False
        generation = transaction.id().to_bytes(_GENERATION_BYTES)
        header = _Header(
            table=table,
            generation=generation,
            filled_at=now,
            expires_at=now + self._settings.partitions_ttl_s,
            columns=keys.columns,
            type_names=keys.type_names,
            unreadable=tuple(unreadable),
        )
        transaction.put(digest, msgspec.msgpack.encode(header), db=self._lists)
        with transaction.cursor(self._entries) as cursor:
            # Behind all others, since transactions count upwards: pages are filled one after the other.
            cursor.putmulti(((generation + entry, b"") for entry in entries), append=True)
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
                    # Goes on to the next one.
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
def open_store(settings: CatalogSection, clock: Callable[[], float] = time) -> Generator[PartitionStore]:
    """The store in the configured directory, or in one of its own that ends with it.

    The clock is the time of day: processes share the store. Raises ConfigError where it cannot be opened.
    """
    with _directory(settings.store_path) as directory:
        try:
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
        except lmdb.Error as error:
            raise ConfigError(f"catalog.store_path: {directory} cannot be opened: {error}") from error
        try:
            # Readers of processes that were killed would hold their pages for ever.
            environment.reader_check()
            yield PartitionStore(environment, settings, clock)
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
        # Partition values are the owners' own business.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"catalog.store_path: {path} cannot be made: {error.strerror}") from error
    yield path
