"""Streams of recorded connections, cut into messages."""

from proxy.wire.sasl import SaslStatus, encode_sasl
from support.wire_vectors import captured

NEGOTIATION = {
    "pyhive": [(SaslStatus.START, b"PLAIN"), (SaslStatus.OK, b"\0vector\0x")],
    "beeline": [(SaslStatus.START, b"PLAIN"), (SaslStatus.COMPLETE, b"\0vector\0anonymous")],
}


def split_client(client: str) -> tuple[bytes, bytes]:
    """A captured client's SASL bytes and what follows them."""
    stream = captured(f"{client}_client")
    sasl = b"".join(encode_sasl(status, body) for status, body in NEGOTIATION[client])
    assert stream.startswith(sasl)
    return sasl, stream[len(sasl) :]
