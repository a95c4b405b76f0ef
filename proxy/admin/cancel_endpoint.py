"""POST /statements/{id}/cancel, on the admin port, and the same for the page Live: ends one statement that runs.

Visitors who see everybody's statements may cancel: the administrators of `[admin] users`, or everybody if the port
is open and names none. Nobody else may, not even their own statements, which their own client can cancel.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from proxy.admin.answers import Refusal, json_answer
from proxy.admin.statements_view import StatementsView
from proxy.admin.tickets import Visitor
from proxy.admin.visitors import Visitors
from proxy.frontend.statement_canceller import StatementCanceller
from proxy.history.queries import HistoryError
from proxy.history.record import Record
from proxy.upstream.errors import BackendError

_NOT_ALLOWED: Final = "Only an administrator of [admin] users may cancel statements."
_NOT_HERE: Final = (
    "The statement cannot be cancelled here now: its client waits for it within one call, knows already that it"
    " finished, or is not known by its login; or it runs in another worker or replica. Try again."
)


class CancelledAnswer(msgspec.Struct):
    """The answer to a cancel: the id of the statement that the backend has cancelled."""

    cancelled: str


class Cancels:
    """Cancels of statements, by requests of administrators. Methods raise Refusal."""

    def __init__(self, view: StatementsView, visitors: Visitors, canceller: StatementCanceller) -> None:
        self._view = view
        self._visitors = visitors
        self._canceller = canceller

    @property
    def cancellable(self) -> frozenset[str]:
        """The ids of the statements that can be cancelled now."""
        return self._canceller.cancellable()

    def routes(self) -> list[web.RouteDef]:
        """The route."""

        async def cancel(request: web.Request) -> web.Response:
            identifier = request.match_info["id"]
            await self.cancel(request, identifier)
            return json_answer(CancelledAnswer(identifier))

        return [web.post("/statements/{id:[0-9a-f]+}/cancel", cancel)]

    async def asked_about(self, request: web.Request, identifier: str) -> Record:
        """The statement that an administrator may cancel."""
        administrator = await self._administrator(request)
        record = await self._running(identifier, administrator)
        if identifier not in self.cancellable:
            raise Refusal(HTTPStatus.CONFLICT, _NOT_HERE)
        return record

    async def cancel(self, request: web.Request, identifier: str) -> None:
        """Cancel a statement for the administrator who sent the request."""
        administrator = await self._administrator(request)
        by = f"an administrator ({administrator.name})" if administrator.name else "an administrator"
        try:
            is_cancelled = await self._canceller.cancel(identifier, by)
        except BackendError as error:
            raise Refusal(HTTPStatus.BAD_GATEWAY, f"The statement may go on: {error}.") from None
        if not is_cancelled:
            await self._running(identifier, administrator)
            raise Refusal(HTTPStatus.CONFLICT, _NOT_HERE)

    async def _administrator(self, request: web.Request) -> Visitor:
        administrator = await self._visitors.administrator(request)
        if administrator is None:
            raise Refusal(HTTPStatus.FORBIDDEN, _NOT_ALLOWED)
        return administrator

    async def _running(self, identifier: str, administrator: Visitor) -> Record:
        try:
            record = await self._view.statement(identifier, administrator)
        except HistoryError as error:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
        if record is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "There is no such statement.")
        if record.end:
            raise Refusal(HTTPStatus.CONFLICT, "The statement has ended.")
        return record
