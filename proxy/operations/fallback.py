"""Fallback: runs the original of a statement, after the rewritten text has failed or its answer was overtaken.

Binary connections and HTTP drive the same generators of calls, which are sent their replies as in
`proxy.operations.run_query`; they differ only in how calls and replies travel. The client waits for the reply to
the call that showed the failure, and sees that one reply only. While remembered keys are being checked, the
generator yields the check, and is sent None once that has ended. Example, where a status shows the failure:

    GetOperationStatus -> ERROR                 kept from the client
    ExecuteStatement of the original -> handle  the first operation is an alias of this one from here on
    CloseOperation of the first                 and CallAgain: the client's GetOperationStatus goes to the original
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.operations.dispatch import OutcomeKind
from proxy.operations.events import Event
from proxy.operations.fallback_policy import FallBack, FallbackPolicy, Pass, Substitute, Withhold, refusal
from proxy.operations.internal_call import (
    CONTROL_REPLY_BYTES_MAX,
    Call,
    Reply,
    operation_closing_calls,
    read_operation,
)
from proxy.operations.key_check import CheckVerdict, KeyCheck
from proxy.operations.reply_tracker import (
    ReplyTracker,
    TrackedCall,
    TrackedReply,
    call_about_statement,
    call_of_statement,
)
from proxy.operations.tracked_statements import TrackedStatement
from proxy.wire.hs2.calls import (
    CANCEL_OPERATION,
    CLOSE_OPERATION,
    EXECUTE_STATEMENT,
    FETCH_RESULTS,
    GET_OPERATION_STATUS,
    GET_RESULT_SET_METADATA,
    UNFINISHED,
    OperationHandle,
    OperationState,
    encode_failure,
    encode_operation_call,
)
from proxy.wire.hs2.replies import StateReply, Status, decode_state_reply, expect_reply, open_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Header

# Replies come in the order of the calls, so one number does for all of them.
_SEQID: Final = 1

# These calls need the whole answer. Asked for columns too early, Spark makes some up, and repeats them for ever.
_NEED_THE_END: Final = frozenset({FETCH_RESULTS, GET_RESULT_SET_METADATA})


@dataclass(frozen=True)
class AnswerClient:
    """The client gets this reply instead of the backend's."""

    reply: bytes = field(repr=False)
    # Calls that end an operation of which the client will never know. Nobody waits for the replies.
    orphan_closes: tuple[Call, ...] = ()


@dataclass(frozen=True)
class CallAgain:
    """This call is to be made, and the client gets its reply instead."""

    # The client's call, which goes to the new operation now; or the original, which runs within its call.
    sent: Message
    # None where nobody has to read the reply.
    call: TrackedCall | None
    # See AnswerClient.
    orphan_closes: tuple[Call, ...] = ()


@dataclass(frozen=True)
class DecideAgain:
    """The statement of this call is to be decided about again: its remembered keys could not be confirmed."""

    call: Message
    check: KeyCheck
    # See AnswerClient.
    orphan_closes: tuple[Call, ...] = ()


# None lets the backend's reply pass to the client.
Answer: TypeAlias = AnswerClient | CallAgain | DecideAgain | None
FallbackSteps: TypeAlias = Generator[Call | KeyCheck, Reply, Answer]


