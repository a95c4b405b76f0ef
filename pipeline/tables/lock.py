"""The lock file of a table: one process at a time works on the table's files, on whatever machine."""

from __future__ import annotations

import json
import os
import platform
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pipeline.spark.errors import PipelineError
from pipeline.tables.reserved_paths import LOCK
from pipeline.tables.storage import Storage

# Another process that found the same holder gone has written its own name by then, if it was not stopped in
# between.
TAKE_OVER_S = 2.0


@contextmanager
def locked(storage: Storage, sleep: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Holds the table's lock file; takes over from a process of this machine that is gone."""
    mine = json.dumps(
        {
            "host": platform.node(),
            "pid": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            # Tells apart two processes of the same number.
            "id": uuid.uuid4().hex,
        }
    )
    if not storage.create(LOCK, mine):
        _take_over(storage, mine, sleep)
    try:
        yield
    finally:
        # Another process may have taken this lock for that of a dead process, and hold its own now.
        if storage.read(LOCK) == mine:
            storage.delete(LOCK)


def _take_over(storage: Storage, mine: str, sleep: Callable[[float], None]) -> None:
    """Replaces a lock whose holder is certainly gone by our own. Raises PipelineError."""
    found = storage.read(LOCK)
    _check_gone(storage, found)
    if storage.read(LOCK) == found:
        storage.delete(LOCK)
    if storage.create(LOCK, mine):
        # Another process may have found the same dead holder, and have deleted our lock.
        sleep(TAKE_OVER_S)
    if storage.read(LOCK) != mine:
        raise PipelineError(f"{storage.root}: another process took {LOCK} in this moment; try again")


def _check_gone(storage: Storage, text: str | None) -> None:
    """Raises PipelineError unless the holder is certainly gone."""
    try:
        holder = json.loads(text or "{}")
        host, pid = str(holder["host"]), int(holder["pid"])
    except (ValueError, KeyError, TypeError):
        # A process was killed while it wrote the file, or one writes it now.
        host, pid = "a process that has not said its name", 0
    if host != platform.node() or _runs_elsewhere(pid):
        raise PipelineError(
            f"{storage.root} is being worked on by process {pid} on {host}. If that process is gone, delete "
            f"{storage.absolute(LOCK)} and run this again: what it left half-way is put right then"
        )


def _runs_elsewhere(pid: int) -> bool:
    # This process holds no lock yet: the number is that of an earlier process, as happens in containers.
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
