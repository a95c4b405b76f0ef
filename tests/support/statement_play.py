"""One rewritten statement of a client, played against a relay, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.operations.dispatch import Dispatch, Outcome, Premises
from proxy.operations.events import StatementEnded
from proxy.relay.commands import Command
from proxy.wire.hs2.calls import OperationHandle, OperationState
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

PREMISES = Premises()

OURS = "it failed by our doing"
THEIRS = "it fails by their own"


def refused(seqid: int, message: str = OURS) -> bytes:
    return reply("ExecuteStatement", seqid, status=3, message=message)


def original_call(call: Callable[..., bytes], operation: OperationHandle) -> bytes:
    """A call of the proxy's own."""
    return call(1, operation)


def own_close(operation: OperationHandle) -> bytes:
    return operation_call("CloseOperation", 1, operation)


@dataclass
class Play:
    """One statement of a client, and how it ended."""

    dialogue: Dialogue
    outcomes: list[Outcome] = field(default_factory=list)
    # The ids by which Spark's UI shows its operations.
    spark_ids: list[str] = field(default_factory=list)

    def tell(self, commands: list[Command]) -> list[Command]:
        """Tell the ends that are among the commands, and return the rest."""
        others: list[Command] = []
        for command in commands:
            if isinstance(command, StatementEnded):
                command.dispatch.on_outcome(command.outcome)
            else:
                others.append(command)
        return others

    def says(self, data: bytes, *, to_backend: bytes = b"", back: bytes = b"") -> list[Command]:
        """The client says something; what reaches the backend then, and what comes back at once."""
        commands = self.tell(self.dialogue.client(data))
        assert (self.dialogue.backend_got(), self.dialogue.client_got()) == (to_backend, back)
        return commands

    def answers(self, data: bytes, *, to_client: bytes = b"", back: bytes = b"") -> list[Command]:
        """The backend says something; what reaches the client then, and what the backend is sent at once."""
        commands = self.tell(self.dialogue.backend(data))
        assert (self.dialogue.client_got(), self.dialogue.backend_got()) == (to_client, back)
        return commands

    def executes(  # noqa: PLR0913 - the dispatch
        self,
        call: bytes,
        sent: bytes,
        text: str = "SELECT 2",
        *,
        may_fall_back: bool = True,
        fall_back_on: str = "",
        premises: Premises = PREMISES,
    ) -> None:
        self.dialogue.client(call)
        dispatch = Dispatch(
            *(text, may_fall_back, fall_back_on, premises),
            on_outcome=self.outcomes.append,
            on_operation=self.spark_ids.append,
        )
        self.dialogue.now = 10.0
        self.dialogue.carry_out(self.dialogue.relay.release(dispatch))
        assert self.dialogue.backend_got() == sent
        self.dialogue.now = 12.5

    def passes(self, call: bytes, answer: bytes) -> None:
        """A call and its reply that only pass."""
        self.says(call, to_backend=call)
        self.answers(answer, to_client=answer)


def synchronous(play: Play) -> Play:
    play.executes(execute_and_wait("SELECT 1", 5), execute_and_wait("SELECT 2", 5))
    return play


def in_background(play: Play, **dispatch: str) -> Play:
    """Its operation is there, and the client waits for its end."""
    play.executes(execute("SELECT 1", 5), execute("SELECT 2", 5), **dispatch)  # type: ignore[arg-type]
    play.answers(executed(5), to_client=executed(5))
    play.says(get_status(6), to_backend=get_status(6))
    return play


def falls_back_in_background(play: Play) -> Play:
    """It failed, has another operation, and the client's question goes to that one."""
    in_background(play)
    play.answers(status_is(ERROR, 6, OURS), back=execute("SELECT 1", 5))
    play.answers(executed(5, AGAIN), back=own_close(OPERATION))
    play.answers(reply("CloseOperation", 1), back=get_status(6, AGAIN))
    return play
