"""A client's call about what another backend has: a connection that has nothing to lose goes there."""

import pytest
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    SESSION,
    Dialogue,
    execute,
    fetch,
    open_session,
    reply,
    session_opened,
)

from proxy.access.handle_owners import HandleKind, HandleOwner, LocalHandleOwners
from proxy.relay.commands import Command, MoveBackend, StatementHeld, TurnedTransparent
from proxy.relay.phases import Phase
from proxy.wire.hs2.handles import handle_id_of

THERE = "another:10000"


def dialogue(owner: bytes = b"user", backend: str = THERE) -> Dialogue:
    """A client that has logged in, and a session that the owner has on that backend."""
    handles = LocalHandleOwners()
    for kind, handle in ((HandleKind.SESSION, SESSION), (HandleKind.OPERATION, OPERATION)):
        identifier = handle_id_of(handle)
        assert identifier is not None
        handles.handle_opened(kind, identifier, HandleOwner(handles.digests.user_digest(owner), backend))
    return Dialogue(handles=handles).log_in()


def moves(commands: list[Command]) -> list[str]:
    return [command.name for command in commands if isinstance(command, MoveBackend)]


def test_the_call_waits_for_the_other_backend_and_what_follows_waits_behind_it() -> None:
    on = dialogue()
    assert moves(on.client(fetch(1) + fetch(2))) == [THERE]
    assert moves(on.client(fetch(3))) == []
    assert (on.relay.phase, on.relay.awaits_replies, on.backend_got()) == (Phase.MOVING, True, b"")
    assert on.carry_out(on.relay.moved()) == []
    assert on.backend_got() == fetch(1) + fetch(2) + fetch(3)
    on.backend(reply("FetchResults", 1))
    assert on.client_got() == reply("FetchResults", 1)


def test_a_statement_is_held_once_the_connection_is_where_its_session_is() -> None:
    on = dialogue()
    assert moves(on.client(execute("SELECT 1"))) == [THERE]
    (held,) = on.carry_out(on.relay.moved())
    assert held == StatementHeld(SESSION, "SELECT 1")


def test_a_client_with_a_session_of_its_own_or_a_reply_to_come_stays() -> None:
    on = dialogue()
    on.client(open_session())
    on.backend(session_opened(session=SESSION))
    on.client_got()
    assert moves(on.client(fetch(2))) == []
    on = dialogue()
    assert moves(on.client(fetch(1, AGAIN) + fetch(2))) == []
    on.backend(reply("FetchResults", 1) + reply("FetchResults", 2))
    assert moves(on.client(fetch(3))) == [THERE]


@pytest.mark.parametrize(
    "on", [dialogue(b"somebody else"), dialogue(backend="backend:10000"), Dialogue().log_in()]
)
def test_nobody_moves_for_what_is_anothers_or_here_or_not_known(on: Dialogue) -> None:
    assert moves(on.client(fetch())) == []
    assert on.relay.phase is Phase.OPEN
    assert len(on.backend_got()) == len(fetch())


def test_what_the_old_backend_says_meanwhile_ends_nothing_but_the_move() -> None:
    on = dialogue()
    on.client(fetch(1) + fetch(2))
    (told,) = on.backend(b"\0\0\0\1x")
    assert isinstance(told, TurnedTransparent)
    assert on.backend_got() == fetch(1) + fetch(2)
    assert on.carry_out(on.relay.moved()) == []
    assert (on.relay.phase, on.backend_got()) == (Phase.TRANSPARENT, b"")


def test_a_client_that_has_left_moves_nowhere() -> None:
    on = dialogue()
    on.client(fetch())
    on.carry_out(on.relay.close("the client closed"))
    assert on.carry_out(on.relay.moved()) == []
    assert (on.relay.phase, on.backend_got()) == (Phase.CLOSED, b"")
