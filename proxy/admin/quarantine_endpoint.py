"""POST /quarantine/rule/{name}/release and /quarantine/fingerprint/{name}/release, on the admin port.

Visitors who may drain backends may release (proxy/admin/backends_endpoint.py). Replicas and workers that share
lessons in HBase hear of a release within seconds, or once HBase answers.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from proxy.admin.answers import error_answer, json_answer
from proxy.admin.backends_endpoint import refusal
from proxy.admin.visitors import Visitors
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.feedback.quarantine_list import QuarantineKind

NOT_ALONE: Final = 'There are several workers, which share nothing without catalog.store = "hbase": restart them.'
TOLD_LATER: Final = "Replicas and workers that share lessons are told within seconds, or once HBase answers."


class ReleasedAnswer(msgspec.Struct, omit_defaults=True):
    """The answer to a release: the thing that was released.

    `others` says when replicas and workers hear of it; it is left out where none share lessons.
    """

    released: str
    others: str = ""


def routes(quarantine: Quarantine, visitors: Visitors, *, is_alone: bool, is_shared: bool) -> list[web.RouteDef]:
    """Return the routes. One of several workers refuses where the others would not know."""

    async def release(request: web.Request) -> web.Response:
        refused = await refusal(request, visitors)
        if refused is not None:
            return refused
        if not (is_alone or is_shared):
            return error_answer(HTTPStatus.CONFLICT, NOT_ALONE)
        kind, name = QuarantineKind(request.match_info["kind"]), request.match_info["name"]
        if not quarantine.release(kind, name):
            sentence = f"The {kind.value} {name} is not quarantined; GET /quarantine names those that are."
            return error_answer(HTTPStatus.NOT_FOUND, sentence)
        return json_answer(ReleasedAnswer(f"{kind.value} {name}", TOLD_LATER if is_shared else ""))

    kinds = "|".join(kind.value for kind in QuarantineKind)
    return [web.post(f"/quarantine/{{kind:{kinds}}}/{{name}}/release", release)]
