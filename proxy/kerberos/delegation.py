"""Tickets that a client has delegated: by them the proxy logs in to a backend as the client itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proxy.kerberos.errors import KerberosError
from proxy.kerberos.principals import Principal
from proxy.wire.sasl import plain_name, plain_response


@dataclass(frozen=True)
class ClientTickets:
    """Tickets of one client, in their own cache. They expire with its ticket; the last reference frees them."""

    client: Principal
    # The principal that acts for it; the client itself where the KDC gave us its tickets for a password.
    acting: Principal
    # Of python-gssapi.
    credentials: Any = field(repr=False)


def tickets_of_login(client: Principal, acting: Principal, delegated: Any | None) -> ClientTickets:
    """Return the tickets that came with a client's login. Raises KerberosError unless they are its own."""
    if delegated is None:
        raise KerberosError(f"the library gives no credentials by which {acting} can act for {client}")
    # A client chooses the tickets that it forwards, and may have those of others.
    if str(delegated.name) != str(client):
        raise KerberosError(f"{client} has forwarded tickets of {delegated.name}")
    return ClientTickets(client, acting, delegated)


class DelegatedCredentials(bytes):
    """A PLAIN response that brings its client's tickets along, to wherever connections in its name are opened.

    Nothing else hands tickets on, so those of one client never open a connection for another.
    """

    tickets: ClientTickets

    @classmethod
    def with_tickets(cls, user: str, tickets: ClientTickets) -> DelegatedCredentials:
        """Return the response of a user, by its short name, with the tickets.

        The principal stands in the password's place: two of one short name are two clients, since the server may
        tell them apart.
        """
        found = cls(plain_response(user, str(tickets.client)))
        found.tickets = tickets
        return found


def name_of_owner(credentials: bytes) -> bytes:
    """Return the name whose handles these credentials may use: the principal, where they bring tickets along."""
    if isinstance(credentials, DelegatedCredentials):
        return str(credentials.tickets.client).encode()
    return plain_name(credentials) or b""


def login_of(credentials: bytes, named: str = "") -> str:
    """Return the name by which a client is let in, or the name in its call if it gave none at the login.

    If the credentials bring tickets along, it is the principal: the server may tell two of one short name apart.
    It is empty if it is no text.
    """
    name = name_of_owner(credentials)
    try:
        return name.decode() if name else named
    except UnicodeDecodeError:
        return ""


def tickets_of(credentials: bytes) -> ClientTickets:
    """Return the tickets that come with a client's credentials. Raises KerberosError if there are none."""
    if not isinstance(credentials, DelegatedCredentials):
        raise KerberosError("there are no tickets of the client, and kerberos.act_by asks for them")
    return credentials.tickets
