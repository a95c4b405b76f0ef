"""Logins by Kerberos at the proxy, and the proxy's own at a backend, against a real KDC and python-gssapi."""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from kerberos_realm import Realm, running_realm
from support.kdc import REALM, require_kerberos
from support.relay_dialogue import (
    ACCEPTED,
    close_session,
    execute,
    executed,
    fetch,
    open_session,
    reply,
    session_opened,
)
from support.scripted_session import Rewriter, Stage, eventually, stage

from proxy.backends.circuit_breaker import CircuitBreaker
from proxy.config.kerberos import KerberosSection
from proxy.config.memory_shares import AMPLE, COPIES
from proxy.frontend import memory_gate
from proxy.kerberos.client_logins import ClientLogins
from proxy.kerberos.errors import LOGIN_FAILED
from proxy.kerberos.principals import parse_principal
from proxy.kerberos.ticket_caches import TICKET_CACHES
from proxy.wire.hs2.calls import encode_open_session
from proxy.wire.hs2.open_session import PROXY_USER
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_start
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.types import Kind
from proxy.wire.thrift.writer import Writer

require_kerberos()
import gssapi  # noqa: E402
from kerberos_sessions import (  # noqa: E402
    QOPS,
    backend_context,
    client_context,
    logged_in,
    open_both,
    opening_for,
    unlogged_client,
)
from support.gssapi_peer import GssPeer, RefusedError, initiator, name  # noqa: E402

# The login of the proxy where the backend looks at no password.
AS_ANNA = plain_start("anna", "anonymous")

every_qop = pytest.mark.parametrize("qop", QOPS)


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as found:
        yield found


@asynccontextmanager
async def staged(kerberos: KerberosSection, rewriter: Rewriter | None = None, **keys: Any) -> AsyncIterator[Stage]:
    async with stage(rewriter, kerberos=kerberos, **keys) as on:
        yield on


@every_qop
async def test_a_client_logs_in_by_kerberos_before_a_backend_without_it(realm: Realm, qop: str) -> None:
    async with staged(realm.section(), Rewriter("SELECT 2")) as on:
        client, backend = await logged_in(on, realm, qop)
        await open_both(client, backend, open_session())
        client.send(execute("SELECT 1 FROM a JOIN b"))
        await backend.expect(execute("SELECT 2"))
        backend.send(executed())
        await client.expect(executed())
        client.send(close_session())
        await backend.expect(close_session())


@every_qop
@pytest.mark.parametrize("backend_qop", QOPS)
async def test_both_sides_log_in_and_wrap_each_for_itself(realm: Realm, qop: str, backend_qop: str) -> None:
    async with staged(realm.to_backend(backend_qop=backend_qop), Rewriter("SELECT 2")) as on:
        client, backend = await logged_in(on, realm, qop, backend_qop)
        assert str(backend.context.initiator_name) == realm.PROXY
        await open_both(client, backend, opening_for("anna"))
        client.send(execute("SELECT 1 FROM a JOIN b"))
        await backend.expect(execute("SELECT 2"))
        backend.send(executed())
        await client.expect(executed())
        client.send(fetch())
        await backend.expect(fetch())
        rows = reply("FetchResults", 1, Writer().binary(3, b"r" * 3_000_000))
        backend.send(rows)
        await client.expect(rows)


async def test_many_small_and_cut_frames_keep_their_order(realm: Realm) -> None:
    async with staged(realm.to_backend(backend_qop="auth-conf")) as on:
        client, backend = await logged_in(on, realm, "auth-int", "auth-conf")
        await open_both(client, backend, opening_for("anna"))
        for seqid in range(50):
            wrapped = client.wrapped(fetch(seqid)[4:])
            client.peer.send(wrapped[:7])
            await asyncio.sleep(0)
            client.peer.send(wrapped[7:])
            await backend.expect(fetch(seqid))
            backend.send(reply("FetchResults", seqid))
            await client.expect(reply("FetchResults", seqid))


async def test_a_call_over_several_tokens_is_one_call(realm: Realm) -> None:
    async with staged(realm.section()) as on:
        client, backend = await logged_in(on, realm, "auth-conf")
        call = execute("SELECT 1" + " " * 100_000)
        client.peer.send(client.wrapped(open_session()[4:]))
        await backend.expect(open_session())
        backend.send(session_opened())
        await client.expect(session_opened())
        client.peer.send(client.wrapped(call[4:50_000]) + client.wrapped(call[50_000:]))
        await backend.expect(call)


