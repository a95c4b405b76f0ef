"""GET /rewriting, and POST /rewriting/off and /rewriting/on, on the admin port: the switch for all statements.

Visitors who may drain backends may switch (proxy/admin/backends_endpoint.py).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from proxy.admin.answers import error_answer, json_answer
from proxy.admin.backends_endpoint import refusal
from proxy.admin.visitors import Visitors
from proxy.off_switch import OffSwitch

NO_FILE: Final = "rewrite.off_file is empty: name a file in it that the proxy may make, and start the proxy anew."


class RewritingAnswer(msgspec.Struct):
    """The state of the switch: true while statements are rewritten."""

    on: bool


def routes(switch: OffSwitch, visitors: Visitors) -> list[web.RouteDef]:
    """Return the routes."""

    def answer() -> web.Response:
        return json_answer(RewritingAnswer(not switch.is_off))

    async def show(_: web.Request) -> web.Response:
        return answer()

    async def turn(request: web.Request) -> web.Response:
        refused = await refusal(request, visitors)
        if refused is not None:
            return refused
        if switch.path is None:
            return error_answer(HTTPStatus.CONFLICT, NO_FILE)
        try:
            await switch.turn(off=request.match_info["way"] == "off")
        except OSError as error:
            why = error.strerror or "its file system does not answer"
            return error_answer(HTTPStatus.CONFLICT, f"{switch.path} cannot be changed: {why}.")
        return answer()

    return [web.get("/rewriting", show), web.post("/rewriting/{way:off|on}", turn)]
