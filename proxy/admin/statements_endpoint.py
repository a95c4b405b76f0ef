"""GET /statements, /statements/{id}, /summary, /reasons, /digests, /shadow/report, /now and others as JSON.

A user sees only their own statements, an administrator all. Both sign in, by HTTP Basic or by the cookie of the
pages; on an open port everybody sees all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from http import HTTPStatus
from typing import Annotated, Final, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from proxy.admin.answers import Handler, error_answer, json_answer
from proxy.admin.openapi import GetRoute, description
from proxy.admin.statements_view import (
    REASON_DAYS,
    NowView,
    QuarantineView,
    ReasonView,
    StatementsView,
    TodayView,
)
from proxy.admin.tickets import Visitor
from proxy.admin.visitors import SignInError, Visitors
from proxy.history.digests import Digest
from proxy.history.queries import PAGE_ROWS, PAGE_ROWS_MAX, Filter, HistoryError, Order, StatementPage
from proxy.history.record import OutcomeName, Record
from proxy.history.shadow_report import ShadowReport

# A wider look back would go through all that is kept.
REASON_DAYS_MAX: Final = 31
# A larger number is no time in seconds: it is in milliseconds, or infinite.
_SINCE_MAX: Final = 1e11


class ReasonsAnswer(msgspec.Struct):
    """The answer of GET /reasons, those that are met most often first."""

    reasons: list[ReasonView]


class DigestsAnswer(msgspec.Struct):
    """The answer of GET /digests."""

    digests: list[Digest]


class _Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """The query of GET /statements."""

    user: Annotated[str, Meta(description="The user who sent them.")] = ""
    outcome: Annotated[Literal["", OutcomeName], Meta(description="Their outcome; empty for any.")] = ""
    reason: Annotated[
        str, Meta(description="The code of a reason for which they, or a scan of theirs, stayed as they were.")
    ] = ""
    table: Annotated[str, Meta(description="A table that they name, as they name it.")] = ""
    limit_met: Annotated[str, Meta(description="The name of a limit that they met.")] = ""
    fingerprint: Annotated[str, Meta(description="Statements that differ in constants alone.")] = ""
    client: Annotated[str, Meta(description="The host that sent them.")] = ""
    label: Annotated[str, Meta(description="The dashboard, model or program that they come from.")] = ""
    text: Annotated[str, Meta(description="A part of the original, the id, or an id of Spark's UI.")] = ""
    since: Annotated[float, Meta(ge=0, le=_SINCE_MAX, description="Seconds since 1970.")] = 0.0
    until: Annotated[float, Meta(ge=0, le=_SINCE_MAX, description="The same; those before; 0 for now.")] = 0.0
    least_s: Annotated[float, Meta(ge=0, description="The seconds that they took in all, at least.")] = 0.0
    order: Annotated[Order, Meta(description="The newest or the slowest first.")] = "newest"
    before: Annotated[str, Meta(description="`next` of the last page.")] = ""
    limit: Annotated[int, Meta(ge=1, le=PAGE_ROWS_MAX, description="Statements of a page.")] = PAGE_ROWS

    def to_filter(self, visitor: Visitor) -> Filter:
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "limit"}
        return Filter(
            seen_by=visitor.seen_by, **{**values, "since": self.since or None, "until": self.until or None}
        )


class _WantedDays(msgspec.Struct, forbid_unknown_fields=True):
    """The query of GET /reasons and of GET /shadow/report."""

    days: Annotated[int, Meta(ge=1, le=REASON_DAYS_MAX, description="Days that are looked back.")] = REASON_DAYS


class WantedDigests(_WantedDays):
    """The query of GET /digests, and of the page."""

    earlier: Annotated[date | None, Meta(description="A day to compare with a later one.")] = None
    later: Annotated[date | None, Meta(description="That later day; both, or neither.")] = None

    def __post_init__(self) -> None:
        if (self.earlier is None) is not (self.later is None):
            raise ValueError("earlier and later come together")

    @property
    def compared(self) -> tuple[date, date] | None:
        """The two days, or None."""
        return None if self.earlier is None or self.later is None else (self.earlier, self.later)


ROUTES: Final = (
    GetRoute(
        "/statements",
        "Statements, the newest or the slowest first; `next` of the answer is `before` of the next page.",
        StatementPage,
        _Wanted,
    ),
    GetRoute("/statements/{id}", "One statement, with texts, scans and times.", Record, statuses=(404,)),
    GetRoute("/summary", "The statements since midnight: sums, gains, the slowest, those left alone.", TodayView),
    GetRoute(
        "/reasons",
        "Reasons for which statements stayed as they were, counted by day, with advice.",
        ReasonsAnswer,
        _WantedDays,
    ),
    GetRoute(
        "/digests",
        "One line for each fingerprint, those that took most seconds in all first.",
        DigestsAnswer,
        WantedDigests,
    ),
    GetRoute(
        "/shadow/report",
        "What rewriting would have saved, by runs in shadow mode of the last days.",
        ShadowReport,
        _WantedDays,
    ),
    GetRoute("/now", "Statements that run, and open sessions.", NowView),
    GetRoute("/quarantine", "Rules and fingerprints that are quarantined.", QuarantineView),
)


def routes(view: StatementsView, visitors: Visitors) -> list[web.RouteDef]:
    """The routes."""
    shown = _Statements(view)
    handlers = (
        shown.statements,
        shown.statement,
        shown.summary,
        shown.reasons,
        shown.digests,
        shown.shadows,
        shown.now,
        shown.quarantine,
    )
    paths = (route.path for route in ROUTES)
    return [
        *(web.get(path, _for_visitor(handler, visitors)) for path, handler in zip(paths, handlers, strict=True)),
        web.get("/openapi.json", _openapi),
    ]


class _Statements:
    """The handlers, in the order of ROUTES."""

    def __init__(self, view: StatementsView) -> None:
        self._view = view

    async def statements(self, request: web.Request, visitor: Visitor) -> web.Response:
        wanted = msgspec.convert(dict(request.query), _Wanted, strict=False)
        return json_answer(await self._view.statements(wanted.to_filter(visitor), wanted.limit))

    async def statement(self, request: web.Request, visitor: Visitor) -> web.Response:
        record = await self._view.statement(request.match_info["id"], visitor)
        if record is None:
            return error_answer(HTTPStatus.NOT_FOUND, "There is no such statement, or it is another user's.")
        return json_answer(record)

    async def reasons(self, request: web.Request, visitor: Visitor) -> web.Response:
        days = msgspec.convert(dict(request.query), _WantedDays, strict=False).days
        return json_answer(ReasonsAnswer(await self._view.reasons(visitor, days)))

    async def summary(self, _: web.Request, visitor: Visitor) -> web.Response:
        return json_answer(await self._view.today(visitor))

    async def digests(self, request: web.Request, visitor: Visitor) -> web.Response:
        wanted = msgspec.convert(dict(request.query), WantedDigests, strict=False)
        return json_answer(DigestsAnswer(await self._view.digests(visitor, wanted.days, wanted.compared)))

    async def shadows(self, request: web.Request, visitor: Visitor) -> web.Response:
        days = msgspec.convert(dict(request.query), _WantedDays, strict=False).days
        return json_answer(await self._view.shadows(visitor, days))

    async def now(self, _: web.Request, visitor: Visitor) -> web.Response:
        return json_answer(await self._view.now(visitor))

    async def quarantine(self, _: web.Request, visitor: Visitor) -> web.Response:
        return json_answer(await self._view.quarantine(visitor))


async def _openapi(_: web.Request) -> web.Response:
    return json_answer(description(ROUTES))


def _for_visitor(
    handler: Callable[[web.Request, Visitor], Awaitable[web.Response]], visitors: Visitors
) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        visitor = await visitors.of_request(request)
        if visitor is None:
            raise SignInError("Sign in: send a name and a password by HTTP Basic, or use the page.")
        try:
            return await handler(request, visitor)
        except msgspec.ValidationError as error:
            return error_answer(HTTPStatus.BAD_REQUEST, f"The request is not understood: {error}.")
        except HistoryError as error:
            return error_answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    return handle
