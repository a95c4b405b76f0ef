"""Logins of clients, by the mechanism that they ask for: GSSAPI, or PLAIN as the configuration says."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

from proxy.kerberos.backend_login import GSSAPI
from proxy.kerberos.client_login import UNCHECKED_PASSWORD, Accepted, ClientLogin, GssapiLogin, LoginStep
from proxy.kerberos.delegation import ClientTickets, DelegatedCredentials, tickets_of_login
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.gss import acceptor_context, check_password
from proxy.kerberos.name_rules import NameRules
from proxy.kerberos.principals import Principal, parse_principal
from proxy.kerberos.protection import Protection
from proxy.wire.sasl import PLAIN, mechanism_name, plain_response

# A PLAIN response: a user to act for, a name, a password.
_PLAIN_WORDS: Final = 3
_NOT_IN_USERS: Final = re.compile(r"[/@\\]")


class PlainLogins(Enum):
    """The judge of a password that a client sends by PLAIN."""

    REFUSE = "refuse"
    KDC = "kdc"


@dataclass(frozen=True)
class ServiceKey:
    """A principal of our own, and the file with its key."""

    principal: Principal
    keytab: Path

    def at_host(self, host: str) -> ServiceKey:
        """Return it with that host in the place of `_HOST`."""
        return ServiceKey(self.principal.at_host(host), self.keytab)


@dataclass(frozen=True)
class ClientLogins:
    """The logins that a listener takes. Raises KerberosError for others."""

    # None: no client can log in by Kerberos here.
    service: ServiceKey | None
    # The same for clients over HTTP.
    http_service: ServiceKey | None
    # The principal by which a KDC proves itself where it checks a password.
    password_service: ServiceKey
    protections: Collection[Protection]
    rules: NameRules
    plain: PlainLogins
    data_bytes_max: int
    # True if the proxy logs in to the backends by the clients' tickets.
    delegates: bool = False

    def login_by(self, mechanism: bytes) -> ClientLogin:
        """Begin a login by that mechanism of SASL."""
        if mechanism == GSSAPI and self.service is not None:
            own = self.service.principal
            begin = partial(acceptor_context, own, self.service.keytab, delegates=self.delegates)
            acting = own if self.delegates else None
            return GssapiLogin(begin, self.protections, self.rules, self.data_bytes_max, acting)
        if mechanism == PLAIN and self.plain is not PlainLogins.REFUSE:
            return _PlainLogin(self)
        taken = [
            *(["GSSAPI"] if self.service else []),
            *(["PLAIN"] if self.plain is not PlainLogins.REFUSE else []),
        ]
        raise KerberosError(
            f"a login by {mechanism_name(mechanism)} is not taken here, by {' or '.join(taken)} it is"
        )

    def credentials_with_ticket(self, token: bytes) -> tuple[bytes, bytes]:
        """Return the login of a user who has sent one token (SPNEGO), and our own token, which proves the proxy.

        The login is as `credentials_with_password` has it. It may wait for files.
        """
        if self.http_service is None:
            raise KerberosError("a login by Kerberos is not taken here")
        own = self.http_service.principal
        context = acceptor_context(own, self.http_service.keytab, negotiates=True, delegates=self.delegates)
        answer = context.step(token)
        if not context.is_complete:
            raise KerberosError("it takes more than one token")
        client = parse_principal(context.initiator)
        tickets = tickets_of_login(client, own, context.delegated) if self.delegates else None
        return self._credentials(client, tickets), answer

    def credentials_with_password(self, user: str, password: bytes) -> bytes:
        """Return the login of other connections, by the short name of a user whose password the KDC has checked.

        It may wait for the KDC.
        """
        if self.plain is not PlainLogins.KDC:
            raise KerberosError('passwords are not checked: kerberos.plain is not "kdc"')
        if _NOT_IN_USERS.search(user):
            # Such a name has a realm, an instance or an escape: a typed name is one of the default realm.
            raise KerberosError(f"{user[:100]!r} is no name to log in with: it has one of / @ \\")
        service = self.password_service
        tickets = check_password(user, password, service.principal, service.keytab)
        return self._credentials(tickets.client, tickets if self.delegates else None)

    def _credentials(self, client: Principal, tickets: ClientTickets | None) -> bytes:
        short_name = self.rules.short_name(client)
        if tickets is None:
            return plain_response(short_name, UNCHECKED_PASSWORD)
        return DelegatedCredentials.with_tickets(short_name, tickets)


class _PlainLogin:
    """A login by name and password."""

    checks_password: Final = True

    def __init__(self, logins: ClientLogins) -> None:
        self._logins = logins

    def step(self, response: bytes) -> LoginStep:
        """See ClientLogin."""
        words = response.split(b"\0")
        if len(words) != _PLAIN_WORDS:
            raise KerberosError(f"a PLAIN response has {_PLAIN_WORDS} words, not {len(words)}")
        authorization, name, password = words
        if authorization not in (b"", name):
            raise KerberosError("nobody can act for others by SASL")
        try:
            user = name.decode()
        except UnicodeDecodeError:
            raise KerberosError("the user's name is no text") from None
        return Accepted(self._logins.credentials_with_password(user, password))
