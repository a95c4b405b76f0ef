"""The JSON routes for statements: who sees what, errors in one shape, and their description."""

import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from aiohttp.test_utils import TestClient
from msgspec import json, structs
from support.admin_pages import PASSWORD, admin_port, busy_history
from support.histories import history_in, record
from support.http_stage import basic

from proxy.admin.statements_endpoint import ROUTES
from proxy.history.history import LOST_AFTER_S, ProcessState
from proxy.history.store import Store

Port = TestClient[Any, Any]


NOBODY: dict[str, str] = {}
ROOT, ANN, BOB = (basic(name, PASSWORD) for name in ("root", "ann", "bob"))
PATHS = [route.path for route in ROUTES]


@pytest.fixture
async def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Port]:
    async with admin_port(monkeypatch, busy_history(tmp_path)) as client:
        yield client


async def answer(port: Port, path: str, auth: dict[str, str] = NOBODY) -> Any:
    got = await port.get(path, headers=auth)
    assert got.status == HTTPStatus.OK, await got.text()
    return await got.json()


async def an_id(port: Port, auth: dict[str, str]) -> str:
    return str((await answer(port, "/statements?limit=1", auth))["statements"][0]["id"])


@pytest.mark.parametrize("path", PATHS)
async def test_nobody_sees_anything_without_signing_in(port: Port, path: str) -> None:
    for auth in (NOBODY, basic("ann", "wrong"), basic("root", "wrong"), basic("", PASSWORD)):
        got = await port.get(path.replace("{id}", await an_id(port, ROOT)), headers=auth)
        assert got.status == HTTPStatus.UNAUTHORIZED
        assert set(await got.json()) == {"error"}
        assert got.headers["WWW-Authenticate"].startswith("Basic ")


async def test_a_user_sees_the_own_statements_and_an_administrator_all(port: Port) -> None:
    seen = {one["user"] for one in (await answer(port, "/statements?limit=500", BOB))["statements"]}
    assert seen == {"bob"}
    assert (await answer(port, "/statements?user=ann", BOB))["statements"] == []
    all_users = {one["user"] for one in (await answer(port, "/statements?limit=500", ROOT))["statements"]}
    assert all_users == {"ann", "bob"}
    of_ann = (await answer(port, "/statements?user=ann", ROOT))["statements"][0]["id"]
    assert (await port.get(f"/statements/{of_ann}", headers=BOB)).status == HTTPStatus.NOT_FOUND
    assert (await answer(port, f"/statements/{of_ann}", ANN))["user"] == "ann"


async def test_what_runs_and_who_is_connected_is_shown_to_who_may_see_it(port: Port) -> None:
    for auth, running, sessions in ((ROOT, 1, 2), (ANN, 1, 1), (BOB, 0, 1)):
        now = await answer(port, "/now", auth)
        assert (len(now["running"]), now["running_count"]) == (running, running)
        assert (len(now["sessions"]), now["session_count"]) == (sessions, sessions)
    running = (await answer(port, "/now", ANN))["running"][0]["id"]
    assert (await answer(port, f"/statements/{running}", ANN))["outcome"] == "running"
    assert (await port.get(f"/statements/{running}", headers=BOB)).status == HTTPStatus.NOT_FOUND


async def test_sums_and_reasons_are_those_of_the_own_statements(port: Port) -> None:
    everybody, bob = [await answer(port, "/summary", auth) for auth in (ROOT, BOB)]
    assert everybody["sums"]["partitions_spared"] > 0
    assert set(bob["sums"]["outcomes"]) <= {"original", "fallback"}
    assert bob["sums"]["partitions_spared"] == 0
    reasons = (await answer(port, "/reasons", BOB))["reasons"]
    assert [one["reason"] for one in reasons] == ["NOT_A_PARTITION_COLUMN"]
    assert "file index" in reasons[0]["remedy"]


async def test_pages_of_statements_follow_one_another(port: Port) -> None:
    first = await answer(port, "/statements?limit=40", ROOT)
    second = await answer(port, f"/statements?limit=40&before={first['next']}", ROOT)
    assert (len(first["statements"]), len(second["statements"]), second["next"]) == (40, 21, None)
    assert first["statements"][-1]["id"] > second["statements"][0]["id"]


@pytest.mark.parametrize(
    "path", ["/statements?limit=0", "/statements?limit=many", "/statements?who=me", "/reasons?days=999"]
)
async def test_a_query_that_is_not_understood_is_refused_with_a_sentence(port: Port, path: str) -> None:
    got = await port.get(path, headers=ROOT)
    assert got.status == HTTPStatus.BAD_REQUEST
    assert set(await got.json()) == {"error"}


