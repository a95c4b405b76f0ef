"""The OpenAPI description of the admin port's JSON routes, made from the types of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

import msgspec

from proxy.admin.answers import ErrorAnswer
from proxy.admin.cancel_endpoint import CancelledAnswer
from proxy.admin.explain_endpoint import ExplainRequest, PartitionsRequest
from proxy.admin.quarantine_endpoint import ReleasedAnswer
from proxy.admin.rewriting_endpoint import RewritingAnswer
from proxy.backends.backend import BackendView
from proxy.session.explain.partition_plan import PartitionPlanView
from proxy.session.explain.view import ExplainView
from proxy.session.feedback.quarantine_list import QuarantineKind

_REF: Final = "#/components/schemas/{name}"
_OF_BACKEND: Final = "the credentials are the backend's, and an open port (admin.open) needs none."


class BackendsAnswer(msgspec.Struct):
    """The answer of GET /backends, and of a change of one."""

    backends: list[BackendView]


@dataclass(frozen=True)
class GetRoute:
    """A GET route that answers with JSON, for visitors who have signed in."""

    path: str
    text: str
    answer: Any
    # The type that its query is converted to: each field is a parameter.
    query: type[msgspec.Struct] | None = None
    # Further statuses of errors.
    statuses: tuple[int, ...] = ()


@dataclass(frozen=True)
class _PostRoute:
    """A POST route without a body, by which an administrator changes the thing that its path names."""

    path: str
    text: str
    # The schemas of the names in the path.
    names: Mapping[str, Mapping[str, Any]]
    answer: Any
    # The visitors who may ask. By default everybody may who reaches a port without administrators.
    asked_by: str = "For administrators, where any is named."


# GET routes that need no login, each with its text and the type of its answer.
_OPEN: Final = {
    "/backends": ("The backends, with their load, health and last failures.", BackendsAnswer),
    "/rewriting": ("The state of the switch for all statements.", RewritingAnswer),
}
_BACKEND: Final = {"name": {"type": "string", "description": "HOST:PORT, as GET /backends names it."}}
_QUARANTINED: Final[Mapping[str, Mapping[str, Any]]] = {
    "kind": {"enum": [kind.value for kind in QuarantineKind]},
    "name": {"type": "string", "description": "The rule or the fingerprint, as GET /quarantine names it."},
}
_WAYS: Final[Mapping[str, Mapping[str, Any]]] = {"way": {"enum": ["off", "on"]}}
_STATEMENT: Final = {"id": {"type": "string", "description": "The statement's id, as GET /now has it."}}
_CHANGES: Final = (
    _PostRoute(
        "/statements/{id}/cancel",
        "Cancel a statement that runs in the process that answers.",
        _STATEMENT,
        CancelledAnswer,
        "For administrators alone.",
    ),
    _PostRoute("/quarantine/{kind}/{name}/release", "Release from the quarantine.", _QUARANTINED, ReleasedAnswer),
    _PostRoute("/backends/{name}/drain", "Let a backend have no new sessions.", _BACKEND, BackendsAnswer),
    _PostRoute("/rewriting/{way}", "Send all statements as they come, or no more.", _WAYS, RewritingAnswer),
    _PostRoute("/backends/{name}/undrain", "Let a drained backend have new sessions.", _BACKEND, BackendsAnswer),
)
# 403: the port is called by another name. 503: it has too many requests.
_OF_ALL: Final = ("403", "503")
# 401: the visitor is not known. 429: too many passwords were tried. 502: the backend cannot tell.
_OF_LOGINS: Final = (*_OF_ALL, "401", "429", "502")
# 403 also: the visitor may not. 404: the name is not known. 409: the other workers would not know of the change.
# 502: the backend does not carry it out.
_OF_CHANGES: Final = (*_OF_ALL, "404", "409", "502")


def description(routes: Sequence[GetRoute]) -> dict[str, Any]:
    """The description of these routes, and of those for explain, partitions, backends, and changes."""
    own = [
        ErrorAnswer,
        ExplainRequest,
        ExplainView,
        PartitionPlanView,
        BackendsAnswer,
        CancelledAnswer,
        ReleasedAnswer,
        RewritingAnswer,
    ]
    types = [*own, *(route.answer for route in routes)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = dict(zip(types, schemas, strict=True))
    error = _content("An error, as a sentence.", schema_of[ErrorAnswer])
    paths = {route.path: {"get": _operation(route, schema_of[route.answer], error)} for route in routes}
    for path, (text, answer) in _OPEN.items():
        responses = {"200": _content("The answer.", schema_of[answer]), **dict.fromkeys(_OF_ALL, error)}
        paths[path] = {"get": {"summary": text, "responses": responses}}
    paths["/explain"] = {
        "post": {
            "summary": f"The decision about a statement; {_OF_BACKEND}",
            "security": [{"basic": []}],
            "requestBody": {"required": True, **_content("", schema_of[ExplainRequest], is_answer=False)},
            "responses": {
                "200": _content("The answer.", schema_of[ExplainView]),
                **dict.fromkeys(sorted((*_OF_LOGINS, "400", "408", "413", "415", "500")), error),
            },
        }
    }
    paths["/partitions"] = {
        "get": {
            "summary": f"The range scans that answer a filter on partitions; {_OF_BACKEND}",
            "security": [{"basic": []}],
            "parameters": _parameters(PartitionsRequest),
            "responses": {
                "200": _content("The answer.", schema_of[PartitionPlanView]),
                **dict.fromkeys(sorted((*_OF_LOGINS, "400", "500")), error),
            },
        }
    }
    paths |= {change.path: {"post": _change(change, schema_of[change.answer], error)} for change in _CHANGES}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Starpruner's admin port", "version": version("starpruner")},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
        },
    }


def _operation(route: GetRoute, schema: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("id",)
        if f"{{{name}}}" in route.path
    ]
    asked = [] if route.query is None else _parameters(route.query)
    statuses = sorted({*_OF_LOGINS, *(["400"] if asked else []), *map(str, route.statuses)})
    return {
        "summary": route.text,
        "security": [{"basic": []}],
        "parameters": named + asked,
        "responses": {"200": _content("The answer.", schema), **dict.fromkeys(statuses, error)},
    }


def _change(change: _PostRoute, schema: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    names = [{"name": name, "in": "path", "required": True, "schema": form} for name, form in change.names.items()]
    return {
        "summary": f"{change.text} {change.asked_by}",
        "security": [{"basic": []}, {}],
        "parameters": names,
        "responses": {"200": _content("The answer.", schema), **dict.fromkeys(sorted(_OF_CHANGES), error)},
    }


def _parameters(query: type[msgspec.Struct]) -> list[dict[str, Any]]:
    (described,) = msgspec.json.schema(query)["$defs"].values()
    required = set(described.get("required", ()))
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": schema.pop("description"),
            "schema": schema,
        }
        for name, schema in described["properties"].items()
    ]


def _content(text: str, schema: dict[str, Any], *, is_answer: bool = True) -> dict[str, Any]:
    content = {"content": {"application/json": {"schema": schema}}}
    return {"description": text, **content} if is_answer else content
