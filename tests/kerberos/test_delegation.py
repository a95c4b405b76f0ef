"""The proxy at a backend as the client itself, by the client's own tickets, against a KDC that keeps who may."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kerberos_realm import Realm, running_realm
from support.kdc import REALM, require_kerberos
from support.ldap_directory import missing_directory_parts
from support.relay_dialogue import ACCEPTED, open_session, session_opened
from support.scripted_session import Peer, Stage, StandInServer, stage

from proxy.admin.explain_endpoint import check_login
from proxy.backends.assembly import resolved_backends
from proxy.backends.health_checks import HealthProbe, ProbeSettings
from proxy.config.address import Address
from proxy.config.kerberos import KerberosSection
from proxy.kerberos.client_login import Accepted, Challenge
from proxy.kerberos.delegation import DelegatedCredentials
from proxy.upstream.binary_link import BinaryLink
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import OwnLoginError
from proxy.wire.hs2.calls import encode_open_session
from proxy.wire.sasl import plain_response, plain_start
from proxy.wire.thrift.frames import frame

require_kerberos()
if reason := missing_directory_parts():
    pytest.skip(reason, allow_module_level=True)
import gssapi  # noqa: E402
from support.gssapi_peer import GssPeer, RefusedError, initiator, name  # noqa: E402
from support.server_config import server_config  # noqa: E402

# Of a short ticket: long enough for a busy machine to log in, short enough to wait for its end.
TICKET_S = 12
NOT_ALLOWED = f"web/localhost@{REALM}"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as found:
        found.kdc.let_delegate("starpruner/localhost", "hive/127.0.0.1")
        found.kdc.add_service("web/localhost", found.proxy_keytab)
        yield found


def delegating(realm: Realm, **keys: object) -> KerberosSection:
    return realm.to_backend(**{"act_by": "delegation", "backend_qop": "auth-conf", **keys})


async def backend_peer(on: Stage, realm: Realm) -> GssPeer:
    return await logged_in_peer(await on.backend(), realm)


async def logged_in_peer(peer: Peer, realm: Realm) -> GssPeer:
    keys = gssapi.Credentials(
        name=name(realm.BACKEND), usage="accept", store={"keytab": str(realm.backend_keytab)}
    )
    backend = GssPeer(peer, gssapi.SecurityContext(creds=keys, usage="accept"))
    await backend.take_login("auth-conf")
    return backend


def forwarding(realm: Realm, service: str) -> Any:
    """A client's context that sends the client's ticket-granting ticket along."""
    credentials = gssapi.Credentials(usage="initiate", store={"ccache": realm.ccache()})
    flag = gssapi.RequirementFlag
    wanted: Any = [flag.mutual_authentication, flag.integrity, flag.delegate_to_peer]
    return gssapi.SecurityContext(name=name(service), creds=credentials, usage="initiate", flags=wanted)


@pytest.mark.parametrize("user", ["anna", "bob"])
async def test_the_backend_sees_the_client_itself(realm: Realm, user: str) -> None:
    async with stage(kerberos=delegating(realm)) as on:
        client = GssPeer(await on.connect(), initiator(realm.ccache(user), realm.PROXY))
        login = asyncio.create_task(client.log_in("auth-conf"))
        backend = await backend_peer(on, realm)
        assert str(backend.context.initiator_name) == f"{user}@{REALM}"
        await login
        client.send(open_session())
        # The session says of nobody that it is for him.
        await backend.expect(open_session())
        backend.send(session_opened())
        await client.expect(session_opened())


async def test_a_ticket_granting_ticket_needs_no_rights_of_ours(realm: Realm) -> None:
    async with stage(kerberos=delegating(realm, principal=NOT_ALLOWED)) as on:
        client = GssPeer(await on.connect(), forwarding(realm, NOT_ALLOWED))
        login = asyncio.create_task(client.log_in())
        backend = await backend_peer(on, realm)
        assert str(backend.context.initiator_name) == f"anna@{REALM}"
        await login


async def test_a_client_whom_the_kdc_lets_nobody_act_for_is_told_so(realm: Realm) -> None:
    async with stage(kerberos=delegating(realm, principal=NOT_ALLOWED)) as on:
        client = GssPeer(await on.connect(), initiator(realm.ccache(), NOT_ALLOWED))
        words = rf"anna@{REALM} \(by delegation\).* the KDC has to let {NOT_ALLOWED} delegate to {realm.BACKEND}"
        with pytest.raises(RefusedError, match=words):
            await client.log_in()


async def test_a_client_whose_ticket_cannot_be_forwarded_is_told_so(realm: Realm) -> None:
    realm.kdc.log_in("bob", "secret-of-bob", "-F")
    try:
        async with stage(kerberos=delegating(realm)) as on:
            client = GssPeer(await on.connect(), initiator(realm.ccache("bob"), realm.PROXY))
            with pytest.raises(RefusedError, match=r"the client's ticket has to be forwardable \(kinit -f\)"):
                await client.log_in()
    finally:
        realm.kdc.log_in("bob", "secret-of-bob")


async def test_a_password_gives_tickets_too(realm: Realm) -> None:
    async with stage(kerberos=delegating(realm, plain="kdc")) as on:
        client = await on.connect()
        client.send(plain_start("anna", "secret-of-anna"))
        backend = await backend_peer(on, realm)
        assert str(backend.context.initiator_name) == f"anna@{REALM}"
        await client.expect(ACCEPTED)


# --- further connections in a client's name, and the proxy's own


def credentials_of(realm: Realm, user: str) -> bytes:
    """Of a client that logs in to the proxy."""
    logins = delegating(realm).client_logins("localhost", 1024)
    assert logins is not None
    login, context = logins.login_by(b"GSSAPI"), initiator(realm.ccache(user), realm.PROXY)
    answer = context.step()
    while not context.complete:
        step = login.step(answer)
        assert isinstance(step, Challenge)
        answer = context.step(step.token) or b""
    offer = login.step(answer)
    assert isinstance(offer, Challenge)
    accepted = login.step(context.wrap(b"\1\0\0\0", False).message)  # noqa: FBT003
    assert isinstance(accepted, Accepted)
    return accepted.credentials


class Backend:
    """A backend for connections of the proxy's own."""

    def __init__(self, realm: Realm) -> None:
        self._realm = realm
        self._peers: asyncio.Queue[Peer] = asyncio.Queue()
        self._all: list[Peer] = []

    async def start(self) -> Address:
        async def meet(peer: Peer) -> None:
            self._all.append(peer)
            self._peers.put_nowait(peer)

        self.server = StandInServer(meet)
        return self.server.address

    async def next_login(self) -> GssPeer:
        return await logged_in_peer(await self._peers.get(), self._realm)

    async def stop(self) -> None:
        self.server.close()
        for peer in self._all:
            await peer.closed()