# --- who may, and as whom


async def test_nobody_acts_for_another_by_sasl(realm: Realm, caplog: pytest.LogCaptureFixture) -> None:
    async with staged(realm.section()) as on:
        client = await unlogged_client(on, realm)
        with pytest.raises(RefusedError, match=LOGIN_FAILED):
            await client.log_in("auth", f"bob@{REALM}".encode())
        assert f"anna@{REALM} cannot act for 'bob@{REALM}' by SASL" in caplog.text
        assert await client.peer.rest() == b""


async def test_the_own_name_may_be_said(realm: Realm) -> None:
    async with staged(realm.section()) as on:
        client = await unlogged_client(on, realm)
        login = asyncio.create_task(client.log_in("auth", f"anna@{REALM}".encode()))
        backend = await on.backend()
        await backend.expect(AS_ANNA)
        backend.send(ACCEPTED)
        await login


@pytest.mark.parametrize("wanted", ["bob", ""])
async def test_a_session_for_another_needs_the_proxy_users(realm: Realm, wanted: str) -> None:
    async with staged(realm.to_backend()) as on:
        client, _ = await logged_in(on, realm, "auth", "auth")
        client.send(opening_for(wanted))
        refusal = await client.read_message()
        assert b"user 'anna' may not act for user" in refusal


async def test_a_session_for_another_is_the_others_where_the_proxy_users_allow_it(realm: Realm) -> None:
    async with staged(realm.to_backend(), proxy_users={"anna": ("bob",)}) as on:
        client, backend = await logged_in(on, realm, "auth", "auth")
        client.send(opening_for("bob"))
        await backend.expect(opening_for("bob"))


async def test_a_handle_belongs_to_the_principal_who_opened_it(realm: Realm) -> None:
    async with staged(realm.to_backend()) as on:
        annas, backend = await logged_in(on, realm, "auth-conf", "auth")
        await open_both(annas, backend, opening_for("anna"))
        bobs, other = await logged_in(on, realm, "auth-conf", "auth", user="bob")
        bobs.send(fetch(3), close_session(4))
        await other.expect(fetch(3))
        assert await other.read_message() != close_session(4)[4:], "the handle is overwritten"
        again, third = await logged_in(on, realm, "auth", "auth")
        again.send(close_session(5))
        await third.expect(close_session(5))


async def test_rules_make_the_short_name(realm: Realm) -> None:
    rules = (rf"RULE:[1:$1@$0](.*@{REALM})s/@.*/_user/", "DEFAULT")
    async with staged(realm.section(auth_to_local=rules)) as on:
        client = await unlogged_client(on, realm)
        login = asyncio.create_task(client.log_in())
        backend = await on.backend()
        await backend.expect(plain_start("anna_user", "anonymous"))
        backend.send(ACCEPTED)
        await login


async def test_a_principal_without_a_rule_is_refused(realm: Realm, caplog: pytest.LogCaptureFixture) -> None:
    async with staged(realm.section(auth_to_local=("RULE:[2:$1]",))) as on:
        client = await unlogged_client(on, realm)
        with pytest.raises(RefusedError, match=LOGIN_FAILED):
            await client.log_in()
        assert f"no rule of kerberos.auth_to_local fits anna@{REALM}" in caplog.text


async def test_a_weaker_protection_than_offered_is_refused(realm: Realm, caplog: pytest.LogCaptureFixture) -> None:
    async with staged(realm.section(qop=("auth-conf",))) as on:
        client = await unlogged_client(on, realm)
        with pytest.raises(RefusedError, match=LOGIN_FAILED):
            await client.log_in("auth")
        assert "selected no protection (QOP) of those offered, which are auth-conf" in caplog.text
        assert client.offered >> 24 == 4


async def test_a_backend_that_offers_less_than_configured_is_not_used(realm: Realm) -> None:
    async with staged(realm.to_backend(backend_qop="auth-conf")) as on:
        client = await unlogged_client(on, realm)
        login = asyncio.create_task(client.log_in())
        backend = GssPeer(await on.backend(), backend_context(realm))
        with pytest.raises(asyncio.IncompleteReadError):
            await backend.take_login("auth", "auth-int")
        with pytest.raises(RefusedError, match=r"it offers auth, auth-int .* kerberos.backend_qop is auth-conf"):
            await login


