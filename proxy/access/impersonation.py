"""Impersonation in OpenSession calls: the users for whom a login may act.

Spark Thrift Server with authentication NONE lets every user act for every other, and with another authentication
asks Hadoop's own rules. Behind the proxy no user may act for others unless the configuration allows it. That holds
for `hive.server2.proxy.user` of an OpenSession, and for `doAs` over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from proxy.wire.hs2.open_session import proxy_user_of, user_of, with_proxy_user, with_user
from proxy.wire.thrift.messages import Message

EVERYBODY: Final = "*"
# The longest name in an answer or a log line: a client may send any.
NAME_CHARS_MAX: Final = 100


@dataclass(frozen=True)
class SessionRefusal:
    """The proxy opens no session, and sends the client this sentence."""

    sentence: str


@dataclass(frozen=True)
class Impersonation:
    """The rules for one connection's OpenSession calls."""

    proxy_users: ProxyUsers
    # True if the backend asks for no login, and takes the client to be the user that the call names.
    names_user: bool = False
    # True if the proxy logs in to the backend as itself. It then names the client in `hive.server2.proxy.user`,
    # the setting by which a client asks to act for another.
    acts_for_login: bool = False

    def check_open_session(self, message: Message, login: str | None) -> Message | SessionRefusal:
        """Return the call to forward. Raises RemoteProtocolError if the server could read it otherwise."""
        wanted = proxy_user_of(message)
        if wanted is not None:
            sentence = self.proxy_users.refusal(user_of(message) if login is None else login, wanted)
            if sentence is not None:
                return SessionRefusal(sentence)
        if self.acts_for_login and not wanted:
            if not login:
                return SessionRefusal("Starpruner: a client without a name has no session")
            return with_proxy_user(message, login)
        # The user is the login, as on a server that asks for one: such a server ignores the name in the call.
        return with_user(message, login) if self.names_user and login is not None else message


@dataclass(frozen=True)
class ProxyUsers:
    """Logins, and the users that each may act for. `*` means every user, on either side."""

    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def refusal(self, login: str | None, wanted: str) -> str | None:
        """Return why the login may not act for that user, None if it may. A login that gave no name is None."""
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
