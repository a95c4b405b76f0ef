"""The proxy's login at a backend over the binary protocol, over whatever reads and writes its bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from proxy.config.address import Address
from proxy.config.endpoints import Transport, UpstreamSection
from proxy.kerberos.security_layer import SecurityLayer
from proxy.upstream.errors import LoginError
from proxy.upstream.kerberos_login import log_in_by_kerberos
from proxy.wire.sasl import SaslReader, SaslStatus, plain_start_with
from proxy.wire.thrift.errors import RemoteProtocolError


async def log_in(  # noqa: PLR0913, PLR0917 - who logs in where, and the stream for it
    upstream: UpstreamSection,
    address: Address,
    credentials: bytes,
    read: Callable[[], Awaitable[bytes]],
    write: Callable[[bytes], object],
    step_s: float,
) -> SecurityLayer | None:
    """Log in as the backend asks for it, and return the layer that all that follows is wrapped in, if any.

    `credentials` are a PLAIN response. By Kerberos the proxy logs in as itself, or by the tickets that come with
    them: the caller has checked whose these are. `read` waits for the next bytes.
    Raises LoginError with the backend's words, KerberosError, or RemoteProtocolError for a peer that speaks
    something else.
    """
    if upstream.transport is Transport.NOSASL:
        return None
    if upstream.kerberos is not None:
        return await log_in_by_kerberos(upstream.kerberos, address, credentials, read, write, step_s)
    write(plain_start_with(credentials))
    replies = SaslReader()
    while (message := replies.next_message()) is None:
        replies.feed(await read())
    if message.status is not SaslStatus.COMPLETE:
        raise LoginError(message.body.decode("utf-8", "replace") or "no reason given")
    if replies.leftover():
        raise RemoteProtocolError("said more than was asked")
    return None
