"""The state that workers share: an LMDB environment in a directory of its own, and a flag that it has failed.

The state ends with the proxy, so nothing is flushed to disk, and a transaction takes ten microseconds. A process
that is killed within a transaction leaves the state before it, as LMDB guarantees. Only the proxy's user can read
the directory. Even so it contains no secrets: handles, users and the words of statements are digests.
"""

from __future__ import annotations

import logging
import os
import shutil
import struct
from collections.abc import Generator
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import lmdb

# 110,000 handles at 150 bytes, each with its key in the order at 60, and 2,000 writes of up to 8 KB: 40 MB.
_BYTES_MAX: Final = 128 * 1024 * 1024
# Handles in their order (two tables), handles, operation aliases, running writes, and ended writes.
_TABLES_MAX: Final = 6
# One for each thread of each worker that has ever read. Workers have a handful of threads.
_READERS_MAX: Final = 1_000
# Linux's file system in memory.
_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the directory in it has a random name and is for one user

_FLAG: Final = "failed"
_COUNTS: Final = "connections"

# A worker's number is one byte. With a core for each worker, no machine needs more.
WORKERS_MAX: Final = 255

_COUNT = struct.Struct("=I")

log = logging.getLogger(__name__)


class Ledger:
    """One worker's open environment. It is opened after the fork, since LMDB does not survive a fork."""

    def __init__(self, directory: Path, slot: int) -> None:
        # The worker's number. The worker that replaces a dead one has the same number.
        self.slot = slot
        self.environment = lmdb.open(
            str(directory),
            map_size=_BYTES_MAX,
            max_dbs=_TABLES_MAX,
            max_readers=_READERS_MAX,
            mode=0o600,
            sync=False,
            metasync=False,
        )
        self._flag = _mapped(directory / _FLAG)
        self._counts = _mapped(directory / _COUNTS)
        self.set_connection_count(0)
        # Without this, LMDB keeps forever the pages that a killed worker was reading.
        self.environment.reader_check()

    @property
    def has_failed(self) -> bool:
        """True if a worker could not write something that all have to know. The flag is never reset."""
        return self._flag[0] != 0

    def mark_failed(self, error: lmdb.Error) -> None:
        """Set the flag: this worker could not write something that all have to know."""
        if not self.has_failed:
            log.error("no statement is rewritten any more, since the workers cannot write their ledger: %s", error)
        self._flag[0] = 1

    def set_connection_count(self, count: int) -> None:
        """Set the number of clients connected to this worker."""
        _COUNT.pack_into(self._counts, self.slot * _COUNT.size, count)

    @property
    def connections_elsewhere(self) -> int:
        """The number of clients connected to the other workers. Approximate: clients come and go meanwhile."""
        counts: list[int] = [count for (count,) in _COUNT.iter_unpack(self._counts)]
        return sum(counts) - counts[self.slot]

    def close(self) -> None:
        """Close the files."""
        self.environment.close()
        self._flag.close()
        self._counts.close()


def forget_connections_of(directory: Path, slot: int) -> None:
    """Set the connection count of a worker that has ended to 0. For the supervisor, which has no ledger open."""
    file = os.open(directory / _COUNTS, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(file, _COUNT.pack(0), slot * _COUNT.size)
    finally:
        os.close(file)


@contextmanager
def ledger_directory() -> Generator[Path]:
    """Create a directory for a ledger, in memory if there is room, and remove it with the context."""
    with TemporaryDirectory(prefix="starpruner-workers-", dir=_memory_directory()) as name:
        directory = Path(name)
        _zeros(directory / _FLAG, 1)
        _zeros(directory / _COUNTS, WORKERS_MAX * _COUNT.size)
        yield directory


def _zeros(path: Path, count: int) -> None:
    """Write a file of zeros, which reserves its space even if the disk becomes full later."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.write(file, bytes(count))
    os.close(file)


def _mapped(path: Path) -> mmap:
    with path.open("r+b") as file:
        return mmap(file.fileno(), 0)


def _memory_directory() -> Path | None:
    """Return the file system in memory; None (the usual place) if it is too small: containers have 64 MB."""
    try:
        free = shutil.disk_usage(_IN_MEMORY).free
    except OSError:
        return None
    return _IN_MEMORY if free >= _BYTES_MAX and os.access(_IN_MEMORY, os.W_OK) else None
