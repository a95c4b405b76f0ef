"""Rewriting is switched off for all on the admin port, by those who may administrate."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestClient, TestServer
from support.admin_pages import idle_application
from support.http_stage import basic

from proxy.admin.passwords import hash_of
from proxy.backends.pool import BackendPool
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.config import Config
from proxy.config.serving import AdminSection
from proxy.off_switch import OffSwitch
from proxy.session.shared_state import SharedState


@asynccontextmanager
async def port(config: Config, off_file: Path | None) -> AsyncIterator[tuple[TestClient[Any, Any], SharedState]]:
    async def exposition() -> bytes:
        return b""

    shared = SharedState.of(config)
    shared.off_switch = OffSwitch(str(off_file or ""))
    backends = BackendPool([PoolMember(Address("127.0.0.1", 10_000))], time.monotonic)
    app = idle_application(config, backends, exposition, shared=shared)
    async with TestClient(TestServer(app)) as client:
        yield client, shared


async def test_all_statements_are_sent_as_they_come_until_that_is_taken_back(tmp_path: Path) -> None:
    file = tmp_path / "off"
    async with port(Config(admin=AdminSection(open=True)), file) as (client, shared):
        for way, is_on in (("off", False), ("off", False), ("on", True)):
            answer = await client.post(f"/rewriting/{way}")
            assert (answer.status, await answer.json()) == (HTTPStatus.OK, {"on": is_on})
            assert (shared.off_switch.is_off, file.exists()) == (not is_on, not is_on)
            assert (await (await client.get("/rewriting")).json())["on"] is is_on
            assert ("Rewriting is switched off" in await _page(client)) is not is_on


async def _page(client: TestClient[Any, Any]) -> str:
    answer = await client.get("/", headers={"Accept": "text/html"})
    return await answer.text()


async def test_without_a_file_or_where_it_cannot_be_made_nothing_is_switched(tmp_path: Path) -> None:
    for file, sentence in (
        (None, "rewrite.off_file is empty"),
        (tmp_path / "no" / "off", "cannot be changed: No such"),
    ):
        async with port(Config(), file) as (client, shared):
            answer = await client.post("/rewriting/off")
            assert answer.status == HTTPStatus.CONFLICT
            assert sentence in (await answer.json())["error"]
            assert not shared.off_switch.is_off


async def test_where_administrators_are_named_nobody_else_switches_anything(tmp_path: Path) -> None:
    config = Config(admin=AdminSection(users={"root": hash_of("right")}))
    async with port(config, tmp_path / "off") as (client, shared):
        for password, status in (("wrong", HTTPStatus.FORBIDDEN), ("right", HTTPStatus.OK)):
            answer = await client.post("/rewriting/off", headers=basic("root", password))
            assert answer.status == status
            assert shared.off_switch.is_off is (status is HTTPStatus.OK)
