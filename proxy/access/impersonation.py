"""OpenSession calls: which of them go on to the backend, in whose name, and who may act for whom.

Spark Thrift Server with authentication NONE lets anybody act for anybody, and with another one asks Hadoop's
own rules. What a proxy lets through has to be said to it: nobody may act for others until the configuration
names him. That holds for `hive.server2.proxy.user` of an OpenSession, and for `doAs` over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from proxy.wire.hs2.open_session import proxy_user_of, user_of, with_user
from proxy.wire.thrift.messages import Message

EVERYBODY: Final = "*"
# Of a name in an answer or a log line. A client may ask for any.
NAME_CHARS_MAX: Final = 100


@dataclass(frozen=True)
class Refusal:
    """No session is opened, and the client is told why."""

    sentence: str


@dataclass(frozen=True)
class Impersonation:
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


@dataclass(frozen=True)
class ProxyUsers:
    """Logins, and the users that each may act for. `*` stands for everybody on either side."""

    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def refusal(self, login: str | None, wanted: str) -> str | None:
        """Why the login may not act for that user, or None where it may. None is a login that gave no name."""
        if login is not None and wanted == login:
            return None
        for name in (login, EVERYBODY):
            users = self.allowed.get(name, ()) if name is not None else ()
            if wanted in users or EVERYBODY in users:
                return None
        who = "a client without a login" if login is None else f"user {_shown(login)}"
        return f"Starpruner: {who} may not act for user {_shown(wanted)}; the section [proxy_users] says who may"


def _shown(name: str) -> str:
    return repr(name if len(name) <= NAME_CHARS_MAX else f"{name[:NAME_CHARS_MAX]}..")


NOBODY: Final = ProxyUsers()
