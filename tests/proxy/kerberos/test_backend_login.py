"""Our own login at a backend, which may say anything: it is held to the order of RFC 4752."""

import struct

import pytest

from proxy.kerberos.backend_login import BackendLogin
from proxy.kerberos.context import Unwrapped
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.protection import Protection
from proxy.wire.sasl import SaslMessage, SaslStatus, encode_sasl
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import frame

OK, COMPLETE, ERROR = SaslStatus.OK, SaslStatus.COMPLETE, SaslStatus.ERROR
ALL = struct.pack(">I", 0x07_01_00_00)


class PlayedContext:
    """Complete after the backend's one token; a token is its content behind a mark."""

    initiator = ""
    delegated = None
    can_check_integrity = can_encrypt = True

    def __init__(self, *, knows_peer: bool = True) -> None:
        self.is_complete = False
        self.knows_peer = knows_peer

    def step(self, token: bytes) -> bytes:
        self.is_complete = bool(token)
        return b"" if token else b"first"

    def wrap(self, data: bytes, *, encrypts: bool) -> bytes:
        return (b"E" if encrypts else b"S") + data

    def unwrap(self, token: bytes) -> Unwrapped:
        return Unwrapped(token[1:], token[:1] == b"E")

    def data_bytes_max(self, token_bytes_max: int, *, encrypts: bool) -> int:
        del encrypts
        return token_bytes_max - 1


def logging_in(protection: Protection = Protection.AUTH, *, knows_peer: bool = True) -> BackendLogin:
    login = BackendLogin(PlayedContext(knows_peer=knows_peer), protection)
    assert login.start() == encode_sasl(SaslStatus.START, b"GSSAPI") + encode_sasl(OK, b"first")
    return login


@pytest.mark.parametrize("protection", Protection)
def test_a_login_selects_the_configured_protection_and_acts_for_nobody(protection: Protection) -> None:
    login = logging_in(protection)
    assert login.answer(SaslMessage(OK, b"token")) == encode_sasl(OK)
    selected = login.answer(SaslMessage(OK, b"S" + ALL))
    length = 0 if protection is Protection.AUTH else 0xFF_FFFF
    assert selected == encode_sasl(COMPLETE, b"S" + struct.pack(">I", protection.bit << 24 | length))
    assert login.answer(SaslMessage(COMPLETE, b"")) == b""
    assert login.is_over
    assert (login.layer is None) == (protection is Protection.AUTH)


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([SaslMessage(ERROR, b"GSS initiate failed")], "GSS initiate failed"),
        ([SaslMessage(ERROR, b"")], "no reason given"),
        ([SaslMessage(COMPLETE, b"")], "it sent COMPLETE where a token of the context was to come"),
        ([SaslMessage(OK, b"t"), SaslMessage(COMPLETE, b"S" + ALL)], "where the offered protections was to come"),
        ([SaslMessage(OK, b"t"), SaslMessage(OK, b"S\x01\0\0\0")], "it offers auth .* auth-conf"),
        ([SaslMessage(OK, b"t"), SaslMessage(OK, b"S\0\0\0\0")], "it offers nothing"),
        ([SaslMessage(OK, b"t"), SaslMessage(OK, b"S\x07\0\0")], "has 3 bytes, not 4"),
        ([SaslMessage(OK, b"t"), SaslMessage(OK, b"S\x04\0\0\1")], "tokens of 1 bytes, which is too short"),
        ([SaslMessage(OK, b"t"), SaslMessage(OK, b"S\x04\0\x10\0")], "tokens of 4096 bytes, which is too short"),
        ([SaslMessage(OK, b"t"), SaslMessage(OK, b"S" + ALL), SaslMessage(OK, b"")], "it sent OK where"),
    ],
)
def test_a_backend_out_of_order_is_not_logged_in_to(messages: list[SaslMessage], sentence: str) -> None:
    login = logging_in(Protection.CONFIDENTIALITY)
    for message in messages[:-1]:
        login.answer(message)
    with pytest.raises(KerberosError, match=sentence):
        login.answer(messages[-1])
    assert not login.is_over


def test_a_backend_that_proves_nothing_is_not_logged_in_to() -> None:
    with pytest.raises(KerberosError, match="it has not proven who it is"):
        logging_in(knows_peer=False).answer(SaslMessage(OK, b"token"))


def test_frames_are_cut_by_what_the_backend_takes_and_a_plain_one_is_refused() -> None:
    login = logging_in(Protection.CONFIDENTIALITY)
    login.answer(SaslMessage(OK, b"token"))
    login.answer(SaslMessage(OK, b"S" + struct.pack(">I", 0x04_00_10_01)))
    login.answer(SaslMessage(COMPLETE, b""))
    assert login.layer is not None
    assert login.layer.wrapped(frame(b"1" * 4096 + b"56")) == frame(b"E" + b"1" * 4096) + frame(b"E56")
    assert login.layer.unwrapped(frame(b"E1") + frame(b"E2")) == frame(b"1") + frame(b"2")
    with pytest.raises(RemoteProtocolError, match="not encrypted"):
        login.layer.unwrapped(frame(b"S3"))
