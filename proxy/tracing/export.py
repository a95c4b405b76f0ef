"""Export of spans: statements that have ended wait in a queue, and a thread sends their spans to the collector.

Only that thread waits for the collector. If the collector is slow or away, or the queue is full, the spans of some
statements are missing and counted, and nothing else happens.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from proxy.config.config import Config
from proxy.config.errors import ConfigError
from proxy.extras import how_to_install
from proxy.history.record import Record
from proxy.tracing.spans import SpanOfStatement, TraceParent, span_of, trace_id_of, trace_parent_of

# Statements and characters that may wait. A collector that is slow for a minute loses nothing at 30 statements a
# second.
QUEUED_MAX: Final = 2_000
QUEUED_CHARS_MAX: Final = 16 * 1024 * 1024
# Statements of one request: a few hundred spans.
BATCH_MAX: Final = 100
# Time between two requests, as long as there are few statements.
EXPORT_EVERY_S: Final = 2.0
# The thread gets this long to send the last statements when the process ends.
CLOSE_S: Final = 3.0

_log = logging.getLogger(__name__)


class SpanSender(Protocol):
    """Sends spans to a collector. Used by one thread, but for `close`."""

    def add(self, span: SpanOfStatement, trace_id: int, parent: TraceParent | None) -> None:
        """Add a statement's spans to the next request."""
        ...

    def send(self) -> bool:
        """Send what was added. False where the collector did not take it."""
        ...

    def close(self) -> None:
        """Send no more, and give up a request that waits to be repeated."""
        ...


class SpanExport:
    """The statements that wait for the collector, and the thread that sends them."""

    def __init__(self, sender: SpanSender | None, *, has_text: bool = False, literals: bool = True) -> None:
        """Without a sender nothing is exported."""
        self._sender = sender
        self._has_text = has_text
        self._literals = literals
        self._lock = threading.Lock()
        self._queue: deque[Record] = deque()
        self._queued_chars = 0
        self._lost = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send_until_stopped, name="tracing", daemon=True)

    def statement_ended(self, record: Record) -> None:
        """A statement has ended, and nothing of its record changes any more. Takes microseconds."""
        if self._sender is None:
            return
        with self._lock:
            if len(self._queue) >= QUEUED_MAX or self._queued_chars + record.chars > QUEUED_CHARS_MAX:
                self._lost += 1
                return
            self._queue.append(record)
            self._queued_chars += record.chars

    def lost(self) -> int:
        """The statements so far whose spans did not reach the collector."""
        return self._lost

    def start(self) -> None:
        """Send from now on."""
        if self._sender is not None:
            self._thread.start()

    def close(self) -> None:
        """Send the last statements, and stop. A collector that is away is not waited for."""
        if self._sender is None:
            return
        self._stop.set()
        self._thread.join(CLOSE_S)
        self._sender.close()
        with self._lock:
            left = len(self._queue)
            self._queue.clear()
            self._lost += left
        if left:
            _log.warning("the collector did not take the spans of the last %d statements in time", left)

    def _send_until_stopped(self) -> None:
        stopping = False
        while not stopping:
            stopping = self._stop.wait(EXPORT_EVERY_S)
            while batch := self._next():
                self._send(batch)

    def _next(self) -> list[Record]:
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(BATCH_MAX, len(self._queue)))]
            self._queued_chars -= sum(record.chars for record in batch)
        return batch

    def _send(self, batch: Sequence[Record]) -> None:
        assert self._sender is not None  # noqa: S101 - `start` has looked
        try:
            for record in batch:
                span = span_of(record, has_text=self._has_text, literals=self._literals)
                self._sender.add(span, trace_id_of(record.id), trace_parent_of(record))
            is_taken = self._sender.send()
        except Exception as error:  # noqa: BLE001 - the thread goes on with the next ones
            # The error's message is left out: it may quote the statement.
            _log.error("spans of %d statements are lost: %s", len(batch), type(error).__name__)
            is_taken = False
        if not is_taken:
            with self._lock:
                self._lost += len(batch)


@contextmanager
def span_export(config: Config) -> Generator[SpanExport]:
    """Export spans as configured until the context ends, which sends the last ones. Raises ConfigError."""
    tracing = config.tracing
    sender = sender_class()(tracing.endpoint, tracing.service_name) if tracing.endpoint else None
    export = SpanExport(sender, has_text=tracing.statement_text, literals=config.history.literals)
    export.start()
    try:
        yield export
    finally:
        export.close()


def sender_class() -> Callable[[str, str], SpanSender]:
    """The class of senders to an endpoint for a service. Raises ConfigError where the extra is not installed."""
    try:
        from proxy.tracing.otlp import OtlpSender  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigError(f"tracing.endpoint needs {error.name}: {how_to_install('tracing')}") from error
    return OtlpSender
