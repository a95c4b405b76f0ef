"""A rewrite service that decides about statements of real sessions, and a server that answers by a script.

A test sees the statements that reach the server and the dispatch, and nothing of how the decision is made.
"""

import asyncio
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from proxy.access.handle_owners import LocalHandleOwners
from proxy.config.config import Config
from proxy.frontend.own_sessions import OwnSessions
from proxy.frontend.rewrite_service import Caller, RewriteService
from proxy.frontend.session_registry import SessionRegistry
from proxy.http.exchange import message_of
from proxy.limits.limits import Finding
from proxy.operations.dispatch import Dispatch, Outcome
from proxy.operations.held_statement import hold
from proxy.operations.internal_call import Call, Reply
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.query import Query, QueryResult, Rows, Value
from proxy.operations.session_port import SessionOpening
from proxy.session.decision import Decision
from proxy.session.session import Session
from proxy.session.shadow.compare import Comparison
from proxy.session.shared_state import SharedState
from proxy.session.statement_log import LoggedStatement
from proxy.statements.statement_class import StatementClass
from proxy.upstream.dialer import Dialer
from proxy.upstream.fair_threads import FairThreads
from proxy.upstream.single_flight import SingleFlight
from proxy.wire.hs2.calls import OperationState, SessionHandle
from proxy.wire.thrift.types import Kind
from proxy.wire.thrift.writer import Writer
from rewriter import SkipReason
from support.clock import Clock
from support.relay_dialogue import SESSION, executed, reply, status_is
from support.scripted_session import PATIENCE_S
from support.text_session import OpenStates

CONNECTION = "connection 1"
_STRING_TYPE = 7
_STRINGS = 7


def other_session(name: bytes) -> SessionHandle:
    """Another handle; the name is of seven letters."""
    return SessionHandle(SESSION.replace(b"session", name))


class ScriptedServer:
    """Answers each statement by a table, those in `holding` once they are let go. It is asked over connections."""

    def __init__(self, answers: Mapping[str, Rows]) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        self.given_up: list[str] = []
        self.holding: set[str] = set()
        self.is_asked = asyncio.Event()
        self._go_on = asyncio.Event()
        # A large answer is written before anybody measures how long something takes.
        self._batches = {
            sql: _row_set(list(zip(*rows.rows, strict=True)) or [()] * _width(rows))
            for sql, rows in self.answers.items()
        }

    async def come_to(self, sql: str) -> None:
        """Wait until somebody has asked this."""
        async with asyncio.timeout(PATIENCE_S):
            while sql not in self.asked:
                self.is_asked.clear()
                await self.is_asked.wait()

    def let_go(self) -> None:
        """Answer what is held."""
        self.holding.clear()
        self._go_on.set()

    async def take(self, sql: str) -> None:
        """Note a statement, and wait until it may be answered."""
        self.asked.append(sql)
        self.is_asked.set()
        if sql in self.holding:
            try:
                await self._go_on.wait()
            except asyncio.CancelledError:
                self.given_up.append(sql)
                raise

    async def answer(self, query: Query) -> QueryResult:
        """Answer in a session of the proxy's own, without a connection."""
        await self.take(query.sql)
        return self.answers[query.sql]

    def batch(self, sql: str, *, is_last: bool) -> bytes:
        """The rows of an answer, or an empty batch behind them."""
        return _row_set([()] * _width(self.answers[sql])) if is_last else self._batches[sql]


class Connection:
    """A client's connection, over which the proxy makes calls of its own."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._sql = ""
        self._is_fetched = False

    async def ask(self, call: Call) -> Reply:
        """Answer a call."""
        match call.name:
            case "ExecuteStatement":
                held = hold(message_of(call.message))
                assert held is not None
                self._sql, self._is_fetched = held.statement, False
                await self._server.take(self._sql)
                return executed(call.seqid)[4:]
            case "GetOperationStatus":
                return status_is(OperationState.FINISHED, call.seqid)[4:]
            case "GetResultSetMetadata":
                return reply(call.name, call.seqid, _schema(self._server.answers[self._sql]))[4:]
            case "FetchResults":
                rows = self._server.batch(self._sql, is_last=self._is_fetched)
                self._is_fetched = True
                return reply(call.name, call.seqid, Writer().raw(3, Kind.STRUCT, rows))[4:]
        return reply(call.name, call.seqid)[4:]


class Slots(asyncio.Semaphore):
    """Slots for queries, and how often one was asked for."""

    wanted = 0

    async def acquire(self) -> Literal[True]:
        self.wanted += 1
        return await super().acquire()


class OwnAnswers(OwnSessions):
    """Sessions of the proxy's own that need no opening, and ask a question once for all who wait for it."""

    def __init__(self, server: ScriptedServer) -> None:
        super().__init__(Dialer(), time.monotonic)
        self._server = server
        self._flights = SingleFlight()
        self.wanted: list[str] = []

    async def answer(self, query: Query) -> QueryResult:
        self.wanted.append(query.sql)
        return await self._flights.answer(query, self._server.answer)


