"""One call of a client and its reply, where one of the sides speaks HTTP. No I/O: calls out, replies in.

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
from proxy.wire.framing import Framing
from proxy.wire.hs2.calls import EXECUTE_STATEMENT, OPEN_SESSION
from proxy.wire.hs2.replies import expect_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import CALL_VALUES_MAX, Message
from proxy.wire.thrift.reader import Header, read_header
from proxy.wire.thrift.skip import Walk
from proxy.wire.thrift.types import Kind, MessageType

# The reply for the client, or None where the reply to the last call goes to it unread, as it comes.
ClientReply: TypeAlias = bytes | None
Steps: TypeAlias = Generator[Call, Reply, ClientReply]

_NOT_READ: Final = 0
_UNFRAMED: Final = Framing(client=False, backend=False)


def message_of(body: bytes) -> Message:
    """The one message that a request carries. Raises RemoteProtocolError where it is anything else."""
    try:
        header = read_header(body)
        end = Walk(Kind.STRUCT, header.body_offset, CALL_VALUES_MAX).advance(body)
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

    def __init__(self, executions: TrackedStatements, guard: HandleAccess, clock: Callable[[], float]) -> None:
        self.guard = guard
        self.observer = ReplyTracker(executions, guard, clock, _UNFRAMED)
        # Calls so far that may have ended an operation while a status of it was on its way.
        self.changes = 0

    @property
    def has_open_operations(self) -> bool:
        """Whether statements have been executed that are not closed yet."""
        return self.observer.open_operations > 0

    def reply_to(self, body: bytes) -> bytes | None:
        """The reply to a status call that can be answered here."""
        return self.observer.finished.answer(body)


class Exchange:
    """One call of a client. `note` is given what others need to know."""

    def __init__(
        self,
        memory: CallerRecords,
        executions: TrackedStatements,
        terms: FallbackTerms,
        note: Callable[[list[Event]], None],
    ) -> None:
        self._memory = memory
        self._observer = memory.observer
        self._executions = executions
        self._clock = terms.clock
        self._policy = FallbackPolicy(executions, terms.clock, terms.rerun_within_s)
        self._note = note

    def execute(self, sent: Message, execution: TrackedStatement | None) -> Steps:
        """Execute a statement that has been ruled on."""
        self._noted(sent, None)
        return (yield from self._execute(sent, execution))

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
        actual, execution = self._executions.resolve(message)
        self._noted(message, execution)
        return (yield from _unread(actual))

    def pass_unread(self, message: Message) -> Steps:
        """Make a call of which nothing is to be known but what it is answered."""
        return (yield from _unread(message))

    def _noted(self, message: Message, execution: TrackedStatement | None) -> None:
        self._memory.changes += 1
        self._note(self._observer.note_call(message, execution))

    def _execute(self, sent: Message, execution: TrackedStatement | None) -> Steps:
        try:
            return (yield from self._watch(sent, TrackedCall(None, execution)))
        finally:
            # Nobody saw the reply: the client has left, or the backend has.
            if execution is not None and execution.operation is None:
                self._note([*execution.gone(self._clock())])

    def _ask_about(self, message: Message) -> Steps:
        actual, execution = self._executions.resolve(message)
        if not tells_of_answer(message, execution):
            return (yield from _unread(actual))
        operation = None if execution is None else execution.operation
        return (yield from self._watch(actual, TrackedCall(message, execution, operation)))

    def _watch(self, sent: Message, watched: TrackedCall) -> Steps:
        name, changes = sent.header.name, self._memory.changes
        raw = yield Call(name, sent.header.seqid, sent.raw, WATCHED_REPLY_BYTES_MAX)
        if raw is None:
            return self._overlong(sent.header, watched)
        try:
            header = expect_reply(raw, name, sent.header.seqid)
            if header.type is MessageType.REPLY:
                return (yield from self._read(raw, header, watched, self._memory.changes - changes))
        except (RemoteProtocolError, IncompleteError):
            # The client is to judge for itself what that is.
            pass
        self._note(self._observer.note_unread(watched, name))
        return raw

    def _read(self, raw: bytes, header: Header, watched: TrackedCall, changes_since: int) -> Steps:
        execution = watched.execution
        # Of the first run nothing is let out once there is a second: calls of one session run side by side.
        if execution is not None and (execution.is_judged or watched.is_superseded):
            reply = JudgedReply(raw, header, watched.message, is_superseded=watched.is_superseded, is_last=True)
            judgement = self._policy.judge(execution, reply)
            if isinstance(judgement, SubstituteReply):
                return (yield from self._answer(execution, judgement))
            if judgement is not None:
                return (yield from self._run_again(judgement))
        self._note(self._observer.note_reply(watched, raw, header, changes_since))
        return raw

    def _answer(self, execution: TrackedStatement, judged: SubstituteReply) -> Steps:
        if execution.is_withheld:
            self._note(self._observer.note_refused(execution))
        yield from _close(judged)
        return judged.reply

    def _overlong(self, header: Header, watched: TrackedCall) -> ClientReply:
        """A reply is too long to be read: only rows are."""
        execution = watched.execution
        if execution is not None and (watched.is_superseded or execution.is_overtaken()):
            return refusal(header)
        self._note(self._observer.note_unread(watched, header.name))
        return None

    def _run_again(self, found: FallbackNeeded) -> Steps:
        """A rewritten statement has failed or was overtaken: see `proxy.operations.fallback`."""
        execution, call = found.execution, found.call
        own_call = execution.rerun(self._clock(), found.failure)
        if call is None:
            execution.succeeded_by(None)
            yield from _close(found)
            return (yield from self._watch(own_call, TrackedCall(None, execution)))
        steps = run_original(self._executions, execution, own_call, call, found.refusal)
        run = FallbackRun(execution, call, found.refusal, steps)
        reply: Reply = None
        try:
            while (step := run.advance(reply)) is not None:
                reply = yield step
        finally:
            if execution.is_rerunning:
                self._abandon(execution)
        if run.answer is None:
            return (yield from self._ask_about(call))
        self._note([*run.told(self._clock())])
        self._executions.drop(execution)
        return run.answer

    def _abandon(self, execution: TrackedStatement) -> None:
        execution.is_rerunning = False
        self._executions.drop(execution)
        self._note([*execution.gone(self._clock())])


def _unread(message: Message) -> Steps:
    yield Call(message.header.name, message.header.seqid, message.raw, _NOT_READ)
    return None


def _close(found: SubstituteReply | FallbackNeeded) -> Generator[Call, Reply, None]:
    """Close the operation that a judgement leaves behind."""
    if found.orphan is not None:
        yield close_orphan(found.orphan)
