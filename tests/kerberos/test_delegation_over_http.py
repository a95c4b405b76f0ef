"""Clients over HTTP, at the backend by their own tickets, and others who try to use these."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from kerberos_realm import Realm, running_realm
from support.http_stage import (
    HTTP_TO_BINARY,
    PATH,
    Asked,
    HttpBackend,
    Stage,
    basic,
    body_of,
    message,
    ok,
    response,
    stage,
)
from support.kdc import REALM, require_kerberos
from support.ldap_directory import missing_directory_parts
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    SESSION,
    close_session,
    execute,
    executed,
    fetch,
    get_status,
    open_session,
    operation_call,
    reply,
    session_opened,
    status_is,
)
from support.scripted_session import StandInServer

from proxy.config.endpoints import Transport, UpstreamSection
from proxy.config.kerberos import KerberosSection
from proxy.operations.internal_call import Call
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import OwnLoginError
from proxy.upstream.http_link import HttpLink
from proxy.wire.hs2.calls import OperationState, SessionHandle
from proxy.wire.sasl import plain_response

require_kerberos()
if reason := missing_directory_parts():
    pytest.skip(reason, allow_module_level=True)
import gssapi  # noqa: E402
from support.gssapi_peer import GssPeer, name  # noqa: E402
from support.server_config import server_config  # noqa: E402

KERBEROS, SPNEGO = "1.2.840.113554.1.2.2", "1.3.6.1.5.5.2"
OPEN, OPENED = message(open_session()), message(session_opened())
FETCH = Call("FetchResults", 1, message(fetch()), 1000)
NOT_ALLOWED = f"web/localhost@{REALM}"
# Every principal of the realm is the user "shared".
ONE_NAME = (r"RULE:[1:$1@$0](.*@.*)s/.*/shared/",)
# The cookie of a server that is not bound to TLS.
COOKIE = "hive.server2.auth=cu={}&rn={}&s=signature="


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as found:
        found.kdc.let_delegate("starpruner/localhost", "hive/127.0.0.1")
        found.kdc.add_service("web/localhost", found.proxy_keytab)
        yield found


def delegating(realm: Realm, **keys: object) -> KerberosSection:
    return realm.to_backend(**{"act_by": "delegation", **keys})


def negotiate(
    realm: Realm,
    user: str = "anna",
    mechanism: str = SPNEGO,
    service: str = Realm.PROXY,
    *,
    forwards: bool = False,
) -> dict[str, str]:
    """The login of one request; each needs one of its own. It may bring the ticket-granting ticket."""
    flag = gssapi.RequirementFlag
    flags: Any = [flag.mutual_authentication, *([flag.delegate_to_peer] if forwards else [])]
    context = gssapi.SecurityContext(
        name=name(service),
        creds=gssapi.Credentials(usage="initiate", store={"ccache": realm.ccache(user)}),
        usage="initiate",
        mech=gssapi.OID.from_int_seq(mechanism),
        flags=flags,
    )
    return {"Authorization": f"Negotiate {b64encode(context.step()).decode()}"}


def keys_of_backend(realm: Realm) -> Any:
    keys = gssapi.Credentials(
        name=name(realm.BACKEND), usage="accept", store={"keytab": str(realm.backend_keytab)}
    )
    return gssapi.SecurityContext(creds=keys, usage="accept")


# --- backends of the binary protocol


async def login_at_backend(on: Stage, realm: Realm, qop: str = "auth") -> tuple[GssPeer, str]:
    """The proxy's next connection, and the principal that has opened it."""
    peer = GssPeer(await on.link(), keys_of_backend(realm))
    await peer.take_login(qop)
    return peer, str(peer.context.initiator_name)


async def opened_session(
    on: Stage, realm: Realm, headers: dict[str, str], session: SessionHandle
) -> tuple[GssPeer, str]:
    post = on.start(OPEN, headers)
    backend, principal = await login_at_backend(on, realm)
    # The session says of nobody that it is for him.
    await backend.expect(open_session())
    backend.send(session_opened(session=session))
    assert await body_of(post) == message(session_opened(session=session))
    return backend, principal


@pytest.mark.parametrize("mechanism", [KERBEROS, SPNEGO], ids=["kerberos", "spnego"])
async def test_the_backend_sees_the_client_itself(realm: Realm, mechanism: str) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm)) as on:
        backend, principal = await opened_session(on, realm, negotiate(realm, mechanism=mechanism), SESSION)
        assert principal == f"anna@{REALM}"
        # A further call has a ticket of its own, and takes the connection that the client has.
        post = on.start(message(fetch()), negotiate(realm, mechanism=mechanism))
        await backend.expect(fetch())
        backend.send(reply("FetchResults"))
        assert await body_of(post) == message(reply("FetchResults"))


