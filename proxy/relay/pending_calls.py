"""The calls under way to the backend: what was sent, and what is made of the replies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from proxy.access.handle_access import HandleAccess
from proxy.operations.fallback_policy import (
    FallbackNeeded,
    FallbackPolicy,
    JudgedReply,
    SubstituteReply,
    close_orphan,
)
from proxy.operations.internal_call import Call, InternalOperation
from proxy.operations.reply_tracker import ReplyTracker, TrackedCall
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.relay.commands import Command, SendBackend, SendClient
from proxy.wire.framing import FRAMED, Framing
from proxy.wire.hs2.calls import FETCH_RESULTS, GET_OPERATION_STATUS, GET_RESULT_SET_METADATA, asks_for_rows
from proxy.wire.hs2.replies import expect_reply
from proxy.wire.reply_stream import PENDING_CALLS_MAX, Handling, PendingCall, ReplyEnd
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.types import MessageType

# Calls about an operation whose replies may tell of its answer.
ASKING_CALLS: Final = frozenset({GET_OPERATION_STATUS, GET_RESULT_SET_METADATA, FETCH_RESULTS})

# Replies that are read are small: handles, a state, an error with its stack trace. But Spark says the text of a
# statement three times in an error, and what may be run again is up to 256 KB long and 128 KB more once rewritten.
WATCHED_REPLY_BYTES_MAX: Final = 2 * 1024 * 1024


class PendingCalls:
    """One connection's calls, in the order that they went: a connection's replies come in the same."""

    def __init__(
        self,
        tracked_statements: TrackedStatements,
        handle_access: HandleAccess,
        clock: Callable[[], float],
        rerun_within_s: float,
        framing: Framing = FRAMED,
    ) -> None:
        self.replies = framing.reply_stream()
        self.reply_tracker = ReplyTracker(tracked_statements, handle_access, clock, framing)
        self.framing = framing
        self.own = InternalOperation()
        self._tracked_statements = tracked_statements
        self._policy = FallbackPolicy(tracked_statements, clock, rerun_within_s)
        # Beside each call that the follower waits for and that is the client's to have read.
        self._tracked_calls: deque[TrackedCall] = deque()

    def relay(self, message: Message) -> SendBackend:
        """Make a call of the client whose reply only passes."""
        header = message.header
        # Of whatever type: the server looks at none, and answers.
        self.replies.expect(PendingCall(Handling.RELAY, header.name, header.seqid))
        return self._send(message.raw)

    def watch(self, message: Message) -> SendBackend:
        """Make a call of the client that is about no statement."""
        return self._expect(Handling.WATCH, message, TrackedCall(message))

    def execute(self, message: Message, tracked: TrackedStatement | None) -> SendBackend:
        """Execute a statement."""
        keeps = tracked is not None and tracked.may_fail_yet
        return self._expect(Handling.KEEP if keeps else Handling.WATCH, message, TrackedCall(None, tracked))

    def ask_about(self, message: Message) -> SendBackend:
        """Make a call of the client for an operation's state, columns or rows."""
        actual, tracked = self._tracked_statements.resolve(message)
        if not tells_of_answer(message, tracked):
            return self.relay(actual)
        if tracked is None:
            return self._expect(Handling.WATCH, actual, TrackedCall(message))
        keeps = tracked.is_judged
        tracked_call = TrackedCall(message, tracked, tracked.operation)
        return self._expect(Handling.KEEP if keeps else Handling.WATCH, actual, tracked_call)

    def ask(self, call: Call) -> SendBackend:
        """Make a call of our own."""
        self.replies.expect(PendingCall(Handling.OURS, call.name, call.seqid, call.reply_bytes_max))
        self.own.asked(call)
        return self._send(call.message)

    def closing_calls(self) -> list[SendBackend]:
        """End the operation of ours that is still open, if there is one and room to say so."""
        calls = self.own.closing_calls()
        room = self.replies.pending_count + len(calls) <= PENDING_CALLS_MAX
        return [self.ask(call) for call in calls] if room else []

    def read(self, end: ReplyEnd, *, is_last: bool) -> list[Command] | FallbackNeeded:
        """The reply to a watched call has ended. Raises RemoteProtocolError or IncompleteError."""
        tracked_call, name = self._tracked_calls.popleft(), end.call.name
        if end.raw is None:
            return [*self.reply_tracker.note_unread(tracked_call, name)]
        rest = self.unforwarded(end)
        forward: list[Command] = [SendClient(rest)] if rest else []
        header = expect_reply(end.raw, name, end.call.seqid)
        if header.type is not MessageType.REPLY:
            return forward + self.reply_tracker.note_unread(tracked_call, name)
        if end.call.handling is Handling.KEEP and tracked_call.tracked is not None:
            reply = JudgedReply(
                end.raw, header, tracked_call.message, is_superseded=tracked_call.is_superseded, is_last=is_last
            )
            judgement = self._policy.judge(tracked_call.tracked, reply)
            if isinstance(judgement, SubstituteReply):
                return self._answer(tracked_call.tracked, judgement)
            if judgement is not None:
                return judgement
        return forward + self.reply_tracker.note_reply(tracked_call, end.raw, header, end.calls_since)

    def close_orphan(self, found: SubstituteReply | FallbackNeeded) -> list[Command]:
        """Close the operation that a judgement leaves behind."""
        return [] if found.orphan is None else [self.ask(close_orphan(found.orphan))]

    def may_pass_overlong(self) -> bool:
        """Whether the reply that begins now, too long to be kept, may pass: it has the rows of an answer."""
        if not self._tracked_calls:
            # The connection has ended, or nothing is read any more.
            return True
        tracked_call = self._tracked_calls[0]
        return tracked_call.tracked is None or not (
            tracked_call.is_superseded or tracked_call.tracked.is_overtaken()
        )

    def _answer(self, tracked: TrackedStatement, judged: SubstituteReply) -> list[Command]:
        told = self.reply_tracker.note_refused(tracked) if tracked.is_withheld else []
        return [SendClient(self.framing.to_wire(judged.reply)), *self.close_orphan(judged), *told]

    def unforwarded(self, end: ReplyEnd) -> bytes:
        """What the client has not been sent of a reply that was watched."""
        if end.call.handling is not Handling.KEEP or end.raw is None:
            return b""
        return self.framing.to_wire(end.raw)

    def forget(self) -> list[Command]:
        """No more replies are read."""
        told: list[Command] = []
        while self._tracked_calls:
            tracked_call = self._tracked_calls.popleft()
            if tracked_call.message is None:
                told += self.reply_tracker.note_unread(tracked_call, "")
        return told

    def _expect(self, handling: Handling, sent: Message, tracked_call: TrackedCall) -> SendBackend:
        header = sent.header
        self.replies.expect(PendingCall(handling, header.name, header.seqid, WATCHED_REPLY_BYTES_MAX))
        self._tracked_calls.append(tracked_call)
        return self._send(sent.raw)

    def _send(self, message: bytes) -> SendBackend:
        return SendBackend(self.framing.to_wire(message))


def tells_of_answer(call: Message, tracked: TrackedStatement | None) -> bool:
    """Whether the reply to a call for an operation's state, columns or rows has to be read."""
    match call.header.name:
        case name if name == FETCH_RESULTS:
            is_looked_at = tracked is not None and (tracked.ends_with_rows or tracked.is_judged)
            return is_looked_at and asks_for_rows(call)
        case name if name == GET_RESULT_SET_METADATA:
            return tracked is not None and tracked.is_judged
    return True
