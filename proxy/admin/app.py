"""The admin port's application: its pages, the JSON routes, /explain, /partitions, /metrics, /healthz, /readyz."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from socket import gethostname
from typing import Final, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from proxy.admin import backends_endpoint as backend_routes
from proxy.admin import quarantine_endpoint as quarantine_routes
from proxy.admin import rewriting_endpoint as rewriting_routes
from proxy.admin import statements_endpoint as statement_routes
from proxy.admin.answers import Handler, Refusal, add_headers, error_answer, json_answer, wants_html
from proxy.admin.basic_login import BasicLogin
from proxy.admin.cancel_endpoint import Cancels
from proxy.admin.doors import DOORS, Doors
from proxy.admin.explain_endpoint import (
    ANONYMOUS,
    ExplainRequest,
    PartitionsRequest,
    check_login,
    explain_as_user,
    partitions_as_user,
)
from proxy.admin.own_names import OwnNames
from proxy.admin.pages import Pages
from proxy.admin.statements_view import StatementsView
from proxy.admin.visitors import Visitors
from proxy.backends.pool import BackendPool
from proxy.backends.readiness import Readiness
from proxy.config.address import address
from proxy.config.config import Config
from proxy.frontend.statement_canceller import StatementCanceller
from proxy.history.history import History
from proxy.net.own_host import own_host
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
    history: History,
    canceller: StatementCanceller,
    key: bytes | None = None,
    slots: asyncio.Semaphore | None = None,
    readiness: Readiness | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> web.Application:
    """Return the application; /metrics answers with `exposition`, and `slots` are those of `Query.needs_slot`.

    Workers that share a port sign cookies with one `key`.
    """

    async def explained(asked: ExplainRequest, user: str, password: str) -> ExplainView:
        return await explain_as_user(config, asked, user, password, shared, backends=backends, slots=slots)

    async def planned(asked: PartitionsRequest, user: str, password: str) -> PartitionPlanView:
        return await partitions_as_user(config, asked, user, password, shared, backends=backends, slots=slots)

    async def check_at_backend(user: str, password: str) -> str:
        return await check_login(config, user, password, backends)

    view = StatementsView(history, shared)
    visitors = Visitors(
        config, key or os.urandom(32), check_at_backend, clock, partial(shared.metrics.login_refused, "admin")
    )
    is_alone = config.proxy.workers == 1
    doors = Doors(_own_names(config), config.admin.request_bytes_max)
    cancels = Cancels(view, visitors, canceller)
    pages = Pages(view, visitors, backends, explained, cancels, is_alone=is_alone)
    app = web.Application(middlewares=[doors.outer, _guarded(pages), doors.inner])
    app[DOORS] = doors
    app.on_response_prepare.append(_prepare)
    app.on_cleanup.append(lambda _: view.close())
    app.add_routes(
        [
            web.post("/explain", _as_caller(visitors, _explain_request, explained)),
            web.get("/partitions", _as_caller(visitors, _partitions_request, planned)),
            *_routes_of_watchers(exposition, readiness or Readiness(backends)),
        ]
    )
    app.add_routes(backend_routes.routes(backends, visitors, is_alone=is_alone))
    app.add_routes(rewriting_routes.routes(shared.off_switch, visitors))
    is_shared = config.catalog.store == "hbase"
    app.add_routes(quarantine_routes.routes(shared.quarantine, visitors, is_alone=is_alone, is_shared=is_shared))
    app.add_routes(statement_routes.routes(view, visitors))
    app.add_routes(cancels.routes())
    app.add_routes(pages.routes())
    return app


def _routes_of_watchers(exposition: Callable[[], Awaitable[bytes]], readiness: Readiness) -> list[web.RouteDef]:
    async def expose(_: web.Request) -> web.Response:
        return web.Response(body=await exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def healthz(_: web.Request) -> web.Response:
        return json_answer({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        why_not = readiness.why_not_ready()
        return json_answer({"status": "ok"}) if why_not is None else error_answer(_NOT_READY, why_not)

    return [web.get("/metrics", expose), web.get("/healthz", healthz), web.get("/readyz", readyz)]


def _own_names(config: Config) -> OwnNames:
    return OwnNames(config.admin.hosts, (address(config.admin.listen).host, own_host(), gethostname()))


async def _explain_request(request: web.Request) -> ExplainRequest:
    # A form on another site cannot send this type, and before a script there sends it, the browser asks (CORS).
    if request.content_type != "application/json":
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON, with Content-Type: application/json.")
    return msgspec.json.decode(await request.app[DOORS].body_of(request), type=ExplainRequest)


async def _partitions_request(request: web.Request) -> PartitionsRequest:
    return msgspec.convert(dict(request.query), PartitionsRequest, strict=False)


def _as_caller(
    visitors: Visitors,
    read: Callable[[web.Request], Awaitable[T]],
    answered: Callable[[T, str, str], Awaitable[msgspec.Struct]],
) -> Handler:
    """Answer from a session that is opened with the request's own credentials."""

    async def answer(request: web.Request) -> web.Response:
        caller = await visitors.backend_login(request) or BasicLogin(ANONYMOUS, ANONYMOUS)
        try:
            asked = await read(request)
        except ValueError as error:
            return error_answer(HTTPStatus.BAD_REQUEST, f"The request is not understood: {error}.")
        try:
            found = await answered(asked, caller.user, caller.password)
        except BackendError as error:
            return error_answer(HTTPStatus.BAD_GATEWAY, str(error))
        except Exception as error:  # noqa: BLE001 - aiohttp would log its message
            # The error's message is left out: it may quote the statement.
            log.error("%s %s failed with %s", request.method, request.path, type(error).__name__)  # noqa: TRY400
            return error_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "Starpruner has failed; its log says more.")
        return json_answer(found)

    return answer


def _guarded(pages: Pages) -> Middleware:
    """Errors of any route as a sentence: on a page for browsers, as JSON for everybody else."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = {}
        try:
            return await handler(request)
        except web.HTTPRedirection:
            raise
        except Refusal as error:
            status, sentence, headers = error.status, str(error), error.headers
        except web.HTTPException as error:
            status = HTTPStatus(error.status)
            sentence = _SENTENCES.get(status, f"{error.reason}.")
            headers = {name: value for name, value in error.headers.items() if name == "Allow"}
        except Exception as error:  # noqa: BLE001 - aiohttp would log its message
            # The error's message is left out: it may quote a statement.
            log.error("%s failed with %s", request.match_info.route.name or "a route", type(error).__name__)  # noqa: TRY400
            status, sentence = HTTPStatus.INTERNAL_SERVER_ERROR, "Starpruner has failed; its log says more."
        answer = pages.error(status, sentence) if wants_html(request) else error_answer(status, sentence)
        answer.headers.update(headers)
        return answer

    return guard


_SENTENCES = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address takes another method.",
}


async def _prepare(_: web.Request, response: web.StreamResponse) -> None:
    add_headers(response)
