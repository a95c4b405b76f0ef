"""Threads for parsing and planning, which all sessions share: an owner has at most one of them at a time.

Owners whose work waits take turns. So an owner whose statements take long to plan delays the others only by the
work that runs now. Work that may be given up is given up after a while.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar
from weakref import ref

P = ParamSpec("P")
T = TypeVar("T")

# Work that is short, whoever it is for: answers of the proxy's own queries that are decoded.
OF_ANSWERS: Final = "answers"
# Work that no client waits for, which may plan too.
BESIDE: Final = "beside"

# The longest wait for threads, in all steps of a decision. After it, a statement goes on as the client wrote it.
# Planning ends within some seconds (`rewriter.scopes.steps`), and has to save time.
THREAD_WAIT_S: Final = 3.0


# Calls something after some seconds.
Later: TypeAlias = Callable[[float, Callable[[], None]], object]


class ThreadsBusyError(Exception):
    """No thread was free in time; the work was not begun."""


@dataclass(frozen=True, eq=False)
class _Work:
    """A call that waits for a thread, and the future of its result."""

    call: Callable[[], Any]
    result: Future[Any]


class FairThreads:
    """A number of threads, which are given to owners in turn. Used by several threads at once."""

    def __init__(
        self, threads: Executor, count: int, later: Later, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take `later`, which calls something after some seconds, as an event loop does."""
        self.clock = clock
        self._threads = threads
        self._free = count
        self._later = later
        self._lock = Lock()
        self._running: set[str] = set()
        # The owners whose work waits, the next one first.
        self._waiting: dict[str, deque[_Work]] = {}

    @classmethod
    def started(cls, count: int) -> FairThreads:
        """So many threads, which call the running event loop."""
        threads = ThreadPoolExecutor(count, thread_name_prefix="rewrite")
        return cls(threads, count, lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call))

    def of(self, owner: str, within_s: float | None = None) -> Executor:
        """An executor for one owner, which uses one thread at a time.

        All work that is given to it may wait `within_s` together, or ends with ThreadsBusyError.
        """
        return _OwnThread(self, owner, within_s)

    def submit(self, owner: str, call: Callable[[], T], within_s: float | None) -> Future[T]:
        """Call something in a thread, as soon as the owner has none and one is free."""
        work = _Work(call, Future())
        with self._lock:
            self._waiting.setdefault(owner, deque()).append(work)
        self._start_next()
        if within_s is not None and self._is_waiting(owner, work):
            # The reference is weak: work that has ended meanwhile, with all that it holds, is not kept until then.
            _ = self._later(within_s, partial(self._give_up, owner, ref(work)))
        return work.result

    def shutdown(self) -> None:
        """Begin nothing more; work that runs is not waited for."""
        with self._lock:
            left = [work for works in self._waiting.values() for work in works]
            self._waiting.clear()
        for work in left:
            _ = work.result.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _is_waiting(self, owner: str, work: _Work) -> bool:
        with self._lock:
            return work in self._waiting.get(owner, ())

    def _give_up(self, owner: str, known: ref[_Work]) -> None:
        """End the wait of work that has not begun."""
        work = known()
        if work is None:
            return
        with self._lock:
            works = self._waiting.get(owner, deque())
            if work not in works:
                return
            works.remove(work)
            if not works:
                del self._waiting[owner]
        if work.result.set_running_or_notify_cancel():
            work.result.set_exception(ThreadsBusyError())

    def _start_next(self) -> None:
        while (found := self._taken()) is not None:
            owner, work = found
            _ = self._threads.submit(self._run, owner, work)

    def _taken(self) -> tuple[str, _Work] | None:
        """Take the work of the next owner who has no thread; None if there is none, or no thread."""
        with self._lock:
            owner = next((owner for owner in self._waiting if owner not in self._running), None)
            if owner is None or not self._free:
                return None
            work = self._waiting[owner].popleft()
            if not self._waiting[owner]:
                del self._waiting[owner]
            self._running.add(owner)
            self._free -= 1
            return owner, work

    def _run(self, owner: str, work: _Work) -> None:
        try:
            _call(work)
        finally:
            with self._lock:
                self._running.discard(owner)
                self._free += 1
                if owner in self._waiting:
                    # The owner goes behind all others.
                    self._waiting[owner] = self._waiting.pop(owner)
            self._start_next()


def _call(work: _Work) -> None:
    if not work.result.set_running_or_notify_cancel():
        return
    try:
        result = work.call()
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
        work.result.set_exception(error)
    else:
        work.result.set_result(result)


class _OwnThread(Executor):
    """An executor for one owner. With a limit, it is given one work at a time."""

    def __init__(self, threads: FairThreads, owner: str, within_s: float | None) -> None:
        self._fair = threads
        self._owner = owner
        # The time that work may wait yet.
        self._left_s = within_s

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        left_s = self._left_s
        if left_s is None:
            return self._fair.submit(self._owner, partial(fn, *args, **kwargs), None)
        began_at, self._left_s = self._fair.clock(), 0.0

        def work() -> T:
            self._left_s = max(0.0, left_s - (self._fair.clock() - began_at))
            return fn(*args, **kwargs)

        return self._fair.submit(self._owner, work, left_s)
