"""Commands of the relay to the shell around it: values that are carried out in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from proxy.kerberos.client_login import LoginStep
from proxy.kerberos.security_layer import SecurityLayer
from proxy.operations.events import Event
from proxy.operations.key_check import KeyCheck
from proxy.wire.hs2.calls import SessionHandle


@dataclass(frozen=True)
class SendClient:
    """Write to the client."""

    data: bytes | memoryview


@dataclass(frozen=True)
class SendBackend:
    """Write to the backend."""

    data: bytes


@dataclass(frozen=True)
class ConnectBackend:
    """Open the backend connection, then call `backend_connected` or `backend_failed`.

    Where the proxy takes the clients' logins, it logs in as well.
    """


@dataclass(frozen=True)
class StepLogin:
    """Take the next step of the client's login in a thread, where it may wait, then call `login_stepped`."""

    step: Callable[[], LoginStep] = field(repr=False)
    # True if the step asks the KDC about a password.
    checks_password: bool = False


@dataclass(frozen=True)
class ProtectClient:
    """Wrap all that is written to the client from here on, and unwrap all that it sends."""

    layer: SecurityLayer


@dataclass(frozen=True)
class LoginRefused:
    """The backend has refused the client's login, and the client is told so."""


@dataclass(frozen=True)
class MoveBackend:
    """Connect and log in to the backend of that name in place of this one, then call `moved` in any case."""

    name: str


@dataclass(frozen=True)
class PauseClient:
    """Read no more from the client: what it sends now cannot be handled yet, and enough of it waits."""


@dataclass(frozen=True)
class ResumeClient:
    """Read from the client again."""


@dataclass(frozen=True)
class SessionRefused:
    """The client may not open a session, and has been told why."""

    reason: str

    def __str__(self) -> str:
        return f"no session is opened: {self.reason}"


@dataclass(frozen=True)
class StatementHeld:
    """A statement waits for `release`. Until then the connection is free for calls of our own."""

    session: SessionHandle = field(repr=False)
    statement: str = field(repr=False)
    # Set if the statement was released before, with remembered keys that this check did not confirm.
    unconfirmed: KeyCheck | None = None


@dataclass(frozen=True)
class StartCheck:
    """A statement with remembered keys was released: ask for the keys in its session, beside it."""

    session: SessionHandle = field(repr=False)
    check: KeyCheck


@dataclass(frozen=True)
class AwaitCheck:
    """A reply is kept back until this check has ended: then call `check_settled`."""

    check: KeyCheck


@dataclass(frozen=True)
class BackendReply:
    """The reply to a call of our own, or None if it was longer than the call allows."""

    raw: bytes | None = field(repr=False)


@dataclass(frozen=True)
class CallRefused:
    """The client named a session or operation of another user in a call of that name."""

    name: str

    def __str__(self) -> str:
        return f"{self.name!r} names a session or operation of another user"


@dataclass(frozen=True)
class TurnedTransparent:
    """From here on all bytes pass and nothing is rewritten; a held statement has gone on as the original."""

    reason: str
    # True if the reason is the client's login, so that it holds for each of its connections.
    by_login: bool = False


@dataclass(frozen=True)
class Close:
    """Deliver what was sent, then close both sides."""

    reason: str


Command: TypeAlias = (
    SendClient
    | SendBackend
    | ConnectBackend
    | StepLogin
    | LoginRefused
    | ProtectClient
    | MoveBackend
    | PauseClient
    | ResumeClient
    | Event
    | SessionRefused
    | StatementHeld
    | StartCheck
    | AwaitCheck
    | BackendReply
    | CallRefused
    | TurnedTransparent
    | Close
)