@pytest.mark.parametrize("mechanism", [KERBEROS, SPNEGO], ids=["kerberos", "spnego"])
async def test_a_ticket_granting_ticket_needs_no_rights_of_ours(realm: Realm, mechanism: str) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm, principal=NOT_ALLOWED)) as on:
        login = negotiate(realm, mechanism=mechanism, service=NOT_ALLOWED, forwards=True)
        assert (await opened_session(on, realm, login, SESSION))[1] == f"anna@{REALM}"


async def test_the_http_principal_is_the_one_that_acts(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm, http_principal=NOT_ALLOWED)) as on:
        status, said, _ = await on.post(OPEN, negotiate(realm, service=NOT_ALLOWED))
        assert status == 503
        assert f"the KDC has to let {NOT_ALLOWED} delegate to {realm.BACKEND}".encode() in said


async def test_a_client_whose_ticket_cannot_be_forwarded_is_told_so(realm: Realm) -> None:
    realm.kdc.log_in("bob", "secret-of-bob", "-F")
    try:
        async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm)) as on:
            status, said, _ = await on.post(OPEN, negotiate(realm, "bob"))
            assert (status, b"the client's ticket has to be forwardable (kinit -f)" in said) == (503, True)
    finally:
        realm.kdc.log_in("bob", "secret-of-bob")


async def test_a_password_gives_tickets_too_and_is_the_same_client(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm, plain="kdc")) as on:
        backend, principal = await opened_session(on, realm, basic("anna", "secret-of-anna"), SESSION)
        assert principal == f"anna@{REALM}"
        for login in (basic("anna", "secret-of-anna"), negotiate(realm)):
            post = on.start(message(fetch()), login)
            await backend.expect(fetch())
            backend.send(reply("FetchResults"))
            assert await body_of(post) == message(reply("FetchResults"))


async def test_one_client_never_gets_anothers_connection_or_session(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm)) as on:
        annas, _ = await opened_session(on, realm, negotiate(realm), SESSION)
        # Neither a cookie nor another header makes bob anna.
        named = {"Cookie": COOKIE.format("anna", 1), "X-Remote-User": "anna"}
        post = on.start(message(close_session()), negotiate(realm, "bob") | named)
        bobs, principal = await login_at_backend(on, realm)
        assert principal == f"bob@{REALM}"
        assert await bobs.read_message() != message(close_session()), "the handle is overwritten"
        bobs.send(reply("CloseSession"))
        await body_of(post)
        post = on.start(message(close_session()), negotiate(realm))
        await annas.expect(close_session())
        annas.send(reply("CloseSession"))
        await body_of(post)


async def test_two_principals_of_one_short_name_share_nothing(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm, auth_to_local=ONE_NAME)) as on:
        _, principal = await opened_session(on, realm, negotiate(realm), SESSION)
        assert principal == f"anna@{REALM}"
        post = on.start(message(close_session()), negotiate(realm, "bob"))
        bobs, principal = await login_at_backend(on, realm)
        assert principal == f"bob@{REALM}"
        assert await bobs.read_message() != message(close_session()), "the handle is overwritten"
        bobs.send(reply("CloseSession"))
        await body_of(post)


async def test_many_calls_at_once_are_each_their_own_clients(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm)) as on:
        users = ["anna", "bob"] * 4
        posts = [
            on.start(message(open_session(seqid)), negotiate(realm, user)) for seqid, user in enumerate(users)
        ]
        seen: dict[int, str] = {}
        for _ in users:
            backend, principal = await login_at_backend(on, realm)
            body = await backend.read_message()
            seqid = next(number for number in range(len(users)) if body == message(open_session(number)))
            seen[seqid] = principal
            backend.send(session_opened(seqid))
        for post in posts:
            await body_of(post)
        assert [seen[seqid] for seqid in range(len(users))] == [f"{user}@{REALM}" for user in users]


async def test_a_replayed_request_gets_no_tickets(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm)) as on:
        login = negotiate(realm)
        await opened_session(on, realm, login, SESSION)
        status, _, got = await on.post(message(fetch()), login)
        assert (status, got.headers["WWW-Authenticate"]) == (401, "Negotiate")


async def test_doas_is_for_nobody(realm: Realm) -> None:
    async with stage(sides=HTTP_TO_BINARY, kerberos=delegating(realm), proxy_users={"anna": ("bob",)}) as on:
        status, said, _ = await on.post(OPEN, negotiate(realm), f"{PATH}?doAs=bob")
        assert (status, b"hive.server2.proxy.user is" in said) == (403, True)


