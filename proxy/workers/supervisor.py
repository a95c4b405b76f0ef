"""Starts workers, starts those again that end, and hands on signals. No event loop and no threads: it forks.

Signals are blocked and waited for, so that none comes between a look and a wait. A worker is forked from a process
that has done nothing but this, and so begins as the first ones did.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final, NoReturn

from proxy.workers.backoff import Backoff
from proxy.workers.ledger import forget_connections
from proxy.workers.worker_slot import SIGNALS, WorkerSlot

# How often to look for those that listen by now, while they start.
_STARTING_LOOK_S: Final = 0.02
# When nothing is due.
_LOOK_S: Final = 60.0
# For those that have ended, beside the signals that say so.
_STOPPING_LOOK_S: Final = 0.5
_NEVER: Final = inf
_KEY_BYTES: Final = 32

log = logging.getLogger(__name__)


class WorkersError(Exception):
    """The workers could not be started."""


@dataclass
class _Worker:
    slot: int
    pid: int = 0
    started_at: float = 0.0
    # When it is to be started; None while it runs.
    due_at: float | None = 0.0
    starts: int = 0
    is_ready: bool = False
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def is_running(self) -> bool:
        """Whether it was started, and has not been seen to end."""
        return self.due_at is None


class Supervisor:
    """Runs `count` workers until it is told to stop. `run` is one of them, and returns its exit code."""

    def __init__(
        self,
        directory: Path,
        count: int,
        run: Callable[[WorkerSlot], int],
        on_ready: Callable[[], None],
        *,
        stop_within_s: float,
    ) -> None:
        self._directory = directory
        self._run = run
        self._on_ready = on_ready
        # Workers that have not ended by then are killed.
        self._stop_within_s = stop_within_s
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._workers = [_Worker(slot) for slot in range(count)]
        self._lifeline, self._lifeline_held = os.pipe()
        self._ready, self._ready_told = os.pipe()
        os.set_blocking(self._ready, False)
        self._was_ready = False

    def supervise(self) -> None:
        """Return once all workers have ended after SIGTERM or SIGINT. Raises WorkersError."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            while True:
                self._start_due()
                found = signal.sigtimedwait(SIGNALS, self._patience_s())
                self._take_note_of_ready()
                number = None if found is None else found.si_signo
                if number in (signal.SIGTERM, signal.SIGINT):
                    self._stop()
                    return
                if number == signal.SIGHUP:
                    self._send(signal.SIGHUP)
                self._reap()
        finally:
            for end in (self._lifeline, self._lifeline_held, self._ready, self._ready_told):
                os.close(end)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    # --- starting

    def _start_due(self) -> None:
        for worker in self._workers:
            if worker.due_at is not None and worker.due_at <= time.monotonic():
                self._start(worker)

    def _start(self, worker: _Worker) -> None:
        place = WorkerSlot(
            slot=worker.slot,
            is_taken_over=worker.starts > 0,
            count=len(self._workers),
            directory=self._directory,
            key=self._key,
            lifeline=self._lifeline,
            ready=self._ready_told,
        )
        # What is buffered would be written twice.
        sys.stdout.flush()
        sys.stderr.flush()
        worker.starts, worker.started_at, worker.due_at = worker.starts + 1, time.monotonic(), None
        worker.pid = os.fork()
        if not worker.pid:
            self._be(place)

    def _be(self, place: WorkerSlot) -> NoReturn:
        """What the forked process does from here on."""
        code = 1
        try:
            # Else the lifeline would not end with the supervisor.
            os.close(self._lifeline_held)
            code = self._run(place)
        except BaseException:
            log.exception("worker %d ended early", place.slot)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _take_note_of_ready(self) -> None:
        try:
            slots = os.read(self._ready, len(self._workers))
        except BlockingIOError:
            return
        for slot in slots:
            self._workers[slot].is_ready = True
        if not self._was_ready and all(worker.is_ready for worker in self._workers):
            self._was_ready = True
            self._on_ready()

    def _patience_s(self) -> float:
        if not self._was_ready:
            return _STARTING_LOOK_S
        due = [worker.due_at for worker in self._workers if worker.due_at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else _LOOK_S

    # --- ends

    def _reap(self) -> None:
        """Look for workers that have ended: one signal may stand for several of them."""
        for worker in self._workers:
            if worker.is_running and (status := _status(worker.pid)) is not None:
                self._ended(worker, status)

    def _ended(self, worker: _Worker, status: int) -> None:
        how = _described(status)
        if not self._was_ready:
            worker.due_at = _NEVER
            self._stop()
            raise WorkersError(f"worker {worker.slot} could not start: it ended with {how}; the log says why")
        now = time.monotonic()
        wait_s = worker.backoff.ended(now - worker.started_at)
        worker.due_at, worker.is_ready = now + wait_s, False
        forget_connections(self._directory, worker.slot)
        log.error(
            "worker %d (process %d) ended with %s and is started again in %.1f s",
            *(worker.slot, worker.pid, how, wait_s),
        )

    def _send(self, number: int) -> None:
        for worker in self._workers:
            # What has not been waited for keeps its number, so nobody else is met.
            if worker.is_running:
                os.kill(worker.pid, number)

    def _stop(self) -> None:
        """Let all end; those that take too long are killed."""
        self._send(signal.SIGTERM)
        deadline = time.monotonic() + self._stop_within_s
        while running := [worker for worker in self._workers if worker.is_running]:
            for worker in running:
                if _status(worker.pid) is not None:
                    worker.due_at = _NEVER
            left_s = deadline - time.monotonic()
            if left_s <= 0.0:
                log.warning("%d workers did not end within %g s and are killed", len(running), self._stop_within_s)
                self._send(signal.SIGKILL)
                deadline = _NEVER
            signal.sigtimedwait({signal.SIGCHLD}, max(0.0, min(left_s, _STOPPING_LOOK_S)))


def _status(pid: int) -> int | None:
    """The status of a process, once it has ended."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return status if found else None


def _described(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
