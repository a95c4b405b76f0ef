"""Calls over the two connections of a scripted session."""

from support.scripted_session import Peer


async def reaches(client: Peer, backend: Peer, call: bytes, sent: bytes = b"") -> None:
    """The client calls, and the backend gets that, or what is sent instead."""
    client.send(call)
    await backend.expect(sent or call)


async def passes(client: Peer, backend: Peer, call: bytes, answer: bytes, sent: bytes = b"") -> None:
    """A call and its reply."""
    await reaches(client, backend, call, sent)
    backend.send(answer)
    await client.expect(answer)