@pytest.fixture
async def backend(realm: Realm) -> Any:
    found = Backend(realm)
    yield found
    await found.stop()


async def test_connections_of_a_client_are_opened_by_its_own_tickets(realm: Realm, backend: Backend) -> None:
    address = await backend.start()
    dialer = Dialer(server_config((), kerberos=delegating(realm)).upstream())
    credentials = {user: credentials_of(realm, user) for user in ("anna", "bob")}
    for user in ("anna", "bob", "bob", "anna"):
        link = BinaryLink(address, dialer, 30.0)
        opening = asyncio.create_task(link.open(credentials[user], "a client"))
        peer = await backend.next_login()
        assert str(peer.context.initiator_name) == f"{user}@{REALM}"
        await opening
        link.close()
        peer.peer.close()


async def test_without_tickets_of_the_client_nothing_is_opened(realm: Realm, backend: Backend) -> None:
    address = await backend.start()
    link = BinaryLink(address, Dialer(server_config((), kerberos=delegating(realm)).upstream()), 30.0)
    with pytest.raises(OwnLoginError, match="there are no tickets of the client"):
        await link.open(plain_response("anna", "anonymous"), "a client")


async def test_tickets_end_with_the_clients(realm: Realm, backend: Backend) -> None:
    address = await backend.start()
    realm.kdc.log_in("bob", "secret-of-bob", "-l", f"{TICKET_S}s")
    ended = time.monotonic() + TICKET_S + 1
    credentials = credentials_of(realm, "bob")
    realm.kdc.log_in("bob", "secret-of-bob")
    dialer = Dialer(server_config((), kerberos=delegating(realm)).upstream())
    await asyncio.sleep(max(0, ended - time.monotonic()))
    link = BinaryLink(address, dialer, 30.0)
    with pytest.raises(OwnLoginError, match=rf"the ticket of bob@{REALM} has ended: log in anew"):
        await link.open(credentials, "a client")


async def test_health_checks_log_in_as_the_proxy(realm: Realm, backend: Backend) -> None:
    address = await backend.start()
    upstream = server_config((), kerberos=delegating(realm)).upstream()
    checking = asyncio.create_task(
        HealthProbe(ProbeSettings("anybody", "", 30.0, 30.0), upstream).check_login(address)
    )
    peer = await backend.next_login()
    assert await checking is None
    assert str(peer.context.initiator_name) == realm.PROXY
    peer.peer.close()


async def test_an_explanation_is_asked_for_by_the_users_tickets(realm: Realm, backend: Backend) -> None:
    config = server_config((), str(await backend.start()), kerberos=delegating(realm, plain="kdc"))
    backends, _ = await resolved_backends(config)
    explaining = asyncio.create_task(check_login(config, "anna", "secret-of-anna", backends))
    peer = await backend.next_login()
    assert str(peer.context.initiator_name) == f"anna@{REALM}"
    await peer.expect(frame(encode_open_session(1, "anna", "anonymous", {})))
    peer.send(session_opened())
    assert b"CloseSession" in await peer.read_message()
    peer.peer.close()
    assert await explaining == "anna"


def test_tickets_are_in_no_text(realm: Realm) -> None:
    credentials = credentials_of(realm, "anna")
    assert isinstance(credentials, DelegatedCredentials)
    assert credentials == plain_response("anna", f"anna@{REALM}")
    assert "gssapi" not in repr(credentials) + repr(credentials.tickets)
