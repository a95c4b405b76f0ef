"""One rewritten statement of a client, played against a relay or over HTTP, and how it ended."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from proxy.access.handle_access import HandleAccess
from proxy.access.handle_owners import LocalHandleOwners
from proxy.http.exchange import CallerRecords, Exchange, Step, Steps, message_of
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.events import Event, StatementEnded
from proxy.operations.fallback_policy import FallbackPolicy, refusal
from proxy.operations.held_statement import HeldStatement, hold
from proxy.operations.internal_call import Call
from proxy.operations.key_check import KeyCheck
from proxy.operations.operation_aliases import LocalOperationAliases
from proxy.operations.tracked_statements import TrackedStatements
from proxy.relay.commands import AwaitCheck, Command, StartCheck, StatementHeld
from proxy.wire.hs2.calls import OperationHandle, OperationState
from proxy.wire.hs2.replies import decode_status_only, open_reply
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.reader import read_header
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    Dialogue,
    execute,
    execute_and_wait,
    executed,
    get_status,
    operation_call,
    reply,
    status_is,
)

ERROR = OperationState.ERROR
FINISHED = OperationState.FINISHED
RUNNING = OperationState.RUNNING
CANCELED = OperationState.CANCELED

OURS = "it failed by our doing"
THEIRS = "it fails by their own"


Commands: TypeAlias = list[Command | Event]


def refused(seqid: int, message: str = OURS) -> bytes:
    return reply("ExecuteStatement", seqid, status=3, message=message)


def own_close(operation: OperationHandle) -> bytes:
    return operation_call("CloseOperation", 1, operation)


class Sides(Dialogue):
    """A client and a backend with a binary connection between them."""

    def second(self) -> "Sides":
        """Another connection of the same user."""
        other = Sides(tracked_statements=self.tracked_statements)
        other.log_in()
        return other

    def release(self, dispatch: Dispatch) -> Commands:
        """Let the statement go on that the client has executed."""
        return self.carry_out(self.relay.release(dispatch))

    def check_settled(self, check: KeyCheck) -> Commands:
        return self.carry_out(self.relay.check_settled(check))

    def leave(self) -> Commands:
        return self.carry_out(self.relay.close("the client closed"))


class HttpSides(Sides):
    """The same over HTTP, where each call is by itself. A reply is to the call that was made first."""

    def __init__(
        self, tracked_statements: TrackedStatements | None = None, memory: CallerRecords | None = None
    ) -> None:
        """`memory` is of a caller that presents the same credentials."""
        super().__init__(tracked_statements=tracked_statements)
        access = HandleAccess(LocalHandleOwners(), "", passes_unknown=True)
        self._memory = memory or CallerRecords(self.tracked_statements, access, lambda: self.now)
        self._told: Commands = []
        policy = FallbackPolicy(self.tracked_statements, lambda: self.now)
        self._exchange = Exchange(self._memory, policy, self._told.extend)
        self._under_way: list[tuple[Steps, Step]] = []
        self._held: HeldStatement | None = None

    def second(self) -> "HttpSides":
        return HttpSides(self.tracked_statements, self._memory)

    def client(self, data: bytes) -> Commands:
        message = message_of(data[4:])
        self._held = hold(message)
        if self._held is not None:
            return [StatementHeld(self._held.call.session, self._held.statement)]
        remembered = self._memory.reply_to(message.raw)
        if remembered is None:
            return self._goes_on(self._exchange.pass_on(message), len(self._under_way))
        self._to_client += frame(remembered)
        return []

    def backend(self, data: bytes) -> Commands:
        steps, call = self._under_way.pop(0)
        assert isinstance(call, Call)
        return self._goes_on(steps, 0, data[4:] if len(data[4:]) <= call.reply_bytes_max else None, data)

    def release(self, dispatch: Dispatch) -> Commands:
        assert self._held is not None
        sent, tracked = self._held.dispatched(dispatch, 10_000, self.tracked_statements, self.now)
        if tracked.pending_check is not None:
            self._told.append(StartCheck(tracked.session, tracked.pending_check))
        return self._goes_on(self._exchange.execute(sent, tracked), len(self._under_way))

    def check_settled(self, check: KeyCheck) -> Commands:
        steps, awaited = self._under_way.pop(0)
        assert awaited is check
        return self._goes_on(steps, 0)

    def leave(self) -> Commands:
        for steps, _ in self._under_way:
            steps.close()
        return self._take_told()

    def _goes_on(self, steps: Steps, place: int, reply: bytes | None = None, unread: bytes = b"") -> Commands:
        try:
            step = steps.send(reply)
        except StopIteration as end:
            unconfirmed, self._exchange.unconfirmed = self._exchange.unconfirmed, None
            if unconfirmed is None:
                self._to_client += unread if end.value is None else frame(end.value)
            elif self._held is not None:
                self._told.append(StatementHeld(self._held.call.session, self._held.statement, unconfirmed))
        else:
            self._under_way.insert(place, (steps, step))
            if isinstance(step, KeyCheck):
                self._told.append(AwaitCheck(step))
            else:
                self._to_backend += frame(step.message)
        return self._take_told()

    def _take_told(self) -> Commands:
        told = [*self._told]
        self._told.clear()
        return told


@dataclass
class Play:
    """One statement of a client, and how it ended."""

    dialogue: Sides
    outcomes: list[Outcome] = field(default_factory=list)
    # The ids by which Spark's UI shows its operations.
    spark_ids: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> list[OutcomeKind]:
        return [outcome.kind for outcome in self.outcomes]

    @property
    def is_known(self) -> bool:
        """True if anything is known of the statement's first operation."""
        return self.dialogue.tracked_statements.resolve(message_of(get_status()[4:]))[1] is not None

    def second(self) -> "Play":
        """Another connection of the same user."""
        return Play(self.dialogue.second())

    def leaves(self) -> None:
        """The client closes its connection, or gives up its calls."""
        self.tell(self.dialogue.leave())

    def tell(self, commands: Commands) -> Commands:
        """Tell the ends that are among the commands, and return the rest."""
        others: Commands = []
        for command in commands:
            if isinstance(command, StatementEnded):
                command.dispatch.on_outcome(command.outcome)
            else:
                others.append(command)
        return others

    def says(self, data: bytes, *, to_backend: bytes = b"", back: bytes = b"") -> Commands:
        """The client says something; what reaches the backend then, and what comes back at once."""
        commands = self.tell(self.dialogue.client(data))
        assert (self.dialogue.backend_got(), self.dialogue.client_got()) == (to_backend, back)
        return commands

    def answers(self, data: bytes, *, to_client: bytes = b"", back: bytes = b"") -> Commands:
        """The backend says something; what reaches the client then, and what the backend is sent at once."""
        commands = self.tell(self.dialogue.backend(data))
        assert (self.dialogue.client_got(), self.dialogue.backend_got()) == (to_client, back)
        return commands

    def asks(self, call: bytes, sent: bytes = b"") -> None:
        """A call that goes to the backend at once, as it is or as `sent`."""
        self.says(call, to_backend=sent or call)

    def gets(self, answer: bytes) -> None:
        """A reply that only passes."""
        self.answers(answer, to_client=answer)

    def passes(self, call: bytes, answer: bytes, sent: bytes = b"") -> None:
        self.asks(call, sent)
        self.gets(answer)

    def executes(
        self, call: bytes, sent: bytes, text: str = "SELECT 2", *, may_fall_back: bool = True, **dispatch: Any
    ) -> None:
        self.dialogue.client(call)
        self.dialogue.now = 10.0
        ends, ids = self.outcomes.append, self.spark_ids.append
        self.dialogue.release(Dispatch(text, may_fall_back, on_outcome=ends, on_operation=ids, **dispatch))
        assert self.dialogue.backend_got() == sent
        self.dialogue.now = 12.5

    def falls_back(self, shown: bytes, then: bytes) -> None:
        """The reply is kept from the client, the original is run, and these calls follow."""
        self.answers(shown, back=execute("SELECT 1", 5))
        self.runs_again(then)

    def runs_again(self, then: bytes) -> None:
        self.answers(executed(5, AGAIN), back=own_close(OPERATION))
        self.answers(reply("CloseOperation", 1), back=then)

    def withholds(self, call: bytes, answer: bytes, back: bytes = b"") -> None:
        """The client is told that the answer to its call was dropped."""
        refused = refusal(read_header(call[4:]), None)
        assert self.answers(answer, to_client=frame(refused), back=back) == []
        status = decode_status_only(open_reply(refused, read_header(refused)))
        assert (status.sql_state, "changed" in (status.message or "")) == ("40001", True)

    def is_refused(self, call: bytes, answer: bytes) -> None:
        self.asks(call)
        self.withholds(call, answer)

    def closes_first(self, answer: bytes, back: bytes) -> None:
        """The operation that the reply names is closed, and calls of the proxy follow."""
        is_http = isinstance(self.dialogue, HttpSides)
        self.answers(answer, back=own_close(OPERATION) + (b"" if is_http else back))
        self.answers(reply("CloseOperation", 1), back=back if is_http else b"")


