"""Which OpenSession calls go on to the backend, and in whose name."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.proxy_users import ProxyUsers
from proxy.wire.hs2.open_session import proxy_user_of, user_of, with_user
from proxy.wire.thrift.messages import Message


@dataclass(frozen=True)
class Refusal:
    """No session is opened, and the client is told why."""

    sentence: str


@dataclass(frozen=True)
class Admission:
    """What one connection's calls are held to."""

    proxy_users: ProxyUsers
    # Whether the backend asks nobody for a login, and believes the name in the call.
    names_user: bool = False

    def decide(self, message: Message, login: str | None) -> Message | Refusal:
        """The call as it goes on. Raises RemoteProtocolError where the server could read it otherwise."""
        wanted = proxy_user_of(message)
        if wanted is not None:
            sentence = self.proxy_users.refusal(user_of(message) if login is None else login, wanted)
            if sentence is not None:
                return Refusal(sentence)
        # Who has logged in is who it is, as on a server that asks: the name in the call is not asked for there.
        return with_user(message, login) if self.names_user and login is not None else message
