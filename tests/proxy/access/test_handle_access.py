"""Two users, a relay each: what one was given the other cannot use, and hears so in the server's own words."""

import pytest
from support.relay_dialogue import (
    ACCEPTED,
    AGAIN,
    OPERATION,
    SESSION,
    Dialogue,
    close_session,
    execute,
    executed,
    fetch,
    fetch_log,
    get_status,
    open_session,
    operation_call,
    reply,
    session_opened,
    status_is,
)

from proxy.access.handle_owners import LocalHandleOwners
from proxy.operations.tracked_statements import TrackedStatements
from proxy.relay.commands import CallRefused, Close, StatementHeld, TurnedTransparent
from proxy.wire.hs2.calls import OperationHandle, OperationState, encode_operation_call
from proxy.wire.hs2.handles import handle_id_of, handle_named_by
from proxy.wire.sasl import plain_start, plain_start_with
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import Kind
from proxy.wire.thrift.writer import Writer

CATALOG = (
    "GetTypeInfo GetCatalogs GetSchemas GetTables GetTableTypes GetColumns GetFunctions GetPrimaryKeys "
    "GetCrossReference"
).split()
ABOUT_SESSIONS = ["CloseSession", "GetInfo", "GetDelegationToken", "SetClientInfo", "ExecuteStatement", *CATALOG]
ABOUT_OPERATIONS = "GetResultSetMetadata CancelOperation CloseOperation GetQueryId AMethodOfTheFuture".split()


class Users:
    """Several users of one proxy, each on a connection, on one stage with the same handles."""

    def __init__(self, *, passes_unknown: bool = True) -> None:
        self.handles = LocalHandleOwners()
        self.tracked_statements = TrackedStatements()
        self._passes_unknown = passes_unknown

    def log_in(self, login: bytes) -> Dialogue:
        dialogue = Dialogue(
            tracked_statements=self.tracked_statements, handles=self.handles, passes_unknown=self._passes_unknown
        )
        dialogue.client(login)
        dialogue.carry_out(dialogue.relay.backend_connected())
        dialogue.backend(ACCEPTED)
        dialogue.client_got()
        dialogue.backend_got()
        return dialogue

    def open(self, name: str) -> Dialogue:
        """One that has opened SESSION, and OPERATION in it."""
        dialogue = self.log_in(plain_start(name, "password"))
        dialogue.client(open_session())
        dialogue.backend(session_opened())
        dialogue.client(execute("SELECT 1", 2))
        dialogue.carry_out(dialogue.relay.release())
        dialogue.backend(executed(2))
        dialogue.client_got()
        dialogue.backend_got()
        return dialogue


def about_session(name: str) -> bytes:
    """A call of that name about SESSION: what follows in its request does not matter."""
    return frame(encode_operation_call(name, 5, OperationHandle(SESSION)))


def handle_in(sent: bytes) -> bytes:
    message = Message(read_header(sent[4:]), sent[4:])
    named = handle_named_by(message)
    assert named is not None
    return named.identifier


@pytest.mark.parametrize(
    "call",
    [
        *(about_session(name) for name in ABOUT_SESSIONS),
        *(operation_call(name, 5) for name in ABOUT_OPERATIONS),
        get_status(5),
        fetch(5),
        fetch_log(5),
        execute("SELECT 1", 5),
    ],
    ids=lambda call: read_header(call[4:]).name,
)
def test_a_call_about_somebody_elses_handle_reaches_the_server_about_no_handle(call: bytes) -> None:
    users = Users()
    users.open("alice")
    bob = users.log_in(plain_start("bob", "password"))
    (refused,) = bob.client(call)
    assert isinstance(refused, CallRefused)
    sent = bob.backend_got()
    assert len(sent) == len(call)
    assert handle_in(sent) not in (handle_id_of(SESSION), handle_id_of(OPERATION))
    answer = reply(refused.name, 5, status=3, message="Invalid handle")
    assert bob.backend(answer) == []
    assert bob.client_got() == answer


