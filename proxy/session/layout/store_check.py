"""The check of a store of partition lists before it is opened: LMDB trusts its file, and damage ends the process.

A page that is missing ends the process that reads it by SIGBUS, and one that was overwritten may do so by SIGSEGV.
So a child reads all pages that are in use. It takes 10 ms; for 200 MB 0.1 s, from a cold disk 0.6 s.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
from pathlib import Path
from typing import Final, NoReturn

import lmdb

from proxy.kept_files import alone_in, put_aside

_DATA: Final = "data.mdb"
_LOCK: Final = "lock.mdb"

# A slow disk reads a full store in this time. Damaged pages can be chained into a walk without end.
_SECONDS_MAX: Final = 30.0
# The exit code of the child is a place in this list, counted from one. Other errors (rights, room, a directory
# in its place) are no damage: whoever opens the store reports them.
_DAMAGE: Final = (
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.CursorFullError,
    lmdb.IncompatibleError,
    lmdb.BadTxnError,
    lmdb.PanicError,
)
# As many as LMDB's list of readers takes: 64 bytes for each, and its head.
_LOCK_BYTES: Final = 64 * 1024


def check_store(directory: Path) -> None:
    """Put the store in a directory aside where it cannot be read, and make room for its list of readers.

    Raises OSError.
    """
    with alone_in(directory):
        _reserve_lock(directory)
        data = directory / _DATA
        if data.is_file() and (why := _why_unreadable(directory)) is not None:
            # The list of readers counts the transactions of the old file.
            put_aside(data, why, directory / _LOCK)
            _reserve_lock(directory)


def _reserve_lock(directory: Path) -> None:
    """LMDB makes its list of readers as a hole, and on a full disk the first touch of a hole is a SIGBUS."""
    file = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, _LOCK_BYTES)
    finally:
        os.close(file)


def _why_unreadable(directory: Path) -> str | None:
    child = os.fork()
    if not child:
        _walk_and_exit(directory)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGALRM:
        return f"it cannot be read within {_SECONDS_MAX:g} s"
    if code < 0:
        return f"reading it ends in {signal.Signals(-code).name}"
    return f"LMDB says {_DAMAGE[code - 1].__name__}" if code else None


def _walk_and_exit(directory: Path) -> NoReturn:
    """Read every page in use, as LMDB does to copy them, and end this process."""
    code = 0
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, _SECONDS_MAX)
        with Path(os.devnull).open("wb") as nowhere, lmdb.open(str(directory), create=False) as environment:
            environment.copyfd(nowhere.fileno(), compact=True)
    except _DAMAGE as error:
        code = 1 + _DAMAGE.index(type(error))
    finally:
        os._exit(code)