async def test_a_backend_that_accepts_without_a_proof_is_not_used(realm: Realm) -> None:
    async with staged(realm.to_backend()) as on:
        client = await unlogged_client(on, realm)
        login = asyncio.create_task(client.log_in())
        backend = await on.backend()
        await backend.expect(encode_sasl(SaslStatus.START, b"GSSAPI"))
        backend.send(ACCEPTED)
        with pytest.raises(RefusedError, match="it sent COMPLETE where a token of the context was to come"):
            await login


# --- passwords, and other mechanisms


@pytest.mark.parametrize("mechanism", [b"DIGEST-MD5", b"PLAIN", b"\0\xff"])
async def test_other_mechanisms_are_refused_with_a_sentence(realm: Realm, mechanism: bytes) -> None:
    async with staged(realm.section()) as on:
        client = await on.connect()
        client.send(encode_sasl(SaslStatus.START, mechanism))
        said = await client.rest()
        assert said.startswith(bytes([SaslStatus.ERROR]))
        assert b"is not taken here, by GSSAPI it is" in said


async def test_the_kdc_checks_a_password_before_a_backend_with_kerberos(realm: Realm) -> None:
    async with staged(realm.to_backend(plain="kdc")) as on:
        client = await on.connect()
        client.send(plain_start("anna", "secret-of-anna"))
        backend = GssPeer(await on.backend(), backend_context(realm))
        await backend.take_login(*QOPS)
        await client.expect(ACCEPTED)
        client.send(open_session())
        await backend.expect(opening_for("anna"))


@pytest.mark.parametrize(
    "response",
    [
        b"\0bob@ELSEWHERE\0x",
        b"\0anna/admin\0secret-of-anna",
        b"\0anna\0wrong",
        b"\0anna\0",
        b"\0nobody\0x",
        b"bob\0anna\0secret-of-anna",
        b"anna",
        b"\0\xff\0x",
    ],
)
async def test_a_wrong_password_opens_nothing(realm: Realm, response: bytes) -> None:
    async with staged(realm.to_backend(plain="kdc")) as on:
        client = await on.connect()
        client.send(encode_sasl(SaslStatus.START, b"PLAIN") + encode_sasl(SaslStatus.OK, response))
        said = await client.rest()
        assert said[:1] == bytes([SaslStatus.ERROR])
        assert b"secret-of-anna" not in said
        assert on.proxy.connection_count == 0


async def test_a_typed_name_is_one_of_the_default_realm(realm: Realm, caplog: pytest.LogCaptureFixture) -> None:
    async with staged(realm.section(plain="kdc")) as on:
        client = await on.connect()
        client.send(plain_start(f"anna@{REALM}", "secret-of-anna"))
        assert (await client.rest())[5:].decode() == f"Starpruner: {LOGIN_FAILED}"
    assert f"'anna@{REALM}' is no name to log in with" in caplog.text


