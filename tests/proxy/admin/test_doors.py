"""The doors of the admin port, on real sockets: names, pages elsewhere, logins, slow clients and many."""

import asyncio
import doctest
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from support.admin_pages import admin_port, busy_history, idle_application
from support.scripted_session import HOST, PATIENCE_S, Peer, eventually

from proxy.admin import doors, own_names, return_paths
from proxy.admin.doors import DOORS
from proxy.admin.listening import AdminPort
from proxy.backends.pool import BackendPool
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.config import Config
from proxy.config.serving import AdminSection
from proxy.net import request_guard

Client = TestClient[Any, Any]
REQUEST_S = 0.3
# The machine has all addresses of its loopback.
OTHER = "127.0.0.2"
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF_A_FORM = (
    b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 100\r\n\r\nuser=ann"
)
HTML = {"Accept": "text/html"}


class Stage:
    """The port, and a route of it that answers when the test says so."""

    def __init__(self, port: AdminPort, app: web.Application) -> None:
        self.port = port
        self.app = app
        self.goes_on = asyncio.Event()
        self.body = b"answered"
        self.under_way = 0
        self.clients: list[Peer] = []
        app.router.add_get("/slow", self._slow)

    async def connect(self, sent: bytes = b"", address: str = HOST) -> Peer:
        client = Peer(*await asyncio.open_connection(HOST, self.port.port, local_addr=(address, 0)))
        client.send(sent)
        self.clients.append(client)
        return client

    async def status(self, path: bytes = b"/healthz", address: str = HOST) -> int:
        client = await self.connect(GET % path, address)
        async with asyncio.timeout(PATIENCE_S):
            return int((await client.reader.readline()).split()[1])

    async def _slow(self, _: web.Request) -> web.Response:
        self.under_way += 1
        await self.goes_on.wait()
        return web.Response(body=self.body)


@asynccontextmanager
async def listening(**section: Any) -> AsyncIterator[Stage]:
    config = Config(admin=AdminSection(**section))
    backends = BackendPool([PoolMember(Address("127.0.0.1", 1))], lambda: 0.0)

    async def exposition() -> bytes:
        return b""

    app = idle_application(config, backends, exposition)
    port = AdminPort(app)
    stage = Stage(port, app)
    await port.setup()
    await port.start(Address(HOST, 0))
    try:
        yield stage
    finally:
        stage.goes_on.set()
        for client in stage.clients:
            await client.closed()
        await port.close()


@pytest.fixture
def _within_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_guard, "REQUEST_S", REQUEST_S)


@pytest.fixture
async def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    async with admin_port(monkeypatch, busy_history(tmp_path)) as client:
        yield client


# --- clients that are slow


@pytest.mark.usefixtures("_within_a_moment")
@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: local"])
async def test_who_sends_no_whole_header_is_closed_within_seconds(sent: bytes) -> None:
    async with listening() as on:
        assert await (await on.connect(sent)).rest() == b""


async def trickle(client: Peer, data: Iterable[int]) -> None:
    for byte in data:
        if client.reader.at_eof() or client.writer.is_closing():
            return
        client.send(bytes([byte]))
        await asyncio.sleep(REQUEST_S / 20)
    raise AssertionError("it was let go on")


@pytest.mark.usefixtures("_within_a_moment")
async def test_a_byte_now_and_then_is_no_request() -> None:
    async with listening() as on:
        await trickle(await on.connect(), b"GET / HTTP/1.1\r\nX: " + b"x" * 200)


@pytest.mark.usefixtures("_within_a_moment")
async def test_a_body_that_does_not_come_is_told_and_its_connection_closed() -> None:
    async with listening(open=True) as on:
        sent = HALF_A_FORM.replace(b"/sign-in", b"/explain").replace(b"x-www-form-urlencoded", b"json")
        assert (await (await on.connect(sent)).rest()).split()[1] == b"408"


@pytest.mark.usefixtures("_within_a_moment")
async def test_a_connection_is_closed_between_two_requests_and_not_within_one() -> None:
    async with listening() as on:
        client = await on.connect(GET % b"/slow")
        await eventually(lambda: on.under_way == 1)
        await asyncio.sleep(2 * REQUEST_S)
        on.goes_on.set()
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"answered")


async def test_who_does_not_read_an_answer_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "READ_S", REQUEST_S)
    async with listening() as on:
        on.body = bytes(64 * 1024 * 1024)
        on.goes_on.set()
        client = await on.connect(GET % b"/slow")
        await eventually(lambda: on.app[DOORS].guard.served_count == 1)
        await eventually(lambda: on.app[DOORS].guard.served_count == 0)
        assert len(await client.rest()) < len(on.body)


# --- and many


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HALF_A_FORM, GET % b"/healthz"])
async def test_one_address_that_opens_connections_keeps_neither_another_out_nor_itself(sent: bytes) -> None:
    async with listening() as on:
        slow = [await on.connect(sent, OTHER) for _ in range(doors.WAITING_OF_ADDRESS_MAX + 20)]
        for client in slow[:20]:
            await client.rest()
        for path in (b"/healthz", b"/readyz", b"/sign-in"):
            assert await on.status(path) == HTTPStatus.OK
            assert await on.status(path, OTHER) == HTTPStatus.OK


