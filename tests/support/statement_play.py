"""One rewritten statement of a client, played against a relay or over HTTP, and how it ended."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from proxy.access.handle_access import HandleAccess
from proxy.access.handle_owners import LocalHandleOwners
from proxy.http.exchange import CallerRecords, Exchange, Step, Steps, message_of
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.events import Event, StatementEnded
from proxy.operations.fallback_policy import FallbackPolicy, refusal
from proxy.operations.held_statement import hold
from proxy.operations.internal_call import Call
from proxy.operations.operation_aliases import LocalOperationAliases
from proxy.operations.tracked_statements import TrackedStatements
from proxy.relay.commands import Command
from proxy.wire.hs2.calls import OperationHandle, OperationState
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


@dataclass
class Play:
    """One statement of a client, and how it ended."""

    dialogue: Dialogue
    outcomes: list[Outcome] = field(default_factory=list)
    # The ids by which Spark's UI shows its operations.
    spark_ids: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> list[OutcomeKind]:
        return [outcome.kind for outcome in self.outcomes]

    def second(self) -> "Play":
        """Another connection of the same user."""
        return Play(Dialogue(tracked_statements=self.dialogue.tracked_statements).log_in())

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
        commands = self.tell(self._from_client(data))
        assert self._got() == (to_backend, back)
        return commands

    def answers(self, data: bytes, *, to_client: bytes = b"", back: bytes = b"") -> Commands:
        """The backend says something; what reaches the client then, and what the backend is sent at once."""
        commands = self.tell(self._from_backend(data))
        assert self._got() == (back, to_client)
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
        ends = {"on_outcome": self.outcomes.append, "on_operation": self.spark_ids.append}
        self._release(call, Dispatch(text, may_fall_back, **dispatch, **ends))
        assert self._got() == (sent, b"")
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
        assert self.answers(answer, to_client=frame(refusal(read_header(call[4:]))), back=back) == []

    def is_refused(self, call: bytes, answer: bytes) -> None:
        self.asks(call)
        self.withholds(call, answer)

    # What depends on the transport.

    def closes_first(self, answer: bytes, back: bytes) -> None:
        """The operation that the reply names is closed, and calls of the proxy follow."""
        self.answers(answer, back=own_close(OPERATION) + back)
        self.answers(reply("CloseOperation", 1))

    def leaves(self) -> None:
        """The client closes its connection, or gives up its calls."""
        self.tell(self.dialogue.relay.close("the client closed"))

    def _got(self) -> tuple[bytes, bytes]:
        """The bytes for the backend, and for the client."""
        return self.dialogue.backend_got(), self.dialogue.client_got()

    def _from_client(self, data: bytes) -> Commands:
        return self.dialogue.client(data)

    def _from_backend(self, data: bytes) -> Commands:
        return self.dialogue.backend(data)

    def _release(self, call: bytes, dispatch: Dispatch) -> None:
        """The client executes a statement that is decided like this."""
        self.dialogue.client(call)
        self.dialogue.now = 10.0
        self.dialogue.carry_out(self.dialogue.relay.release(dispatch))


class HttpPlay(Play):
    """The same over HTTP, where each call is by itself. A reply is to the call that was made first."""

    def __init__(self, tracked_statements: TrackedStatements | None = None) -> None:
        # What both have in common is the clock, and the records of statements.
        super().__init__(Dialogue(tracked_statements=tracked_statements))
        access = HandleAccess(LocalHandleOwners(), "", passes_unknown=True)
        self._told: list[Event] = []
        self._under_way: list[tuple[Steps, Call]] = []
        self._to_backend = self._to_client = b""
        self.shares(CallerRecords(self.dialogue.tracked_statements, access, lambda: self.dialogue.now))

    def shares(self, memory: CallerRecords) -> "HttpPlay":
        """Play the part of the same caller, whose calls present the same credentials."""
        policy = FallbackPolicy(self.dialogue.tracked_statements, lambda: self.dialogue.now)
        self._memory, self._exchange = memory, Exchange(memory, policy, self._told.extend)
        return self

    def second(self) -> "HttpPlay":
        return HttpPlay(self.dialogue.tracked_statements).shares(self._memory)

    def closes_first(self, answer: bytes, back: bytes) -> None:
        self.answers(answer, back=own_close(OPERATION))
        self.answers(reply("CloseOperation", 1), back=back)

    def leaves(self) -> None:
        for steps, _ in self._under_way:
            steps.close()
        self.tell(self._take_told())

    def _got(self) -> tuple[bytes, bytes]:
        got, self._to_backend, self._to_client = (self._to_backend, self._to_client), b"", b""
        return got

    def _from_client(self, data: bytes) -> Commands:
        remembered = self._memory.reply_to(data[4:])
        if remembered is None:
            self._begin(self._exchange.pass_on(message_of(data[4:])))
        else:
            self._to_client += frame(remembered)
        return self._take_told()

    def _from_backend(self, data: bytes) -> Commands:
        steps, call = self._under_way.pop(0)
        is_read = len(data[4:]) <= call.reply_bytes_max
        try:
            self._under_way.insert(0, (steps, self._made(steps.send(data[4:] if is_read else None))))
        except StopIteration as end:
            self._to_client += data if end.value is None else frame(end.value)
        return self._take_told()

    def _release(self, call: bytes, dispatch: Dispatch) -> None:
        held = hold(message_of(call[4:]))
        assert held is not None
        self.dialogue.now = 10.0
        sent = held.dispatched(dispatch, 1_000_000, self.dialogue.tracked_statements, 10.0)
        self._begin(self._exchange.execute(*sent))

    def _begin(self, steps: Steps) -> None:
        self._under_way.append((steps, self._made(next(steps))))

    def _made(self, step: Step) -> Call:
        assert isinstance(step, Call)
        self._to_backend += frame(step.message)
        return step

    def _take_told(self) -> Commands:
        told = [*self._told]
        self._told.clear()
        return told


def play_over(transport: str) -> Play:
    """Over a binary connection, on which messages come whole or in pieces, or over HTTP."""
    if transport == "HTTP":
        return HttpPlay()
    return Play(Dialogue(chunk_bytes={"whole": None, "bytes": 1, "sevens": 7}[transport]).open_session())


def plays_with(aliases: LocalOperationAliases) -> list[Play]:
    """Over a binary connection, and over HTTP."""
    tracked = [TrackedStatements(aliases=aliases) for _ in range(2)]
    return [Play(Dialogue(tracked_statements=tracked[0]).open_session()), HttpPlay(tracked[1])]


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
