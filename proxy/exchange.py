"""One call of a client and its reply, where one of the sides speaks HTTP. No I/O: calls out, replies in.

Over HTTP a reply belongs to its call, so there is no stream to follow as `proxy.relay` does. Each call is a
generator of the calls to make in its place, which is sent their replies; calls of one session run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, TypeAlias

from proxy.calls import WATCHED_REPLY_BYTES_MAX
from proxy.commands import Command
from proxy.executions import Execution, Executions
from proxy.guard import CATALOG_CALLS, Guard
from proxy.held import passing
from proxy.observer import Observer, Watched, failure_of
from proxy.operation import Call, Reply
from proxy.reruns import Rerun, rerun
from proxy.wire.errors import IncompleteError, RemoteProtocolError
from proxy.wire.framing import Framing
from proxy.wire.hs2 import (
    EXECUTE_STATEMENT,
    FETCH_RESULTS,
    GET_OPERATION_STATUS,
    OPEN_SESSION,
    asks_for_rows,
    encode_still_running,
)
from proxy.wire.kinds import Kind, MessageType
from proxy.wire.messages import CALL_VALUES_MAX, Message
from proxy.wire.replies import expect_reply
from proxy.wire.thrift import Header, read_header
from proxy.wire.walk import Walk

# The reply for the client, or None where the reply to the last call goes to it unread, as it comes.
Answer: TypeAlias = bytes | None
Steps: TypeAlias = Generator[Call, Reply, Answer]

_NOT_READ: Final = 0
_UNFRAMED: Final = Framing(client=False, backend=False)
_ASKED: Final = frozenset({GET_OPERATION_STATUS, FETCH_RESULTS})


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
class Terms:
    """When a statement may be run again."""

    clock: Callable[[], float]
    rerun_within_s: float


class Memory:
    """What is known of the calls of whoever presents the same credentials."""

    def __init__(self, executions: Executions, guard: Guard, clock: Callable[[], float]) -> None:
        self.guard = guard
        self.observer = Observer(executions, guard, clock, _UNFRAMED)
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
        self, memory: Memory, executions: Executions, terms: Terms, note: Callable[[list[Command]], None]
    ) -> None:
        self._memory = memory
        self._observer = memory.observer
        self._executions = executions
        self._clock = terms.clock
        self._rerun_within_s = terms.rerun_within_s
        self._note = note

    def execute(self, sent: Message, execution: Execution | None) -> Steps:
        """Execute a statement that has been ruled on."""
        self._noted(sent, None)
        return (yield from self._execute(sent, execution))

    def pass_on(self, message: Message) -> Steps:
        """Make any other call, or execute a statement that cannot be read."""
        # By its name alone, as the server goes by: it does not mind what type of message a call says it is.
        name = message.header.name
        if name in _ASKED:
            return (yield from self._ask_about(message))
        if name == OPEN_SESSION or name in CATALOG_CALLS:
            return (yield from self._watch(message, Watched(message)))
        if name == EXECUTE_STATEMENT:
            self._note([*passing(message)])
            return (yield from self.execute(message, None))
        actual, execution = self._executions.resolve(message)
        self._noted(message, execution)
        return (yield from _unread(actual))

    def pass_unread(self, message: Message) -> Steps:
        """Make a call of which nothing is to be known but what it is answered."""
        return (yield from _unread(message))

    def _noted(self, message: Message, execution: Execution | None) -> None:
        self._memory.changes += 1
        self._note(self._observer.note_call(message, execution))

    def _execute(self, sent: Message, execution: Execution | None) -> Steps:
        try:
            return (yield from self._watch(sent, Watched(None, execution)))
        finally:
            # Nobody saw the reply: the client has left, or the backend has.
            if execution is not None and execution.operation is None:
                self._note([*execution.gone(self._clock())])

    def _ask_about(self, message: Message) -> Steps:
        actual, execution = self._executions.resolve(message)
        if message.header.name == FETCH_RESULTS and not _tells_an_end(message, execution):
            return (yield from _unread(actual))
        operation = None if execution is None else execution.operation
        return (yield from self._watch(actual, Watched(message, execution, operation)))

    def _watch(self, sent: Message, watched: Watched) -> Steps:
        name, changes = sent.header.name, self._memory.changes
        raw = yield Call(name, sent.header.seqid, sent.raw, WATCHED_REPLY_BYTES_MAX)
        if raw is None:
            self._note(self._observer.note_unread(watched, name))
            return None
        try:
            header = expect_reply(raw, name, sent.header.seqid)
            if header.type is MessageType.REPLY:
                return (yield from self._read(raw, header, watched, self._memory.changes - changes))
        except (RemoteProtocolError, IncompleteError):
            # The client is to judge for itself what that is.
            pass
        self._note(self._observer.note_unread(watched, name))
        return raw

    def _read(self, raw: bytes, header: Header, watched: Watched, changes_since: int) -> Steps:
        execution = watched.execution
        failure = None if execution is None else failure_of(raw, header)
        if failure is not None and execution is not None:
            if header.name == GET_OPERATION_STATUS and watched.is_superseded:
                return encode_still_running(header.seqid)
            if self._may_be_rerun(execution, failure):
                return (yield from self._run_again(execution, failure, watched.message, raw))
        self._note(self._observer.note_reply(watched, raw, header, changes_since))
        return raw

    def _may_be_rerun(self, execution: Execution, failure: str) -> bool:
        room = self._executions.has_room_for_a_rerun()
        return room and execution.may_be_rerun(self._clock(), failure, self._rerun_within_s)

    def _run_again(self, execution: Execution, failure: str, call: Message | None, raw: bytes) -> Steps:
        """What was sent has failed, and its client does not know yet: see `proxy.reruns`."""
        own_call = execution.rerun(self._clock(), failure)
        if call is None:
            return (yield from self._watch(own_call, Watched(None, execution)))
        run = Rerun(execution, call, raw, rerun(self._executions, execution, own_call, call, raw))
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

    def _abandon(self, execution: Execution) -> None:
        execution.is_rerunning = False
        self._executions.drop(execution)
        self._note([*execution.gone(self._clock())])


def _unread(message: Message) -> Steps:
    yield Call(message.header.name, message.header.seqid, message.raw, _NOT_READ)
    return None


def _tells_an_end(fetch: Message, execution: Execution | None) -> bool:
    return execution is not None and execution.ends_with_rows and asks_for_rows(fetch)
