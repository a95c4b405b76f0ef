"""Openings whose login the proxy takes itself, with a login that the test plays."""

from collections.abc import Callable

import pytest

from proxy.kerberos.client_login import Accepted, Challenge, LoginStep
from proxy.kerberos.errors import KerberosError, LoginsBusyError
from proxy.relay.commands import Close, Command, ConnectBackend, SendClient, StepLogin
from proxy.relay.handshake import HandshakeStep
from proxy.relay.sasl_termination import SaslTermination
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_response, refusal

START = encode_sasl(SaslStatus.START, b"GSSAPI")
AS_ANNA = plain_response("anna", "anonymous")


class PlayedLogin:
    """Challenges once, and lets everybody in."""

    checks_password = False

    def __init__(self) -> None:
        self.responses: list[bytes] = []

    def step(self, response: bytes) -> LoginStep:
        self.responses.append(response)
        return Challenge(b"who?") if len(self.responses) == 1 else Accepted(AS_ANNA)


class Opening:
    """The state machine, and its shell."""

    def __init__(self, login_by: Callable[[bytes], PlayedLogin] | None = None) -> None:
        self.login = PlayedLogin()
        self.machine = SaslTermination("backend:10000", login_by or (lambda _mechanism: self.login))

    def client(self, *messages: bytes) -> list[Command]:
        return self.machine.client_data(b"".join(messages))

    def step(self, commands: list[Command]) -> list[Command]:
        (command,) = commands
        assert isinstance(command, StepLogin)
        return self.machine.login_stepped(command.step())


def response(body: bytes, status: SaslStatus = SaslStatus.OK) -> bytes:
    return encode_sasl(status, body)


def test_the_client_is_told_that_it_is_in_when_the_backend_is_ready() -> None:
    on = Opening()
    (challenge,) = on.step(on.client(START, response(b"anna")))
    assert challenge == SendClient(response(b"who?"))
    assert on.step(on.client(response(b"me", SaslStatus.COMPLETE))) == [ConnectBackend()]
    assert (on.machine.turn, on.machine.login) == (HandshakeStep.CONNECTING, "anna")
    assert on.machine.backend_connected() == [SendClient(encode_sasl(SaslStatus.COMPLETE))]
    assert on.login.responses == [b"anna", b"me"]
    assert on.machine.turn is HandshakeStep.FRAMES


def test_bytes_that_come_early_wait_for_the_step_before_them() -> None:
    on = Opening()
    first = on.client(START, response(b"anna"), response(b"me"), b"frames")
    assert on.machine.client_data(b" and more") == []
    assert on.machine.waiting_bytes == len(response(b"me") + b"frames and more")
    _, second = on.step(first)
    on.step([second])
    on.machine.backend_connected()
    assert on.machine.client_leftover() == b"frames and more"


def test_a_backend_that_cannot_be_used_is_told_in_the_negotiation() -> None:
    on = Opening()
    on.step(on.client(START, response(b"anna")))
    on.step(on.client(response(b"me")))
    said, closed = on.machine.backend_failed("no route")
    sentence = "Starpruner cannot use the backend backend:10000: no route"
    assert (said, closed) == (SendClient(refusal(sentence)), Close(sentence))
    assert on.machine.turn is HandshakeStep.REFUSED


def test_a_client_is_told_that_its_login_fails_and_not_why() -> None:
    on = Opening()
    on.client(START, response(b"anna"))
    said, closed = on.machine.login_stepped(KerberosError("clock skew too great"))
    assert isinstance(closed, Close)
    assert closed.reason == "Starpruner: the login by Kerberos failed; the proxy's log says why"
    assert said == SendClient(refusal(closed.reason))
    assert on.machine.credentials is None


def test_a_client_that_should_try_again_is_told_so() -> None:
    on = Opening()
    on.client(START, response(b"anna"))
    _, closed = on.machine.login_stepped(LoginsBusyError("try again later"))
    assert closed == Close("Starpruner: try again later")


def unknown(mechanism: bytes) -> PlayedLogin:
    raise KerberosError(f"{mechanism.decode()} is not taken")


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (response(b"x"), "expected a SASL START message, got OK"),
        (START + encode_sasl(SaslStatus.START, b"PLAIN"), "expected a SASL response, got START"),
        (START + encode_sasl(SaslStatus.ERROR, b"x"), "expected a SASL response, got ERROR"),
        (START + b"\x02\x7f\xff\xff\xff", "a SASL message announces 2147483647 bytes"),
        (b"\x16\x03\x01", "as TLS has it"),
    ],
)
def test_anything_else_is_refused_with_a_sentence(sent: bytes, reason: str) -> None:
    said, closed = Opening().client(sent)
    assert isinstance(closed, Close)
    assert reason in closed.reason
    assert said == SendClient(refusal(closed.reason))


def test_a_mechanism_that_is_not_taken_is_refused_before_its_response_comes() -> None:
    _, closed = Opening(unknown).client(encode_sasl(SaslStatus.START, b"DIGEST-MD5"))
    assert closed == Close("Starpruner: DIGEST-MD5 is not taken")
