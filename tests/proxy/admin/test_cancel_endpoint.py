"""Statements are cancelled on the admin port, by those who see everybody's, and after a second question."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient
from msgspec import json
from support.admin_pages import PASSWORD, ScriptedCanceller, admin_port, busy_history
from support.histories import record
from support.http_stage import basic

from proxy.history.history import LOST_AFTER_S, History, ProcessState
from proxy.history.store import Store

Port = TestClient[Any, Any]
BY_ROOT = "an administrator (root)"


ROOT, ANN = (basic(name, PASSWORD) for name in ("root", "ann"))


@asynccontextmanager
async def at_port(
    history: History, monkeypatch: pytest.MonkeyPatch, failure: str = "", **settings: Any
) -> AsyncIterator[tuple[Port, str, ScriptedCanceller]]:
    """The port, and ann's statement that runs."""
    (running,) = history.state().running
    canceller = ScriptedCanceller(running.id, failure=failure)
    async with admin_port(monkeypatch, history, canceller=canceller, **settings) as port:
        yield port, running.id, canceller


async def signed_in(port: Port, user: str) -> None:
    form = {"user": user, "password": PASSWORD, "token": await token(port, "/sign-in")}
    await port.post("/sign-in", data=form)


async def token(port: Port, path: str) -> str:
    found = re.search(r'name="token" value="(\w+)"', await (await port.get(path)).text())
    assert found is not None
    return found[1]


async def test_an_administrator_cancels_and_nobody_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_port(busy_history(tmp_path), monkeypatch) as (port, running, canceller):
        path = f"/statements/{running}/cancel"
        for auth in ({}, ANN, basic("root", "wrong"), {**ROOT, "Origin": "https://evil.example"}):
            got = await port.post(path, headers=auth)
            assert (got.status, set(await got.json())) == (HTTPStatus.FORBIDDEN, {"error"}), auth
        assert canceller.cancelled == []
        got = await port.post(path, headers=ROOT)
        assert (got.status, await got.json()) == (HTTPStatus.OK, {"cancelled": running})
        assert canceller.cancelled == [(running, BY_ROOT)]


@pytest.mark.parametrize(("is_open", "is_named"), [(True, True), (False, False), (True, False)])
async def test_without_an_administrator_everybody_cancels_at_an_open_port_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_open: bool, is_named: bool
) -> None:
    history = busy_history(tmp_path)
    async with at_port(history, monkeypatch, is_open=is_open, has_administrator=is_named) as (port, running, on):
        status = (await port.post(f"/statements/{running}/cancel")).status
        assert status == (HTTPStatus.OK if is_open and not is_named else HTTPStatus.FORBIDDEN)
        assert on.cancelled == ([(running, "an administrator")] if status == HTTPStatus.OK else [])


async def test_what_cannot_be_cancelled_here_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history, elsewhere = busy_history(tmp_path), record(outcome="running", end="", run_s=None)
    ended = record(end="unknown", outcome="cancelled", cancelled_by=BY_ROOT)
    store = Store(tmp_path, bytes_max=history.bytes_max)
    store.add([ended])
    state = json.encode(ProcessState(running=[elsewhere], running_count=1))
    store.publish("another process", time.time(), state, lost_after_s=LOST_AFTER_S)
    store.close()
    async with at_port(history, monkeypatch) as (port, running, _):
        await signed_in(port, "root")
        for identifier, status, sentence in (
            ("ffff", HTTPStatus.NOT_FOUND, "There is no such statement."),
            (ended.id, HTTPStatus.CONFLICT, "The statement has ended."),
            (elsewhere.id, HTTPStatus.CONFLICT, "or it runs in another worker or replica"),
        ):
            got = await port.post(f"/statements/{identifier}/cancel", headers=ROOT)
            assert (got.status, sentence in (await got.json())["error"]) == (status, True), sentence
            got = await port.get(f"/live/cancel?id={identifier}", headers={"Accept": "text/html"})
            assert (got.status, sentence in await got.text()) == (status, True), sentence
        live = await (await port.get("/live")).text()
        assert (running in live, f'value="{running}"' in live) == (True, True)
        assert (elsewhere.id in live, f'value="{elsewhere.id}"' in live) == (True, False)
        assert f"cancelled by {BY_ROOT}" in await (await port.get(f"/history/{ended.id}")).text()
    async with at_port(history, monkeypatch, failure="the backend is full") as (port, running, _):
        got = await port.post(f"/statements/{running}/cancel", headers=ROOT)
        assert (got.status, await got.json()) == (
            HTTPStatus.BAD_GATEWAY,
            {"error": "The statement may go on: the backend is full."},
        )


async def test_the_page_live_cancels_after_a_second_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_port(busy_history(tmp_path), monkeypatch) as (port, running, canceller):
        asking = f"/live/cancel?id={running}"
        await signed_in(port, "ann")
        assert "/live/cancel" not in await (await port.get("/live")).text()
        assert (await port.get(asking)).status == HTTPStatus.FORBIDDEN
        form = {"id": running, "token": await token(port, "/live")}
        assert (await port.post("/live/cancel", data=form)).status == HTTPStatus.FORBIDDEN
        await signed_in(port, "root")
        assert 'action="/live/cancel"' in await (await port.get("/live")).text()
        assert "note = &#39;running&#39;" in await (await port.get(asking)).text()
        forged = await port.post("/live/cancel", data={**form, "token": "0" * 64})
        assert (forged.status, canceller.cancelled) == (HTTPStatus.FORBIDDEN, [])
        got = await port.post("/live/cancel", data={**form, "token": await token(port, asking)})
        assert (str(got.url.path), canceller.cancelled) == ("/live", [(running, BY_ROOT)])


async def test_one_of_several_workers_shows_no_button_and_cancels_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_port(busy_history(tmp_path), monkeypatch, workers=2) as (port, running, _):
        await signed_in(port, "root")
        assert "/live/cancel" not in await (await port.get("/live")).text()
        assert (await port.post(f"/statements/{running}/cancel", headers=ROOT)).status == HTTPStatus.OK