class Entry:
    """One statement in the log, with the ends that it was told of."""

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.id = str(number)
        self.outcomes: list[Outcome] = []

    def operation_opened(self, _spark_id: str) -> None:
        """See StatementEntry."""

    def limited(self, findings: Sequence[Finding]) -> None:
        pass

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def compared(self, _comparison: Comparison | None, _decision: Decision) -> None:
        """See StatementEntry."""


class Log:
    """A log of statements that keeps them all."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def session_opened(self, _opening: SessionOpening) -> "Log":
        return self

    def labelled(self, _label: str) -> None:
        """See SessionLog."""

    def began(
        self,
        text: str,
        _decision: Decision | None = None,
        _reason: SkipReason | None = None,
        *,
        lists_files: bool | None = None,  # noqa: ARG002 - a keyword of the protocol
    ) -> Entry:
        self.entries.append(Entry(text, len(self.entries)))
        return self.entries[-1]

    def answered(self, text: str, _deciding_s: float) -> Entry:
        return self.began(text)

    def last_statements(self) -> Sequence[LoggedStatement]:
        return ()

    def closed(self) -> None:
        """See SessionLog."""


class Desk:
    """The rewrite service of a process with one client's session; `open` adds others in the same state."""

    def __init__(self, server: ScriptedServer, threads: FairThreads, **sections: Any) -> None:
        self.server = server
        self.clock = Clock()
        self.shared = SharedState.of(Config(**sections), self.clock)
        self.log = Log()
        self.slots = Slots(1)
        self.sessions = SessionRegistry(lambda opened: Session(self.shared, opened, self.log), LocalHandleOwners())
        self.own = OwnAnswers(server)
        self.service = RewriteService(self.sessions, threads, self.slots, self.own)
        self.open()

    def open(self, handle: SessionHandle = SESSION) -> None:
        """Open a session of ann's. Each begins in the same state."""
        self.sessions.opened(handle, 9, SessionOpening(owner="ann", login="ann", user="ann"))

    def shares_answers(self) -> None:
        """From now on, sessions that are in the state of today's ask once for all."""
        self.shared.own_sessions = states = OpenStates()
        states.prepare(self.sessions.of(SESSION).port.known_state())

    async def decide(self, sql: str, handle: SessionHandle = SESSION, keys: KeyTerms = ASK_FIRST) -> Dispatch:
        """Decide about a statement that comes over a connection of its own."""
        statement = StatementClass(sql)
        at_once = self.service.decide_now(handle, statement, CONNECTION)
        caller = Caller(CONNECTION, Connection(self.server).ask)
        return at_once or await self.service.decide(handle, statement, caller, keys)


def _width(rows: Rows) -> int:
    """The number of columns: answers in scripts may be narrower than they say."""
    return len(rows.rows[0]) if rows.rows else len(rows.columns)


def _schema(rows: Rows) -> Writer:
    entry = Writer().struct(1).i32(1, _STRING_TYPE).stop().stop().to_bytes()
    described = Writer().raw(1, Kind.LIST, _list(Kind.STRUCT, [entry])).stop().to_bytes()
    columns = [
        Writer().binary(1, column.name.encode()).raw(2, Kind.STRUCT, described).stop().to_bytes()
        for column in rows.columns[: _width(rows)]
    ]
    return Writer().struct(2).raw(1, Kind.LIST, _list(Kind.STRUCT, columns)).stop()


def _row_set(columns: Sequence[Sequence[Value]]) -> bytes:
    return Writer().raw(3, Kind.LIST, _list(Kind.STRUCT, list(map(_column, columns)))).stop().to_bytes()


def _column(values: Sequence[Value]) -> bytes:
    """Strings; null where a bit is set, from the lowest one on."""
    encoded = [str("" if value is None else value).encode() for value in values]
    nulls = sum((value is None) << place for place, value in enumerate(values) if value is None)
    texts = _list(Kind.STRING, [struct.pack(">i", len(one)) + one for one in encoded])
    body = Writer().raw(1, Kind.LIST, texts).binary(2, nulls.to_bytes(len(values) // 8 + 1, "little")).stop()
    return Writer().raw(_STRINGS, Kind.STRUCT, body.to_bytes()).stop().to_bytes()


def _list(kind: Kind, items: Sequence[bytes]) -> bytes:
    return struct.pack(">Bi", kind, len(items)) + b"".join(items)
