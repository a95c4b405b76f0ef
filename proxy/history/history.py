"""The history of a process: sessions tell it of their statements, and a thread writes them.

Only that thread waits for the disk. A queue of bounded size stands between. If the queue or the disk is full,
statements are missing from the history and counted, and nothing else happens.
"""

from __future__ import annotations

import logging
import math
import os
import re
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from proxy.config.serving import HistorySection
from proxy.history.labels import label_of
from proxy.history.record import (
    LAST_CHARS_MAX,
    Record,
    ShadowRecord,
    add_verdict,
    answer,
    counted,
    cut,
    decide,
    end,
    limit,
    logged,
    new_id,
    now,
    shadow_of,
)
from proxy.history.redaction import kept, kept_text
from proxy.history.replicas import Replicas
from proxy.history.store import FILE_NAME, Store, StoreError
from proxy.limits.limits import Finding
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.session_port import SessionOpening
from proxy.session.decision import Decision
from proxy.session.shadow.compare import Comparison
from proxy.session.statement_log import LoggedStatement
from rewriter import SkipReason

_log = logging.getLogger(__name__)

# Statements and characters that may be held: those that run, and those that wait for the disk. The thread writes
# twice a second, so this is for a disk that hangs for a while.
HELD_MAX: Final = 20_000
HELD_CHARS_MAX: Final = 64 * 1024 * 1024
# Time between two looks into the queue.
WRITE_EVERY_S: Final = 0.5
# Statements of one transaction: others wait for it.
BATCH_MAX: Final = 500
# Characters of one transaction: a part of the smallest room that the history may have.
BATCH_CHARS_MAX: Final = 500_000
# Time between two looks for old statements.
DELETE_EVERY_S: Final = 60.0
# Time between two reports to other processes, which forget this one after so long without a report.
PUBLISH_EVERY_S: Final = 2.0
LOST_AFTER_S: Final = 15.0
# A file that cannot be used is tried again after this.
RETRY_S: Final = 10.0
# Losses are logged once in this time.
_LOG_EVERY_S: Final = 60.0
# The writer gets this long to write the last statements when the process ends.
CLOSE_S: Final = 3.0
# Without a path: what a directory of temporary files bears, which may be memory.
TEMPORARY_BYTES_MAX: Final = 64_000_000
# With less, a second of long statements would fill it before the oldest are deleted.
TEMPORARY_BYTES_MIN: Final = 16_000_000
# Statements that a session can be shown of its own: with proxy.connections_max sessions that is 60 MB.
LAST_STATEMENTS_MAX: Final = 20
# Running statements and sessions that other processes are told of.
_PUBLISHED_MAX: Final = 200

_USE: Final = re.compile(r"\s*+USE\s++(?:(?:DATABASE|SCHEMA|NAMESPACE)\s++)?([\w.`]++)\s*+;?\s*+", re.IGNORECASE)
_DAY_S: Final = 86_400.0


class SessionRow(msgspec.Struct):
    """An open session, as others see it."""

    id: str
    user: str
    client: str
    database: str
    opened_at: float
    statements: int = 0
    backend: str = ""


class ProcessState(msgspec.Struct):
    """The statements that run in a process, its sessions, and what it has quarantined."""

    running: list[Record] = []
    sessions: list[SessionRow] = []
    # How many there are of both, which may be more.
    running_count: int = 0
    session_count: int = 0
    quarantined: list[str] = []
    quarantined_rules: list[str] = []
    # Sentences about what its pages do not show.
    notes: list[str] = []


@dataclass(frozen=True)
class Losses:
    """Statements that are missing from the history, by the reason."""

    # No room to hold them: the disk is slow, full or away.
    queue_full: int = 0
    # Their texts could not be stored.
    unwritable: int = 0


