"""The supervisor: starts workers, restarts those that end, forwards signals. It forks, without loop or threads.

Signals are blocked and waited for, so that none is missed between a check and a wait. A worker is forked from a
process that has done nothing else, and so starts in the same state as the first ones.
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

from proxy.stopping import STOP_SIGNALS
from proxy.workers.backoff import Backoff
from proxy.workers.ledger import forget_connections_of
from proxy.workers.worker_slot import SIGNALS, WorkerSlot

# The time between two checks which workers listen, while they start.
_STARTING_LOOK_S: Final = 0.02
# The longest wait if no worker is to be started.
_LOOK_S: Final = 60.0
# The time between two checks which workers have ended, in addition to the signals.
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
    # The time of its next start; None while it runs.
    due_at: float | None = 0.0
    starts: int = 0
    is_ready: bool = False
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def is_running(self) -> bool:
        """True if it was started, and the supervisor has not seen its end."""
        return self.due_at is None


class Supervisor:
    """Runs `count` workers until a stop signal. Each worker process calls `run` and exits with its result."""

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
        # Workers that take longer to end are killed.
        self._stop_within_s = stop_within_s
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._workers = [_Worker(slot) for slot in range(count)]
        self._worker_end, self._supervisor_end = os.pipe()
        self._ready_read_end, self._ready_write_end = os.pipe()
        os.set_blocking(self._ready_read_end, False)
        self._were_ready = False

    def supervise(self) -> None:
        """Return once all workers have ended after SIGTERM or SIGINT. Raises WorkersError."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            while True:
                self._start_due()
                found = signal.sigtimedwait(SIGNALS, self._wait_s())
                self._read_ready_pipe()
                number = None if found is None else found.si_signo
                if number in STOP_SIGNALS:
                    self._stop(number)
                    return
                if number == signal.SIGHUP:
                    self._send_signal(signal.SIGHUP)
                self._reap()
        finally:
            for end in (self._worker_end, self._supervisor_end, self._ready_read_end, self._ready_write_end):
                os.close(end)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    # --- starting

    def _start_due(self) -> None:
        for worker in self._workers:
            if worker.due_at is not None and worker.due_at <= time.monotonic():
                self._start(worker)

    def _start(self, worker: _Worker) -> None:
        worker_slot = WorkerSlot(
            number=worker.slot,
            is_taken_over=worker.starts > 0,
            count=len(self._workers),
            directory=self._directory,
            key=self._key,
            supervisor_pipe=self._worker_end,
            ready_pipe=self._ready_write_end,
        )
        # Else both processes would write the buffered text.
        sys.stdout.flush()
        sys.stderr.flush()
        worker.starts, worker.started_at, worker.due_at = worker.starts + 1, time.monotonic(), None
        worker.pid = os.fork()
        if not worker.pid:
            self._run_worker(worker_slot)

    def _run_worker(self, worker_slot: WorkerSlot) -> NoReturn:
        """Run the worker in the forked process, which exits here."""
        code = 1
        try:
            # Else this copy would keep the pipe open after the supervisor has ended.
            os.close(self._supervisor_end)
            code = self._run(worker_slot)
        except BaseException:
            log.exception("worker %d ended early", worker_slot.number)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _read_ready_pipe(self) -> None:
        try:
            slots = os.read(self._ready_read_end, len(self._workers))
        except BlockingIOError:
            return
        for slot in slots:
            self._workers[slot].is_ready = True
        if not self._were_ready and all(worker.is_ready for worker in self._workers):
            self._were_ready = True
            self._on_ready()

    def _wait_s(self) -> float:
        if not self._were_ready:
            return _STARTING_LOOK_S
        due = [worker.due_at for worker in self._workers if worker.due_at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else _LOOK_S

    # --- ending

    def _reap(self) -> None:
        """Find workers that have ended: one signal may be for several of them."""
        for worker in self._workers:
            if worker.is_running and (status := _status(worker.pid)) is not None:
                self._worker_ended(worker, status)

    def _worker_ended(self, worker: _Worker, status: int) -> None:
        how = _exit_text(status)
        if not self._were_ready:
            worker.due_at = _NEVER
            self._stop()
            raise WorkersError(f"worker {worker.slot} could not start: it ended with {how}; the log says why")
        now = time.monotonic()
        wait_s = worker.backoff.next_wait_s(now - worker.started_at)
        worker.due_at, worker.is_ready = now + wait_s, False
        forget_connections_of(self._directory, worker.slot)
        log.error(
            "worker %d (process %d) ended with %s; the supervisor starts it again in %.1f s",
            *(worker.slot, worker.pid, how, wait_s),
        )

    def _send_signal(self, number: int) -> None:
        for worker in self._workers:
            # A process that was not waited for keeps its pid, so no other process gets the signal.
            if worker.is_running:
                os.kill(worker.pid, number)

    def _stop(self, number: int = signal.SIGTERM) -> None:
        """Pass a stop signal on, and those that follow. Workers that take too long to end are killed."""
        self._send_signal(number)
        deadline = time.monotonic() + self._stop_within_s
        while running := [worker for worker in self._workers if worker.is_running]:
            for worker in running:
                if _status(worker.pid) is not None:
                    worker.due_at = _NEVER
            left_s = deadline - time.monotonic()
            if left_s <= 0.0:
                log.warning(
                    "%d workers did not end within %g s; the supervisor kills them",
                    len(running),
                    self._stop_within_s,
                )
                self._send_signal(signal.SIGKILL)
                deadline = _NEVER
            signals = {signal.SIGCHLD, *STOP_SIGNALS}
            found = signal.sigtimedwait(signals, max(0.0, min(left_s, _STOPPING_LOOK_S)))
            if found is not None and found.si_signo in STOP_SIGNALS:
                self._send_signal(found.si_signo)


def _status(pid: int) -> int | None:
    """Return the status of a process that has ended, else None."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return status if found else None


def _exit_text(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
