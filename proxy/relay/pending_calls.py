"""The calls under way to the backend, and the answers that their replies make for the client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from proxy.access.handle_access import CATALOG_CALLS, HandleAccess
from proxy.operations.dispatch import Dispatch
from proxy.operations.events import Event
from proxy.operations.fallback import (
    Answer,
    AnswerClient,
    CallAgain,
    DecideAgain,
    Fallback,
    FallbackSteps,
    may_pass_unread,
)
from proxy.operations.fallback_policy import FallbackPolicy
from proxy.operations.held_statement import HeldStatement
from proxy.operations.internal_call import Call, InternalOperation, Reply
from proxy.operations.key_check import KeyCheck
from proxy.operations.reply_tracker import (
    ASKING_CALLS,
    WATCHED_REPLY_BYTES_MAX,
    ReplyTracker,
    TrackedCall,
    TrackedReply,
    call_about_statement,
    call_of_statement,
    call_to_watch,
)
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.relay.commands import AwaitCheck, BackendReply, Command, SendBackend, SendClient, StartCheck
from proxy.wire.framing import FRAMED, Framing
from proxy.wire.hs2.replies import expect_reply
from proxy.wire.reply_stream import PENDING_CALLS_MAX, Handling, PendingCall, ReplyEnd
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.types import MessageType


class PendingCalls:
    """One connection's calls, in the order in which they were sent: their replies come in the same order."""

    def __init__(
        self,
        tracked_statements: TrackedStatements,
        handle_access: HandleAccess,
        clock: Callable[[], float],
        fall_back_within_s: float,
        framing: Framing = FRAMED,
    ) -> None:
        self.replies = framing.reply_stream()
        self.reply_tracker = ReplyTracker(tracked_statements, handle_access, clock, framing)
        self.framing = framing
        self.own = InternalOperation()
        self._tracked_statements = tracked_statements
        self._clock = clock
        self._events: list[Event] = []
        policy = FallbackPolicy(tracked_statements, clock, fall_back_within_s)
        self._fallback = Fallback(policy, self.reply_tracker, self._events.extend)
        # A fallback under way, while the client waits for the reply to its last call.
        self._answer_steps: FallbackSteps | None = None
        # The check that it waits for, and the reply that goes to the client if the keys are confirmed.
        self._awaited_check: KeyCheck | None = None
        self._kept_back = b""
        # The call that the client waits for meanwhile.
        self._call_of_answer: PendingCall | None = None
        self._to_decide_again: DecideAgain | None = None
        # One for each call of the client whose reply the stream waits for.
        self._tracked_calls: deque[TrackedCall] = deque()
        # For each call of ours whose reply the stream waits for: True if somebody waits for the reply.
        self._are_awaited: deque[bool] = deque()

    @property
    def is_falling_back(self) -> bool:
        """True if the client waits for a fallback, so that no call of its own may be made."""
        return self._answer_steps is not None

    def remembered_status(self, data: bytes) -> bytes | None:
        """The reply to a status call, where it is remembered."""
        # With a call outstanding, an answer of ours would overtake its reply.
        return None if self.replies.pending_count else self.reply_tracker.status_cache.reply_to(data)

    # --- calls

    def relay(self, message: Message) -> SendBackend:
        """Make a call of the client whose reply only passes."""
        header = message.header
        # The type of the call's message does not matter: the server ignores it, and answers.
        self.replies.expect(PendingCall(Handling.RELAY, header.name, header.seqid))
        return self._send(message.raw)

    def make(self, message: Message) -> list[Command]:
        """Make a call of the client that executes no statement and opens no session."""
        name = message.header.name
        if name in CATALOG_CALLS:
            return [self.watch(message)]
        if name in ASKING_CALLS:
            return [self.ask_about(message)]
        actual, tracked = self._tracked_statements.resolve(message)
        return [*self.reply_tracker.note_call(message, tracked), self.relay(actual)]

    def watch(self, message: Message) -> SendBackend:
        """Make a call of the client that is about no statement."""
        return self._expect(message, call_to_watch(message))

    def release(self, held: HeldStatement, dispatch: Dispatch | None, message_bytes_max: int) -> list[Command]:
        """Execute a held statement, as decided or as the original."""
        if dispatch is None:
            return [self.execute(held.message, None)]
        now = self._clock()
        sent, tracked = held.dispatched(dispatch, message_bytes_max, self._tracked_statements, now)
        check = tracked.pending_check
        started = [] if check is None else [StartCheck(held.call.session, check)]
        return [self.execute(sent, tracked), *started]

    def execute(self, message: Message, tracked: TrackedStatement | None) -> SendBackend:
        """Execute a statement."""
        return self._expect(message, call_of_statement(tracked))

    def ask_about(self, message: Message) -> SendBackend:
        """Make a call of the client for an operation's state, columns or rows."""
        actual, tracked = self._tracked_statements.resolve(message)
        return self._make(actual, call_about_statement(message, tracked))

    def ask(self, call: Call, *, is_awaited: bool = True) -> SendBackend:
        """Make a call of our own."""
        self.replies.expect(PendingCall(Handling.OURS, call.name, call.seqid, call.reply_bytes_max))
        self._are_awaited.append(is_awaited)
        self.own.call_sent(call)
        return self._send(call.message)

    def calls_to_answer(self) -> tuple[PendingCall, ...]:
        """Return the client's calls without a reply, if each can be answered, in their order."""
        calls = self.replies.unanswered_calls()
        if self._answer_steps is None or self._call_of_answer is None:
            return calls
        return (self._call_of_answer, *calls)

    def closing_calls(self) -> list[SendBackend]:
        """End the operation of ours that is still open, if there is one and room to say so."""
        calls = self.own.closing_calls()
        room = self.replies.pending_count + len(calls) <= PENDING_CALLS_MAX
        return [self.ask(call, is_awaited=False) for call in calls] if room else []

    # --- replies

    def read_clients(self, end: ReplyEnd, *, is_last: bool) -> list[Command]:
        """The reply to a call of the client has ended. Raises RemoteProtocolError or IncompleteError."""
        commands = self._read_reply(self._tracked_calls[0], end, is_last=is_last)
        # Removed only now: if the reply cannot be read, its statement is still to be judged.
        _ = self._tracked_calls.popleft()
        return commands

    def _read_reply(self, call: TrackedCall, end: ReplyEnd, *, is_last: bool) -> list[Command]:
        name = end.call.name
        if end.raw is None:
            return [*self.reply_tracker.note_unread_reply(call, name)]
        kept_back = self.unforwarded(end)
        self._call_of_answer = end.call
        header = expect_reply(end.raw, name, end.call.seqid)
        if header.type is not MessageType.REPLY:
            refused = self._fallback.read_unread(call, header)
            return [*self._answer(refused, kept_back), *self._take_events()]
        reply = TrackedReply(call, end.raw, header, end.calls_since, is_last)
        if kept_back:
            kept_back = self.framing.to_wire(reply.for_client())
        return self._advance(self._fallback.read_reply(reply), None, kept_back)

    def read_own(self, end: ReplyEnd) -> list[Command]:
        """The reply to a call of ours has ended. Raises RemoteProtocolError where it is not that reply."""
        is_awaited = self._are_awaited.popleft()
        if end.raw is not None:
            _ = expect_reply(end.raw, end.call.name, end.call.seqid)
        self.own.reply_came(end.call.name, end.call.seqid, end.raw)
        if not is_awaited:
            return []
        steps, self._answer_steps = self._answer_steps, None
        return [BackendReply(end.raw)] if steps is None else self._advance(steps, end.raw, b"")

    def check_settled(self, check: KeyCheck) -> list[Command]:
        """A check of remembered keys has ended. Nothing happens where nobody waits for it any more."""
        steps = self._answer_steps
        if steps is None or self._awaited_check is not check:
            return []
        self._answer_steps = self._awaited_check = None
        kept_back, self._kept_back = self._kept_back, b""
        return self._advance(steps, None, kept_back)

    def take_to_decide_again(self) -> DecideAgain | None:
        """The statement that is to be decided about again, if there is one."""
        again, self._to_decide_again = self._to_decide_again, None
        return again

    @property
    def has_unsettled(self) -> bool:
        """True if a reply is awaited, or kept back, that may show an answer which must not be let out unseen."""
        if self._awaited_check is not None:
            return True
        return any(call.tracked is not None and call.tracked.is_unsettled for call in self._tracked_calls)

    @property
    def awaits_unconfirmed(self) -> bool:
        """True if the reply to a statement is awaited that may have to be kept back until a check has ended."""
        return any(
            call.message is None and call.tracked is not None and call.tracked.pending_check is not None
            for call in self._tracked_calls
        )

    def may_pass_overlong(self) -> bool:
        """True if the reply that begins now, too long to be kept, may pass: it has the rows of an answer."""
        # Without any call the connection has ended, or nothing is read any more.
        return not self._tracked_calls or may_pass_unread(self._tracked_calls[0])

    def unforwarded(self, end: ReplyEnd) -> bytes:
        """The part of a reply that was read and that the client has not been sent."""
        if end.call.handling is not Handling.KEEP or end.raw is None:
            return b""
        return self.framing.to_wire(end.raw)

    def stop_reading(self) -> list[Command]:
        """No more replies are read: a fallback is abandoned."""
        while self._tracked_calls:
            call = self._tracked_calls.popleft()
            if call.message is None:
                self._events += self.reply_tracker.note_unread_reply(call, "")
        if self._answer_steps is not None:
            self._answer_steps.close()
            self._answer_steps = None
        return self._take_events()

    # --- inside

    def _advance(self, steps: FallbackSteps, reply: Reply, kept_back: bytes) -> list[Command]:
        """Make the next call of a fallback, or answer the client: with the kept back reply, where that passes."""
        try:
            # Sending None starts a generator, which its type cannot express.
            step = steps.send(reply)
        except StopIteration as end:
            return [*self._answer(end.value, kept_back), *self._take_events()]
        self._answer_steps = steps
        if isinstance(step, KeyCheck):
            self._awaited_check, self._kept_back = step, kept_back
            return [AwaitCheck(step), *self._take_events()]
        return [self.ask(step), *self._take_events()]

    def _answer(self, answer: Answer, kept_back: bytes) -> list[Command]:
        match answer:
            case AnswerClient(reply, orphan_closes):
                return [*self._send_client(self.framing.to_wire(reply)), *self._close_orphan(orphan_closes)]
            case CallAgain(sent, call, orphan_closes):
                return [*self._close_orphan(orphan_closes), self._make(sent, call)]
            case DecideAgain():
                self._to_decide_again = answer
                return self._close_orphan(answer.orphan_closes)
        return self._send_client(kept_back)

    def _close_orphan(self, closes: Iterable[Call]) -> list[Command]:
        return [self.ask(close, is_awaited=False) for close in closes]

    def _take_events(self) -> list[Command]:
        events: list[Command] = [*self._events]
        self._events.clear()
        return events

    def _send_client(self, data: bytes) -> list[Command]:
        return [SendClient(data)] if data else []

    def _make(self, sent: Message, call: TrackedCall | None) -> SendBackend:
        return self.relay(sent) if call is None else self._expect(sent, call)

    def _expect(self, sent: Message, call: TrackedCall) -> SendBackend:
        header, handling = sent.header, Handling.KEEP if call.is_kept_back else Handling.WATCH
        self.replies.expect(PendingCall(handling, header.name, header.seqid, WATCHED_REPLY_BYTES_MAX))
        self._tracked_calls.append(call)
        return self._send(sent.raw)

    def _send(self, message: bytes) -> SendBackend:
        return SendBackend(self.framing.to_wire(message))
