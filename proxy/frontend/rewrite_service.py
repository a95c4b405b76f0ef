"""The rewrite service: lets the sessions of a process decide about the statements that connections bring.

It serves connections of any transport, and sends the queries of a decision over the connection of the statement.
Whatever goes wrong in a decision, or as a session is told of an outcome, the original goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from proxy.frontend.own_session import Access
from proxy.frontend.own_sessions import OwnSessions
from proxy.frontend.session_order import until_writes_end
from proxy.frontend.session_registry import OpenSession, SessionRegistry
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.query import Ask, Query, QueryResult, Work
from proxy.operations.session_port import SessionPort
from proxy.statements.statement_class import StatementClass
from proxy.upstream.fair_threads import OF_ANSWERS, THREAD_WAIT_S, FairThreads, ThreadsBusyError
from proxy.upstream.query_driver import MakeCall, answer_in_slot, answer_query, drive
from proxy.wire.hs2.calls import SessionHandle
from rewriter.sql.classify import has_none

log = logging.getLogger(__name__)

# A statement of this length is looked through in microseconds; to wake a thread takes a tenth of a millisecond.
QUICK_CHARS_MAX: Final = 2_000

# First words of statements that ask the proxy something, and of those that do so if they hold one of _OUR_WORDS.
_OURS: Final = frozenset({"explain", "reset"})
_MAYBE_OURS: Final = frozenset({"show", "set", "create", "alter"})
_OUR_WORDS: Final = ("starpruner", "skewed", "directories")


@dataclass(frozen=True)
class Caller:
    """The connection that brings a statement, and its ways to ask the backend."""

    # Its name in the log.
    connection: str
    # Makes a call over the client's connection.
    make_call: MakeCall
    # The login for sessions of the proxy's own; None if the client's login is not known.
    access: Access | None = None


class RewriteService:
    """The rewrite service of a process."""

    def __init__(
        self, sessions: SessionRegistry, threads: FairThreads, slots: asyncio.Semaphore, own_sessions: OwnSessions
    ) -> None:
        """Queries of ours that need a slot take one of `slots`: see Query.needs_slot."""
        self._sessions = sessions
        self._threads = threads
        self._slots = slots
        self._own_sessions = own_sessions

    def decide_now(self, handle: SessionHandle, statement: StatementClass, connection: str) -> Dispatch | None:
        """The dispatch of a statement that can be decided at once; None if `decide` has to be asked."""
        session = self._sessions.of(handle)
        if session.settled_at > _now() or session.port.writes_before(statement):
            return None
        if not self._sessions.is_offered(handle):
            return dispatch_unchanged(session.port, statement)
        dispatch = dispatch_now(session, statement, connection)
        return None if dispatch is None else self._if_still_offered(session, handle, statement, dispatch)

    async def forward_unchanged(
        self, handle: SessionHandle, statement: StatementClass, make_call: MakeCall | None = None
    ) -> Dispatch:
        """The dispatch of the original, as soon as it may go on."""
        session = self._sessions.of(handle)
        await asyncio.sleep(max(0.0, session.settled_at - _now()))
        refused = await until_writes_end(session.port, statement, make_call)
        return dispatch_unchanged(session.port, statement) if refused is None else refused

    async def decide(
        self,
        handle: SessionHandle,
        statement: StatementClass,
        caller: Caller,
        keys: KeyTerms = ASK_FIRST,
    ) -> Dispatch:
        """The dispatch, once the queries of the decision have been asked.

        Those that count for the client's session alone are asked there, others in a session of the proxy's own.
        """
        session = self._sessions.of(handle)
        if not self._sessions.is_offered(handle):
            return await self.forward_unchanged(handle, statement, caller.make_call)

        def is_session_here() -> bool:
            return self._sessions.is_offered(handle)

        async def answer(query: Query) -> QueryResult:
            return await answer_query(query, handle, caller.make_call, self._threads.of(OF_ANSWERS))

        async def answer_in_turn(query: Query) -> QueryResult:
            if query.sharing is not None:
                return await self._own_sessions.answer(query)
            return await answer_in_slot(query, self._slots, answer)

        while True:
            refused = await until_writes_end(session.port, statement, caller.make_call)
            if refused is not None:
                return refused
            async with session.turn:
                if session.port.writes_before(statement):
                    # Another statement, which writes, was released while this one waited for its turn.
                    continue
                thread = self._threads.of(session.owner, None if asks_us(statement) else THREAD_WAIT_S)
                await self._prepare(session, statement, caller.access, thread)
                deciding = partial(session.port.rewrite, statement, replace(keys, is_session_here=is_session_here))
                dispatch = await dispatch_in_turn(
                    session, statement, deciding, answer_in_turn, thread, caller.connection
                )
            break
        return self._if_still_offered(session, handle, statement, dispatch)

    async def _prepare(
        self, session: OpenSession, statement: StatementClass, access: Access | None, thread: Executor
    ) -> None:
        """Open a session of the proxy's own if the decision may ask for metadata and there is none."""
        port = session.port
        state = port.known_state()
        if access is None or state is None or not self._own_sessions.is_lacking(state):
            return
        with suppress(Exception):
            # Each failure of it shows again in the decision, and is logged there.
            loop = asyncio.get_running_loop()
            is_explain = statement.first_word == "explain"
            if is_explain or not await loop.run_in_executor(thread, port.is_quick, statement):
                await self._own_sessions.prepare(state, access)

    def note_forwarded(self, handle: SessionHandle, text: str, connection: str) -> None:
        """Count a statement that was sent without a decision. The proxy will not learn of its end."""
        tell_outcome(
            dispatch_unchanged(self._sessions.of(handle).port, StatementClass(text)),
            Outcome(OutcomeKind.UNKNOWN, 0.0),
            connection,
        )

    def _if_still_offered(
        self, session: OpenSession, handle: SessionHandle, statement: StatementClass, dispatch: Dispatch
    ) -> Dispatch:
        """The dispatch, or the original where another process has forwarded something of the session meanwhile."""
        if not self._sessions.is_offered(handle):
            session.port.used_elsewhere()
            return Dispatch(
                statement.text,
                on_outcome=dispatch.on_outcome,
                on_operation=dispatch.on_operation,
                statement_id=dispatch.statement_id,
                refusal=dispatch.refused_as_original().refusal,
            )
        if not dispatch.may_fall_back:
            return dispatch
        # Until the answer comes, another process may still forward something of the session.
        premises = dispatch.premises
        stays_here = replace(
            premises,
            is_session_unchanged=lambda: premises.is_session_unchanged() and self._sessions.is_offered(handle),
        )
        return replace(dispatch, premises=stays_here)


