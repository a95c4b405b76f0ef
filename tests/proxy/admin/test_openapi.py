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
from support.admin_pages import admin_port, busy_history

from proxy.admin.explain_endpoint import ExplainRequest, PartitionsRequest
from proxy.admin.openapi import description
from proxy.admin.statements_endpoint import ROUTES
from proxy.config.config import Config
from proxy.session.decision import Decision
from proxy.session.explain.partition_plan import PartitionPlanView, planned
from proxy.session.explain.view import ExplainView, view
from proxy.upstream.errors import BackendError
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


@pytest.fixture
async def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TestClient[Any, Any]]:
    monkeypatch.setattr("proxy.admin.app.explain_as_user", explain)
    monkeypatch.setattr("proxy.admin.app.partitions_as_user", plan)
    async with admin_port(monkeypatch, busy_history(tmp_path), is_open=True) as client:
        yield client


def ask(port: TestClient[Any, Any], method: str, path: str, mode: GenerationMode) -> set[int]:
    """Send requests to an operation, and hold each answer to the description. Returns the statuses."""
    # Signing in has tests of its own, and takes long by design.
    without_login = {key: value for key, value in DESCRIBED["paths"][path][method].items() if key != "security"}
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
    }
    assert statuses == expected.get(path, {HTTPStatus.OK})


@pytest.mark.parametrize(("method", "path"), REFUSING)
async def test_a_request_that_is_not_allowed_is_refused_as_described(
    port: TestClient[Any, Any], method: str, path: str
) -> None:
    statuses = await asyncio.to_thread(ask, port, method, path, GenerationMode.NEGATIVE)
    assert HTTPStatus.BAD_REQUEST in statuses
