"""Events of sessions and statements that connections report, whatever transport they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from proxy.operations.dispatch import Dispatch, Outcome
from proxy.wire.hs2.calls import SessionHandle


@dataclass(frozen=True)
class SessionOpened:
    """The backend has opened a session for this client."""

    session: SessionHandle = field(repr=False)
    protocol_version: int
    # The client's settings of the session, or None if they were too long to be read. They may hold passwords.
    configuration: Mapping[str, str] | None = field(default_factory=dict, repr=False)
    # The name in the call, which a server that asks for no login believes.
    user: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SessionClosed:
    """The client asked for the session's end."""

    session: SessionHandle = field(repr=False)


@dataclass(frozen=True)
class StatementPassed:
    """A statement has gone on without a decision. It may write, or change its session, all the same."""

    session: SessionHandle = field(repr=False)
    statement: str = field(repr=False)


@dataclass(frozen=True)
class StatementEnded:
    """A statement with a dispatch has ended. The outcome is for the session that decided about it."""

    dispatch: Dispatch
    outcome: Outcome


Event: TypeAlias = SessionOpened | SessionClosed | StatementPassed | StatementEnded