class Fallback:
    """Answers one client from the backend's replies about statements. `report` is given the events."""

    def __init__(
        self, policy: FallbackPolicy, reply_tracker: ReplyTracker, report: Callable[[list[Event]], None]
    ) -> None:
        self._policy = policy
        self._tracked_statements = policy.tracked_statements
        self._clock = policy.clock
        self._reply_tracker = reply_tracker
        self._report = report

    def read_reply(self, reply: TrackedReply) -> FallbackSteps:
        """Answer from a reply. Raises RemoteProtocolError or IncompleteError where it cannot be read.

        A reply that passes does so without any call: the first step ends the generator.
        """
        tracked = reply.call.tracked
        if tracked is not None and reply.call.is_judged:
            unconfirmed = yield from self._await_check(tracked, reply)
            if unconfirmed is not None:
                return unconfirmed
            match self._policy.judge(tracked, reply):
                case Substitute(substitute):
                    return AnswerClient(substitute)
                case Withhold(refused, orphan):
                    self._report([*tracked.answer_withheld(self._clock())])
                    return AnswerClient(refused, _orphan_closes(orphan))
                case FallBack() as fallback:
                    return (yield from self._fall_back(tracked, reply.call.message, fallback))
                case Pass(shows_columns):
                    if shows_columns:
                        tracked.columns_shown()
        self._report(self._reply_tracker.note_reply(reply))
        return None

    def read_unread(self, call: TrackedCall, header: Header) -> AnswerClient | None:
        """Answer if the reply to the call of that header is too long to be read, so has rows, or is no reply."""
        if not may_pass_unread(call):
            if call.message is None:
                self._report(self._reply_tracker.note_unread_reply(call, header.name))
            return AnswerClient(refusal(header, call.tracked))
        self._report(self._reply_tracker.note_unread_reply(call, header.name))
        return None

    def _await_check(self, tracked: TrackedStatement, reply: TrackedReply) -> FallbackSteps:
        """Keep the reply that names the operation until its keys are confirmed. None lets it be judged.

        The client cannot ask for an answer as long as it does not know the operation, over whichever connection.
        """
        check = tracked.pending_check if reply.header.name == EXECUTE_STATEMENT else None
        opened = read_operation(reply.raw, reply.header.seqid) if check is not None else None
        if check is None or opened is None or not opened.status.ok or opened.operation is None:
            return None
        if check.verdict is None:
            try:
                yield check
            except GeneratorExit:
                # The connection that would have shown the reply has ended.
                self._report([*tracked.stopped(self._clock())])
                raise
        if check.verdict is CheckVerdict.HELD:
            return None
        now, call, closes = self._clock(), tracked.original_call, operation_closing_calls(opened.operation)
        is_unanswered = check.verdict is CheckVerdict.UNANSWERED
        if call is None or not reply.is_last or (is_unanswered and not tracked.may_run_original):
            self._report([*tracked.answer_withheld(now)])
            return AnswerClient(refusal(reply.header, tracked), closes)
        if not is_unanswered:
            self._report([*tracked.decided_again(now)])
            return DecideAgain(call, check, closes)
        _ = tracked.fall_back(now, None)
        tracked.sent_again(None)
        return CallAgain(call, call_of_statement(tracked), closes)

    def _fall_back(self, tracked: TrackedStatement, call: Message | None, found: FallBack) -> FallbackSteps:
        """Run the original. The reply to `call` showed the first run's end; None is the statement's own call."""
        original_call = tracked.fall_back(self._clock(), found.failure)
        if call is None:
            tracked.sent_again(None)
            return CallAgain(original_call, call_of_statement(tracked), _orphan_closes(found.orphan))
        try:
            return (yield from self._run_original(tracked, original_call, call, found.refusal))
        finally:
            if tracked.is_falling_back:
                # The generator was closed: the connection that would have sent the calls has ended.
                self._report([*tracked.fallback_abandoned(self._clock())])
                self._tracked_statements.statement_ended(tracked)

    def _run_original(
        self, tracked: TrackedStatement, original_call: Message, failed: Message, refused: bytes
    ) -> FallbackSteps:
        first = tracked.operation
        raw = yield Call(EXECUTE_STATEMENT, original_call.header.seqid, original_call.raw, CONTROL_REPLY_BYTES_MAX)
        reply = read_operation(raw, original_call.header.seqid)
        needs_end = failed.header.name in _NEED_THE_END
        if needs_end and reply is not None and not reply.status.ok:
            return self._end(tracked, OutcomeKind.FAILED_TWICE, _failure(failed, reply.status))
        if first is None or reply is None or reply.operation is None:
            return self._end(tracked, OutcomeKind.FAILED, refused)
        if tracked.is_closed:
            yield _call(CLOSE_OPERATION, reply.operation)
            self._report([*tracked.fallback_ended(OutcomeKind.UNKNOWN)])
            return self._call_again(failed)
        if not self._tracked_statements.sent_again(tracked, reply.operation):
            yield _call(CLOSE_OPERATION, reply.operation)
            return self._end(tracked, OutcomeKind.FAILED, refused)
        tracked.operation_shown(reply.operation)
        # The first operation is closed only now: until here, a cancel from another connection found it open.
        yield _call(CLOSE_OPERATION, first)
        if tracked.is_stopped:
            yield _call(CANCEL_OPERATION, reply.operation)
        if not needs_end:
            return self._call_again(failed)
        return (yield from self._await_end(tracked, reply.operation, failed, refused))

    def _await_end(
        self, tracked: TrackedStatement, operation: OperationHandle, failed: Message, refused: bytes
    ) -> FallbackSteps:
        """Wait for rows or columns that the client asked for: the server may be asked only once there are any."""
        while True:
            reply = _read_state((yield _call(GET_OPERATION_STATUS, operation)))
            if reply is None or reply.state is None:
                return self._end(tracked, OutcomeKind.FAILED, refused)
            if reply.state is OperationState.ERROR:
                return self._end(tracked, OutcomeKind.FAILED_TWICE, _failure(failed, reply))
            if reply.state not in UNFINISHED:
                # It has rows; or it was cancelled or timed out, which the reply to the client's own call says.
                return self._call_again(failed)

    def _call_again(self, message: Message) -> CallAgain:
        actual, tracked = self._tracked_statements.resolve(message)
        return CallAgain(actual, call_about_statement(message, tracked))

    def _end(self, tracked: TrackedStatement, kind: OutcomeKind, reply: bytes) -> AnswerClient:
        self._report([*tracked.fallback_ended(kind)])
        self._tracked_statements.statement_ended(tracked)
        return AnswerClient(reply)


def may_pass_unread(call: TrackedCall) -> bool:
    """True if a reply that begins now may pass unread: it may have rows of the answer."""
    tracked = call.tracked
    if tracked is None:
        return True
    check = tracked.pending_check
    is_confirmed = check is None or check.verdict is CheckVerdict.HELD
    return is_confirmed and not (call.is_superseded or tracked.is_overtaken())


def _failure(failed: Message, shown: Status | StateReply) -> bytes:
    header = failed.header
    return encode_failure(header.name, header.seqid, shown.message or "", shown.sql_state, shown.error_code)


def _orphan_closes(orphan: OperationHandle | None) -> tuple[Call, ...]:
    return () if orphan is None else (_call(CLOSE_OPERATION, orphan),)


def _call(name: str, operation: OperationHandle) -> Call:
    return Call(name, _SEQID, encode_operation_call(name, _SEQID, operation), CONTROL_REPLY_BYTES_MAX)


def _read_state(raw: Reply) -> StateReply | None:
    if raw is None:
        return None
    try:
        return decode_state_reply(open_reply(raw, expect_reply(raw, GET_OPERATION_STATUS, _SEQID)))
    except (RemoteProtocolError, IncompleteError):
        return None
