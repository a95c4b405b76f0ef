from hypothesis import given
from hypothesis import strategies as st
from support.relay_dialogue import (
    ACCEPTED,
    LOGIN,
    Dialogue,
    close_session,
    execute,
    executed,
    fetch,
    get_status,
    open_session,
    reply,
    session_opened,
    status_is,
)

from proxy.operations.dispatch import Dispatch
from proxy.relay.commands import StatementHeld
from proxy.relay.phases import Phase
from proxy.wire.hs2.calls import OperationState

RUNNING = OperationState.RUNNING

FROM_CLIENT = [open_session(1), execute("SELECT 1", 2), get_status(3), fetch(4), close_session(5)]
FROM_BACKEND = [
    session_opened(1),
    executed(2),
    status_is(RUNNING, 3),
    reply("FetchResults", 4),
    reply("CloseSession", 5),
]


def chunked(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(stream) + 1) for cut in cuts})
    return [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]


cuts = st.lists(st.integers(min_value=0, max_value=10_000), max_size=30)


def release_all(dialogue: Dialogue, commands: list) -> None:  # type: ignore[type-arg]
    while any(isinstance(command, StatementHeld) for command in commands):
        commands = dialogue.carry_out(dialogue.relay.release(Dispatch("SELECT 2", may_fall_back=True)))


@given(cuts, cuts)
def test_the_same_bytes_go_on_whatever_chunks_they_come_in(client_cuts: list[int], cuts: list[int]) -> None:
    dialogue = Dialogue()
    for chunk in chunked(LOGIN, client_cuts):
        dialogue.client(chunk)
    dialogue.carry_out(dialogue.relay.backend_connected())
    for chunk in chunked(ACCEPTED, cuts):
        dialogue.backend(chunk)
    for chunk in chunked(b"".join(FROM_CLIENT), client_cuts):
        release_all(dialogue, dialogue.client(chunk))
    for chunk in chunked(b"".join(FROM_BACKEND), cuts):
        dialogue.backend(chunk)
    rewritten = [execute("SELECT 2", 2) if call == execute("SELECT 1", 2) else call for call in FROM_CLIENT]
    assert dialogue.backend_got() == LOGIN + b"".join(rewritten)
    assert dialogue.client_got() == ACCEPTED + b"".join(FROM_BACKEND)


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_garbage_from_a_client_never_raises(chunks: list[bytes]) -> None:
    for dialogue in (Dialogue(), Dialogue().open_session()):
        for chunk in chunks:
            release_all(dialogue, dialogue.client(chunk))


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_garbage_from_a_backend_reaches_the_client_whole(chunks: list[bytes]) -> None:
    dialogue = Dialogue().open_session()
    dialogue.client(get_status(5))
    for chunk in chunks:
        dialogue.backend(chunk)
    sent, got = b"".join(chunks), dialogue.client_got()
    # While frames are still followed, up to three bytes of a frame's header wait for the fourth.
    waiting = 0 if dialogue.relay.phase is Phase.TRANSPARENT else 3
    assert sent.startswith(got)
    assert len(sent) - len(got) <= waiting


@given(st.binary(min_size=1, max_size=60), st.integers(min_value=0, max_value=200))
def test_a_damaged_call_is_refused_or_relayed_but_never_raises(damage: bytes, place: int) -> None:
    dialogue = Dialogue().open_session()
    stream = bytearray(b"".join(FROM_CLIENT))
    stream[place : place + len(damage)] = damage
    release_all(dialogue, dialogue.client(bytes(stream)))