# --- backends that speak HTTP


def proven(realm: Realm, asked: Asked) -> str:
    """The principal of a request to the backend, which has no cookie beside."""
    assert asked.header("Cookie") == []
    (authorization,) = asked.header("Authorization")
    context = keys_of_backend(realm)
    context.step(b64decode(authorization.removeprefix("Negotiate ")))
    return str(context.initiator_name)


async def next_call(on: Stage, call: bytes) -> Asked:
    asked = await on.backend.next()
    assert asked.body == call
    return asked


async def test_each_request_to_a_backend_over_http_is_the_clients_own(realm: Realm) -> None:
    async with stage(kerberos=delegating(realm)) as on:
        for user in ("anna", "bob", "anna"):
            post = on.start(OPEN, negotiate(realm, user) | {"X-Hive-Delegation-Token": "of somebody"})
            asked = await next_call(on, OPEN)
            assert proven(realm, asked) == f"{user}@{REALM}"
            assert asked.header("X-Hive-Delegation-Token") == []
            asked.answer(ok(OPENED))
            assert await body_of(post) == OPENED


def session(number: int) -> SessionHandle:
    """The handle of another session."""
    return SessionHandle(SESSION.replace(b"session", b"sessio%d" % number))


async def open_with_cookie(on: Stage, realm: Realm, user: str, number: int) -> str:
    """Open a session, whose server sets a cookie. Returns the cookie."""
    cookie = COOKIE.format(user, number)
    opened = message(session_opened(session=session(number)))
    post = on.start(OPEN, negotiate(realm, user))
    asked = await next_call(on, OPEN)
    assert proven(realm, asked) == f"{user}@{REALM}"
    asked.answer(ok(opened, f"Set-Cookie: {cookie}; Max-Age=86400; HttpOnly"))
    status, body, got = await post
    assert (status, body) == (200, opened)
    assert "Set-Cookie" not in got.headers, "it would let the client in without a ticket"
    return cookie


async def test_a_cookie_belongs_to_one_principal_and_one_session(realm: Realm) -> None:
    async with stage(kerberos=delegating(realm, auth_to_local=ONE_NAME)) as on:
        owners = (("anna", 1), ("bob", 2), ("anna", 3))
        cookies = {number: await open_with_cookie(on, realm, user, number) for user, number in owners}
        for user, number in (*owners, *owners):
            call = message(execute("SELECT 1", session=session(number)))
            post = on.start(call, negotiate(realm, user))
            asked = await next_call(on, call)
            assert asked.header("Cookie") == [cookies[number]]
            assert asked.header("Authorization") == []
            asked.answer(ok(message(executed())))
            assert await body_of(post) == message(executed())


async def test_another_client_never_uses_a_cookie(realm: Realm) -> None:
    """Not with the handle of the session, and not by sending a cookie."""
    async with stage(kerberos=delegating(realm, auth_to_local=ONE_NAME)) as on:
        cookie = await open_with_cookie(on, realm, "anna", 1)
        call = message(close_session(session=session(1)))
        post = on.start(call, negotiate(realm, "bob") | {"Cookie": cookie})
        asked = await on.backend.next()
        assert asked.body != call
        assert proven(realm, asked) == f"bob@{REALM}"
        asked.answer(ok(message(reply("CloseSession")), f"Set-Cookie: {COOKIE.format('bob', 9)}"))
        await body_of(post)
        # Nor has bob's reply put a cookie of his into her session.
        post = on.start(call, negotiate(realm))
        asked = await next_call(on, call)
        assert asked.header("Cookie") == [cookie]
        asked.answer(ok(message(reply("CloseSession"))))
        await body_of(post)


async def test_operations_of_a_session_have_its_cookie(realm: Realm) -> None:
    async with stage(kerberos=delegating(realm)) as on:
        cookie = await open_with_cookie(on, realm, "anna", 1)
        answers = {
            message(execute("SELECT 1", session=session(1))): message(executed()),
            message(execute("SELECT 2", session=session(1))): message(executed(operation=AGAIN)),
            message(get_status()): message(status_is(OperationState.RUNNING)),
            message(fetch()): message(reply("FetchResults")),
            message(operation_call("CloseOperation")): message(reply("CloseOperation")),
            message(close_session(session=session(1))): message(reply("CloseSession")),
        }
        for call, answer in answers.items():
            post = on.start(call, negotiate(realm))
            asked = await next_call(on, call)
            assert asked.header("Cookie") == [cookie]
            asked.answer(ok(answer))
            assert await body_of(post) == answer
        # With the session its cookie has gone, also where an operation was left open.
        for operation in (OPERATION, AGAIN):
            post = on.start(message(fetch(operation=operation)), negotiate(realm))
            asked = await next_call(on, message(fetch(operation=operation)))
            assert proven(realm, asked) == f"anna@{REALM}"
            asked.answer(ok(message(reply("FetchResults"))))
            await body_of(post)


