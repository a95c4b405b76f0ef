"""The proxy's own login at a backend by Kerberos, over whatever reads and writes its bytes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from proxy.config.address import Address
from proxy.config.kerberos import BackendKerberos
from proxy.kerberos.backend_login import BackendLogin
from proxy.kerberos.context import Context
from proxy.kerberos.delegation import tickets_of
from proxy.kerberos.errors import KerberosError, PeerRefusedError
from proxy.kerberos.gss import delegated_context, initiator_context
from proxy.kerberos.principals import Principal
from proxy.kerberos.security_layer import SecurityLayer
from proxy.kerberos.ticket_caches import TICKET_CACHES
from proxy.net.login_threads import step_in_thread
from proxy.net.own_host import own_host
from proxy.wire.sasl import SaslReader
from proxy.wire.thrift.errors import RemoteProtocolError


@dataclass(frozen=True)
class _Login:
    """One login at a backend: the user in words for a sentence, the backend's principal, and the context."""

    user: str
    peer: Principal
    context: Context


def principal_of_login(kerberos: BackendKerberos, credentials: bytes) -> str:
    """Return the principal as which the proxy logs in: its own, or that of the client with these credentials.

    Raises KerberosError if they have to bring tickets and bring none.
    """
    if kerberos.delegates:
        return str(tickets_of(credentials).client)
    return str(kerberos.own.at_host(own_host()).principal)


def _login(kerberos: BackendKerberos, address: Address, credentials: bytes) -> _Login:
    peer = kerberos.principal.at_host(address.name or address.host)
    if kerberos.delegates:
        tickets = tickets_of(credentials)
        return _Login(f"{tickets.client} (by delegation)", peer, delegated_context(tickets, peer))
    own = kerberos.own.at_host(own_host())
    return _Login(str(own.principal), peer, initiator_context(own.principal, own.keytab, peer))


async def log_in_by_kerberos(  # noqa: PLR0913, PLR0917 - who logs in where, and the stream for it
    kerberos: BackendKerberos,
    address: Address,
    credentials: bytes,
    read: Callable[[], Awaitable[bytes]],
    write: Callable[[bytes], object],
    step_s: float,
) -> SecurityLayer | None:
    """Log in, and return the layer that what follows is wrapped in.

    The login is as the proxy itself, or by the tickets that come with the client's `credentials`. `read` waits for
    the next bytes. Raises KerberosError if the login fails, RemoteProtocolError for a peer of another protocol.
    """
    own = _login(kerberos, address, credentials)
    login = BackendLogin(own.context, kerberos.protection)
    try:
        write(await step_in_thread(login.start, step_s))
        replies = SaslReader()
        while not login.is_over:
            while (message := replies.next_message()) is None:
                replies.feed(await read())
            answer = await step_in_thread(partial(login.answer, message), step_s)
            if answer:
                write(answer)
    except KerberosError as error:
        if isinstance(error, PeerRefusedError) and not kerberos.delegates:
            TICKET_CACHES.login_refused()
        raise KerberosError(f"the login as {own.user} to {own.peer} failed: {error}") from None
    if replies.leftover():
        raise RemoteProtocolError("said more than was asked")
    return login.layer


async def negotiate_authorization(
    kerberos: BackendKerberos, address: Address, credentials: bytes, step_s: float
) -> str:
    """Return the Authorization header of one request (SPNEGO), as `log_in_by_kerberos` logs in.

    HiveServer2 sends no token back: TLS alone proves the server. Raises KerberosError.
    """
    own = _login(kerberos, address, credentials)
    try:
        token = await step_in_thread(partial(own.context.step, b""), step_s)
    except KerberosError as error:
        raise KerberosError(f"the login as {own.user} to {own.peer} failed: {error}") from None
    return f"Negotiate {b64encode(token).decode()}"
