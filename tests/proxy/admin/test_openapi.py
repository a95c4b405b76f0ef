"""The description of the JSON routes holds for requests that it allows, and for others."""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from aiohttp.test_utils import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, CheckFunction, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance
from support.admin_pages import ScriptedCanceller, admin_port, busy_history

from proxy.admin.explain_endpoint import ExplainRequest, PartitionsRequest
from proxy.admin.openapi import description
from proxy.admin.statements_endpoint import ROUTES
from proxy.config.config import Config
from proxy.session.decision import Decision
from proxy.session.explain.partition_plan import PartitionPlanView, planned
from proxy.session.explain.view import ExplainView, view
from proxy.session.feedback.cost_gate import StatementKey
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.feedback.quarantine_list import Cause
from proxy.upstream.errors import BackendError
from rewriter import Rule
from rewriter.partitions.index import PartitionIndex

DESCRIBED = description(ROUTES)
OPERATIONS = [(method, path) for path, operations in DESCRIBED["paths"].items() for method in operations]
# Those of which some requests are not allowed.
REFUSING = [
    ("get", "/statements"),
    ("get", "/reasons"),
    ("get", "/digests"),
    ("get", "/partitions"),
    ("post", "/explain"),
]
KEY = StatementKey("ann", "a")
# Names in the paths of changes: some that there are, and one that there is not.
NAMES = {
    "/quarantine/{kind}/{name}/release": [Rule.EXISTS.value, KEY.name, "nothing"],
    "/backends/{name}/drain": ["spark-a:10000", "nowhere:10000"],
    "/backends/{name}/undrain": ["spark-a:10000", "nowhere:10000"],
    "/statements/{id}/cancel": ["0a1b", "ffff"],
}
# The routes to which forms of the pages send; these have tests of their own.
FORMS = {"/explain/page", "/backends/page", "/live/cancel", "/sign-in", "/sign-out"}
EXAMPLES = 25
EXCLUDED: dict[str, list[CheckFunction]] = {
    # A backend that is down is a 502, and described as such.
    "/explain": [not_a_server_error],
    "/partitions": [not_a_server_error],
    # Two parameters come together, which the description can say in words alone.
    "/digests": [positive_data_acceptance],
}


async def explain(_: Config, request: ExplainRequest, *__: object, **___: object) -> ExplainView:
    """A backend that is down now and then."""
    if len(request.sql) % 3 == 1:
        raise BackendError("it is down")
    return view(Decision(request.sql))


async def plan(_: Config, request: PartitionsRequest, *__: object, **___: object) -> PartitionPlanView:
    """A backend that is down now and then."""
    if len(request.table) % 3 == 1:
        raise BackendError("it is down")
    return planned(request.table, request.filter, PartitionIndex.of(["y"], ["int"], ["y=1", "y=2"]))


def quarantine(quarantine: Quarantine) -> None:
    quarantine.blame(frozenset({Rule.EXISTS}), KEY, Cause.DIFFERENT)


@pytest.fixture
async def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TestClient[Any, Any]]:
    monkeypatch.setattr("proxy.admin.app.explain_as_user", explain)
    monkeypatch.setattr("proxy.admin.app.partitions_as_user", plan)
    history = busy_history(tmp_path)
    async with admin_port(
        monkeypatch,
        history,
        is_open=True,
        has_administrator=False,
        quarantine=quarantine,
        canceller=ScriptedCanceller("0a1b"),
    ) as client:
        yield client


def ask(port: TestClient[Any, Any], method: str, path: str, mode: GenerationMode) -> set[int]:
    """Send requests to an operation, and hold each answer to the description. Returns the statuses."""
    # Signing in has tests of its own, and takes long by design.
    without_login = {key: value for key, value in DESCRIBED["paths"][path][method].items() if key != "security"}
    if path in NAMES:
        *others, name = without_login["parameters"]
        without_login["parameters"] = [*others, {**name, "schema": {"enum": NAMES[path]}}]
    schema = schemathesis.openapi.from_dict({**DESCRIBED, "paths": {path: {method: without_login}}})
    schema.config.update(base_url=f"http://{port.host}:{port.port}")
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(schema[path][method].as_strategy(generation_mode=mode))
    def every_answer_is_as_described(case: Case[Any]) -> None:
        answer = case.call()
        statuses.add(answer.status_code)
        case.validate_response(answer, excluded_checks=EXCLUDED.get(path, []))

    every_answer_is_as_described()
    return statuses


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_a_request_that_is_allowed_is_answered_as_described(
    port: TestClient[Any, Any], method: str, path: str
) -> None:
    statuses = await asyncio.to_thread(ask, port, method, path, GenerationMode.POSITIVE)
    expected = {
        "/explain": {HTTPStatus.OK, HTTPStatus.BAD_GATEWAY},
        "/partitions": {HTTPStatus.OK, HTTPStatus.BAD_GATEWAY},
        "/digests": {HTTPStatus.OK, HTTPStatus.BAD_REQUEST},
        "/statements/{id}": {HTTPStatus.NOT_FOUND},
        **{change: {HTTPStatus.OK, HTTPStatus.NOT_FOUND} for change in NAMES},
    }
    assert statuses == expected.get(path, {HTTPStatus.OK})


@pytest.mark.parametrize(("method", "path"), REFUSING)
async def test_a_request_that_is_not_allowed_is_refused_as_described(
    port: TestClient[Any, Any], method: str, path: str
) -> None:
    statuses = await asyncio.to_thread(ask, port, method, path, GenerationMode.NEGATIVE)
    assert HTTPStatus.BAD_REQUEST in statuses


@pytest.mark.parametrize("path", NAMES)
async def test_a_change_by_somebody_who_is_no_administrator_is_refused_as_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async with admin_port(monkeypatch, busy_history(tmp_path), is_open=True) as port:
        statuses = await asyncio.to_thread(ask, port, "post", path, GenerationMode.POSITIVE)
    assert statuses == {HTTPStatus.FORBIDDEN}


async def test_every_change_that_the_port_takes_is_described(port: TestClient[Any, Any]) -> None:
    assert port.app is not None
    changes = {r.resource.canonical for r in port.app.router.routes() if r.method == "POST" and r.resource}
    assert changes - FORMS == {path for method, path in OPERATIONS if method == "post"}
