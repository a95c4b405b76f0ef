"""The admin port's application: POST /explain, GET /metrics, GET /healthz, and the routes for backends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec
from aiohttp import BasicAuth, web

from proxy.admin import backends_endpoint as backend_routes
from proxy.admin.explain_endpoint import ANONYMOUS, ExplainRequest, explain_as_user
from proxy.backends.pool import BackendPool
from proxy.config.config import Config
from proxy.session.metrics import CONTENT_TYPE
from proxy.session.shared_state import SharedState
from proxy.upstream.errors import BackendError

log = logging.getLogger(__name__)


def application(  # noqa: PLR0913 - the parts that the routes show
    config: Config,
    shared: SharedState,
    backends: BackendPool,
    exposition: Callable[[], Awaitable[bytes]],
    *,
    slots: asyncio.Semaphore | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> web.Application:
    """Return the application; /metrics answers with `exposition`, and `slots` are those of `Query.needs_slot`."""

    async def explain(request: web.Request) -> web.Response:
        try:
            asked = msgspec.json.decode(await request.read(), type=ExplainRequest)
            caller = _caller(request)
        except ValueError as error:
            return _error(HTTPStatus.BAD_REQUEST, f"The request is not understood: {error}.")
        try:
            explained = await explain_as_user(
                config, asked, caller.login, caller.password, shared, backends=backends, slots=slots
            )
        except BackendError as error:
            return _error(HTTPStatus.BAD_GATEWAY, str(error))
        except Exception as error:  # noqa: BLE001 - aiohttp would log its message
            # Without its message, which may quote the statement.
            log.error("POST /explain failed with %s", type(error).__name__)  # noqa: TRY400
            return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "Starpruner has failed; its log says more.")
        return web.Response(body=msgspec.json.encode(explained), content_type="application/json")

    async def expose(_: web.Request) -> web.Response:
        return web.Response(body=await exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def healthz(_: web.Request) -> web.Response:
        if is_stopping():
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, "The proxy is stopping.")
        if not backends.is_any_healthy:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, "No backend is healthy; GET /backends says why.")
        return web.json_response({"status": "ok"})

    app = web.Application(client_max_size=config.admin.request_bytes_max)
    app.add_routes([web.post("/explain", explain), web.get("/metrics", expose), web.get("/healthz", healthz)])
    app.add_routes(backend_routes.routes(backends, is_alone=config.proxy.workers == 1))
    return app


def _caller(request: web.Request) -> BasicAuth:
    """Return the credentials of the request, which the backend checks. Raises ValueError if not HTTP Basic."""
    header = request.headers.get("Authorization")
    return BasicAuth(ANONYMOUS, ANONYMOUS) if header is None else BasicAuth.decode(header, encoding="utf-8")


def _error(status: HTTPStatus, sentence: str) -> web.Response:
    return web.json_response({"error": sentence}, status=status)