class History:
    """The history of a process; without a directory statements are shown while they run, and not kept."""

    def __init__(
        self,
        settings: HistorySection,
        directory: Path | None,
        quarantine: Callable[[], tuple[Sequence[str], Sequence[str]]] = lambda: ((), ()),
        on_end: Callable[[Record], None] = lambda _: None,
        *,
        memory_bytes: int = HELD_CHARS_MAX,
    ) -> None:
        """`quarantine` tells what is quarantined now, in sentences: rules, and fingerprints.

        `on_end` is called with each statement that has ended, on the event loop: it has to be quick.
        `memory_bytes` bounds the statements that are held, and also those in a directory of temporary files.
        """
        self.settings = settings
        self.directory = directory
        self.literals = settings.literals
        self.days = settings.days
        temporary_bytes_max = max(TEMPORARY_BYTES_MIN, min(TEMPORARY_BYTES_MAX, memory_bytes))
        self.bytes_max = settings.bytes_max if settings.path else min(settings.bytes_max, temporary_bytes_max)
        # A sentence for the page, as long as nothing can be written.
        self.error: str | None = None
        self.process = f"{os.getpid()}-{new_id(now())}"
        self._quarantine = quarantine
        self._on_end = on_end
        self._lock = threading.Lock()
        self._sessions: dict[str, SessionRow] = {}
        self._running: dict[str, Record] = {}
        # Running statements as they are shown. Each is made once, and may lack only a verdict that came early.
        self._shown: dict[str, Record] = {}
        self._queue: deque[Record] = deque()
        self._verdicts: deque[tuple[str, ShadowRecord]] = deque(maxlen=HELD_MAX)
        self._held_chars_max = min(memory_bytes, HELD_CHARS_MAX)
        self._held = self._held_chars = 0
        self._lost_queue = self._lost_unwritable = 0
        # True if statements are kept that ran in shadow mode, of any process.
        self.has_shadows = False
        # Partitions that finished statements did not read, as far as they are known.
        self.partitions_spared = 0
        self._logged_at = -math.inf
        self._stop = threading.Event()
        self._writer: threading.Thread | None = None
        self._replicas: Replicas | None = None
        if settings.shared_path and directory is not None:
            waiting = self._held_chars_max // 4
            self._replicas = Replicas(settings, directory, own_bytes_max=self.bytes_max, waiting_bytes_max=waiting)

    @property
    def path(self) -> Path | None:
        """The file, for reading."""
        return None if self.directory is None else self.directory / FILE_NAME

    @property
    def losses(self) -> Losses:
        """The statements that are missing from the history so far."""
        return Losses(self._lost_queue, self._lost_unwritable)

    @property
    def notes(self) -> list[str]:
        """Sentences about what is not shown of other replicas."""
        return [] if self._replicas is None else self._replicas.notes

    @property
    def held(self) -> int:
        """The statements that run, or wait for the disk."""
        return self._held

    @property
    def session_count(self) -> int:
        """Sessions that are open."""
        return len(self._sessions)

    def sessions_at(self, backend: str) -> int:
        """Sessions that are open at a backend."""
        with self._lock:
            return sum(one.backend == backend for one in self._sessions.values())

    @property
    def running_count(self) -> int:
        """Statements that run."""
        return len(self._running)

    def losses_by_reason(self) -> tuple[tuple[str, int], ...]:
        """The losses for a counter with labels."""
        return (("queue_full", self._lost_queue), ("unwritable", self._lost_unwritable))

    # --- called by sessions, from any thread

    def session_opened(self, opening: SessionOpening) -> SessionHistory:
        """See StatementLog."""
        database = opening.configuration.get("use:database", "default")
        at = now()
        state = SessionRow(
            new_id(at), opening.user, opening.client, cut(database, 200), at, backend=opening.backend
        )
        with self._lock:
            self._sessions[state.id] = state
        return SessionHistory(self, state, opening.configuration)

    def session_closed(self, session: str) -> None:
        """A session has ended."""
        with self._lock:
            self._sessions.pop(session, None)

    def began(self, record: Record) -> bool:
        """A statement runs from now on. False where there is no room for it."""
        chars = record.chars
        with self._lock:
            if self._held >= HELD_MAX or self._held_chars + chars > self._held_chars_max:
                self._lost_queue += 1
                return False
            self._held += 1
            self._held_chars += chars
            self._running[record.id] = record
        return True

    def ended(self, record: Record) -> None:
        """A statement that ran has ended."""
        with self._lock:
            if self._running.pop(record.id, None) is None:
                return
        if record.outcome == "rewritten":
            spared = counted(record, "partitions")
            self.partitions_spared += (spared.total or 0) - (spared.kept or 0)
        self._on_end(record)
        if self.directory is not None:
            self._queue.append(record)
        else:
            self._release([record])

    def dropped(self, record: Record) -> None:
        """A statement that ran is decided about again, and has another record from then on."""
        with self._lock:
            if self._running.pop(record.id, None) is None:
                return
        self._release([record])

    def compared(self, identifier: str, verdict: ShadowRecord) -> None:
        """A shadow run of a statement has ended; mostly, but not always, after the statement itself."""
        self._verdicts.append((identifier, verdict))

    # --- shown on the page, and to the session itself

    def running_in(self, session: str) -> list[Record]:
        """The statements of a session that run."""
        with self._lock:
            return [record for record in self._running.values() if record.session == session]

    def state(self) -> ProcessState:
        """This process now, with the texts as they may be shown. Called by threads: the texts take a while."""
        with self._lock:
            running, sessions = list(self._running.values()), list(self._sessions.values())
        rules, fingerprints = self._quarantine()
        newest = sorted(running, key=lambda record: record.id)[-_PUBLISHED_MAX:]
        known = self._shown
        self._shown = {one.id: known.get(one.id) or kept(one, literals=self.literals) for one in newest}
        return ProcessState(
            running=list(self._shown.values()),
            sessions=sorted(sessions, key=lambda session: session.id)[-_PUBLISHED_MAX:],
            running_count=len(running),
            session_count=len(sessions),
            quarantined=list(fingerprints),
            quarantined_rules=list(rules),
            notes=self.notes,
        )

    # --- the writer

    def start(self) -> None:
        """Write from now on, in a thread of its own."""
        if self.directory is not None and self._writer is None:
            self._writer = threading.Thread(target=self._write_until_stopped, name="history", daemon=True)
            self._writer.start()
            if self._replicas is not None:
                self._replicas.start()

    def close(self) -> None:
        """Write the last statements, and stop. A disk that hangs is not waited for."""
        until = time.monotonic() + CLOSE_S
        self._stop.set()
        if self._writer is not None:
            self._writer.join(CLOSE_S)
        if self._replicas is not None:
            self._replicas.close(until - time.monotonic())

    def _write_until_stopped(self) -> None:
        assert self.directory is not None  # noqa: S101 - `start` has looked
        store: Store | None = None
        writing = _Writing()
        while True:
            stopping = self._stop.wait(WRITE_EVERY_S)
            if store is None and writing.retry_at <= time.monotonic():
                store = self._open(self.directory, writing)
            if store is not None:
                store = self._write(store, writing, stopping=stopping)
            if stopping:
                if store is not None:
                    store.close()
                return

    def _open(self, directory: Path, writing: _Writing) -> Store | None:
        try:
            store = Store(directory, bytes_max=self.bytes_max, is_suspect=writing.is_suspect)
        except (sqlite3.Error, StoreError, OSError) as error:
            self._cannot(error, writing)
            return None
        self.error = None
        writing.is_suspect = False
        return store

    def _write(self, store: Store, writing: _Writing, *, stopping: bool) -> Store | None:
        """One turn. Returns None where the file has to be opened anew."""
        at = time.monotonic()
        try:
            while self._queue or self._verdicts:
                self._write_batch(store)
            if at >= writing.delete_at:
                writing.delete_at = at + DELETE_EVERY_S
                if not store.is_current:
                    # Another process has put the file aside.
                    store.close()
                    return None
                store.delete_before(now() - self.days * _DAY_S)
                self.has_shadows = store.has_reason(SkipReason.IN_SHADOW.name)
            if stopping:
                store.withdraw(self.process)
            elif at >= writing.publish_at:
                writing.publish_at = at + PUBLISH_EVERY_S
                state = msgspec.json.encode(self.state())
                store.publish(self.process, now(), state, lost_after_s=LOST_AFTER_S)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._cannot(error, writing)
            store.close()
            return None
        self.error = None
        return store

    def _write_batch(self, store: Store) -> None:
        records = self._batch()
        verdicts = [self._verdicts.popleft() for _ in range(min(BATCH_MAX, len(self._verdicts)))]
        written = [kept(record, literals=self.literals) for record in records]
        try:
            store.add(written, verdicts)
        except ValueError:
            # One statement's text cannot be encoded. Each is written alone, so that only this one is lost.
            written = [record for record in written if self._write_alone(store, record)]
        if self._replicas is not None:
            self._replicas.tell(written, verdicts)
        for _ in records:
            self._queue.popleft()
        self._release(records)

    def _batch(self) -> list[Record]:
        """The first statements of the queue, at least one if there is one."""
        records: list[Record] = []
        chars = 0
        for place in range(min(BATCH_MAX, len(self._queue))):
            record = self._queue[place]
            chars += record.chars
            if records and chars > BATCH_CHARS_MAX:
                break
            records.append(record)
        return records

    def _write_alone(self, store: Store, record: Record) -> bool:
        try:
            store.add([record])
        except ValueError:
            self._lost_unwritable += 1
            return False
        return True

    def _release(self, records: Sequence[Record]) -> None:
        with self._lock:
            self._held -= len(records)
            self._held_chars -= sum(record.chars for record in records)

    def _cannot(self, error: Exception, writing: _Writing) -> None:
        at = time.monotonic()
        writing.retry_at = at + RETRY_S
        writing.is_suspect = type(error) is sqlite3.DatabaseError
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        self.error = reason if isinstance(error, StoreError) else f"{self.path} cannot be written: {reason}"
        if at - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = at
            _log.error("statements are not added to the history for now: %s", self.error)