async def test_a_fault_in_a_step_refuses_the_client(
    realm: Realm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty(*_: object) -> str:
        raise RuntimeError("secret-of-anna")

    monkeypatch.setattr(ClientLogins, "credentials_with_password", faulty)
    async with staged(realm.section(plain="kdc")) as on:
        client = await on.connect()
        client.send(plain_start("anna", "secret-of-anna"))
        assert (await client.rest())[5:].decode() == f"Starpruner: {LOGIN_FAILED}"
    assert "RuntimeError" in caplog.text
    assert "secret-of-anna" not in caplog.text


async def test_a_client_that_takes_tokens_of_a_few_bytes_is_refused(
    realm: Realm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("support.gssapi_peer.MAXIMUM", 100)
    async with staged(realm.section()) as on:
        client = await unlogged_client(on, realm)
        with pytest.raises(RefusedError, match=LOGIN_FAILED):
            await client.log_in("auth-conf")
    assert "takes tokens of 100 bytes, which is too short" in caplog.text


async def test_frames_are_not_wrapped_for_a_client_whose_tokens_have_no_order(realm: Realm) -> None:
    async with staged(realm.section()) as on:
        flags = gssapi.RequirementFlag
        keys = gssapi.Credentials(usage="initiate", store={"ccache": realm.ccache()})
        wanted: Any = [flags.mutual_authentication, flags.integrity, flags.confidentiality]
        context = gssapi.SecurityContext(name=name(realm.PROXY), creds=keys, usage="initiate", flags=wanted)
        client = GssPeer(await on.connect(), context)
        login = asyncio.create_task(client.log_in("auth"))
        (await on.backend()).send(ACCEPTED)
        await login
        assert client.offered >> 24 == 1


async def test_a_keytab_of_ours_that_is_gone_counts_against_no_backend(
    realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[object] = []
    monkeypatch.setattr(CircuitBreaker, "record_failure", counted.append)
    section = realm.to_backend(own_principal=f"nobody/localhost@{REALM}")
    own = parse_principal(realm.PROXY)
    cache = TICKET_CACHES.name_for(own, realm.proxy_keytab)
    async with staged(section) as on:
        for _ in range(10):
            client = await unlogged_client(on, realm)
            with pytest.raises(RefusedError, match=f"the login as nobody/localhost@{REALM} to .* failed"):
                await client.log_in()
    assert TICKET_CACHES.name_for(own, realm.proxy_keytab) == cache, "tickets of others stay"
    assert not counted


# --- tokens that are not right


async def test_a_replayed_first_token_is_refused(realm: Realm, caplog: pytest.LogCaptureFixture) -> None:
    async with staged(realm.section()) as on:
        token = client_context(realm).step()
        messages = encode_sasl(SaslStatus.START, b"GSSAPI") + encode_sasl(SaslStatus.OK, token)
        first, second = await on.connect(), await on.connect()
        first.send(messages)
        await first.expect(bytes([SaslStatus.OK]))
        second.send(messages)
        said = await second.rest()
        assert said[:1] == bytes([SaslStatus.ERROR])
        assert b"replay" not in said
        assert "Request is a replay" in caplog.text


@pytest.mark.parametrize("damage", ["truncated", "changed", "garbage", "other service", "empty twice"])
async def test_a_damaged_first_token_is_refused(realm: Realm, damage: str) -> None:
    async with staged(realm.section()) as on:
        token = bytes(client_context(realm).step())
        if damage == "other service":
            token = initiator(realm.ccache(), realm.BACKEND).step()
        sent = {
            "truncated": token[:-20],
            "changed": token[:-20] + bytes(20),
            "garbage": b"\x60\x84\xff\xff\xff\xff" + bytes(100),
            "empty twice": b"",
        }.get(damage, token)
        client = await on.connect()
        client.send(encode_sasl(SaslStatus.START, b"GSSAPI") + encode_sasl(SaslStatus.OK, sent))
        if damage == "empty twice":
            await client.expect(encode_sasl(SaslStatus.OK))
            client.send(encode_sasl(SaslStatus.OK, b"\0"))
        said = await client.rest()
        assert said[:1] == bytes([SaslStatus.ERROR])
        assert said[5:].decode() == f"Starpruner: {LOGIN_FAILED}"


@pytest.mark.parametrize(
    "damage", ["plain", "replayed", "changed", "not encrypted", "empty", "negative", "too long"]
)
async def test_a_frame_that_is_not_wrapped_as_agreed_ends_the_connection(realm: Realm, damage: str) -> None:
    async with staged(realm.section(), request_bytes_max=100_000) as on:
        client, backend = await logged_in(on, realm, "auth-conf")
        await open_both(client, backend, open_session())
        good = client.wrapped(fetch(1)[4:])
        client.peer.send(good)
        await backend.expect(fetch(1))
        changed = bytearray(client.wrapped(fetch(2)[4:]))
        changed[-1] ^= 1
        client.peer.send(
            {
                "plain": fetch(2),
                "replayed": good,
                "changed": bytes(changed),
                "not encrypted": client.wrapped(fetch(2)[4:], encrypts=False),
                "empty": bytes(4),
                "negative": b"\xff\xff\xff\xff",
                "too long": struct.pack(">I", 200_000),
            }[damage]
        )
        assert await client.peer.rest() == b""
        # The backend gets no part of it.
        assert await backend.peer.rest() == b""


async def test_a_backends_frame_that_is_not_wrapped_never_reaches_the_client(realm: Realm) -> None:
    async with staged(realm.to_backend(backend_qop="auth-int")) as on:
        client, backend = await logged_in(on, realm, "auth", "auth-int")
        client.send(open_session())
        await backend.expect(opening_for("anna"))
        backend.peer.send(session_opened())
        told = await client.peer.rest()
        assert (session_opened()[4:] in told, b"closed the connection" in told) == (False, True)


async def test_frames_of_the_client_behind_its_last_response_are_unwrapped_too(realm: Realm) -> None:
    async with staged(realm.section()) as on:
        client = await unlogged_client(on, realm)
        original = client.say

        def say(status: int, body: bytes) -> None:
            original(status, body)
            if status == SaslStatus.COMPLETE:
                client.send(open_session())

        client.say = say  # type: ignore[method-assign]
        login = asyncio.create_task(client.log_in("auth-conf"))
        backend = await on.backend()
        await backend.expect(AS_ANNA)
        backend.send(ACCEPTED)
        await login
        await backend.expect(open_session())


# --- settings of OpenSession


@pytest.mark.parametrize("settings", [{}, {"a": "b"}, {"use:database": "shop", "set:hiveconf:x": "ü"}])
async def test_the_settings_of_a_session_stay_beside_the_user(realm: Realm, settings: dict[str, str]) -> None:
    async with staged(realm.to_backend()) as on:
        client, backend = await logged_in(on, realm, "auth", "auth")
        client.send(frame(encode_open_session(1, "user", "password", settings)))
        await backend.expect(frame(encode_open_session(1, "user", "password", {**settings, PROXY_USER: "anna"})))


async def test_a_session_without_settings_gets_the_user(realm: Realm) -> None:
    async with staged(realm.to_backend()) as on:
        client, backend = await logged_in(on, realm, "auth", "auth")
        body = Writer().header("OpenSession", 1, 1).struct(1).i32(1, 9).binary(2, b"x").stop().stop().to_bytes()  # type: ignore[arg-type]
        client.send(frame(body))
        said = await backend.read_message()
        assert PROXY_USER.encode() in said
        assert bytes([Kind.MAP]) in said


# --- memory

LONG = execute("SELECT 1 /* " + 200 * 1024 * "x" + " */", 2)
SMALL = replace(AMPLE, statement_bytes=2 * COPIES * len(LONG))


async def test_long_wrapped_statements_are_read_as_memory_allows(realm: Realm) -> None:
    """Of a token that has not come to its end nobody can read a byte, and it takes memory all the same."""
    async with stage(kerberos=realm.section(), memory=SMALL) as on:
        pairs = [await logged_in(on, realm, "auth-conf") for _ in range(8)]
        tokens = [client.wrapped(LONG[4:]) for client, _ in pairs]
        for (client, _), token in zip(pairs, tokens, strict=True):
            client.peer.send(token[:-1])
        await eventually(lambda: on.proxy.memory.is_paused)
        held = sum(connection.held_bytes for connection in on.proxy._connections)  # noqa: SLF001 - what they hold
        assert held > SMALL.statement_bytes, "nothing but wrapped bytes has come"

        async def is_served(client: GssPeer, backend: GssPeer) -> None:
            await backend.expect(LONG)
            backend.send(executed(2))
            await client.expect(executed(2))

        for (client, _), token in zip(pairs, tokens, strict=True):
            client.peer.send(token[-1:])
        await asyncio.gather(*(is_served(client, backend) for client, backend in pairs))
        await eventually(lambda: not on.proxy.memory.is_paused)
        assert on.proxy.memory.refused == 0
        assert not any(connection.held_bytes for connection in on.proxy._connections)  # noqa: SLF001 - what they hold


async def test_a_wrapped_statement_that_stands_still_gives_way(
    realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("STALLED_S", "TURN_S"):
        monkeypatch.setattr(memory_gate, limit, 0.1)
    async with stage(kerberos=realm.section(), memory=SMALL) as on:
        idle, others = (
            [await logged_in(on, realm, "auth-conf") for _ in range(4)],
            await logged_in(on, realm, "auth-int"),
        )
        for client, _ in idle:
            client.peer.send(client.wrapped(LONG[4:])[:-1])
        await eventually(lambda: on.proxy.memory.refused > 0)
        await eventually(lambda: not on.proxy.memory.is_paused)
        client, backend = others
        client.send(fetch())
        await backend.expect(fetch())
        backend.send(reply("FetchResults"))
        await client.expect(reply("FetchResults"))
