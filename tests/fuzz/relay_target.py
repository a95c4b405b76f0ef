"""What must hold of a whole connection, whatever its two sides and its shell do, in whatever order.

An input is a script of events. Most are as real clients and servers send them, so that scripts get deep; some are
garbage. A script without garbage has to come to the same in pieces of any size.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from support.relay_dialogue import (
    ACCEPTED,
    LOGIN,
    OUR_CALL,
    SESSION,
    SIDES,
    close_session,
    execute,
    execute_and_wait,
    executed,
    fetch,
    fetch_log,
    get_status,
    metadata_is,
    open_session,
    operation_call,
    reply,
    session_opened,
    status_is,
)

from proxy.access.handle_access import HandleAccess
from proxy.access.handle_owners import HandleKind, HandleOwner, LocalHandleOwners
from proxy.operations.dispatch import Dispatch, Premises
from proxy.operations.events import StatementEnded
from proxy.operations.tracked_statements import TrackedStatements
from proxy.relay.commands import (
    Close,
    Command,
    ConnectBackend,
    MoveBackend,
    SendBackend,
    SendClient,
    StatementHeld,
)
from proxy.relay.phases import Phase
from proxy.relay.relay import Relay
from proxy.wire.hs2.calls import OperationHandle, OperationState, asks_for_rows, decode_statement_call
from proxy.wire.hs2.handles import handle_id_of
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import FramedMessageReader, Message
from proxy.wire.thrift.writer import Writer

REQUEST_BYTES_MAX = 2_000
# What a reply to a call of the proxy's own holds, and no client may ever see.
OURS = b"a reply to a call of the proxy's own"
# A remembered status, a refusal, or a frame around what was left over: more is never said for one event.
SAID_PER_EVENT_BYTES_MAX = 2_000
OPERATIONS_MAX = 5
# The client's too, but on another backend.
ELSEWHERE = 4


def operation(number: int) -> OperationHandle:
    """A handle. A client may name the first few, and the server never gives one twice."""
    name = b"operation %d" % number
    return OperationHandle(Writer().struct(1).binary(1, name).binary(2, b"secret").stop().stop().to_bytes())


_CALLS: tuple[Callable[[int, OperationHandle], bytes], ...] = (
    lambda seqid, _: execute("SELECT 1", seqid),
    lambda seqid, _: execute_and_wait("SELECT 1", seqid),
    get_status,
    fetch,
    fetch_log,
    lambda seqid, _: open_session(seqid),
    lambda seqid, _: close_session(seqid),
    lambda seqid, handle: operation_call("CancelOperation", seqid, handle),
    lambda seqid, handle: operation_call("CloseOperation", seqid, handle),
    lambda seqid, handle: operation_call("GetResultSetMetadata", seqid, handle),
)


@dataclass
class Script:
    """The bytes of an input, taken from the front. An input that is used up says zero."""

    data: bytes
    position: int = 0

    def number(self) -> int:
        taken = self.take(1)
        return taken[0] if taken else 0

    def take(self, count: int) -> bytes:
        start, self.position = self.position, self.position + count
        return self.data[start : self.position]

    def is_over(self) -> bool:
        return self.position >= len(self.data)


@dataclass
class Stage:
    """A relay, and what its two sides and its shell know."""

    piece_bytes: int
    relay: Relay = field(init=False)
    tracked_statements: TrackedStatements = field(default_factory=TrackedStatements)
    now: float = 0.0
    # Whether all that came is as clients and servers send it; and whether what the backend sent is in frames. A
    # length that is none may say that a reply of ours is a part of the client's.
    is_clean: bool = True
    is_framed: bool = True
    is_connecting: bool = False
    is_moving: bool = False
    to_client: bytes = b""
    to_backend: bytes = b""
    came_bytes: int = 0
    events: int = 0
    seqid: int = 0
    operations: int = 0
    ruled: int = 0
    outcomes: list[Dispatch] = field(default_factory=list)
    # How often a table has changed: so far, as each rewritten statement was released, and as the client was told
    # that its operation had finished.
    changes: int = 0
    released_at: dict[int, int] = field(default_factory=dict)
    rewritten: dict[int, int] = field(default_factory=dict)
    shown_at: dict[int, int] = field(default_factory=dict)
    # Operations that have failed, or were cancelled.
    without_rows: set[int] = field(default_factory=set)
    # Operations that the client named before they were there. Real handles cannot be guessed.
    guessed: set[int] = field(default_factory=set)
    unanswered: list[Message] = field(default_factory=list)
    _sent: FramedMessageReader = field(default_factory=lambda: FramedMessageReader(1 << 20))

    def __post_init__(self) -> None:
        handles = LocalHandleOwners()
        identifier = handle_id_of(operation(ELSEWHERE))
        assert identifier is not None
        handle_owner = HandleOwner(handles.digests.user_digest(b"user"), "another:10000")
        handles.handle_opened(HandleKind.OPERATION, identifier, handle_owner)
        handle_access = HandleAccess(handles, "backend:10000")
        self.relay = Relay(
            SIDES,
            self.tracked_statements,
            lambda: self.now,
            handle_access=handle_access,
            request_bytes_max=REQUEST_BYTES_MAX,
        )

    # --- what a script makes happen

    def client_calls(self, script: Script) -> None:
        self.seqid += 1
        make, number = _CALLS[script.number() % len(_CALLS)], script.number() % OPERATIONS_MAX
        if number > self.operations:
            self.guessed.add(number)
        self.client(make(self.seqid, operation(number)))

    def backend_answers(self, script: Script) -> None:
        kind = script.number()
        if self.unanswered:
            call = self.unanswered.pop(0)
            self.backend(self._answer(call, kind))

    def shell_releases(self, script: Script) -> None:
        kind = script.number()
        if self.relay.phase is not Phase.HELD:
            return
        if kind == 0:
            self.carry_out(self.relay.release())
            return
        self.ruled += 1
        text = _TEXTS[kind % len(_TEXTS)]
        if text == REWRITTEN and kind % 2 == 0:
            text += str(self.ruled)
            self.released_at[self.ruled] = self.changes
        as_of = self.changes
        premises = Premises(are_tables_unchanged=lambda: self.changes == as_of)
        self.carry_out(self.relay.release(Dispatch(text, may_fall_back=kind % 2 == 0, premises=premises)))

    def world_changes(self, _: Script) -> None:
        self.changes += 1

    def shell_asks(self, _: Script) -> None:
        if self.relay.phase is Phase.HELD and not self.unanswered:
            self.carry_out(self.relay.ask(OUR_CALL))

    def shell_connects(self, script: Script) -> None:
        kind = script.number()
        if self.is_connecting:
            self.is_connecting = False
            connected = self.relay.backend_connected
            self.carry_out(self.relay.backend_failed("no") if kind % 8 == 7 else connected())
        elif self.is_moving:
            self.is_moving = False
            self.carry_out(self.relay.moved())

    def time_passes(self, script: Script) -> None:
        self.now += script.number()

    def client_babbles(self, script: Script) -> None:
        self.is_clean = False
        self.client(script.take(script.number()))

    def backend_babbles(self, script: Script) -> None:
        if self.relay.phase is Phase.NEGOTIATING and self.is_connecting:
            return
        self.is_clean = self.is_framed = False
        self.backend(script.take(script.number()))

    def shell_closes(self, _: Script) -> None:
        self.carry_out(self.relay.close("the shell wants the end"))

    # --- what follows from it

    def client(self, data: bytes) -> None:
        for piece in self._pieces(data):
            if self.relay.known_status(piece) is not None:
                self.is_clean = False  # a call in pieces goes to the backend
            self.carry_out(self.relay.client_data(piece))

    def backend(self, data: bytes) -> None:
        for piece in self._pieces(data):
            self.carry_out(self.relay.backend_data(piece))

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        self.events += 1
        self.came_bytes += len(data)
        for start in range(0, len(data), self.piece_bytes):
            yield data[start : start + self.piece_bytes]

    def carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case SendClient(data):
                    assert self.relay.phase is not Phase.CLOSED or Close in map(type, commands)
                    self.to_client += bytes(data)
                    self._look_at_answers()
                case SendBackend(data):
                    self.to_backend += data
                    self._note(data)
                case ConnectBackend():
                    self.is_connecting = True
                case MoveBackend(name):
                    assert (name, self.relay.phase) == ("another:10000", Phase.MOVING)
                    assert not self.unanswered or not self.is_clean, "a reply is still to come from this backend"
                    self.is_moving = True
                case StatementEnded(dispatch, _):
                    self.outcomes.append(dispatch)
                case StatementHeld():
                    assert self.relay.phase is Phase.HELD

    def _look_at_answers(self) -> None:
        """No answer is let out if something had changed by the time that it was there."""
        for number, ruled in self.rewritten.items():
            if number in self.guessed:
                continue
            if _finished(number) in self.to_client or _rows_of(number) in self.to_client:
                shown_at = self.shown_at.setdefault(number, self.changes)
                assert shown_at == self.released_at[ruled] or not self.is_framed

    def _note(self, data: bytes) -> None:
        if self.relay.phase is Phase.NEGOTIATING:
            return
        self._sent.feed(data)
        try:
            while (message := self._sent.next_message()) is not None:
                self.unanswered.append(message)
        except RemoteProtocolError:
            self.is_clean = False

    def _answer(self, call: Message, kind: int) -> bytes:  # noqa: PLR0911 - a reply for each call
        name, seqid = call.header.name, call.header.seqid
        self._note_end(call)
        if call.raw == OUR_CALL.message:
            return reply(name, seqid, Writer().binary(9, OURS))
        if kind % 8 == 7:
            return reply(name, seqid, status=3, message="it failed")
        match name:
            case "OpenSession":
                return session_opened(seqid)
            case "ExecuteStatement":
                return self._answer_to_statement(call)
            case "GetOperationStatus":
                state = self._state_of(_number_of(call), kind)
                finished = _finished(_number_of(call)).decode()
                return status_is(state, seqid, finished if state is OperationState.FINISHED else "words")
            case "FetchResults" if not asks_for_rows(call):
                return reply(name, seqid, Writer().binary(9, b"log"))
            case "FetchResults" if _number_of(call) in self.without_rows:
                return reply(name, seqid, status=3, message="it has ended")
            case "FetchResults":
                return reply(name, seqid, Writer().binary(9, _rows_of(_number_of(call))))
            case "GetResultSetMetadata":
                return metadata_is("Result" if kind % 2 else "k", "string", seqid)
        return reply(name, seqid)

    def _note_end(self, call: Message) -> None:
        """Closed operations have no rows, and closed sessions no operations."""
        if call.header.name == "CloseOperation":
            self.without_rows.add(_number_of(call))
        elif call.header.name == "CloseSession":
            self.without_rows.update(range(self.operations + 1))

    def _state_of(self, number: int, kind: int) -> OperationState:
        """Any, until it is one in which an operation stays."""
        if number in self.without_rows:
            return OperationState.ERROR
        state = OperationState(kind % len(OperationState))
        if state in _WITHOUT_ROWS:
            self.without_rows.add(number)
        return state

    def _answer_to_statement(self, call: Message) -> bytes:
        self.operations += 1
        statement = decode_statement_call(call)
        if statement is not None and statement.statement is not None and statement.run_async:
            text, _, ruled = statement.statement.partition(REWRITTEN)
            if not text and ruled:
                self.rewritten[self.operations] = int(ruled)
        return executed(call.header.seqid, operation(self.operations))


_WITHOUT_ROWS = frozenset(
    {OperationState.ERROR, OperationState.CANCELED, OperationState.CLOSED, OperationState.TIMEDOUT}
)


def _number_of(call: Message) -> int:
    found = re.search(rb"operation (\d+)", call.raw)
    return 0 if found is None else int(found[1])


def _finished(number: int) -> bytes:
    return b"operation %d has finished" % number


def _rows_of(number: int) -> bytes:
    return b"rows of operation %d." % number


_EVENTS: tuple[Callable[[Stage, Script], None], ...] = (
    *(Stage.client_calls, Stage.backend_answers, Stage.shell_releases) * 3,
    Stage.shell_connects,
    Stage.shell_asks,
    Stage.time_passes,
    Stage.client_babbles,
    Stage.backend_babbles,
    Stage.shell_closes,
    Stage.world_changes,
)


# As it came, rewritten, and rewritten into something that is too long to be sent.
REWRITTEN = "SELECT 2 AS two"
_TEXTS = ("SELECT 1", REWRITTEN, "x" * REQUEST_BYTES_MAX)
# By the numbers of events and what they take: a statement that is rewritten and fetched, one that fails and is run
# again, one that waits for a query of ours, a call that is garbage, and one for which the backend is changed.
_CALL, _ANSWER, _RELEASE, _CONNECT, _ASK, _CLIENT_BABBLES, _CHANGE = 0, 1, 2, 9, 10, 12, 15
SCRIPTS = (
    bytes((3, _CALL, 5, 0, _ANSWER, 0, _CALL, 0, 0, _RELEASE, 4, _ANSWER, 0, _CALL, 2, 1, _ANSWER, 2))
    + bytes((_CALL, 3, 1, _ANSWER, 0, _CALL, 8, 1, _ANSWER, 0, _CALL, 6, 0, _ANSWER, 0)),
    bytes((7, _CALL, 0, 0, _RELEASE, 4, _ANSWER, 0, _CALL, 2, 1, _ANSWER, 5, _ANSWER, 0, _ANSWER, 0, _ANSWER, 2)),
    bytes((1, _CALL, 1, 0, _ASK, _ANSWER, 0, _ASK, _ANSWER, 0, _RELEASE, 1, _ANSWER, 7, _CALL, 2, 0, _ANSWER, 2)),
    bytes((1, _CALL, 1, 0, _RELEASE, 4, _ANSWER, 7, _ANSWER, 0, _CLIENT_BABBLES, 5)) + b"\0\0\0\1x",
    bytes((9, _CALL, 0, 0, _RELEASE, 4, _ANSWER, 0, _CHANGE, _CALL, 2, 1, _ANSWER, 2, _ANSWER, 0, _ANSWER, 0))
    + bytes((_ANSWER, 2, _CALL, 3, 1, _ANSWER, 0)),
    bytes((1, _CALL, 3, ELSEWHERE, _CALL, 2, 0, _CONNECT, 0, _ANSWER, 0, _ANSWER, 2, _CALL, 5, 0, _ANSWER, 0)),
)


def relay(data: bytes) -> None:
    """A script, in pieces of two sizes."""
    first, second = data[:1] or b"\0", data[1:]
    whole = _played(second, piece_bytes=1 << 20, logs_in=first[0] < 240)
    cut = _played(second, piece_bytes=1 + first[0] % 16, logs_in=first[0] < 240)
    if whole.is_clean and cut.is_clean:
        assert (whole.to_client, whole.to_backend) == (cut.to_client, cut.to_backend)
        assert whole.relay.phase is cut.relay.phase


def _played(data: bytes, piece_bytes: int, *, logs_in: bool) -> Stage:
    stage, script = Stage(piece_bytes), Script(data)
    if logs_in:
        stage.client(LOGIN)
        stage.shell_connects(Script(b""))
        stage.backend(ACCEPTED)
        assert stage.relay.phase is Phase.OPEN
    while not script.is_over():
        _EVENTS[script.number() % len(_EVENTS)](stage, script)
    _check_the_end(stage)
    return stage


def _check_the_end(stage: Stage) -> None:
    stage.carry_out(stage.relay.close("the script is over"))
    assert stage.relay.phase is Phase.CLOSED
    stage.carry_out([*stage.tracked_statements.sessions_ended([SESSION], stage.now)])
    assert OURS not in stage.to_client or not stage.is_framed
    assert len(stage.to_client) + len(stage.to_backend) <= (
        stage.came_bytes + (stage.events + stage.ruled + 1) * 2 * SAID_PER_EVENT_BYTES_MAX
    )
    assert len(stage.outcomes) == len({id(dispatch) for dispatch in stage.outcomes}), "an end was told twice"
    if stage.is_clean:
        assert len(stage.outcomes) == stage.ruled, "a statement's end was never told"