@dataclass
class _Writing:
    """The times, by the monotonic clock, of the writer's next steps."""

    delete_at: float = 0.0
    publish_at: float = 0.0
    retry_at: float = 0.0
    # True if the file has shown damage, and is to be looked through when it is opened.
    is_suspect: bool = False


class SessionHistory:
    """The statements of one session. Whatever goes wrong here, the session goes on."""

    def __init__(self, history: History, state: SessionRow, configuration: Mapping[str, str]) -> None:
        self.history = history
        self._state = state
        self._configuration, self._label = configuration, ""
        # The last statements that ended. They are in memory, to be there at once and even if nothing is written.
        self._last: deque[LoggedStatement] = deque(maxlen=LAST_STATEMENTS_MAX)

    def labelled(self, label: str) -> None:
        """See SessionLog."""
        self._label = label

    def began(
        self,
        text: str,
        decision: Decision | None = None,
        reason: SkipReason | None = None,
        *,
        lists_files: bool | None = None,
    ) -> StatementHistory:
        """See SessionLog."""
        try:
            return self._began(text, decision, reason, lists_files=lists_files)
        except Exception as error:  # noqa: BLE001 - the statement goes on
            # The error's message is left out: it may quote the statement.
            _log.error("a statement is missing from the history: %s", type(error).__name__)
            return StatementHistory(self, None, "-")

    def _began(
        self, text: str, decision: Decision | None, reason: SkipReason | None, *, lists_files: bool | None
    ) -> StatementHistory:
        state, at = self._state, now()
        state.statements += 1
        record = Record(
            id=new_id(at),
            started_at=at,
            user=state.user,
            session=state.id,
            client=state.client,
            database=state.database,
            backend=state.backend,
            original=cut(text),
            label=label_of(text, self._label, self._configuration),
            lists_files=lists_files,
        )
        if reason is not None:
            record.skip_reason = reason.name
        if decision is not None:
            decide(record, decision)
        return StatementHistory(self, record if self.history.began(record) else None, record.id)

    def answered(self, text: str, deciding_s: float) -> StatementHistory:
        """See SessionLog."""
        entry = self.began(text)
        entry.answered(deciding_s)
        return entry

    def last_statements(self) -> list[LoggedStatement]:
        """See SessionLog."""
        running = map(logged, self.history.running_in(self._state.id))
        newest = sorted([*running, *tuple(self._last)], key=lambda one: one.id, reverse=True)
        shown = partial(kept_text, literals=self.history.literals, chars_max=LAST_CHARS_MAX)
        return [msgspec.structs.replace(one, statement=shown(one.statement)) for one in newest]

    def ended(self, record: Record) -> None:
        """A statement has ended. USE changes the session's database."""
        used = _USE.fullmatch(record.original) if record.outcome == "original" else None
        if used is not None:
            self._state.database = used[1].replace("`", "")
        self.history.ended(record)
        self._last.append(logged(record))

    def closed(self) -> None:
        """See SessionLog."""
        self.history.session_closed(self._state.id)