def play_over(transport: str) -> Play:
    """Over a binary connection, on which messages come whole or in pieces, or over HTTP."""
    if transport == "HTTP":
        return Play(HttpSides())
    return play_with(chunk_bytes={"whole": None, "bytes": 1, "sevens": 7}[transport])


def play_with(**given: Any) -> Play:
    """Over a binary connection with something that is otherwise."""
    sides = Sides(**given)
    sides.open_session()
    return Play(sides)


def plays_with(aliases: LocalOperationAliases) -> list[Play]:
    """Over a binary connection, and over HTTP."""
    tracked = [TrackedStatements(aliases=aliases) for _ in range(2)]
    return [play_with(tracked_statements=tracked[0]), Play(HttpSides(tracked[1]))]


def synchronous(play: Play, **dispatch: Any) -> Play:
    play.executes(execute_and_wait("SELECT 1", 5), execute_and_wait("SELECT 2", 5), **dispatch)
    return play


def running(play: Play, **dispatch: Any) -> Play:
    """Its operation is there."""
    play.executes(execute("SELECT 1", 5), execute("SELECT 2", 5), **dispatch)
    play.gets(executed(5))
    return play


def in_background(play: Play, **dispatch: Any) -> Play:
    """Its operation is there, and the client waits for its end."""
    running(play, **dispatch).asks(get_status(6))
    return play


def failing(play: Play) -> Play:
    """It failed, and the original has been sent."""
    in_background(play).answers(status_is(ERROR, 6, OURS), back=execute("SELECT 1", 5))
    return play


def falls_back_in_background(play: Play) -> Play:
    """It failed, has another operation, and the client's question goes to that one."""
    failing(play).runs_again(get_status(6, AGAIN))
    return play