@pytest.mark.parametrize("call", [close_session(5), operation_call("CloseOperation", 5)])
def test_nobody_can_close_what_is_not_theirs(call: bytes) -> None:
    users = Users()
    alice = users.open("alice")
    bob = users.log_in(plain_start("bob", "password"))
    bob.client(call)
    for seqid, own in ((6, get_status(6)), (7, fetch(7))):
        alice.client(own)
        assert alice.backend_got() == own
        alice.backend(reply("GetOperationStatus" if seqid == 6 else "FetchResults", seqid))


def test_the_same_user_may_use_it_from_another_connection_with_whatever_password() -> None:
    users = Users()
    users.open("alice")
    again = users.log_in(plain_start_with(b"somebody\0alice\0a new password"))
    for call in (get_status(5), fetch(6), operation_call("CancelOperation", 7)):
        assert again.client(call) == []
        assert again.backend_got() == call
    (held,) = again.client(execute("SELECT 1", 8))
    assert isinstance(held, StatementHeld)


def test_a_name_in_other_letters_is_another_user() -> None:
    users = Users()
    users.open("alice")
    assert users.log_in(plain_start("Alice", "password")).client(get_status(5)) == [
        CallRefused("GetOperationStatus")
    ]


@pytest.mark.parametrize("name", CATALOG)
def test_operations_of_catalog_calls_belong_to_who_made_them(name: str) -> None:
    users = Users()
    alice = users.open("alice")
    alice.client(about_session(name))
    alice.backend(reply(name, 5, Writer().raw(2, Kind.STRUCT, AGAIN)))
    alice.client(fetch(6, AGAIN))
    assert alice.backend_got().endswith(fetch(6, AGAIN))
    bob = users.log_in(plain_start("bob", "password"))
    assert bob.client(fetch(6, AGAIN)) == [CallRefused("FetchResults")]


def test_a_handle_that_nobody_was_seen_to_get_passes_unless_it_is_to_be_refused() -> None:
    assert Users().log_in(plain_start("bob", "password")).client(get_status(5)) == []
    strict = Users(passes_unknown=False).log_in(plain_start("bob", "password"))
    assert strict.client(get_status(5)) == [CallRefused("GetOperationStatus")]


def test_an_answer_to_a_refused_call_comes_in_its_turn() -> None:
    users = Users()
    users.open("alice")
    bob = users.log_in(plain_start("bob", "password"))
    bob.client(frame(encode_operation_call("GetInfo", 4, AGAIN)) + fetch(5))
    answers = reply("GetInfo", 4) + reply("FetchResults", 5, status=3)
    bob.backend(answers)
    assert bob.client_got() == answers


def test_a_connection_that_is_not_followed_any_more_is_guarded_all_the_same() -> None:
    users = Users()
    users.open("alice")
    bob = users.log_in(plain_start("bob", "password"))
    (turned,) = bob.backend(frame(b"surprise"))
    assert isinstance(turned, TurnedTransparent)
    for byte in fetch(5)[:-1]:
        assert bob.client(bytes([byte])) == []
    assert bob.backend_got() == b""
    assert bob.client(fetch(5)[-1:]) == [CallRefused("FetchResults")]
    assert handle_in(bob.backend_got()) != handle_id_of(OPERATION)


def test_a_call_that_names_two_handles_closes_its_connection() -> None:
    users = Users()
    users.open("alice")
    bob = users.log_in(plain_start("bob", "password"))
    raw = encode_operation_call("GetOperationStatus", 5, AGAIN)
    (closed,) = bob.client(frame(raw[:-2] + Writer().raw(1, Kind.STRUCT, OPERATION).to_bytes() + raw[-2:]))
    assert isinstance(closed, Close)
    assert bob.backend_got() == b""


def test_a_finished_status_is_answered_to_its_owner_alone() -> None:
    users = Users()
    alice = users.open("alice")
    alice.client(get_status(5))
    alice.backend(status_is(OperationState.FINISHED, 5))
    alice.client_got()
    alice.client(get_status(6))
    assert alice.client_got() == status_is(OperationState.FINISHED, 6)
    bob = users.log_in(plain_start("bob", "password"))
    assert bob.client(get_status(6)) == [CallRefused("GetOperationStatus")]
