"""One call of a client that speaks HTTP, and its reply. No I/O: calls out, replies in.

Over HTTP a reply belongs to its call, so there is no stream to follow as `proxy.relay.relay` does. A call is a
generator: it yields the calls to make in its place, and is sent their replies. A session's calls run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, TypeAlias

from proxy.access.handle_access import CATALOG_CALLS, HandleAccess
from proxy.operations.events import Event
from proxy.operations.fallback import AnswerClient, CallAgain, DecideAgain, Fallback
from proxy.operations.fallback_policy import FallbackPolicy
from proxy.operations.held_statement import statements_passed
from proxy.operations.internal_call import Call, Reply
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
from proxy.wire.framing import UNFRAMED
from proxy.wire.hs2.calls import EXECUTE_STATEMENT, OPEN_SESSION
from proxy.wire.hs2.replies import expect_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import CALL_VALUES_MAX, Message
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.skip import ValueSkipper
from proxy.wire.thrift.types import Kind, MessageType

# The reply for the client, or None where the reply to the last call goes to it unread, as it comes.
ClientReply: TypeAlias = bytes | None
# A step that is no call is a check of remembered keys that has to end first.
Step: TypeAlias = Call | KeyCheck
Steps: TypeAlias = Generator[Step, Reply, ClientReply]

_NOT_READ: Final = 0


def message_of(body: bytes) -> Message:
    """The one message that a request carries. Raises RemoteProtocolError where it is anything else."""
    try:
        header = read_header(body)
        end = ValueSkipper(Kind.STRUCT, header.body_offset, CALL_VALUES_MAX).advance(body)
    except IncompleteError:
        end = None
    if end != len(body):
        what = "ends inside a message" if end is None else "goes on behind its message"
        raise RemoteProtocolError(f"a body of {len(body)} bytes {what}")
    return Message(header, body)


class CallerRecords:
    """Records of the calls that present the same credentials."""

    def __init__(
        self, tracked_statements: TrackedStatements, handle_access: HandleAccess, clock: Callable[[], float]
    ) -> None:
        self.handle_access = handle_access
        self.reply_tracker = ReplyTracker(tracked_statements, handle_access, clock, UNFRAMED)
        # Calls so far that may have ended an operation while a status of it was on its way.
        self.changes = 0

    @property
    def open_operation_count(self) -> int:
        """The number of statements that have been executed and are not closed yet."""
        return self.reply_tracker.open_operations

    def reply_to(self, body: bytes) -> bytes | None:
        """The reply to a status call that can be answered here."""
        return self.reply_tracker.status_cache.reply_to(body)


class Exchange:
    """One call of a client. `report` is given the events that others need to know."""

    def __init__(
        self, memory: CallerRecords, policy: FallbackPolicy, report: Callable[[list[Event]], None]
    ) -> None:
        self._memory = memory
        self._reply_tracker = memory.reply_tracker
        self._tracked_statements = policy.tracked_statements
        self._clock = policy.clock
        self._fallback = Fallback(policy, memory.reply_tracker, report)
        self._report = report
        # The check that did not confirm the statement's keys. The statement has to be decided about again, and the
        # reply is not for the client.
        self.unconfirmed: KeyCheck | None = None

    def execute(self, sent: Message, tracked: TrackedStatement | None) -> Steps:
        """Execute a statement whose dispatch has been decided."""
        self._note_call(sent, None)
        return (yield from self._execute(sent, tracked))

    def pass_on(self, message: Message) -> Steps:
        """Make any other call, or execute a statement that cannot be read."""
        # The call's name alone decides, as on the server, which ignores the type of a call's message.
        name = message.header.name
        if name in ASKING_CALLS:
            return (yield from self._ask_about(message))
        if name == OPEN_SESSION or name in CATALOG_CALLS:
            return (yield from self._watch(message, call_to_watch(message)))
        if name == EXECUTE_STATEMENT:
            self._report([*statements_passed(message)])
            return (yield from self.execute(message, None))
        actual, tracked = self._tracked_statements.resolve(message)
        self._note_call(message, tracked)
        return (yield from _unread(actual))

    def pass_unread(self, message: Message) -> Steps:
        """Make a call whose reply goes to the client unread, and of which nothing is recorded."""
        return (yield from _unread(message))

    def _note_call(self, message: Message, tracked: TrackedStatement | None) -> None:
        self._memory.changes += 1
        self._report(self._reply_tracker.note_call(message, tracked))

    def _execute(self, sent: Message, tracked: TrackedStatement | None) -> Steps:
        try:
            return (yield from self._watch(sent, call_of_statement(tracked)))
        finally:
            # Nobody saw the reply: the client has left, or the backend has.
            if tracked is not None and tracked.operation is None:
                self._report([*tracked.stopped(self._clock())])

    def _ask_about(self, message: Message) -> Steps:
        actual, tracked = self._tracked_statements.resolve(message)
        return (yield from self._make(actual, call_about_statement(message, tracked)))

    def _make(self, sent: Message, call: TrackedCall | None) -> Steps:
        return (yield from (_unread(sent) if call is None else self._watch(sent, call)))

    def _watch(self, sent: Message, call: TrackedCall) -> Steps:
        """Make a call and read its reply. A reply that cannot be read goes to the client, if it may pass."""
        name, changes = sent.header.name, self._memory.changes
        raw = yield Call(name, sent.header.seqid, sent.raw, WATCHED_REPLY_BYTES_MAX)
        if raw is not None:
            try:
                header = expect_reply(raw, name, sent.header.seqid)
                if header.type is MessageType.REPLY:
                    # Calls of one session run side by side: nothing is sent behind a call.
                    reply = TrackedReply(call, raw, header, self._memory.changes - changes, is_last=True)
                    return (yield from self._read(reply))
            except (RemoteProtocolError, IncompleteError):
                pass
        refused = self._fallback.read_unread(call, sent.header)
        return raw if refused is None else refused.reply

    def _read(self, reply: TrackedReply) -> Steps:
        answer = yield from self._fallback.read_reply(reply)
        if answer is None:
            return reply.for_client()
        for close in answer.orphan_closes:
            _ = yield close
        match answer:
            case DecideAgain(_, check):
                self.unconfirmed = check
                return reply.raw
            case AnswerClient(substitute):
                return substitute
            case CallAgain(sent, call):
                return (yield from self._make(sent, call))


def _unread(message: Message) -> Steps:
    yield Call(message.header.name, message.header.seqid, message.raw, _NOT_READ)
    return None
