"""The page Live, and the page that asks before a backend is given no more sessions."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from proxy.admin.answers import Refusal
from proxy.admin.backends_endpoint import NOT_ALONE
from proxy.admin.statements_view import StatementsView
from proxy.admin.tickets import Visitor
from proxy.backends.pool import BackendPool

# The page loads itself anew if its reader wants it.
_REFRESH_S: Final = 10
NO_BACKEND: Final = "There is no such backend any more."


class LivePages:
    """The pages about the present. `answer` makes a page of a template."""

    def __init__(
        self, view: StatementsView, backends: BackendPool, answer: Callable[..., web.Response], *, is_alone: bool
    ) -> None:
        """See Pages."""
        self._view = view
        self._backends = backends
        self._answer = answer
        self._is_alone = is_alone

    async def live(self, request: web.Request, visitor: Visitor) -> web.Response:
        """What runs, the sessions, the backends, and the quarantine."""
        refreshes = "refresh" in request.query
        answer = self._answer(
            request,
            visitor,
            "live.html",
            place="live",
            now=await self._view.now(visitor),
            quarantine=await self._view.quarantine(visitor),
            backends=self._backends.views(),
            refreshes=refreshes,
            is_alone=self._is_alone,
            **notices(self._view),
        )
        if refreshes:
            answer.headers["Refresh"] = str(_REFRESH_S)
        return answer

    async def confirm_drain(self, request: web.Request, visitor: Visitor) -> web.Response:
        """Say what comes of giving a backend no more sessions, with the button that does so."""
        if not visitor.is_administrator:
            raise Refusal(HTTPStatus.FORBIDDEN, "Only an administrator may do this.")
        if not self._is_alone:
            raise Refusal(HTTPStatus.CONFLICT, NOT_ALONE)
        name = request.query.get("name", "")
        views = self._backends.views()
        if not any(one.name == name for one in views):
            raise Refusal(HTTPStatus.NOT_FOUND, NO_BACKEND)
        others = [one for one in views if one.name != name and not one.draining]
        return self._answer(
            request,
            visitor,
            "drain.html",
            place="live",
            name=name,
            sessions=self._view.history.sessions_at(name),
            others=[one.name for one in others],
            has_healthy=any(one.healthy for one in others),
        )


def notices(view: StatementsView) -> dict[str, Any]:
    """The values of notices.html: why statements are not rewritten, or missing from the history."""
    losses = sum(count for _, count in view.history.losses_by_reason())
    return {"is_off": view.is_off(), "trouble": view.history.error, "losses": losses}
