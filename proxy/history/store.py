"""The file of the history: SQLite, written in short transactions, by several processes at once.

A store is used by one thread. Every method raises sqlite3.Error, or StoreError with a sentence for the user.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from proxy.history.record import (
    Record,
    ShadowRecord,
    add_verdict,
    counted,
    id_of_time,
    reasons_of,
    tables_of,
    text_fingerprint,
)
from proxy.kept_files import alone_in, put_aside

FILE_NAME: Final = "history.sqlite"
# The layout of the file, kept in its header. A file of a newer one is left alone; older ones were never released.
SCHEMA_VERSION: Final = 8
# Waits for another process, whose transactions are short.
BUSY_S: Final = 5.0
# The oldest rows go in steps of this many, and so do other changes of many rows: each transaction is short.
_CHANGED_AT_ONCE: Final = 1_000
# The part of the room that is freed once there is none left, so that this is rarely needed.
_FREED: Final = 0.05
# Texts whose fingerprints are remembered. Some hundreds of dashboards come again and again.
_PARSED_MAX: Final = 10_000
# The write-ahead log is cut to this after it grew: it counts on top of the bytes of the history.
_LOG_BYTES_MAX: Final = 4 * 1024 * 1024

# The index statements_sums has all columns that are summed: rows take kilobytes, and sums of a week read no row.
_SCHEMA: Final = """
CREATE TABLE statements (
  id TEXT PRIMARY KEY, started_at REAL NOT NULL, user TEXT NOT NULL, session TEXT NOT NULL, outcome TEXT NOT NULL,
  fingerprint TEXT, skip_reason TEXT, deciding_s REAL NOT NULL, key_queries_s REAL NOT NULL, run_s REAL,
  total_s REAL NOT NULL,
  partitions_total INTEGER, partitions_kept INTEGER, files_total INTEGER, files_kept INTEGER,
  bytes_total INTEGER, bytes_kept INTEGER, original TEXT NOT NULL, record BLOB NOT NULL,
  lists_files INTEGER, client TEXT, label TEXT
);
CREATE INDEX statements_user ON statements (user, id);
CREATE INDEX statements_outcome ON statements (outcome, id);
CREATE INDEX statements_fingerprint ON statements (fingerprint, id);
CREATE INDEX statements_sums ON statements (
  id, started_at, user, outcome, fingerprint, skip_reason, client, label, lists_files, deciding_s, run_s,
  total_s, partitions_total, partitions_kept, bytes_total, bytes_kept
);
CREATE TABLE reasons (reason TEXT NOT NULL, id TEXT NOT NULL, table_name TEXT NOT NULL, user TEXT NOT NULL);
CREATE INDEX reasons_reason ON reasons (reason, id);
CREATE INDEX reasons_id ON reasons (id);
CREATE TABLE tables (name TEXT NOT NULL, id TEXT NOT NULL);
CREATE INDEX tables_name ON tables (name, id);
CREATE INDEX tables_id ON tables (id, name);
CREATE TABLE spark_ids (spark_id TEXT NOT NULL, id TEXT NOT NULL);
CREATE INDEX spark_ids_spark_id ON spark_ids (spark_id);
CREATE INDEX spark_ids_id ON spark_ids (id);
CREATE TABLE limits_met (id TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (id, name)) WITHOUT ROWID;
CREATE TABLE processes (process TEXT PRIMARY KEY, seen_at REAL NOT NULL, state BLOB NOT NULL);
"""
# The tables with rows for statements.
_TABLES: Final = ("statements", "reasons", "tables", "spark_ids", "limits_met")
# The questions to the file say iif(..).
_SQLITE_MIN: Final = (3, 32, 0)


class StoreError(Exception):
    """The file cannot be used. The message is a sentence for the user."""


class Store:
    """The file in a directory, made where there is none."""

    def __init__(self, directory: Path, *, bytes_max: int, is_suspect: bool = False) -> None:
        """With `is_suspect` the whole file is looked through for damage, which takes seconds."""
        if sqlite3.sqlite_version_info < _SQLITE_MIN:
            needed = ".".join(map(str, _SQLITE_MIN))
            raise StoreError(
                f"the history needs SQLite {needed} or later, and Python has {sqlite3.sqlite_version}"
            )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / FILE_NAME
        with alone_in(directory):
            self._connection = _opened(path, is_suspect=is_suspect)
        # By the digest of a text without its constants: the fingerprint of the statement once it was parsed.
        self._parsed: dict[str, str] = {}
        self._path = path
        self._inode = path.stat().st_ino
        (page_bytes,) = self._connection.execute("PRAGMA page_size").fetchone()
        # If rows are deleted too late, writing fails before the disk is full. SQLite itself needs some pages.
        self._pages_max = max(200, bytes_max // page_bytes)
        self._connection.execute(f"PRAGMA max_page_count = {self._pages_max}")

    @property
    def is_current(self) -> bool:
        """True if the file still stands at its path."""
        return self._path.exists() and self._path.stat().st_ino == self._inode

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, records: Sequence[Record], verdicts: Sequence[tuple[str, ShadowRecord]] = ()) -> None:
        """Add statements, and verdicts of shadow runs to those that are there: all or none."""
        try:
            self._add(records, verdicts)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            self._free()
            self._add(records, verdicts)

    def delete_before(self, at: float) -> None:
        """Delete statements that are older, and the oldest where there is too little room left."""
        while self._delete(id_of_time(at)):
            pass
        if self._pages_taken() > self._pages_max * (1 - _FREED):
            self._free()

    def has_reason(self, reason: str) -> bool:
        """True if a statement is kept that has the reason."""
        found = self._connection.execute("SELECT 1 FROM reasons WHERE reason = ? LIMIT 1", (reason,))
        return found.fetchone() is not None

    def publish(self, process: str, now: float, state: bytes, *, lost_after_s: float) -> None:
        """Replace what other processes see of this one, and drop those that have ended."""
        with self._transaction():
            self._connection.execute("REPLACE INTO processes VALUES (?, ?, ?)", (process, now, state))
            self._connection.execute("DELETE FROM processes WHERE seen_at < ?", (now - lost_after_s,))

    def withdraw(self, process: str) -> None:
        """Drop what other processes see of this one: it ends."""
        with self._transaction():
            self._connection.execute("DELETE FROM processes WHERE process = ?", (process,))

    def _add(self, records: Sequence[Record], verdicts: Sequence[tuple[str, ShadowRecord]]) -> None:
        with self._transaction():
            for record in records:
                self._add_one(record)
            for identifier, verdict in verdicts:
                self._add_verdict(identifier, verdict)

    def _fingerprint(self, record: Record) -> str:
        """The fingerprint of a statement. An unparsed one takes that of a parsed one with the same text."""
        text = text_fingerprint(record.original)
        if record.fingerprint is None:
            return self._parsed.get(text, text)
        if len(self._parsed) >= _PARSED_MAX:
            self._parsed.clear()
        self._parsed[text] = record.fingerprint
        # Some at a time: there may be hundreds of thousands.
        unparsed = "SELECT rowid FROM statements WHERE fingerprint = ? LIMIT ?"
        update = f"UPDATE statements SET fingerprint = ? WHERE rowid IN ({unparsed})"  # noqa: S608 - our own
        _ = self._connection.execute(update, (record.fingerprint, text, _CHANGED_AT_ONCE))
        return record.fingerprint

    def _add_one(self, record: Record) -> None:
        if self._connection.execute("SELECT 1 FROM statements WHERE id = ?", (record.id,)).fetchone():
            # Another process of this replica has read and added the statement already.
            return
        record = msgspec.structs.replace(record, fingerprint=self._fingerprint(record))
        counts = [counted(record, part) for part in ("partitions", "files", "bytes")]
        values = (
            *(record.id, record.started_at, _text(record.user), record.session, record.outcome),
            *(record.fingerprint, record.skip_reason, record.deciding_s, record.key_queries_s, record.run_s),
            record.total_s,
            *(number for count in counts for number in (count.total, count.kept)),
            *(_text(record.original), msgspec.json.encode(encodable(record)), record.lists_files),
            *(_text(record.client) or None, _text(record.label) or None),
        )
        execute = self._connection.execute
        execute(f"INSERT INTO statements VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608 - marks
        for reason, table in reasons_of(record):
            execute(
                "INSERT INTO reasons VALUES (?, ?, ?, ?)", (reason, record.id, _text(table), _text(record.user))
            )
        for spark_id in record.spark_ids:
            execute("INSERT INTO spark_ids VALUES (?, ?)", (spark_id, record.id))
        for limit in {one.limit for one in record.limits}:
            execute("INSERT INTO limits_met VALUES (?, ?)", (record.id, limit))
        for table in tables_of(record):
            execute("INSERT INTO tables VALUES (?, ?)", (_text(table).lower(), record.id))

    def _add_verdict(self, identifier: str, verdict: ShadowRecord) -> None:
        row = self._connection.execute("SELECT record FROM statements WHERE id = ?", (identifier,)).fetchone()
        if row is None:
            return
        record = msgspec.json.decode(row[0], type=Record)
        add_verdict(record, verdict)
        self._connection.execute(
            "UPDATE statements SET record = ?, fingerprint = ? WHERE id = ?",
            (msgspec.json.encode(record), record.fingerprint, identifier),
        )

    def _free(self) -> None:
        """Delete the oldest statements until a part of the room is free."""
        wanted = self._pages_max * (1 - 2 * _FREED)
        (count,) = self._connection.execute("SELECT count(*) FROM statements").fetchone()
        # A few long ones may take all of the room.
        at_once = max(1, min(_CHANGED_AT_ONCE, int(count * _FREED)))
        # "g" sorts behind any id.
        while self._pages_taken() > wanted and self._delete("g", at_once):
            pass

    def _delete(self, before: str, at_once: int = _CHANGED_AT_ONCE) -> bool:
        """Delete some of the oldest statements, and say whether there may be more."""
        with self._transaction():
            oldest = self._connection.execute(
                "SELECT id FROM statements WHERE id < ? ORDER BY id LIMIT ?", (before, at_once)
            ).fetchall()
            for table in _TABLES:
                self._connection.executemany(f"DELETE FROM {table} WHERE id = ?", oldest)  # noqa: S608 - our names
        return bool(oldest)

    def _pages_taken(self) -> int:
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        return int(pages) - int(free)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # A full disk may have rolled back already.
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise


def connect(path: Path, *, reads_only: bool = False) -> sqlite3.Connection:
    """Open the file as it is. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    if reads_only:
        connection.execute("PRAGMA query_only = on")
    return connection


