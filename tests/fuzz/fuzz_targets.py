"""All targets of the fuzzer by name, and inputs to begin with, made from captured streams."""

from collections.abc import Callable, Iterable, Iterator

import login_target
import parser_targets
import relay_target
import thrift_targets
from support.wire_vectors import CLIENTS, captured

from proxy.wire.sasl import SaslReader
from proxy.wire.thrift.messages import FramedMessageReader
from proxy.wire.thrift.reader import read_header

TARGETS: dict[str, Callable[[bytes], None]] = {
    "sasl": parser_targets.sasl,
    "frames": parser_targets.frames,
    "messages": parser_targets.messages,
    "plain_messages": parser_targets.plain_messages,
    "plain_follower": parser_targets.plain_follower,
    "walk": parser_targets.walk,
    "rows": parser_targets.rows,
    "metadata": parser_targets.metadata,
    "follower": parser_targets.follower,
    "header": thrift_targets.header,
    "calls": thrift_targets.calls,
    "replies": thrift_targets.replies,
    "relay": relay_target.relay,
    "login": login_target.login,
    "wrapped": login_target.wrapped,
}

# A field header and the result's own: what stands before a reply's struct in the body of its message.
_RESULT_HEADER_BYTES = 3
# How the readers' inputs begin: with the size of the pieces.
_PIECES = b"\x06"
# And those of the followers: with how many calls are awaited, and what is to be done with each reply.
_CALLS = b"\x07" + bytes(range(7))


def seeds(name: str) -> list[bytes]:
    """Inputs for a target that real clients and servers have sent."""
    return [seed for client in CLIENTS for seed in _seeds(name, client)]


def _seeds(name: str, client: str) -> Iterator[bytes]:
    from_client, from_server = _frames(f"{client}_client"), _frames(f"{client}_server")
    sides = (from_client, from_server)
    plain = [b"".join(_messages(side)) for side in sides]
    made: dict[str, Iterable[bytes]] = {
        "sasl": (_PIECES + captured(f"{client}_{side}") for side in ("client", "server")),
        "frames": (_PIECES + side for side in sides),
        "messages": (_PIECES + side for side in sides),
        "plain_messages": (_PIECES + side for side in plain),
        "follower": [_CALLS + from_server],
        "plain_follower": [_CALLS + plain[1]],
        "header": _messages(from_client),
        "walk": (body for _, body in _bodies(from_client + from_server)),
        "calls": _named(thrift_targets.CALLS, from_client),
        "replies": _named(thrift_targets.REPLIES, from_server),
        "rows": _results("FetchResults", from_server),
        "metadata": _results("GetResultSetMetadata", from_server),
        "relay": relay_target.SCRIPTS,
        "login": login_target.LOGINS,
        "wrapped": (_PIECES + login_target.wrapped_by_peer(side) for side in sides),
    }
    yield from made[name]


def _results(name: str, frames: bytes) -> Iterator[bytes]:
    return (body[_RESULT_HEADER_BYTES:] for call, body in _bodies(frames) if call == name)


def _frames(stream_name: str) -> bytes:
    """A captured stream without its negotiation."""
    stream = captured(stream_name)
    reader = SaslReader()
    reader.feed(stream)
    while stream[0] and reader.next_message() is not None:
        stream = reader.leftover()
    return stream


def _messages(frames: bytes) -> Iterator[bytes]:
    reader = FramedMessageReader(len(frames))
    reader.feed(frames)
    while (message := reader.next_message()) is not None:
        yield message.raw


def _bodies(frames: bytes) -> Iterator[tuple[str, bytes]]:
    for raw in _messages(frames):
        header = read_header(raw)
        yield header.name, raw[header.body_offset :]


def _named(names: tuple[str, ...], frames: bytes) -> Iterator[bytes]:
    return (bytes([names.index(name)]) + body for name, body in _bodies(frames) if name in names)
