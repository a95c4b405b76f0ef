"""Tickets and keys over time: renewal, a new keytab, a KDC that is gone; and sessions of the proxy's own."""

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from kerberos_realm import Realm, running_realm
from support.kdc import REALM, require_kerberos, running_kdc
from support.relay_dialogue import open_session, session_opened
from support.scripted_session import Peer, StandInServer, stage

from proxy.admin.explain_endpoint import check_login, logged_in
from proxy.backends.assembly import resolved_backends
from proxy.backends.health_checks import HealthProbe, ProbeSettings
from proxy.config.address import Address
from proxy.config.kerberos import KerberosSection
from proxy.kerberos.errors import LOGIN_FAILED, KerberosError
from proxy.kerberos.gss import acceptor_context, initiator_context
from proxy.kerberos.principals import parse_principal
from proxy.net.login_threads import step_in_thread
from proxy.upstream.errors import BackendError, LoginError
from proxy.wire.hs2.calls import encode_open_session
from proxy.wire.hs2.open_session import PROXY_USER
from proxy.wire.thrift.frames import frame

require_kerberos()
import gssapi  # noqa: E402
from support.gssapi_peer import GssPeer, RefusedError, initiator, name  # noqa: E402
from support.server_config import server_config  # noqa: E402

# Long enough for a busy machine to log in, short enough to wait for its end.
TICKET_S = 16


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm"), ticket_lifetime=f"{TICKET_S}s") as found:
        yield found


def lifetime_at_backend(realm: Realm) -> int:
    """Log in as the proxy does, and return the seconds that the ticket still has."""
    client = initiator_context(parse_principal(realm.PROXY), realm.proxy_keytab, parse_principal(realm.BACKEND))
    server = acceptor_context(parse_principal(realm.BACKEND), realm.backend_keytab)
    assert client.step(server.step(client.step(b""))) == b""
    assert client.is_complete
    return int(server._context.lifetime)  # noqa: SLF001 - the library's own answer


