"""One history for replicas: each tells the others its statements by files in a shared directory.

No file of SQLite is on the shared volume, but lines of JSON, compressed, in files that are replaced as a whole and
only grow. The statements of all stand in each replica's own file, which its pages read.
docs/decisions/0069-replicas-exchange-statements.md has the reasons.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
import time
import zlib
from collections import deque
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import msgspec

from proxy.config.serving import HistorySection
from proxy.history.record import Record, ShadowRecord, id_of_time, new_id, now
from proxy.history.store import FILE_NAME, Store, StoreError, encodable

_log = logging.getLogger(__name__)

# Time between two looks at the directory, and so until the others hear of a statement that has ended.
EXCHANGE_EVERY_S: Final = 10.0
# A file gets no more lines after this. For each line all of it is written anew, and all others read all of it.
_FILE_BYTES: Final = 4 * 1024 * 1024
_FILE_S: Final = 3_600.0
# A foreign file may have a name like ours. No line of ours comes near this.
_UNPACKED_BYTES_MAX: Final = 64 * 1024 * 1024
# Lines of one transaction: others wait for it.
_LINES_AT_ONCE: Final = 100
# The thread rests this many times as long as it computes: the event loop and the decisions need the processor.
_REST: Final = 3.0
# The names, which sort by time: an id, the host, and the version of what is in it.
_NAME: Final = re.compile(r"[0-9a-f]{24}-[\w.-]{1,63}\.v(\d{1,4})\.jsonl\.gz", re.ASCII)
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]", re.ASCII)
_VERSION: Final = "1"
# Of zlib: the format of gzip, so that `zcat` shows a file.
_GZIP: Final = 31


class _Line(msgspec.Struct, omit_defaults=True):
    """A statement, or the verdict about one."""

    record: Record | None = None
    id: str = ""
    verdict: ShadowRecord | None = None


_LINE: Final = msgspec.json.Decoder(_Line)


class Replicas:
    """The exchange with other replicas, in a thread of its own: a volume that hangs holds up nothing else."""

    def __init__(self, settings: HistorySection, own: Path, *, own_bytes_max: int, waiting_bytes_max: int) -> None:
        """`own` is the directory of this replica's file; that and what waits to be told have their bounds."""
        self._directory = Path(settings.shared_path)
        self._kept_s = settings.days * 86_400.0
        self._bytes_max = settings.bytes_max
        self._own = own
        self._own_bytes_max = own_bytes_max
        self._own_inode = 0
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes, self._waiting_bytes_max = 0, waiting_bytes_max
        self._lost = 0
        # The file that is written: its name, its lines, and its age.
        self._name, self._begun = "", 0.0
        self._lines: list[bytes] = []
        # Of the files of others: size, time of change, and lines, as they were read last.
        self._read: dict[str, tuple[int, int, int]] = {}
        self._left_out: set[str] = set()
        self._is_away, self._is_behind = False, True
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._exchange_until_stopped, name="replicas", daemon=True)

    @property
    def notes(self) -> list[str]:
        """Sentences for the pages: what is not shown, and why."""
        notes = ["Statements are those of all replicas. What runs, and who is connected, is of this one alone."]
        if self._is_away:
            notes.append("Statements are not exchanged with other replicas now; the log says why.")
        elif self._is_behind:
            notes.append("Statements of other replicas are still being read.")
        if self._lost:
            notes.append(f"Other replicas lack {self._lost:,} statements of this one.")
        if self._left_out:
            notes.append(f"Files of other replicas that cannot be read: {len(self._left_out):,}; see the log.")
        return notes

    def tell(self, records: Sequence[Record], verdicts: Sequence[tuple[str, ShadowRecord]]) -> None:
        """Tell the others of statements that stand in this replica's file. Called by the history's writer."""
        lines = [_Line(record=encodable(one, one.original)) for one in records]
        for line in (*lines, *(_Line(id=one, verdict=verdict) for one, verdict in verdicts)):
            said = msgspec.json.encode(line)
            with self._lock:
                if self._waiting_bytes + len(said) > self._waiting_bytes_max:
                    self._lost += line.record is not None
                    continue
                self._waiting_bytes += len(said)
                self._waiting.append(said)

    def start(self) -> None:
        """Exchange from now on."""
        self._thread.start()

    def close(self, wait_s: float) -> None:
        """Tell the others of the last statements, and stop. A volume that hangs is not waited for."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(max(0.0, wait_s))

    def _exchange_until_stopped(self) -> None:
        stopping = False
        while not stopping:
            stopping = self._stop.wait(EXCHANGE_EVERY_S)
            try:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                while self._waiting:
                    self._write()
                if not stopping:
                    self._take_over()
                self._is_away = False
            except (OSError, sqlite3.Error, StoreError) as error:
                if not self._is_away:
                    _log.warning("statements are not exchanged with other replicas for now: %s", error)
                self._is_away = True

    def _write(self) -> None:
        """Write the file anew with lines that wait. After a failure all of them are still there."""
        size = sum(map(len, self._lines))
        if not self._name or size >= _FILE_BYTES or now() - self._begun >= _FILE_S:
            self._begun, self._lines, size = now(), [], 0
            host = _NOT_IN_NAMES.sub("-", os.uname().nodename)[:63] or "-"
            self._name = f"{new_id(self._begun)}-{host}.v{_VERSION}.jsonl.gz"
        added: list[bytes] = []
        while len(added) < len(self._waiting) and size < _FILE_BYTES:
            added.append(self._waiting[len(added)])
            size += len(added[-1])
        packer = zlib.compressobj(wbits=_GZIP)
        packed = packer.compress(b"\n".join([*self._lines, *added])) + packer.flush()
        path = self._directory / self._name
        unfinished = path.with_name(f".{path.name}")
        with os.fdopen(
            os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.write(packed)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        self._lines += added
        with self._lock:
            for line in added:
                self._waiting.popleft()
                self._waiting_bytes -= len(line)

    # --- the statements of others

    def _take_over(self) -> None:
        files = self._files()
        self._left_out &= files.keys()
        self._read = {name: state for name, state in self._read.items() if name in files}
        with closing(Store(self._own, bytes_max=self._own_bytes_max)) as store:
            before, self._own_inode = self._own_inode, (self._own / FILE_NAME).stat().st_ino
            if before != self._own_inode:
                # This replica's file was damaged, and was begun anew.
                self._read = {}
            for name, found in files.items():
                size, changed, lines = self._read.get(name, (0, 0, 0))
                is_known = (size, changed) == (found.st_size, found.st_mtime_ns)
                # A name that begins with a dot is of a file that is being written.
                if is_known or name == self._name or name.startswith("."):
                    continue
                try:
                    lines = self._take(store, name, lines)
                    self._left_out.discard(name)
                except (OSError, ValueError, zlib.error) as error:
                    if name not in self._left_out:
                        _log.warning("%s, of another replica, cannot be read: %s", self._directory / name, error)
                    self._left_out.add(name)
                    continue
                if self._stop.is_set():
                    return
                self._read[name] = (found.st_size, found.st_mtime_ns, lines)
        self._is_behind = False
        self._delete_old(files)

    def _files(self) -> dict[str, os.stat_result]:
        """The files of all replicas, the oldest first."""
        found = {}
        for entry in os.scandir(self._directory):
            with suppress(FileNotFoundError):
                if _NAME.fullmatch(entry.name.removeprefix(".")) and entry.is_file(follow_symlinks=False):
                    found[entry.name] = entry.stat()
        return dict(sorted(found.items()))

    def _take(self, store: Store, name: str, known: int) -> int:
        """Take over the lines behind those that are known. Returns how many there are."""
        if not name.endswith(f".v{_VERSION}.jsonl.gz"):
            raise ValueError("another version of Starpruner has written it")
        with (self._directory / name).open("rb") as file:
            packed = file.read(_UNPACKED_BYTES_MAX)
        # The last line of a file that is cut off cannot be read.
        lines = zlib.decompressobj(wbits=_GZIP).decompress(packed, _UNPACKED_BYTES_MAX).split(b"\n")
        oldest = id_of_time(now() - self._kept_s)
        while known < len(lines) and not self._stop.is_set():
            began = time.thread_time()
            read = [_LINE.decode(line) for line in lines[known : known + _LINES_AT_ONCE]]
            records = [line.record for line in read if line.record is not None and line.record.id >= oldest]
            store.add(records, [(line.id, line.verdict) for line in read if line.verdict is not None])
            known += len(read)
            # Most of the time is left to the rest of the process, and to others that write the file.
            self._stop.wait(_REST * (time.thread_time() - began))
        return known

    def _delete_old(self, files: dict[str, os.stat_result]) -> None:
        """Delete the files of any replica that are too old, and the oldest ones if all take too much room."""
        # A clock that is ahead of those of all others deletes nothing.
        newest = max((found.st_mtime for found in files.values()), default=0.0)
        before = min(now(), newest) - self._kept_s
        room = self._bytes_max
        for name, found in reversed(files.items()):
            room -= found.st_size
            if room < 0 or found.st_mtime < before:
                (self._directory / name).unlink(missing_ok=True)
