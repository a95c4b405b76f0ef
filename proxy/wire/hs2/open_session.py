"""The OpenSession call: the user that the client asks to be, and replies: one that refuses, one with a fetch size.

The proxy has to read the user that a session acts for exactly as the server reads it. The server's generated code
takes the last of several equal fields, and reads settings as strings whatever types they announce. No client sends
a call that relies on either, so the proxy refuses such a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from proxy.wire.hs2.calls import OPEN_SESSION, PROTOCOL_V10, decode_configuration
from proxy.wire.hs2.replies import decode_status_only, open_reply
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Header, Reader
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

# HiveAuthFactory.HS2_PROXY_USER. Over HTTP the parameter doAs says the same.
PROXY_USER: Final = "hive.server2.proxy.user"

# hive-jdbc 4.0.0 takes its fetch size from this key of the reply, which Spark does not send, and opens no session
# without it (HIVE-28399). 4.0.1 uses its own default then.
FETCH_SIZE: Final = "hive.server2.thrift.resultset.default.fetch.size"
# HiveServer2's default, and that of every hive-jdbc. The `fetchSize` of a URL has priority in the driver.
_FETCH_ROWS: Final = "1000"
# hive-jdbc of every version names its database by this key. Until 3.1 it also asks for a fetch size itself.
_DATABASE: Final = "use:database"
_WANTED_FETCH_SIZE: Final = f"set:hiveconf:{FETCH_SIZE}"

_REQUEST: Final = (1, Kind.STRUCT)
_CLIENT_PROTOCOL: Final = (1, Kind.I32)
_USERNAME: Final = (2, Kind.STRING)
# In the request and in the reply.
_CONFIGURATION: Final = (4, Kind.MAP)
# A field's type and number, which stand before its value.
_FIELD_HEADER_BYTES: Final = 3
# The types of a map's keys and values, and their number.
_MAP_HEADER_BYTES: Final = 6
_STATUS_ERROR: Final = 3
# SQLSTATE of the server's reply to a login that may not act for another user.
_SQL_STATE: Final = b"08S01"


def user_of(message: Message) -> str | None:
    """Return the user that the call names. A server without authentication takes the client to be that user."""
    found = _only_span(_REQUEST, Reader(message.raw, message.header.body_offset))
    found = None if found is None else _only_span(_USERNAME, Reader(message.raw, found[0]))
    return None if found is None else Reader(message.raw, found[0]).text()


def proxy_user_of(message: Message) -> str | None:
    """Return the user that the session is to act for, if that is not the user who logs in."""
    found = _only_span(_REQUEST, Reader(message.raw, message.header.body_offset))
    found = None if found is None else _only_span(_CONFIGURATION, Reader(message.raw, found[0]))
    if found is None:
        return None
    wanted: str | None = None
    for key, value in _settings(Reader(message.raw, found[0])):
        if key == PROXY_USER:
            wanted = value
    return wanted


def with_user(message: Message, user: str) -> Message:
    """Return the call with another user name; every other byte stays."""
    raw = message.raw
    request = _only_span(_REQUEST, Reader(raw, message.header.body_offset))
    if request is None:
        return message
    encoded = Writer().binary(_USERNAME[0], user.encode()).to_bytes()
    found = _only_span(_USERNAME, Reader(raw, request[0]))
    start, stop = (request[0], request[0]) if found is None else (found[0] - _FIELD_HEADER_BYTES, found[1])
    return Message(message.header, raw[:start] + encoded + raw[stop:])


def with_proxy_user(message: Message, user: str) -> Message:
    """Return the call with one setting more, which names the user that the session acts for."""
    raw = message.raw
    request = _only_span(_REQUEST, Reader(raw, message.header.body_offset))
    if request is None:
        raise RemoteProtocolError("OpenSession has no request")
    found = _only_span(_CONFIGURATION, Reader(raw, request[0]))
    if found is None:
        field = Writer().string_map(_CONFIGURATION[0], {PROXY_USER: user}).to_bytes()
        return Message(message.header, raw[: request[0]] + field + raw[request[0] :])
    settings = Reader(raw, found[0])
    count = sum(1 for _ in _settings(settings))
    # The entry goes behind the others, of which there are `count`: the server takes the last of equal keys.
    map_header, entry = Writer().map_header(Kind.STRING, Kind.STRING, count + 1), Writer().entry(PROXY_USER, user)
    entries = raw[found[0] + _MAP_HEADER_BYTES : found[1]]
    return Message(
        message.header, raw[: found[0]] + map_header.to_bytes() + entries + entry.to_bytes() + raw[found[1] :]
    )


def _settings(reader: Reader) -> Iterator[tuple[str, str]]:
    """Yield the entries of a map of strings. Raises RemoteProtocolError for another."""
    for key in reader.map_keys(Kind.STRING):
        yield key, reader.text()


def encode_open_session_refusal(seqid: int, sentence: str) -> bytes:
    """Encode the reply of a server that opens no session: every client shows the sentence."""
    status = Writer().i32(1, _STATUS_ERROR).binary(3, _SQL_STATE).binary(5, sentence.encode()).stop().to_bytes()
    reply = Writer().header(OPEN_SESSION, MessageType.REPLY, seqid).struct(0)
    return reply.raw(1, Kind.STRUCT, status).i32(2, PROTOCOL_V10).stop().stop().to_bytes()


def expects_fetch_size(message: Message) -> bool:
    """True if the client is a hive-jdbc that expects a fetch size in the reply: 4.0, of which 4.0.0 needs it.

    Its call lacks a setting that the call of earlier versions has.
    """
    found = _only_span(_REQUEST, Reader(message.raw, message.header.body_offset))
    found = None if found is None else _only_span(_CLIENT_PROTOCOL, Reader(message.raw, found[0]))
    if found is None or Reader(message.raw, found[0]).i32() < PROTOCOL_V10:
        return False
    asked = decode_configuration(message) or {}
    return _DATABASE in asked and _WANTED_FETCH_SIZE not in asked


def with_fetch_size(raw: bytes, header: Header) -> bytes:
    """Return the reply with a fetch size in its configuration; unchanged if it has one, or opens no session."""
    reader = open_reply(raw, header)
    if not decode_status_only(open_reply(raw, header)).ok:
        return raw
    found = None
    for field in reader.fields():
        start = reader.position
        reader.skip(field[1])
        if field == _CONFIGURATION:
            found = start, reader.position
    if found is None:
        one = Writer().string_map(_CONFIGURATION[0], {FETCH_SIZE: _FETCH_ROWS}).to_bytes()
        # In front of the byte that ends the reply's struct.
        return raw[: reader.position - 1] + one + raw[reader.position - 1 :]
    keys = _keys(Reader(raw, found[0]))
    if keys is None or FETCH_SIZE in keys:
        return raw
    map_header = Writer().map_header(Kind.STRING, Kind.STRING, len(keys) + 1).to_bytes()
    entry = Writer().entry(FETCH_SIZE, _FETCH_ROWS).to_bytes()
    return raw[: found[0]] + map_header + entry + raw[found[0] + _MAP_HEADER_BYTES :]


def _keys(settings: Reader) -> list[str] | None:
    """Return a map's keys, or None if it maps something else than strings to strings."""
    keys = []
    try:
        for key in settings.map_keys(Kind.STRING):
            keys.append(key)
            settings.skip(Kind.STRING)
    except RemoteProtocolError:
        return None
    return keys


def _only_span(wanted: tuple[int, Kind], reader: Reader) -> tuple[int, int] | None:
    """Return the span of a field's value, if there is one. Raises RemoteProtocolError for two."""
    spans: list[tuple[int, int]] = []
    for field in reader.fields():
        start = reader.position
        reader.skip(field[1])
        if field == wanted:
            spans.append((start, reader.position))
    if len(spans) > 1:
        raise RemoteProtocolError(f"OpenSession has field {wanted[0]} {len(spans)} times")
    return spans[0] if spans else None
