"""GET /backends, and POST /backends/{name}/drain and /undrain, on the admin port.

If `[admin] users` names administrators, only they may drain, by HTTP Basic. If it names none, every client that
reaches the port may; by default it listens on loopback. Pages of other sites may not (`proxy/admin/doors.py`).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from aiohttp import web

from proxy.admin.answers import error_answer, json_answer
from proxy.admin.visitors import Visitors
from proxy.backends.pool import BackendPool

NOT_ALONE: Final = "There are several workers: leave it out of proxy.backends and send SIGHUP, which reaches all."


def routes(backends: BackendPool, visitors: Visitors, *, is_alone: bool = True) -> list[web.RouteDef]:
    """Return the routes for backends. One of several workers refuses to drain, as the others would not know."""

    async def show(_: web.Request) -> web.Response:
        return json_answer({"backends": backends.views()})

    async def drain(request: web.Request) -> web.Response:
        return await _drain(request, on=True)

    async def undrain(request: web.Request) -> web.Response:
        return await _drain(request, on=False)

    async def _drain(request: web.Request, *, on: bool) -> web.Response:
        refused = await refusal(request, visitors)
        if refused is not None:
            return refused
        if not is_alone:
            return error_answer(HTTPStatus.CONFLICT, NOT_ALONE)
        name = request.match_info["name"]
        if not backends.drain(name, on=on):
            return error_answer(HTTPStatus.NOT_FOUND, f"There is no backend {name}; GET /backends names them.")
        return json_answer({"backends": backends.views()})

    return [
        web.get("/backends", show),
        web.post("/backends/{name}/drain", drain),
        web.post("/backends/{name}/undrain", undrain),
    ]


async def refusal(request: web.Request, visitors: Visitors) -> web.Response | None:
    """Return the answer that refuses a change to somebody who may not ask for one; None for all others."""
    if not await visitors.may_administrate(request):
        return error_answer(HTTPStatus.FORBIDDEN, "Only an administrator of [admin] users may do this.")
    return None