async def test_an_expired_cookie_costs_one_more_ticket(realm: Realm) -> None:
    async with stage(kerberos=delegating(realm)) as on:
        cookie = await open_with_cookie(on, realm, "anna", 1)
        call = message(execute("SELECT 1", session=session(1)))
        post = on.start(call, negotiate(realm))
        asked = await next_call(on, call)
        assert asked.header("Cookie") == [cookie]
        asked.answer(response(401, b"", "WWW-Authenticate: Negotiate"))
        asked = await next_call(on, call)
        assert proven(realm, asked) == f"anna@{REALM}"
        another = COOKIE.format("anna", 2)
        asked.answer(ok(message(executed()), f"Set-Cookie: {another}"))
        assert await body_of(post) == message(executed())
        post = on.start(call, negotiate(realm))
        asked = await next_call(on, call)
        assert asked.header("Cookie") == [another]
        # Refused with a new ticket too, it is not asked again.
        asked.answer(response(401, b""))
        (await next_call(on, call)).answer(response(401, b""))
        status, said, got = await post
        assert (status, b"refused the login of the client by delegation" in said) == (503, True)
        assert "WWW-Authenticate" not in got.headers


async def test_a_cookie_whose_call_is_broken_off_is_not_tried_again(realm: Realm) -> None:
    """A server may refuse a long call before it has read it, and its answer is then lost. It may have run too."""
    async with stage(kerberos=delegating(realm)) as on:
        cookie = await open_with_cookie(on, realm, "anna", 1)
        call = message(execute("SELECT 1", session=session(1)))
        post = on.start(call, negotiate(realm))
        asked = await next_call(on, call)
        assert asked.header("Cookie") == [cookie]
        asked.peer.writer.transport.abort()
        status, *_ = await post
        assert status == 502
        post = on.start(call, negotiate(realm))
        asked = await next_call(on, call)
        assert proven(realm, asked) == f"anna@{REALM}"
        asked.answer(ok(message(executed()), f"Set-Cookie: {COOKIE.format('anna', 2)}"))
        assert await body_of(post) == message(executed())


# --- connections beside a client's calls: checks of keys, shadow mode


@pytest.fixture
async def backend() -> Any:
    played = HttpBackend()
    server = StandInServer(played.meet)
    yield played, server.address
    server.close()
    for peer in played.peers:
        await peer.closed()


async def test_further_connections_are_opened_by_the_clients_own_tickets(realm: Realm, backend: Any) -> None:
    played, address = backend
    config = server_config((), kerberos=delegating(realm), upstream=UpstreamSection(Transport.HTTP))
    logins = config.kerberos.client_logins("localhost", 1024)
    assert logins is not None
    links = []
    for user in ("anna", "bob"):
        token = b64decode(negotiate(realm, user)["Authorization"].removeprefix("Negotiate "))
        link = HttpLink(address, Dialer(config.upstream()), 30.0)
        await link.open(logins.credentials_with_ticket(token)[0], "a client")
        links.append((user, link))
    answer = message(reply("FetchResults"))
    for user, link in links:
        asking = asyncio.create_task(link.ask(FETCH))
        asked = await played.next()
        assert proven(realm, asked) == f"{user}@{REALM}"
        asked.answer(ok(answer, f"Set-Cookie: {COOKIE.format(user, 1)}"))
        assert await asking == answer
    for user, link in links:
        asking = asyncio.create_task(link.ask(FETCH))
        asked = await played.next()
        assert asked.header("Cookie") == [COOKIE.format(user, 1)], "each has a cookie of its own"
        assert asked.header("Authorization") == []
        asked.answer(ok(answer))
        assert await asking == answer
        link.close()


async def test_without_tickets_of_the_client_nothing_is_asked(realm: Realm, backend: Any) -> None:
    _, address = backend
    config = server_config((), kerberos=delegating(realm), upstream=UpstreamSection(Transport.HTTP))
    link = HttpLink(address, Dialer(config.upstream()), 30.0)
    with pytest.raises(OwnLoginError, match="there are no tickets of the client"):
        await link.open(plain_response("anna", "anonymous"), "a client")
    link.close()
