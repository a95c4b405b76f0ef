"""Clients and backends that log in by Kerberos, on the sockets of a scripted session."""

import asyncio
from typing import Any

import gssapi
from kerberos_realm import Realm
from support.gssapi_peer import QOPS as BITS
from support.gssapi_peer import GssPeer, initiator, name
from support.relay_dialogue import ACCEPTED, SESSION, open_session, session_opened
from support.scripted_session import Stage

from proxy.wire.hs2.calls import encode_open_session
from proxy.wire.hs2.open_session import PROXY_USER
from proxy.wire.sasl import plain_start
from proxy.wire.thrift.frames import frame

QOPS = tuple(BITS)


def client_context(realm: Realm, user: str = "anna") -> Any:
    return initiator(realm.ccache(user), realm.PROXY)


def backend_context(realm: Realm) -> Any:
    keys = gssapi.Credentials(
        name=name(realm.BACKEND), usage="accept", store={"keytab": str(realm.backend_keytab)}
    )
    return gssapi.SecurityContext(creds=keys, usage="accept")


async def unlogged_client(on: Stage, realm: Realm, user: str = "anna") -> GssPeer:
    return GssPeer(await on.connect(), client_context(realm, user))


async def logged_in(
    on: Stage, realm: Realm, qop: str, backend_qop: str | None = None, user: str = "anna"
) -> tuple[GssPeer, GssPeer]:
    """A client and its backend; without a QOP the backend asks for no Kerberos."""
    client = await unlogged_client(on, realm, user)
    login = asyncio.create_task(client.log_in(qop))
    backend = GssPeer(await on.backend(), None)
    if backend_qop is None:
        await backend.peer.expect(plain_start(user, "anonymous"))
        backend.peer.send(ACCEPTED)
    else:
        backend.context = backend_context(realm)
        await backend.take_login(*QOPS)
    await login
    return client, backend


def opening_for(user: str, seqid: int = 1) -> bytes:
    return frame(encode_open_session(seqid, "user", "password", {PROXY_USER: user}))


async def open_both(client: GssPeer, backend: GssPeer, opening: bytes, handle: Any = SESSION) -> None:
    client.send(open_session())
    await backend.expect(opening)
    backend.send(session_opened(session=handle))
    await client.expect(session_opened(session=handle))