def _opened(path: Path, *, is_suspect: bool) -> sqlite3.Connection:
    """Open the file, which is made where there is none, and put aside where it is damaged."""
    try:
        connection = _checked(path)
        if is_suspect:
            _expect_whole(connection)
    except sqlite3.OperationalError:
        # A disk that is full or cannot be written: nothing is wrong with the file.
        raise
    except sqlite3.DatabaseError as error:
        put_aside(path, str(error), *(path.with_name(path.name + behind) for behind in ("-wal", "-shm")))
        return _checked(path)
    return connection


def _checked(path: Path) -> sqlite3.Connection:
    # The file is made here, since SQLite would make it with rights for others.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = connect(path)
    try:
        version = _version(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        # A crash of the machine may lose the last seconds, and damages nothing.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES_MAX}")
        if version == 0:
            connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        else:
            connection.execute("SELECT id FROM statements ORDER BY id DESC LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, path: Path) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by a newer Starpruner (schema {version}, this one knows {SCHEMA_VERSION}): "
            "set history.path to another directory, or go on with the newer one"
        )
    if 0 < version < SCHEMA_VERSION:
        raise sqlite3.DatabaseError(f"its schema {version} is of before the first release")
    return int(version)


def _expect_whole(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != ("ok",):
        connection.close()
        raise sqlite3.DatabaseError(str(found))


def _text(text: str) -> str:
    """The text as UTF-8 can say it."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def encodable(record: Record, original: str = "") -> Record:
    """The record with texts that UTF-8 can say. In the file the original has a column of its own."""
    rewritten = None if record.rewritten is None else _text(record.rewritten)
    message = None if record.message is None else _text(record.message)
    return msgspec.structs.replace(record, original=_text(original), rewritten=rewritten, message=message)