def test_tickets_of_the_proxy_are_renewed_before_they_end(realm: Realm) -> None:
    assert lifetime_at_backend(realm) > TICKET_S / 2
    began, lifetimes = time.monotonic(), []
    while time.monotonic() < began + 1.25 * TICKET_S:
        time.sleep(0.5)
        lifetimes.append(lifetime_at_backend(realm))
    assert min(lifetimes) > 0
    assert max(lifetimes[len(lifetimes) // 2 :]) > TICKET_S / 2, "a new one came"


async def test_a_new_key_counts_without_a_restart(
    realm: Realm, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keytab = tmp_path / "web.keytab"
    service = f"web/localhost@{REALM}"
    realm.kdc.add_service("web/localhost", keytab)
    section = realm.section(principal=service, keytab=str(keytab))
    async with stage(kerberos=section) as on:
        for _ in range(2):
            realm.kdc.log_in("anna", "secret-of-anna")
            client = GssPeer(await on.connect(), initiator(realm.ccache(), service))
            login = asyncio.create_task(client.log_in("auth-int"))
            backend = await on.backend()
            backend.send(b"\5\0\0\0\0")
            await login
            # A new version of the key: tickets with the old one are refused from now on.
            keytab.unlink()
            realm.kdc.administrate(f"ktadd -k {keytab} {service}")
        keytab.unlink()
        client = GssPeer(await on.connect(), initiator(realm.ccache(), service))
        with pytest.raises(RefusedError, match=LOGIN_FAILED):
            await client.log_in()
        assert "web.keytab cannot be read" in caplog.text


async def test_a_kdc_that_is_gone_is_told_and_blocks_nobody(tmp_path: Path) -> None:
    with running_kdc(tmp_path) as kdc, pytest.MonkeyPatch.context() as patch:
        keytab = tmp_path / "keytab"
        kdc.add_service("starpruner/localhost", keytab)
        patch.setenv("KRB5_CONFIG", kdc.environment["KRB5_CONFIG"])
    own = parse_principal(f"starpruner/localhost@{REALM}")
    context = initiator_context(own, keytab, parse_principal(f"hive/gone@{REALM}"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
        step = asyncio.create_task(step_in_thread(partial(context.step, b""), 60))
        turns = 0
        while not step.done():
            await asyncio.sleep(0)
            turns += 1
        with pytest.raises(KerberosError, match="Cannot contact any KDC"):
            await step
    assert turns > 1


async def test_a_step_that_takes_too_long_is_given_up() -> None:
    goes_on = threading.Event()
    with pytest.raises(KerberosError, match=r"took longer than 0.05 s; a KDC may be down"):
        await step_in_thread(partial(goes_on.wait, 60.0), 0.05)
    goes_on.set()


# --- sessions of the proxy's own


class Backend:
    """A backend with Kerberos for the proxy's own connections."""

    def __init__(self, realm: Realm) -> None:
        self._realm = realm
        self.peers: asyncio.Queue[Peer] = asyncio.Queue()

    async def start(self) -> Address:
        self.server = StandInServer(self.peers.put)
        return self.server.address

    async def next_login(self) -> GssPeer:
        keys = gssapi.Credentials(
            name=name(self._realm.BACKEND), usage="accept", store={"keytab": str(self._realm.backend_keytab)}
        )
        peer = GssPeer(await self.peers.get(), gssapi.SecurityContext(creds=keys, usage="accept"))
        await peer.take_login("auth-conf")
        return peer


async def test_health_checks_log_in_as_the_proxy(realm: Realm) -> None:
    backend = Backend(realm)
    address = await backend.start()
    upstream = server_config((), kerberos=realm.to_backend(backend_qop="auth-conf")).upstream()
    probe = HealthProbe(ProbeSettings("anybody", "", 30.0, 30.0), upstream)
    checking = asyncio.create_task(probe.check_login(address))
    peer = await backend.next_login()
    assert await checking is None
    assert str(peer.context.initiator_name) == realm.PROXY
    peer.peer.close()
    backend.server.close()


async def test_an_explanation_is_asked_for_as_the_user_whose_password_the_kdc_has_checked(realm: Realm) -> None:
    backend = Backend(realm)
    address = await backend.start()
    rules = ("RULE:[1:$1]s/$/_user/",)
    kerberos = realm.to_backend(backend_qop="auth-conf", plain="kdc", auth_to_local=rules)
    config = server_config((), str(address), kerberos=kerberos)
    backends, _ = await resolved_backends(config)

    async def explain(password: str) -> str:
        return await check_login(config, "anna", password, backends)

    explaining = asyncio.create_task(explain("secret-of-anna"))
    peer = await backend.next_login()
    opening = frame(encode_open_session(1, "anna_user", "anonymous", {PROXY_USER: "anna_user"}))
    await peer.expect(opening)
    peer.send(session_opened())
    assert b"CloseSession" in await peer.read_message()
    peer.peer.close()
    assert await explaining == "anna_user", "the name that the history has"
    with pytest.raises(LoginError, match=f"user 'anna': {LOGIN_FAILED}"):
        await explain("wrong")
    backend.server.close()


async def test_nobody_is_let_in_by_a_password_that_nobody_checks(realm: Realm) -> None:
    config = server_config((), kerberos=realm.to_backend())
    backends, _ = await resolved_backends(config)
    with pytest.raises(BackendError, match=LOGIN_FAILED):
        async with logged_in(config, "anna", "x", None, backends):
            pass


async def test_a_client_whose_backend_is_gone_is_told_so(realm: Realm) -> None:
    section: KerberosSection = realm.to_backend()
    realm.kdc.log_in("anna", "secret-of-anna")
    async with stage(kerberos=section, backend_port=1) as on:
        client = GssPeer(await on.connect(), initiator(realm.ccache(), realm.PROXY))
        with pytest.raises(RefusedError, match="cannot use the backend"):
            await client.log_in()


async def test_a_connection_outlives_the_ticket_that_it_was_opened_by(realm: Realm) -> None:
    realm.kdc.log_in("anna", "secret-of-anna")
    async with stage(kerberos=realm.section()) as on:
        client = GssPeer(await on.connect(), initiator(realm.ccache(), realm.PROXY))
        login = asyncio.create_task(client.log_in("auth-conf"))
        backend = await on.backend()
        backend.send(b"\5\0\0\0\0")
        await login
        await asyncio.sleep(TICKET_S + 1)
        client.send(open_session())
        backend.send(session_opened())
        await client.expect(session_opened())
