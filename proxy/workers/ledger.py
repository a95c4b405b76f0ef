"""What the workers share: an LMDB environment in a directory of its own, and a flag that says it failed.

Nothing of it outlives the proxy, so nothing is flushed to a disk: a transaction takes ten microseconds. A process
that is killed within one leaves the state before it, as LMDB promises. The directory is the proxy's user's alone,
and yet holds nothing that could be used: handles, users and the words of statements are digests.
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

# 110,000 handles at 150 bytes, each with its place in the order at 60, and 2,000 writes of up to 8 KB: 40 MB.
_BYTES_MAX: Final = 128 * 1024 * 1024
# Handles in their order (two tables), handles, successors, writes that run, and writes that have ended.
_TABLES_MAX: Final = 6
# Each thread of each worker that has ever read. Workers have a handful of threads.
_READERS_MAX: Final = 1_000
# Where Linux has a file system in memory.
_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the directory in it has a random name and is for one user

_FLAG: Final = "failed"
_COUNTS: Final = "connections"

# As many as the byte that names a worker tells apart. A core each, and no machine has a reason for more.
WORKERS_MAX: Final = 255

_COUNT = struct.Struct("=I")

log = logging.getLogger(__name__)


class Ledger:
    """The environment, as one worker has it open. Opened after the fork: LMDB survives none."""

    def __init__(self, directory: Path, slot: int) -> None:
        # The worker's place among the others. One that takes a dead one's place takes its number.
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
        self.count_connections(0)
        # What a killed worker was reading would be kept for ever.
        self.environment.reader_check()

    @property
    def has_failed(self) -> bool:
        """Whether something that all workers have to know could not be written. It stays so."""
        return self._flag[0] != 0

    def mark_failed(self, error: lmdb.Error) -> None:
        """Something that all have to know could not be written: let them know that much."""
        if not self.has_failed:
            log.error("nothing is rewritten any more, since the workers cannot tell one another: %s", error)
        self._flag[0] = 1

    def count_connections(self, count: int) -> None:
        """So many clients are connected to this worker."""
        _COUNT.pack_into(self._counts, self.slot * _COUNT.size, count)

    @property
    def connections_elsewhere(self) -> int:
        """How many clients are connected to the other workers, give or take those that come and go just now."""
        counts: list[int] = [count for (count,) in _COUNT.iter_unpack(self._counts)]
        return sum(counts) - counts[self.slot]

    def close(self) -> None:
        """Let go of the files."""
        self.environment.close()
        self._flag.close()
        self._counts.close()


def forget_connections_of(directory: Path, slot: int) -> None:
    """A worker has ended, and its connections with it. Called by who has no ledger open."""
    file = os.open(directory / _COUNTS, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(file, _COUNT.pack(0), slot * _COUNT.size)
    finally:
        os.close(file)


@contextmanager
def ledger_directory() -> Generator[Path]:
    """A directory for a ledger, in memory where there is room, that ends with the context."""
    with TemporaryDirectory(prefix="starpruner-workers-", dir=_room()) as name:
        directory = Path(name)
        _zeros(directory / _FLAG, 1)
        _zeros(directory / _COUNTS, WORKERS_MAX * _COUNT.size)
        yield directory


def _zeros(path: Path, count: int) -> None:
    """Written, so that there is a place for them whatever becomes of the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.write(file, bytes(count))
    os.close(file)


def _mapped(path: Path) -> mmap:
    with path.open("r+b") as file:
        return mmap(file.fileno(), 0)


def _room() -> Path | None:
    """The file system in memory; None, for the usual place, where it is too small: containers have 64 MB."""
    try:
        free = shutil.disk_usage(_IN_MEMORY).free
    except OSError:
        return None
    return _IN_MEMORY if free >= _BYTES_MAX and os.access(_IN_MEMORY, os.W_OK) else None