def _now() -> float:
    return asyncio.get_running_loop().time()


def may_be_left(statement: StatementClass) -> bool:
    """True if the event loop may decide about a statement: it changes no meanings, and asks the proxy nothing."""
    return statement.keeps_meanings and statement.first_word != "explain"


def asks_us(statement: StatementClass) -> bool:
    """True if a statement may ask the proxy for something: to explain, show or set what is its own, or SKEWED BY.

    Any other may be sent without a decision. What it writes and changes is noted as it is sent. Lists of
    partitions and costs are then kept, as after a write past this process: no answer depends on them.
    """
    word = statement.first_word
    return word in _OURS or (word in _MAYBE_OURS and not has_none(_OUR_WORDS, statement.text))


def dispatch_now(session: OpenSession, statement: StatementClass, connection: str) -> Dispatch | None:
    """The dispatch of a short statement with nothing to rewrite, as most are; None where it has to wait.

    Made by the event loop itself: a thread would take longer to wake than to decide.
    """
    if session.turn.locked() or len(statement.text) > QUICK_CHARS_MAX:
        return None
    # Other statements make a session forget metadata, or are parsed to be explained: both may take a while.
    if not may_be_left(statement):
        return None
    try:
        if not session.port.is_quick(statement):
            return None
        dispatch = _dispatch_without_queries(session.port.rewrite(statement))
        if dispatch is not None:
            check_text(dispatch, connection)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, the original goes on
        unchanged = dispatch_unchanged(session.port, statement)
        _log_failed_decision(connection, unchanged.statement_id, error)
        return unchanged
    return dispatch


def _dispatch_without_queries(steps: Coroutine[Query, Any, Dispatch]) -> Dispatch | None:
    """The dispatch, or None if the decision asks a query. It then begins anew where queries are answered."""
    try:
        _ = steps.send(None)
    except StopIteration as end:
        dispatch: Dispatch = end.value
        return dispatch
    steps.close()
    return None


async def dispatch_in_turn(  # noqa: PLR0913, PLR0917 - a decision, and where it is made
    session: OpenSession,
    statement: StatementClass,
    deciding: Work[Dispatch],
    answer: Ask,
    pool: Executor,
    connection: str,
) -> Dispatch:
    """The session's dispatch, or the original where it fails. Called in the statement's turn."""
    loop = asyncio.get_running_loop()

    def unclaimed(dispatch: Dispatch) -> None:
        # A loop that has ended has no sessions left.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell_outcome, dispatch, Outcome(OutcomeKind.NOT_SENT, 0.0), connection)

    try:
        dispatch = await drive(deciding, answer, pool, unclaimed)
        check_text(dispatch, connection)
    except ThreadsBusyError:
        unchanged = dispatch_unchanged(session.port, statement)
        log.warning(
            "%s: statement %s was not planned, since no thread was free within %g s; the original goes on",
            *(connection, unchanged.statement_id, THREAD_WAIT_S),
        )
        return unchanged
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, the original goes on
        unchanged = dispatch_unchanged(session.port, statement)
        _log_failed_decision(connection, unchanged.statement_id, error)
        return unchanged
    return dispatch


def check_text(dispatch: Dispatch, connection: str) -> None:
    """Raise UnicodeEncodeError if the text cannot be sent, after its statement was ended as not sent."""
    try:
        dispatch.text.encode()
    except UnicodeEncodeError:
        tell_outcome(dispatch, Outcome(OutcomeKind.NOT_SENT, 0.0), connection)
        raise


def dispatch_unchanged(port: SessionPort, statement: StatementClass) -> Dispatch:
    """The dispatch of the original."""
    try:
        return port.forward_unchanged(statement)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, the original goes on
        log.error("noting a statement failed with %s", type(error).__name__)  # noqa: TRY400
        return Dispatch(statement.text)


def tell_outcome(dispatch: Dispatch, outcome: Outcome, connection: str) -> None:
    """Tell the session the outcome. Its message may quote the statement, so it is not logged."""
    if outcome.kind.is_fallback:
        log.warning(
            "%s: statement %s %s; its first run took %.3f s",
            *(connection, dispatch.statement_id, outcome.kind.value, outcome.seconds),
        )
    try:
        dispatch.on_outcome(outcome)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong there, the connection goes on
        log.error("%s: noting a statement's end failed with %s", connection, type(error).__name__)  # noqa: TRY400


def _log_failed_decision(connection: str, statement_id: str, error: Exception) -> None:
    """Log where it failed, without the error's own words: they may quote the statement."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f" in {place.tb_frame.f_code.co_qualname}, line {place.tb_lineno}"
    log.error(
        "%s: the decision about statement %s failed with %s%s; the original goes on",
        *(connection, statement_id, type(error).__name__, where),
    )
