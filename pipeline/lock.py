"""Lets one process at a time work on a table's files, wherever it runs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pipeline.errors import PipelineError
from pipeline.publish import LOCK
from pipeline.storage import Storage


@contextmanager
def locked(storage: Storage) -> Iterator[None]:
    """Holds the table's lock file; takes over from a process of this machine that is gone."""
    mine = json.dumps(
        {
            "host": platform.node(),
            "pid": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    )
    if not storage.create(LOCK, mine):
        _give_way(storage)
        storage.delete(LOCK)
        if not storage.create(LOCK, mine):
            raise PipelineError(f"{storage.root}: another process took {LOCK} in this moment; try again")
    try:
        yield
    finally:
        storage.delete(LOCK)


def _give_way(storage: Storage) -> None:
    """Raises PipelineError unless the holder is certainly gone."""
    try:
        holder = json.loads(storage.read(LOCK) or "{}")
        host, pid = str(holder["host"]), int(holder["pid"])
    except (ValueError, KeyError, TypeError):
        # A process that was killed as it wrote the file; or one that writes it now.
        host, pid = "a process that has not said its name", 0
    if host != platform.node() or _runs_elsewhere(pid):
        raise PipelineError(
            f"{storage.root} is being worked on by process {pid} on {host}. If that process is gone, delete "
            f"{storage.absolute(LOCK)} and run this again: what it left half-way is put right then"
        )


def _runs_elsewhere(pid: int) -> bool:
    # This process itself holds no lock yet: the number is an earlier one's, as it is in containers.
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