async def test_a_password_is_checked_anew_after_a_while_only(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def counted(_config: object, user: str, *_: object) -> str:
        asked.append(user)
        return user

    monkeypatch.setattr("proxy.admin.app.check_login", counted)
    for _ in range(3):
        await answer(port, "/now", BOB)
    assert asked == ["bob"]
    await answer(port, "/now", basic("bob", "another"))
    assert asked == ["bob", "bob"]


async def test_a_visitor_has_the_name_of_the_backends_session_and_not_the_typed_one(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def logged_in_as_ann(*_: object) -> str:
        return "ann"

    own = await answer(port, "/statements?limit=50", basic("ann", PASSWORD))
    monkeypatch.setattr("proxy.admin.app.check_login", logged_in_as_ann)
    typed = basic("bob", "of another realm")
    for _ in range(2):
        assert await answer(port, "/statements?limit=50", typed) == own


async def test_a_history_that_is_off_or_broken_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with admin_port(monkeypatch, history_in(None)) as port:
        got = await port.get("/statements", headers=ROOT)
        assert (got.status, (await got.json())["error"]) == (
            HTTPStatus.SERVICE_UNAVAILABLE,
            "The history is switched off (history.enabled), so no statement is kept.",
        )
        assert (await answer(port, "/now", ROOT))["running"] == []
        assert (await port.get("/statements/none", headers=ROOT)).status == HTTPStatus.NOT_FOUND
    (tmp_path / "history.sqlite").write_bytes(b"this is no database" * 500)
    async with admin_port(monkeypatch, history_in(tmp_path)) as port:
        got = await port.get("/summary", headers=ROOT)
        assert (await got.json())["error"].startswith("The history cannot be read")


async def test_an_open_port_shows_all_but_not_by_a_name_that_others_gave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with admin_port(monkeypatch, busy_history(tmp_path), is_open=True) as port:
        assert len((await answer(port, "/statements"))["statements"]) == 50
        rebound = await port.get("/statements", headers={"Host": "evil.example"})
        assert rebound.status == HTTPStatus.FORBIDDEN


async def test_the_answers_are_as_the_description_says(port: Port) -> None:
    described = await answer(port, "/openapi.json")
    assert described["openapi"].startswith("3.1")
    paths = {path: path.replace("{id}", await an_id(port, ROOT)) for path in PATHS}
    paths |= {path: path for path in ("/backends", "/rewriting")}
    read = {path for path, operations in described["paths"].items() if "get" in operations}
    assert read == {*paths, "/partitions"}
    for path, asked in paths.items():
        operation = described["paths"][path]["get"]
        holds(described, operation, "200", await answer(port, asked, ROOT))
        if "401" in operation["responses"]:
            refused = await port.get(asked)
            holds(described, operation, str(refused.status), await refused.json())
    for name in (one["name"] for one in described["paths"]["/statements"]["get"]["parameters"]):
        numbers = dict.fromkeys(("since", "until", "least_s"), "1.5")
        value = {"outcome": "failed", "order": "slowest", "limit": "3", **numbers}.get(name, "x")
        assert (await port.get("/statements", params={name: value}, headers=ROOT)).status == HTTPStatus.OK, name


def holds(described: Any, operation: Any, status: str, value: Any) -> None:
    schema = operation["responses"][status]["content"]["application/json"]["schema"]
    jsonschema.validate(value, {**schema, "components": described["components"]})


async def test_every_answer_has_the_headers_that_keep_it_here(port: Port) -> None:
    for path in ("/", "/sign-in", "/statements", "/nowhere", "/healthz", "/static/style.css", "/openapi.json"):
        got = await port.get(path, allow_redirects=False)
        assert got.headers["X-Content-Type-Options"] == "nosniff", path
        assert "default-src 'none'" in got.headers["Content-Security-Policy"], path
        assert "frame-ancestors 'none'" in got.headers["Content-Security-Policy"], path
        assert (got.headers["Cache-Control"] == "no-store") == (path != "/static/style.css"), path


async def test_addresses_without_an_answer_say_so_in_the_same_shape(port: Port) -> None:
    got = await port.get("/nowhere")
    assert (got.status, await got.json()) == (404, {"error": "There is nothing at this address."})
    got = await port.post("/statements")
    assert (got.status, set(await got.json()), got.headers["Allow"]) == (405, {"error"}, "GET,HEAD")
    got = await port.get("/nowhere", headers={"Accept": "text/html"})
    assert "There is nothing at this address." in await got.text()


async def test_a_route_that_fails_tells_nothing_of_the_statement(
    port: Port, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("SELECT 'private'")

    monkeypatch.setattr("proxy.history.queries.HistoryReader.statements", fails)
    got = await port.get("/statements", headers=ROOT)
    assert got.status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "private" not in await got.text() + caplog.text


async def test_ten_thousand_statements_do_not_stall_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with admin_port(monkeypatch, busy_history(tmp_path, 10_000)) as port:
        began = time.process_time()
        for path in ("/statements?limit=500", "/summary", "/reasons", "/statements?text=nowhere"):
            await answer(port, path, ROOT)
        assert time.process_time() - began < 20.0


async def test_a_statement_that_has_ended_is_shown_so_though_its_process_told_before_that_it_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = busy_history(tmp_path)
    ended = record(run_s=1.5)
    running = structs.replace(ended, outcome="running", end="", run_s=None)
    store = Store(tmp_path, bytes_max=history.bytes_max)
    store.add([ended])
    state = json.encode(ProcessState(running=[running]))
    store.publish("another process", time.time(), state, lost_after_s=LOST_AFTER_S)
    store.close()
    async with admin_port(monkeypatch, history) as client:
        assert (await answer(client, f"/statements/{ended.id}", ROOT))["run_s"] == 1.5