async def test_one_address_that_asks_for_much_keeps_nobody_else_out_and_no_balancer() -> None:
    async with listening() as on:
        for _ in range(doors.REQUESTS_OF_ADDRESS_MAX):
            await on.connect(GET % b"/slow", OTHER)
        await eventually(lambda: on.under_way == doors.REQUESTS_OF_ADDRESS_MAX)
        assert await on.status(b"/sign-in", OTHER) == HTTPStatus.SERVICE_UNAVAILABLE
        assert await on.status(b"/sign-in") == HTTPStatus.OK
        for path in (b"/healthz", b"/readyz", b"/metrics"):
            assert await on.status(path, OTHER) == HTTPStatus.OK
        on.goes_on.set()
        for client in on.clients[: doors.REQUESTS_OF_ADDRESS_MAX]:
            await client.reader.readuntil(b"answered")
        assert await on.status(b"/sign-in", OTHER) == HTTPStatus.OK


async def test_requests_of_many_addresses_have_a_limit_and_balancers_another() -> None:
    async with listening() as on:
        for number in range(doors.REQUESTS_MAX):
            await on.connect(GET % b"/slow", f"127.0.1.{number % 100 + 1}")
        await eventually(lambda: on.under_way == doors.REQUESTS_MAX)
        assert await on.status(b"/sign-in") == HTTPStatus.SERVICE_UNAVAILABLE
        assert await on.status(b"/readyz") == HTTPStatus.OK


# --- names, and pages elsewhere


def paths(port: Client) -> list[tuple[str, str]]:
    """Each route once, and addresses that have none."""
    assert port.app is not None
    routes = [(r.method, r.resource.canonical) for r in port.app.router.routes() if r.resource is not None]
    filled = [
        (method, path.replace("{id}", "0").replace("{name}", "x").replace("{kind}", "rule"))
        for method, path in routes
    ]
    return [*filled, ("GET", "/nowhere"), ("OPTIONS", "/explain"), ("TRACE", "/"), ("PUT", "/statements")]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:10080", "Origin": "http://evil.example:10080"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "user@127.0.0.1"},
        {"Host": "starpruner"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "localhost", "Origin": "http://localhost:1"},
        {"Host": "localhost", "Origin": "http://127.0.0.1"},
        {"Host": "127.0.0.1", "Origin": "http://localhost"},
        {"Host": "localhost", "Origin": "ftp://localhost"},
        {"Host": "localhost", "Origin": "http://[::1"},
        {"Host": "localhost", "Origin": "http://localhost/"},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_open", [True, False])
async def test_no_path_answers_to_a_strange_name_or_a_page_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], *, is_open: bool
) -> None:
    async with admin_port(monkeypatch, busy_history(tmp_path, 1), is_open=is_open) as port:
        for method, path in paths(port):
            got = await port.request(method, path, headers=headers, allow_redirects=False)
            assert got.status == HTTPStatus.FORBIDDEN, (method, path)
            assert "Set-Cookie" not in got.headers


@pytest.mark.parametrize(
    "headers",
    [
        *({"Host": host} for host in ("localhost", "LOCALHOST:10080", "10.0.0.7", "[::1]:10080", "proxy-1:1")),
        {"Host": "localhost:1", "Origin": "http://localhost:1"},
        {"Host": "127.0.0.1:10080", "Origin": "https://proxy-1"},
    ],
    ids=str,
)
async def test_addresses_and_names_that_are_configured_are_answered(headers: dict[str, str]) -> None:
    async with listening(hosts=("proxy-1",)) as on:
        sent = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        client = await on.connect(f"GET /healthz HTTP/1.1\r\n{sent}\r\n".encode())
        assert (await client.reader.readline()).split()[1] == b"200"


async def test_a_balancer_that_names_no_host_is_answered() -> None:
    async with listening() as on:
        # As HAProxy asks.
        client = await on.connect(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert (await client.rest()).split()[1] == b"200"


# --- logins


@pytest.mark.parametrize(("method", "path"), [("POST", "/explain"), ("GET", "/partitions?table=t")])
async def test_explaining_asks_for_a_login_wherever_pages_do(port: Client, method: str, path: str) -> None:
    for body in ({"json": {"sql": "SELECT 1"}}, {"data": "no JSON"}, {"data": bytes(100_000)}):
        got = await port.request(method, path, **body)
        assert got.status == HTTPStatus.UNAUTHORIZED
        assert got.headers["WWW-Authenticate"].startswith("Basic ")
        assert set(await got.json()) == {"error"}
    got = await port.request(method, path, headers={"Authorization": "Bearer x"})
    assert got.status == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json; charset=utf-8", HTTPStatus.BAD_REQUEST),
        ("text/plain", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ("application/x-www-form-urlencoded", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ("multipart/form-data; boundary=x", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ("application/jsonp", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ("", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    ],
)
async def test_explain_takes_json_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content_type: str, status: HTTPStatus
) -> None:
    async with admin_port(monkeypatch, busy_history(tmp_path, 1), is_open=True) as port:
        got = await port.post("/explain", data=b"[]", headers={"Content-Type": content_type})
        assert got.status == status


async def test_a_page_is_told_so_as_a_page(port: Client) -> None:
    got = await port.get("/", headers={**HTML, "Host": "evil.example"})
    assert (got.status, got.content_type) == (HTTPStatus.FORBIDDEN, "text/html")
    assert "add this name to admin.hosts" in await got.text()


@pytest.mark.parametrize("module", [own_names, return_paths])
def test_the_examples_hold(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0
