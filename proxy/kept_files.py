"""Files that outlive the process: one process at a time looks after them, and a damaged one is put aside."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_log = logging.getLogger(__name__)


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Hold the directory's lock, so that one process at a time makes a file in it, or puts it aside."""
    file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def put_aside(path: Path, why: str, *companions: Path) -> None:
    """Rename a damaged file, so that it is begun anew, and remove those that mean nothing without it."""
    aside = path.with_suffix(".damaged")
    path.replace(aside)
    for companion in companions:
        companion.unlink(missing_ok=True)
    _log.warning("%s is damaged (%s): it is kept as %s, and begun anew", path, why, aside.name)
