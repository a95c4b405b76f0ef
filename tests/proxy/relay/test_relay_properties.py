from hypothesis import given
from hypothesis import strategies as st
from support.relay_dialogue import Dialogue, get_status
from test_transports import FROM_CLIENT, release_all

from proxy.relay.phases import Phase


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
