"""One call of a client that speaks HTTP, and its reply. No I/O: calls out, replies in.

Over HTTP a reply belongs to its call, so there is no stream to follow as `proxy.relay.relay` does. Each call is a
generator of the calls to make in its place, which is sent their replies; calls of one session run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, TypeAlias

from proxy.access.handle_access import CATALOG_CALLS, HandleAccess
from proxy.operations.events import Event
from proxy.operations.fallback import FallbackRun, run_original
from proxy.operations.fallback_policy import (
    FallbackNeeded,
    FallbackPolicy,
    JudgedReply,
    SubstituteReply,
    close_orphan,
    refusal,
)
from proxy.operations.held_statement import statements_passed
from proxy.operations.internal_call import Call, Reply
from proxy.operations.reply_tracker import ReplyTracker, TrackedCall
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.relay.pending_calls import ASKING_CALLS, WATCHED_REPLY_BYTES_MAX, tells_of_answer
from proxy.wire.framing import UNFRAMED
from proxy.wire.hs2.calls import EXECUTE_STATEMENT, OPEN_SESSION
from proxy.wire.hs2.replies import expect_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import CALL_VALUES_MAX, Message
from proxy.wire.thrift.reader import Header, read_header
from proxy.wire.thrift.skip import ValueSkipper
from proxy.wire.thrift.types import Kind, MessageType

# The reply for the client, or None where the reply to the last call goes to it unread, as it comes.
ClientReply: TypeAlias = bytes | None
Steps: TypeAlias = Generator[Call, Reply, ClientReply]

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


@dataclass(frozen=True)
class FallbackTerms:
    """When a statement may be run again."""

    clock: Callable[[], float]
    rerun_within_s: float


class CallerRecords:
    """What is known of the calls of whoever presents the same credentials."""

    def __init__(
        self, tracked_statements: TrackedStatements, handle_access: HandleAccess, clock: Callable[[], float]
    ) -> None:
        self.handle_access = handle_access
        self.reply_tracker = ReplyTracker(tracked_statements, handle_access, clock, UNFRAMED)
        # Calls so far that may have ended an operation while a status of it was on its way.
        self.changes = 0

    @property
    def has_open_operations(self) -> bool:
        """Whether statements have been executed that are not closed yet."""
        return self.reply_tracker.open_operations > 0

    def reply_to(self, body: bytes) -> bytes | None:
        """The reply to a status call that can be answered here."""
        return self.reply_tracker.finished.answer(body)


class Exchange:
    """One call of a client. `note` is given what others need to know."""

    def __init__(
        self,
        memory: CallerRecords,
        tracked_statements: TrackedStatements,
        terms: FallbackTerms,
        note: Callable[[list[Event]], None],
    ) -> None:
        self._memory = memory
        self._reply_tracker = memory.reply_tracker
        self._tracked_statements = tracked_statements
        self._clock = terms.clock
        self._policy = FallbackPolicy(tracked_statements, terms.clock, terms.rerun_within_s)
        self._note = note

    def execute(self, sent: Message, tracked: TrackedStatement | None) -> Steps:
        """Execute a statement that has been ruled on."""
        self._noted(sent, None)
        return (yield from self._execute(sent, tracked))

    def pass_on(self, message: Message) -> Steps:
        """Make any other call, or execute a statement that cannot be read."""
        # By its name alone, as the server goes by: it does not mind what type of message a call says it is.
        name = message.header.name
        if name in ASKING_CALLS:
            return (yield from self._ask_about(message))
        if name == OPEN_SESSION or name in CATALOG_CALLS:
            return (yield from self._watch(message, TrackedCall(message)))
        if name == EXECUTE_STATEMENT:
            self._note([*statements_passed(message)])
            return (yield from self.execute(message, None))
        actual, tracked = self._tracked_statements.resolve(message)
        self._noted(message, tracked)
        return (yield from _unread(actual))

    def pass_unread(self, message: Message) -> Steps:
        """Make a call of which nothing is to be known but what it is answered."""
        return (yield from _unread(message))

    def _noted(self, message: Message, tracked: TrackedStatement | None) -> None:
        self._memory.changes += 1
        self._note(self._reply_tracker.note_call(message, tracked))

    def _execute(self, sent: Message, tracked: TrackedStatement | None) -> Steps:
        try:
            return (yield from self._watch(sent, TrackedCall(None, tracked)))
        finally:
            # Nobody saw the reply: the client has left, or the backend has.
            if tracked is not None and tracked.operation is None:
                self._note([*tracked.gone(self._clock())])

    def _ask_about(self, message: Message) -> Steps:
        actual, tracked = self._tracked_statements.resolve(message)
        if not tells_of_answer(message, tracked):
            return (yield from _unread(actual))
        operation = None if tracked is None else tracked.operation
        return (yield from self._watch(actual, TrackedCall(message, tracked, operation)))

    def _watch(self, sent: Message, tracked_call: TrackedCall) -> Steps:
        name, changes = sent.header.name, self._memory.changes
        raw = yield Call(name, sent.header.seqid, sent.raw, WATCHED_REPLY_BYTES_MAX)
        if raw is None:
            return self._overlong(sent.header, tracked_call)
        try:
            header = expect_reply(raw, name, sent.header.seqid)
            if header.type is MessageType.REPLY:
                return (yield from self._read(raw, header, tracked_call, self._memory.changes - changes))
        except (RemoteProtocolError, IncompleteError):
            # The client is to judge for itself what that is.
            pass
        self._note(self._reply_tracker.note_unread(tracked_call, name))
        return raw

    def _read(self, raw: bytes, header: Header, tracked_call: TrackedCall, changes_since: int) -> Steps:
        tracked = tracked_call.tracked
        # Of the first run nothing is let out once there is a second: calls of one session run side by side.
        if tracked is not None and (tracked.is_judged or tracked_call.is_superseded):
            reply = JudgedReply(
                raw, header, tracked_call.message, is_superseded=tracked_call.is_superseded, is_last=True
            )
            judgement = self._policy.judge(tracked, reply)
            if isinstance(judgement, SubstituteReply):
                return (yield from self._answer(tracked, judgement))
            if judgement is not None:
                return (yield from self._fall_back(judgement))
        self._note(self._reply_tracker.note_reply(tracked_call, raw, header, changes_since))
        return raw

    def _answer(self, tracked: TrackedStatement, judged: SubstituteReply) -> Steps:
        if tracked.is_withheld:
            self._note(self._reply_tracker.note_refused(tracked))
        yield from _close(judged)
        return judged.reply

    def _overlong(self, header: Header, tracked_call: TrackedCall) -> ClientReply:
        """A reply is too long to be read: only rows are."""
        tracked = tracked_call.tracked
        if tracked is not None and (tracked_call.is_superseded or tracked.is_overtaken()):
            return refusal(header)
        self._note(self._reply_tracker.note_unread(tracked_call, header.name))
        return None

    def _fall_back(self, found: FallbackNeeded) -> Steps:
        """A rewritten statement has failed or was overtaken: see `proxy.operations.fallback`."""
        tracked, call = found.tracked, found.call
        original_call = tracked.rerun(self._clock(), found.failure)
        if call is None:
            tracked.succeeded_by(None)
            yield from _close(found)
            return (yield from self._watch(original_call, TrackedCall(None, tracked)))
        steps = run_original(self._tracked_statements, tracked, original_call, call, found.refusal)
        run = FallbackRun(tracked, call, found.refusal, steps)
        reply: Reply = None
        try:
            while (step := run.advance(reply)) is not None:
                reply = yield step
        finally:
            if tracked.is_falling_back:
                self._abandon(tracked)
        if run.answer is None:
            return (yield from self._ask_about(call))
        self._note([*run.told(self._clock())])
        self._tracked_statements.drop(tracked)
        return run.answer

    def _abandon(self, tracked: TrackedStatement) -> None:
        tracked.is_falling_back = False
        self._tracked_statements.drop(tracked)
        self._note([*tracked.gone(self._clock())])


def _unread(message: Message) -> Steps:
    yield Call(message.header.name, message.header.seqid, message.raw, _NOT_READ)
    return None


def _close(found: SubstituteReply | FallbackNeeded) -> Generator[Call, Reply, None]:
    """Close the operation that a judgement leaves behind."""
    if found.orphan is not None:
        yield close_orphan(found.orphan)
