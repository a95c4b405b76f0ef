"""The calls under way to the backend: what was sent, and what is made of the replies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from proxy.commands import Command, SendBackend, SendClient
from proxy.executions import Execution, Executions
from proxy.guard import Guard
from proxy.observer import Observer, Watched, failure_of
from proxy.operation import Call
from proxy.own_operation import OwnOperation
from proxy.wire.follow import PENDING_CALLS_MAX, Handling, PendingCall, ReplyEnd
from proxy.wire.framing import FRAMED, Framing
from proxy.wire.hs2 import FETCH_RESULTS, GET_OPERATION_STATUS, asks_for_rows, encode_still_running
from proxy.wire.kinds import MessageType
from proxy.wire.messages import Message
from proxy.wire.replies import expect_reply

# Replies that are read are small: handles, a state, an error with its stack trace. But Spark says the text of a
# statement three times in an error, and what may be run again is up to 256 KB long and 128 KB more once rewritten.
WATCHED_REPLY_BYTES_MAX: Final = 2 * 1024 * 1024


@dataclass(frozen=True)
class FirstFailure:
    """A rewritten statement has failed, and its client does not know it yet."""

    execution: Execution
    message: str = field(repr=False)
    # The client's call whose reply says so; None where that is the statement's own.
    call: Message | None
    reply: bytes = field(repr=False)


class Calls:
    """One connection's calls, in the order that they went: a connection's replies come in the same."""

    def __init__(
        self,
        executions: Executions,
        guard: Guard,
        clock: Callable[[], float],
        rerun_within_s: float,
        framing: Framing = FRAMED,
    ) -> None:
        self.replies = framing.follower()
        self.observer = Observer(executions, guard, clock, framing)
        self.framing = framing
        self.own = OwnOperation()
        self._executions = executions
        self._clock = clock
        self._rerun_within_s = rerun_within_s
        # Beside each call that the follower waits for and that is the client's to have read.
        self._watched: deque[Watched] = deque()

    def relay(self, message: Message) -> SendBackend:
        """Make a call of the client whose reply only passes."""
        header = message.header
        # Of whatever type: the server looks at none, and answers.
        self.replies.expect(PendingCall(Handling.RELAY, header.name, header.seqid))
        return self._send(message.raw)

    def watch(self, message: Message) -> SendBackend:
        """Make a call of the client that is about no statement."""
        return self._expect(Handling.WATCH, message, Watched(message))

    def execute(self, message: Message, execution: Execution | None) -> SendBackend:
        """Execute a statement."""
        keeps = execution is not None and execution.may_fail_yet
        return self._expect(Handling.KEEP if keeps else Handling.WATCH, message, Watched(None, execution))

    def ask_about(self, message: Message) -> SendBackend:
        """Make a call of the client for an operation's state or rows."""
        actual, execution = self._executions.resolve(message)
        if message.header.name == FETCH_RESULTS and not _tells_an_end(message, execution):
            return self.relay(actual)
        if execution is None:
            return self._expect(Handling.WATCH, actual, Watched(message))
        keeps = execution.may_fail_yet or execution.is_rerunning
        watched = Watched(message, execution, execution.operation)
        return self._expect(Handling.KEEP if keeps else Handling.WATCH, actual, watched)

    def ask(self, call: Call) -> SendBackend:
        """Make a call of our own."""
        self.replies.expect(PendingCall(Handling.OURS, call.name, call.seqid, call.reply_bytes_max))
        self.own.asked(call)
        return self._send(call.message)

    def last_words(self) -> list[SendBackend]:
        """End the operation of ours that is still open, if there is one and room to say so."""
        calls = self.own.last_words()
        room = self.replies.pending_count + len(calls) <= PENDING_CALLS_MAX
        return [self.ask(call) for call in calls] if room else []

    def read(self, end: ReplyEnd, *, may_rerun: bool) -> list[Command] | FirstFailure:
        """The reply to a watched call has ended. Raises RemoteProtocolError or IncompleteError."""
        watched, name = self._watched.popleft(), end.call.name
        if end.raw is None:
            return self.observer.note_unread(watched, name)
        rest = self.unforwarded(end)
        forward: list[Command] = [SendClient(rest)] if rest else []
        header = expect_reply(end.raw, name, end.call.seqid)
        if header.type is not MessageType.REPLY:
            return forward + self.observer.note_unread(watched, name)
        execution = watched.execution
        failure = failure_of(end.raw, header) if end.call.handling is Handling.KEEP else None
        if failure is not None and execution is not None:
            if name == GET_OPERATION_STATUS and watched.is_superseded:
                return [SendClient(self.framing.to_client(encode_still_running(header.seqid)))]
            if may_rerun and self._may_be_rerun(execution, failure):
                return FirstFailure(execution, failure, watched.message, end.raw)
        return forward + self.observer.note_reply(watched, end.raw, header, end.calls_since)

    def unforwarded(self, end: ReplyEnd) -> bytes:
        """What the client has not been sent of a reply that was watched."""
        if end.call.handling is not Handling.KEEP or end.raw is None:
            return b""
        return self.framing.to_client(end.raw)

    def forget(self) -> list[Command]:
        """No more replies are read."""
        told: list[Command] = []
        while self._watched:
            watched = self._watched.popleft()
            if watched.message is None:
                told += self.observer.note_unread(watched, "")
        return told

    def _may_be_rerun(self, execution: Execution, failure: str) -> bool:
        room = self._executions.has_room_for_a_rerun()
        return room and execution.may_be_rerun(self._clock(), failure, self._rerun_within_s)

    def _expect(self, handling: Handling, sent: Message, watched: Watched) -> SendBackend:
        header = sent.header
        self.replies.expect(PendingCall(handling, header.name, header.seqid, WATCHED_REPLY_BYTES_MAX))
        self._watched.append(watched)
        return self._send(sent.raw)

    def _send(self, message: bytes) -> SendBackend:
        return SendBackend(self.framing.to_backend(message))


def _tells_an_end(fetch: Message, execution: Execution | None) -> bool:
    return execution is not None and execution.ends_with_rows and asks_for_rows(fetch)
