"""All targets of the fuzzer by name, and inputs to begin with, made from captured streams."""

from collections.abc import Callable, Iterator

import parser_targets
import relay_target
import thrift_targets
from wire_vectors import CLIENTS, captured

from proxy.wire.messages import MessageReader
from proxy.wire.sasl import SaslReader
from proxy.wire.thrift import read_header

TARGETS: dict[str, Callable[[bytes], None]] = {
    "sasl": parser_targets.sasl,
    "frames": parser_targets.frames,
    "messages": parser_targets.messages,
    "walk": parser_targets.walk,
    "rows": parser_targets.rows,
    "metadata": parser_targets.metadata,
    "follower": parser_targets.follower,
    "header": thrift_targets.header,
    "calls": thrift_targets.calls,
    "replies": thrift_targets.replies,
    "relay": relay_target.relay,
}

# A field header and the result's own: what stands before a reply's struct in the body of its message.
_RESULT_HEADER_BYTES = 3
# How the readers' inputs begin: with the size of the pieces.
_PIECES = b"\x06"


def seeds(name: str) -> list[bytes]:
    """Inputs for a target that real clients and servers have sent."""
    return [seed for client in CLIENTS for seed in _seeds(name, client)]


def _seeds(name: str, client: str) -> Iterator[bytes]:
    from_client, from_server = _frames(f"{client}_client"), _frames(f"{client}_server")
    match name:
        case "sasl":
            yield from (_PIECES + captured(f"{client}_{side}") for side in ("client", "server"))
        case "frames" | "messages":
            yield from (_PIECES + from_client, _PIECES + from_server)
        case "follower":
            yield b"\x07" + bytes(range(7)) + from_server
        case "header":
            yield from _messages(from_client)
        case "walk":
            yield from (body for _, body in _bodies(from_client + from_server))
        case "calls":
            yield from _named(thrift_targets.CALLS, from_client)
        case "replies":
            yield from _named(thrift_targets.REPLIES, from_server)
        case "rows" | "metadata":
            wanted = {"rows": "FetchResults", "metadata": "GetResultSetMetadata"}[name]
            yield from (body[_RESULT_HEADER_BYTES:] for call, body in _bodies(from_server) if call == wanted)
        case "relay":
            yield from relay_target.SCRIPTS


def _frames(stream_name: str) -> bytes:
    """A captured stream without its negotiation."""
    stream = captured(stream_name)
    reader = SaslReader()
    reader.feed(stream)
    while stream[0] and reader.next_message() is not None:
        stream = reader.leftover()
    return stream


def _messages(frames: bytes) -> Iterator[bytes]:
    reader = MessageReader(len(frames))
    reader.feed(frames)
    while (message := reader.next_message()) is not None:
        yield message.raw


def _bodies(frames: bytes) -> Iterator[tuple[str, bytes]]:
    for raw in _messages(frames):
        header = read_header(raw)
        yield header.name, raw[header.body_offset :]


def _named(names: tuple[str, ...], frames: bytes) -> Iterator[bytes]:
    return (bytes([names.index(name)]) + body for name, body in _bodies(frames) if name in names)
