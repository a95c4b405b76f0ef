"""The admin port's application: its pages, the JSON routes, /explain, /partitions, /metrics, /healthz, /readyz."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from proxy.admin import backends_endpoint as backend_routes
from proxy.admin import quarantine_endpoint as quarantine_routes
from proxy.admin import statements_endpoint as statement_routes
from proxy.admin.answers import Handler, add_headers, error_answer, json_answer, wants_html
from proxy.admin.basic_login import BasicLogin, basic_login
from proxy.admin.explain_endpoint import (
    ANONYMOUS,
    ExplainRequest,
    PartitionsRequest,
    check_login,
    explain_as_user,
    partitions_as_user,
)
from proxy.admin.pages import Pages
from proxy.admin.statements_view import StatementsView
from proxy.admin.visitors import Visitors
from proxy.backends.pool import BackendPool
from proxy.backends.readiness import Readiness
from proxy.config.config import Config
from proxy.config.serving import HistorySection
from proxy.history.history import History
from proxy.session.explain.partition_plan import PartitionPlanView
from proxy.session.explain.view import ExplainView
from proxy.session.metrics import CONTENT_TYPE
from proxy.session.shared_state import SharedState
from proxy.upstream.errors import BackendError

log = logging.getLogger(__name__)

T = TypeVar("T")

_NOT_READY: Final = HTTPStatus.SERVICE_UNAVAILABLE


def application(  # noqa: PLR0913 - the parts that the routes show
    config: Config,
    shared: SharedState,
    backends: BackendPool,
    exposition: Callable[[], Awaitable[bytes]],
    *,
    history: History | None = None,
    key: bytes | None = None,
    slots: asyncio.Semaphore | None = None,
    readiness: Readiness | None = None,
) -> web.Application:
    """Return the application; /metrics answers with `exposition`, and `slots` are those of `Query.needs_slot`.

    Workers that share a port have one `key`, by which cookies are signed.
    """

    async def explained(asked: ExplainRequest, user: str, password: str) -> ExplainView:
        return await explain_as_user(config, asked, user, password, shared, backends=backends, slots=slots)

    async def planned(asked: PartitionsRequest, user: str, password: str) -> PartitionPlanView:
        return await partitions_as_user(config, asked, user, password, shared, backends=backends, slots=slots)

    async def check_at_backend(user: str, password: str) -> str:
        return await check_login(config, user, password, backends)

    async def expose(_: web.Request) -> web.Response:
        return web.Response(body=await exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def healthz(_: web.Request) -> web.Response:
        return json_answer({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        why_not = ready.why_not_ready()
        return json_answer({"status": "ok"}) if why_not is None else error_answer(_NOT_READY, why_not)

    ready = readiness or Readiness(backends)
    view = StatementsView(history or History(HistorySection(enabled=False), None))
    visitors = Visitors(config, key or os.urandom(32), check_at_backend)
    is_alone = config.proxy.workers == 1
    pages = Pages(view, visitors, backends, explained, is_alone=is_alone)
    app = web.Application(client_max_size=config.admin.request_bytes_max, middlewares=[_guarded(pages)])
    app.on_response_prepare.append(_prepare)
    app.on_cleanup.append(lambda _: view.close())
    app.add_routes(
        [
            web.post("/explain", _as_caller(_explain_request, explained)),
            web.get("/partitions", _as_caller(_partitions_request, planned)),
            web.get("/metrics", expose),
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
        ]
    )
    app.add_routes(backend_routes.routes(backends, visitors, is_alone=is_alone))
    is_shared = config.catalog.store == "hbase"
    app.add_routes(quarantine_routes.routes(shared.quarantine, visitors, is_alone=is_alone, is_shared=is_shared))
    app.add_routes(statement_routes.routes(view, visitors))
    app.add_routes(pages.routes())
    return app


async def _explain_request(request: web.Request) -> ExplainRequest:
    return msgspec.json.decode(await request.read(), type=ExplainRequest)


async def _partitions_request(request: web.Request) -> PartitionsRequest:
    return msgspec.convert(dict(request.query), PartitionsRequest, strict=False)


def _as_caller(
    read: Callable[[web.Request], Awaitable[T]], answered: Callable[[T, str, str], Awaitable[msgspec.Struct]]
) -> Handler:
    """Answers of a session that is opened with the request's own credentials."""

    async def answer(request: web.Request) -> web.Response:
        try:
            asked = await read(request)
            caller = _caller(request)
        except ValueError as error:
            return error_answer(HTTPStatus.BAD_REQUEST, f"The request is not understood: {error}.")
        try:
            found = await answered(asked, caller.user, caller.password)
        except BackendError as error:
            return error_answer(HTTPStatus.BAD_GATEWAY, str(error))
        except Exception as error:  # noqa: BLE001 - aiohttp would log its message
            # Without its message, which may quote the statement.
            log.error("%s %s failed with %s", request.method, request.path, type(error).__name__)  # noqa: TRY400
            return error_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "Starpruner has failed; its log says more.")
        return json_answer(found)

    return answer


def _guarded(pages: Pages) -> Middleware:
    """Errors of any route as a sentence: on a page for browsers, as JSON for everybody else."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPRedirection:
            raise
        except web.HTTPException as error:
            status, sentence = (
                HTTPStatus(error.status),
                _SENTENCES.get(HTTPStatus(error.status), f"{error.reason}."),
            )
            allowed = error.headers.get("Allow")
        except Exception as error:  # noqa: BLE001 - aiohttp would log its message
            # Without its message, which may quote a statement.
            log.error("%s failed with %s", request.match_info.route.name or "a route", type(error).__name__)  # noqa: TRY400
            status, sentence = HTTPStatus.INTERNAL_SERVER_ERROR, "Starpruner has failed; its log says more."
            allowed = None
        answer = pages.error(status, sentence) if wants_html(request) else error_answer(status, sentence)
        if allowed is not None:
            answer.headers["Allow"] = allowed
        return answer

    return guard


_SENTENCES = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address takes another method.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The request is longer than admin.request_bytes_max.",
}


async def _prepare(_: web.Request, response: web.StreamResponse) -> None:
    add_headers(response)


def _caller(request: web.Request) -> BasicLogin:
    """Return the credentials of the request, which the backend checks. Raises ValueError if not HTTP Basic."""
    header = request.headers.get("Authorization")
    return BasicLogin(ANONYMOUS, ANONYMOUS) if header is None else basic_login(header)
