"""Wrong passwords: those who guess are refused, and nobody else waits."""

import asyncio
import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestClient
from support.admin_pages import PASSWORD, admin_port, busy_history
from support.clock import Clock

from proxy.admin.basic_login import BasicLogin
from proxy.admin.passwords import is_password
from proxy.admin.throttle import PAIRS_MAX, WRONG_AT_ONCE, WRONG_EVERY_S, Throttle, pair_of
from proxy.config.config import Config
from proxy.session.metrics import Metrics
from proxy.upstream.errors import BackendError, LoginError

Port = TestClient[Any, Any]
# More than any step takes on a busy machine. Each wrong password took a second, two at a time.
SOON_S = 25.0
GUESSES = 60


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000.0)


@pytest.fixture
async def port(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Port]:
    async with admin_port(monkeypatch, busy_history(tmp_path), clock=clock) as client:
        yield client


async def status(port: Port, user: str, password: str) -> int:
    """The answer to a program, which has no cookie."""
    headers = {"Authorization": BasicLogin(user, password).header}
    async with ClientSession(headers=headers) as program, program.get(port.make_url("/now")) as got:
        return got.status


async def form_status(port: Port, user: str, password: str) -> int:
    token = re.search(r'name="token" value="(\w+)"', await (await port.get("/sign-in")).text())
    assert token is not None
    form = {"user": user, "password": password, "token": token[1]}
    return (await port.post("/sign-in", data=form, allow_redirects=False)).status


# --- counting


def test_a_few_wrong_passwords_are_free_and_then_one_every_few_seconds(clock: Clock) -> None:
    throttle, pair = Throttle(clock), pair_of("10.0.0.7", "ann")
    for _ in range(WRONG_AT_ONCE):
        assert throttle.wait_s(pair) == 0
        throttle.count(pair)
    assert throttle.wait_s(pair) == WRONG_EVERY_S
    clock.now += WRONG_EVERY_S
    assert throttle.wait_s(pair) == 0
    throttle.count(pair)
    assert throttle.wait_s(pair) == WRONG_EVERY_S
    assert throttle.wait_s(pair_of("10.0.0.8", "ann")) == throttle.wait_s(pair_of("10.0.0.7", "bob")) == 0
    throttle.forgive(pair)
    assert throttle.wait_s(pair) == 0


def test_pairs_that_are_remembered_are_bounded_and_the_oldest_goes_first() -> None:
    throttle = Throttle(Clock())
    first = pair_of("a", "0")
    for _ in range(WRONG_AT_ONCE):
        throttle.count(first)
    for number in range(1, PAIRS_MAX):
        throttle.count(pair_of("a", str(number)))
    assert throttle.wait_s(first) > 0
    throttle.count(pair_of("b", "0"))
    assert (throttle.wait_s(first), len(throttle)) == (0, PAIRS_MAX)


# --- at the port


@pytest.mark.parametrize("names", [["root"], ["carl"], [f"u{number}" for number in range(GUESSES)]])
async def test_sixty_wrong_passwords_delay_nobody_elses_sign_in(
    port: Port, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    hashed: list[str] = []

    def counted(password: str, stored: str) -> bool:
        hashed.append(password)
        return is_password(password, stored)

    monkeypatch.setattr("proxy.admin.visitors.is_password", counted)
    guesses = [
        asyncio.create_task(status(port, names[number % len(names)], f"wrong{number}"))
        for number in range(GUESSES)
    ]
    async with asyncio.timeout(SOON_S):
        assert await form_status(port, "ann", PASSWORD) == HTTPStatus.SEE_OTHER
        statuses = await asyncio.gather(*guesses)
    wrong = GUESSES if len(names) > 1 else WRONG_AT_ONCE
    assert statuses.count(HTTPStatus.UNAUTHORIZED) == wrong
    assert statuses.count(HTTPStatus.TOO_MANY_REQUESTS) == GUESSES - wrong
    assert len(hashed) == (WRONG_AT_ONCE if names == ["root"] else 0)


async def test_a_check_that_hangs_delays_nobody_elses_sign_in(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = asyncio.Event()

    async def slow(_config: Config, user: str, *_: object) -> str:
        if user.startswith("slow"):
            await goes_on.wait()
            raise LoginError("no")
        return user

    monkeypatch.setattr("proxy.admin.app.check_login", slow)
    guesses = [asyncio.create_task(status(port, f"slow{number}", "x")) for number in range(30)]
    async with asyncio.timeout(SOON_S):
        assert await form_status(port, "ann", "any") == HTTPStatus.SEE_OTHER
    goes_on.set()
    assert set(await asyncio.gather(*guesses)) == {HTTPStatus.UNAUTHORIZED}


@pytest.mark.parametrize("method", ["get", "post"])
async def test_explaining_passes_the_same_throttle(
    port: Port, clock: Clock, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    async def down(*_: object, **__: object) -> None:
        raise BackendError("it is down")

    for name in ("explain_as_user", "partitions_as_user"):
        monkeypatch.setattr(f"proxy.admin.app.{name}", down)

    async def ask(password: str) -> Any:
        path = "/explain" if method == "post" else "/partitions?table=t"
        body = {"sql": "SELECT 1"} if method == "post" else None
        return await port.request(
            method, path, headers={"Authorization": BasicLogin("ann", password).header}, json=body
        )

    for number in range(WRONG_AT_ONCE):
        assert (await ask(f"wrong{number}")).status == HTTPStatus.UNAUTHORIZED
    for refused in (await ask("wrong"), await ask(PASSWORD)):
        assert refused.status == HTTPStatus.TOO_MANY_REQUESTS
        assert refused.headers["Retry-After"] == "6"
        assert (await refused.json())["error"].endswith("try again in 6 s.")
    assert await form_status(port, "ann", PASSWORD) == HTTPStatus.TOO_MANY_REQUESTS
    clock.now += WRONG_EVERY_S
    assert (await ask(PASSWORD)).status == HTTPStatus.BAD_GATEWAY


async def test_a_password_that_was_right_a_moment_ago_lets_nobody_go_on_guessing(port: Port) -> None:
    assert await status(port, "ann", PASSWORD) == HTTPStatus.OK
    for number in range(WRONG_AT_ONCE):
        assert await status(port, "ann", f"wrong{number}") == HTTPStatus.UNAUTHORIZED
    assert await status(port, "ann", PASSWORD) == HTTPStatus.TOO_MANY_REQUESTS


async def test_whoever_is_not_let_in_is_counted_by_the_reason(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[str, ...]] = []
    monkeypatch.setattr(Metrics, "login_refused", lambda _, *door_and_reason: counted.append(door_and_reason))
    async with admin_port(monkeypatch, busy_history(tmp_path), clock=clock) as port:
        for password in (PASSWORD, *("wrong",) * (WRONG_AT_ONCE + 1)):
            await status(port, "ann", password)
    assert counted == [("admin", "refused")] * WRONG_AT_ONCE + [("admin", "throttled")]


async def test_a_program_that_knows_the_password_is_never_refused_however_often_it_asks(port: Port) -> None:
    asked = [status(port, "bob", PASSWORD) for _ in range(4 * WRONG_AT_ONCE)]
    assert set(await asyncio.gather(*asked)) == {HTTPStatus.OK}


async def test_a_backend_that_is_away_is_no_wrong_password(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> str:
        raise BackendError("cannot reach the backend")

    monkeypatch.setattr("proxy.admin.app.check_login", away)
    assert await status(port, "ann", PASSWORD) == HTTPStatus.BAD_GATEWAY
