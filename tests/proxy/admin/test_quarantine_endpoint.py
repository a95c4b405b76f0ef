"""What is quarantined can be released on the admin port, by those who may administrate."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from support.admin_pages import idle_application
from support.http_stage import basic

from proxy.admin.passwords import hash_of
from proxy.backends.pool import BackendPool
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection
from proxy.config.serving import AdminSection, ProxySection
from proxy.session.feedback.cost_gate import StatementKey
from proxy.session.feedback.quarantine_list import Cause
from proxy.session.shared_state import SharedState
from rewriter import Rule

KEY = StatementKey("ann", "a")
RULE = f"/quarantine/rule/{Rule.EXISTS.value}/release"


@asynccontextmanager
async def port(config: Config) -> AsyncIterator[tuple[TestClient[Any, Any], SharedState]]:
    async def exposition() -> bytes:
        return b""

    shared = SharedState.of(config)
    shared.quarantine.blame(frozenset({Rule.EXISTS}), KEY, Cause.DIFFERENT)
    backends = BackendPool([PoolMember(Address("127.0.0.1", 10_000))], time.monotonic)
    async with TestClient(TestServer(idle_application(config, backends, exposition, shared=shared))) as client:
        yield client, shared


async def test_a_rule_and_a_fingerprint_are_released() -> None:
    async with port(Config()) as (client, shared):
        answer = await client.post(RULE)
        assert (answer.status, await answer.json()) == (HTTPStatus.OK, {"released": "rule exists"})
        assert not shared.quarantine.rules_off()
        assert shared.quarantine.has_statement(KEY)
        answer = await client.post(f"/quarantine/fingerprint/{KEY.name}/release")
        assert answer.status == HTTPStatus.OK
        assert not shared.quarantine.current()
        answer = await client.post(RULE)
        assert answer.status == HTTPStatus.NOT_FOUND
        assert "is not quarantined" in (await answer.json())["error"]


@pytest.mark.parametrize("what", ["rule/no_such_rule", "table/sales", f"fingerprint/{'x' * 500}"])
async def test_what_is_not_quarantined_is_not_found(what: str) -> None:
    async with port(Config()) as (client, shared):
        assert (await client.post(f"/quarantine/{what}/release")).status == HTTPStatus.NOT_FOUND
        assert shared.quarantine.rules_off() == {Rule.EXISTS}


@pytest.mark.parametrize("is_open", [False, True])
async def test_only_an_administrator_may_release_where_any_is_named(*, is_open: bool) -> None:
    section = AdminSection(users={"root": hash_of("secret")}, open=is_open)
    async with port(Config(admin=section)) as (client, shared):
        right, wrong = basic("root", "secret"), basic("root", "wrong")
        for headers in ({}, wrong, {**right, "Origin": "https://elsewhere.example"}):
            assert (await client.post(RULE, headers=headers)).status == HTTPStatus.FORBIDDEN
        assert shared.quarantine.rules_off() == {Rule.EXISTS}
        assert (await client.post(RULE, headers=right)).status == HTTPStatus.OK


async def test_a_page_that_gave_its_own_name_our_address_may_not_release() -> None:
    named = {"Host": "elsewhere.example:9", "Origin": "http://elsewhere.example:9"}
    async with port(Config(admin=AdminSection(hosts=("starpruner",)))) as (client, shared):
        assert (await client.post(RULE, headers=named)).status == HTTPStatus.FORBIDDEN
        assert shared.quarantine.rules_off() == {Rule.EXISTS}
        assert (await client.post(RULE, headers={"Host": "starpruner:9"})).status == HTTPStatus.OK


async def test_one_of_several_workers_releases_where_the_others_hear_of_it() -> None:
    workers = ProxySection(workers=2)
    async with port(Config(proxy=workers)) as (client, shared):
        assert (await client.post(RULE)).status == HTTPStatus.CONFLICT
        assert shared.quarantine.rules_off() == {Rule.EXISTS}
    stored = CatalogSection(store="hbase", store_gateway="127.0.0.1:1")
    async with port(Config(proxy=workers, catalog=stored)) as (client, _):
        answer = await client.post(RULE)
        assert answer.status == HTTPStatus.OK
        assert "once HBase answers" in (await answer.json())["others"]
