"""A thread that does work on HBase in turn, so that no other thread waits for the gateway longer than it chooses.

While the gateway is away, a circuit breaker leaves it alone: work is refused at once, and nobody waits at all.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Event, Thread
from typing import Final, Generic, TypeVar, cast

from proxy.backends.circuit_breaker import CircuitBreaker
from proxy.hbase.errors import HBaseError
from proxy.hbase.table import HBaseTable

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

# Time for the work under way to end when the proxy stops: its call is cut off, so only a connection attempt can
# take time. A write that is cut has changed nothing that is read.
_CLOSE_S: Final = 2.0
# Time between two looks for work that could not be done: about as long as the circuit breaker is open at first.
_IDLE_S: Final = 5.0


class Task(Generic[Result]):
    """Work that was handed to the thread."""

    def __init__(self, work: Callable[[HBaseTable], Result]) -> None:
        self._work = work
        self._done = Event()
        self.result: Result | None = None
        self.error: HBaseError | None = None
        # True if a caller stopped waiting before the end.
        self.is_late = False

    @property
    def is_over(self) -> bool:
        """True if the work has ended, or was never begun and will not be."""
        return self._done.is_set()

    def run(self, table: HBaseTable) -> None:
        """Do the work. An error of the gateway is kept, for those who wait and for the breaker."""
        try:
            self.result = self._work(table)
        except HBaseError as error:
            self.error = error
        finally:
            self._done.set()

    def fail(self, error: HBaseError) -> None:
        """End without having done the work."""
        self.error = error
        self._done.set()

    def wait(self, within_s: float) -> bool:
        """Wait for the end of the work. Returns whether it has ended; without a result it has failed."""
        has_ended = self._done.wait(within_s)
        self.is_late |= not has_ended
        return has_ended


class GatewayThread:
    """One thread with one connection. Any thread may hand it work."""

    def __init__(  # noqa: PLR0913 - the thread, and its work
        self,
        name: str,
        table: HBaseTable,
        waiting_max: int,
        *,
        prepare: Callable[[HBaseTable], None] | None = None,
        idle_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`prepare` is called before any work, until it succeeds once.

        `idle_s` is the time between two looks for work while none is handed over.
        """
        self._name = name
        self._table = table
        self._waiting_max = waiting_max
        self._prepare = prepare
        self._idle_s = _IDLE_S if idle_s is None else idle_s
        self._clock = clock
        self._breaker = CircuitBreaker(clock)
        self._changed = Condition()
        self._waiting: deque[Task[object]] = deque()
        self._next_work: Callable[[], Callable[[HBaseTable], object] | None] = lambda: None
        self._is_closed = False
        self._close_by = 0.0
        self._is_away = False
        self._thread = Thread(target=self._run, name=f"hbase-{name}", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def is_prepared(self) -> bool:
        """True if `prepare` has succeeded, or there is nothing to prepare."""
        return self._prepare is None

    @property
    def is_away(self) -> bool:
        """True if the gateway did not answer the last times."""
        return self._is_away

    def prepare(self) -> None:
        """Have the thread call `prepare`, unless it has succeeded. Work that waits has it called anyway."""
        if not self.is_prepared and not self._waiting:
            _ = self.do(lambda _: None)

    def do(self, work: Callable[[HBaseTable], Result]) -> Task[Result] | None:
        """Hand work to the thread. None if it is not taken: the gateway is left alone, or too much is waiting."""
        with self._changed:
            if self._is_closed or len(self._waiting) >= self._waiting_max or not self._breaker.admits:
                return None
            task = Task(work)
            self._waiting.append(cast("Task[object]", task))
            self._changed.notify()
            return task

    def when_idle(self, next_work: Callable[[], Callable[[HBaseTable], None] | None]) -> None:
        """Ask for work from time to time while none is handed over. Call it before the start."""
        self._next_work = next_work

    def missed(self) -> None:
        """Count an answer that came too late for a statement as a failure of the gateway."""
        with self._changed:
            self._failed("it answers too late for statements")

    def stop(self) -> None:
        """Drop the work that waits, and cut the call under way off. Returns at once."""
        with self._changed:
            is_first = not self._is_closed
            self._is_closed = True
            for task in self._waiting:
                task.fail(HBaseError("the proxy stops"))
            self._waiting.clear()
            self._changed.notify()
        if is_first:
            self._close_by = self._clock() + _CLOSE_S
            self._table.cut_off()

    def join(self) -> None:
        """Wait for the end of a thread that was stopped, up to a few seconds after that: not on the event loop."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, self._close_by - self._clock()))

    def _run(self) -> None:
        while (task := self._next()) is not None:
            self._run_one(task)
        self._table.close()

    def _next(self) -> Task[object] | None:
        with self._changed:
            while not self._waiting and not self._is_closed:
                if not self._changed.wait(self._idle_s) and (work := self._next_work()) is not None:
                    return Task(work)
            return None if self._is_closed else self._waiting.popleft()

    def _run_one(self, task: Task[object]) -> None:
        with self._changed:
            if not self._breaker.admits:
                # It was handed over before the gateway was left alone.
                task.fail(HBaseError("the gateway is left alone"))
                return
            is_trial = self._breaker.begin_connection()
        answered_count = self._table.answered_count
        try:
            error = self._prepared()
            if error is None:
                task.run(self._table)
            else:
                task.fail(error)
        except Exception as error:  # noqa: BLE001 - the thread goes on with the next work
            _log.error("work on HBase failed (%s): %s", self._name, type(error).__name__)
        with self._changed:
            if task.error is not None:
                # A call that was cut off says nothing of the gateway.
                if not self._is_closed:
                    self._failed(str(task.error))
            elif not task.is_late and self._table.answered_count > answered_count:
                self._succeeded()
            if is_trial:
                self._breaker.trial_ended()

    def _prepared(self) -> HBaseError | None:
        if self._prepare is not None:
            try:
                self._prepare(self._table)
            except HBaseError as error:
                return error
            self._prepare = None
        return None

    def _succeeded(self) -> None:
        self._breaker.record_success()
        if self._is_away:
            _log.info("HBase's gateway answers again (%s)", self._name)
        self._is_away = False

    def _failed(self, why: str) -> None:
        self._breaker.record_failure()
        if not self._breaker.admits and not self._is_away:
            _log.warning(
                "HBase's gateway is left alone for now (%s): %s. Until it answers again, this proxy goes on by"
                " itself: partition lists come from its own store.",
                self._name,
                why,
            )
            self._is_away = True