class StatementHistory:
    """One statement; without a record nothing is kept of it."""

    __slots__ = ("_record", "_session", "id")

    def __init__(self, session: SessionHistory, record: Record | None, identifier: str) -> None:
        self._session = session
        self._record = record
        # See StatementEntry.
        self.id = identifier

    def operation_opened(self, spark_id: str) -> None:
        """See StatementEntry."""
        if self._record is not None:
            self._record.spark_ids.append(spark_id)

    def answered(self, deciding_s: float) -> None:
        """The proxy answers it itself."""
        if self._record is not None:
            answer(self._record, deciding_s)

    def limited(self, findings: Sequence[Finding]) -> None:
        """See StatementEntry."""
        if self._record is not None:
            limit(self._record, findings)

    def ended(self, outcome: Outcome) -> None:
        """See StatementEntry."""
        record = self._record
        if record is None or record.end:
            return
        if outcome.kind is OutcomeKind.DECIDED_AGAIN:
            self._session.history.dropped(record)
            return
        end(record, outcome)
        self._session.ended(record)

    def compared(self, comparison: Comparison | None, decision: Decision) -> None:
        """See StatementEntry."""
        record = self._record
        if record is None:
            return
        # Most have ended by now, and some have been written.
        verdict = shadow_of(comparison, decision)
        add_verdict(record, verdict)
        self._session.history.compared(record.id, verdict)
