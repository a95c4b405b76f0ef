"""Clients over HTTP that log in by SPNEGO, before backends with Kerberos and without."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kerberos_realm import Realm, running_realm
from support.http_stage import HTTP_TO_BINARY, Asked, basic, body_of, message, ok, response, stage
from support.kdc import REALM, require_kerberos
from support.relay_dialogue import (
    ACCEPTED,
    SESSION,
    close_session,
    execute,
    executed,
    fetch,
    open_session,
    reply,
    session_opened,
)

from proxy.backends.circuit_breaker import CircuitBreaker
from proxy.config.memory_shares import AMPLE
from proxy.wire.hs2.calls import SessionHandle, encode_open_session
from proxy.wire.hs2.open_session import PROXY_USER
from proxy.wire.sasl import plain_start
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.writer import Writer

require_kerberos()
import gssapi  # noqa: E402
from support.gssapi_peer import GssPeer, name  # noqa: E402

OPEN, OPENED = message(open_session()), message(session_opened())


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as found:
        yield found


def client_context(realm: Realm, user: str = "anna", **keys: Any) -> Any:
    credentials = gssapi.Credentials(usage="initiate", store={"ccache": realm.ccache(user)})
    return gssapi.SecurityContext(name=name(realm.PROXY), creds=credentials, usage="initiate", **keys)


def negotiate(realm: Realm, user: str = "anna", mechanism: Any = None) -> dict[str, str]:
    """The login of one request; each needs one of its own."""
    context = client_context(realm, user, mech=mechanism)
    return {"Authorization": f"Negotiate {b64encode(context.step()).decode()}"}


@pytest.mark.parametrize("mechanism", ["1.2.840.113554.1.2.2", "1.3.6.1.5.5.2"], ids=["kerberos", "spnego"])
async def test_a_client_over_http_goes_on_under_its_short_name(realm: Realm, mechanism: str) -> None:
    oid = gssapi.OID.from_int_seq(mechanism)
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.section()) as on:
        post = on.start(OPEN, negotiate(realm, mechanism=oid))
        link = await on.link()
        await link.expect(plain_start("anna", "anonymous"))
        link.send(ACCEPTED)
        await link.expect(open_session())
        link.send(session_opened())
        assert await body_of(post) == OPENED
        post = on.start(message(close_session()), negotiate(realm))
        await link.expect(close_session())
        link.send(reply("CloseSession"))
        assert await body_of(post) == message(reply("CloseSession"))


async def test_hive_jdbcs_colon_is_stepped_over(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.section()) as on:
        login = {"Authorization": negotiate(realm)["Authorization"].replace("Negotiate ", "Negotiate : ")}
        post = on.start(OPEN, login)
        link = await on.link()
        await link.expect(plain_start("anna", "anonymous"))
        post.cancel()
        await asyncio.sleep(0)


async def test_the_proxy_logs_in_to_the_backend_and_acts_for_the_client(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.to_backend(backend_qop="auth-conf")) as on:
        post = on.start(OPEN, negotiate(realm))
        backend = await kerberized(on.link(), realm)
        await backend.expect(frame(encode_open_session(1, "user", "password", {PROXY_USER: "anna"})))
        backend.send(session_opened())
        assert await body_of(post) == OPENED
        bobs = on.start(message(fetch()), negotiate(realm, "bob"))
        other = await kerberized(on.link(), realm)
        await other.expect(fetch())
        other.send(reply("FetchResults"))
        await body_of(bobs)
        bobs = on.start(message(close_session()), negotiate(realm, "bob"))
        assert await other.read_message() != message(close_session()), "the handle is overwritten"
        other.send(reply("CloseSession"))
        await body_of(bobs)


async def kerberized(link: Any, realm: Realm) -> GssPeer:
    keys = gssapi.Credentials(
        name=name(realm.BACKEND), usage="accept", store={"keytab": str(realm.backend_keytab)}
    )
    backend = GssPeer(await link, gssapi.SecurityContext(creds=keys, usage="accept"))
    await backend.take_login("auth", "auth-conf")
    return backend


async def test_a_failed_login_of_our_own_counts_against_no_backend(
    realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[object] = []
    monkeypatch.setattr(CircuitBreaker, "record_failure", counted.append)
    section = realm.to_backend(own_principal=f"nobody/localhost@{REALM}")
    async with stage(sides=HTTP_TO_BINARY, kerberos=section) as on:
        for _ in range(10):
            _, said, _ = await on.post(OPEN, negotiate(realm))
            assert f"the login as nobody/localhost@{REALM}".encode() in said
            assert b"does not speak" not in said
    assert not counted


async def test_a_reply_that_never_fits_is_told_and_counts_against_no_backend(
    realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[object] = []
    monkeypatch.setattr(CircuitBreaker, "record_failure", counted.append)
    rows = reply("FetchResults", 1, Writer().binary(3, bytes(2 * 1024 * 1024)))
    memory = replace(AMPLE, reply_bytes=len(rows))
    async with stage(
        sides=HTTP_TO_BINARY, kerberos=realm.to_backend(backend_qop="auth-conf"), memory=memory
    ) as on:
        post = on.start(message(fetch()), negotiate(realm))
        backend = await kerberized(on.link(), realm)
        await backend.expect(fetch())
        backend.send(rows)
        _, said, _ = await post
        assert b"no memory for a reply of 2 MB (memory_bytes_max): fetch fewer rows at once" in said
    assert not counted


async def test_a_request_without_a_login_is_told_how_to(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.section()) as on:
        for headers in ({}, basic(), {"Authorization": "Negotiate !"}, {"Authorization": "Negotiate "}):
            status, _, got = await on.post(OPEN, headers)
            assert status == 401
            assert got.headers.getall("WWW-Authenticate") == ["Negotiate"]


async def test_the_proxy_proves_who_it_is(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.section()) as on:
        context = client_context(realm, flags=[gssapi.RequirementFlag.mutual_authentication])
        post = on.start(OPEN, {"Authorization": f"Negotiate {b64encode(context.step()).decode()}"})
        link = await on.link()
        await link.expect(plain_start("anna", "anonymous"))
        link.send(ACCEPTED)
        await link.expect(open_session())
        link.send(session_opened())
        status, _, got = await post
        scheme, _, token = got.headers["WWW-Authenticate"].partition(" ")
        assert (status, scheme) == (200, "Negotiate")
        assert not context.complete
        context.step(b64decode(token))
        assert context.complete


# --- backends that speak HTTP


def proven(realm: Realm, asked: Asked) -> str:
    """The principal of a request to the backend."""
    (authorization,) = asked.header("Authorization")
    keys = gssapi.Credentials(
        name=name(realm.BACKEND), usage="accept", store={"keytab": str(realm.backend_keytab)}
    )
    context = gssapi.SecurityContext(creds=keys, usage="accept")
    context.step(b64decode(authorization.removeprefix("Negotiate ")))
    return str(context.initiator_name)


async def test_the_proxy_logs_in_over_http_by_a_ticket_for_each_request(realm: Realm) -> None:
    async with stage(kerberos=realm.to_backend()) as on:
        client = negotiate(realm) | {"Cookie": "hive.server2.auth=cu=bob&rn=1&s=x="}
        post = on.start(OPEN, client)
        asked = await on.backend.next()
        assert proven(realm, asked) == realm.PROXY
        assert asked.body == encode_open_session(1, "user", "password", {PROXY_USER: "anna"})
        assert asked.header("Cookie") == []
        asked.answer(ok(OPENED, "Set-Cookie: hive.server2.auth=cu=starpruner&rn=1&s=x=", "X-Kept: 1"))
        status, body, got = await post
        assert (status, body, got.headers["X-Kept"]) == (200, OPENED, "1")
        assert "Set-Cookie" not in got.headers, "it would let the client in as the proxy"
        post = on.start(message(fetch()), negotiate(realm))
        asked = await on.backend.next()
        assert proven(realm, asked) == realm.PROXY
        asked.answer(ok(message(reply("FetchResults"))))
        assert await body_of(post) == message(reply("FetchResults"))
        # A handle stays its owner's.
        post = on.start(message(close_session()), negotiate(realm, "bob"))
        asked = await on.backend.next()
        assert asked.body != message(close_session())
        asked.answer(ok(message(reply("CloseSession"))))
        await post


async def test_a_session_goes_on_by_its_own_cookie(realm: Realm) -> None:
    """Although every session has one of the same user, the proxy."""
    cookies = {}
    async with stage(kerberos=realm.to_backend()) as on:
        for user in ("anna", "bob"):
            post = on.start(OPEN, negotiate(realm, user))
            asked = await on.backend.next()
            assert proven(realm, asked) == realm.PROXY
            cookies[user] = f"hive.server2.auth=cu=starpruner&rn={user}&s=x="
            session = SessionHandle(SESSION.replace(b"session", user.encode().ljust(7, b"_")))
            opened = message(session_opened(session=session))
            asked.answer(ok(opened, f"Set-Cookie: {cookies[user]}; HttpOnly"))
            status, body, got = await post
            assert (status, body) == (200, opened)
            assert "Set-Cookie" not in got.headers
            call = message(execute("SELECT 1", session=session))
            post = on.start(call, negotiate(realm, user))
            asked = await on.backend.next()
            assert (asked.body, asked.header("Cookie"), asked.header("Authorization")) == (
                call,
                [cookies[user]],
                [],
            )
            # A new one, although the server has taken the old one, is of no use, and no client's.
            asked.answer(ok(message(executed()), "Set-Cookie: hive.server2.auth=cu=other"))
            status, body, got = await post
            assert (status, body, "Set-Cookie" in got.headers) == (200, message(executed()), False)


async def test_a_handle_that_nobody_has_seen_brings_no_client_anothers_cookie(realm: Realm) -> None:
    """As after a restart: the server judges it, and both clients come to it as the proxy."""
    async with stage(kerberos=realm.to_backend()) as on:
        for user in ("anna", "bob"):
            post = on.start(message(fetch()), negotiate(realm, user))
            asked = await on.backend.next()
            assert proven(realm, asked) == realm.PROXY
            assert asked.header("Cookie") == []
            asked.answer(ok(message(reply("FetchResults")), f"Set-Cookie: hive.server2.auth=cu=proxy&rn={user}"))
            await body_of(post)
        for user in ("anna", "bob"):
            post = on.start(message(fetch()), negotiate(realm, user))
            asked = await on.backend.next()
            assert asked.header("Cookie") == [f"hive.server2.auth=cu=proxy&rn={user}"]
            asked.answer(ok(message(reply("FetchResults"))))
            await body_of(post)


async def test_a_backend_over_http_that_refuses_the_proxy_does_not_refuse_the_client(
    realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[object] = []
    monkeypatch.setattr(CircuitBreaker, "record_failure", counted.append)
    async with stage(kerberos=realm.to_backend()) as on:
        post = on.start(OPEN, negotiate(realm))
        (await on.backend.next()).answer(response(401, b"", "WWW-Authenticate: Negotiate"))
        status, said, got = await post
        assert (status, b"refused the proxy's own login" in said) == (503, True)
        assert "WWW-Authenticate" not in got.headers
    assert not counted


async def test_doas_is_for_nobody_at_a_kerberized_backend(realm: Realm) -> None:
    async with stage(kerberos=realm.to_backend(), proxy_users={"anna": ("bob",)}) as on:
        status, said, _ = await on.post(OPEN, negotiate(realm), "/cliservice?doAs=bob")
        assert (status, b"hive.server2.proxy.user is" in said) == (403, True)


async def test_a_replayed_request_is_refused(realm: Realm, caplog: pytest.LogCaptureFixture) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.section()) as on:
        login = negotiate(realm)
        post = on.start(OPEN, login)
        link = await on.link()
        await link.expect(plain_start("anna", "anonymous"))
        status, said, _ = await on.post(OPEN, login)
        assert (status, b"replay" in said) == (401, False)
        assert "Request is a replay" in caplog.text
        post.cancel()


async def test_the_kdc_checks_a_password_once_a_minute(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.section(plain="kdc")) as on:
        status, _, got = await on.post(OPEN, basic("anna", "wrong"))
        assert status == 401
        assert got.headers.getall("WWW-Authenticate") == ["Negotiate", 'Basic realm="hive"']
        login = basic("anna", "secret-of-anna")
        post = on.start(OPEN, login)
        link = await on.link()
        await link.expect(plain_start("anna", "anonymous"))
        link.send(ACCEPTED)
        await link.expect(open_session())
        link.send(session_opened())
        assert await body_of(post) == OPENED
        realm.kdc.administrate(f"cpw -pw another anna@{REALM}")
        try:
            post = on.start(message(fetch()), login)
            await link.expect(fetch())
            link.send(reply("FetchResults"))
            assert await body_of(post) == message(reply("FetchResults"))
        finally:
            realm.kdc.administrate(f"cpw -pw secret-of-anna anna@{REALM}")
            realm.kdc.log_in("anna", "secret-of-anna")


async def test_a_cookie_names_nobody_else(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.section()) as on:
        cookie = {"Cookie": "hive.server2.auth=cu=bob&rn=1&s=x="}
        post = on.start(OPEN, negotiate(realm) | cookie)
        link = await on.link()
        await link.expect(plain_start("anna", "anonymous"))
        post.cancel()
        await asyncio.sleep(0)


async def test_doas_is_for_nobody_else(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=realm.section()) as on:
        status, _, _ = await on.post(OPEN, negotiate(realm), "/cliservice?doAs=bob")
        assert status == 403
