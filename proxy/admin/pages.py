"""The pages of the admin port, made on the server: one for each view, one for a statement, one to sign in.

Templates stand in `templates/`, the style sheet in `static/`. A page runs no script and loads nothing from
elsewhere. Forms that do something carry a token (`proxy/admin/tickets.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
from aiohttp import web

from proxy.admin import formats
from proxy.admin.answers import Handler, Refusal
from proxy.admin.backends_endpoint import NOT_ALONE
from proxy.admin.basic_login import BasicLogin
from proxy.admin.cancel_endpoint import Cancels
from proxy.admin.doors import DOORS
from proxy.admin.drawings import join_graph, parts, timeline
from proxy.admin.explain_endpoint import ANONYMOUS, ExplainRequest
from proxy.admin.history_form import LAST, fields_of, filter_of
from proxy.admin.insertions import Parts, compared
from proxy.admin.return_paths import return_path
from proxy.admin.shadow_view import sentences
from proxy.admin.statements_endpoint import WantedDigests
from proxy.admin.statements_view import CSV_ROWS_MAX, REASON_DAYS, StatementsView, remedy_of, sentence_of
from proxy.admin.tickets import Visitor
from proxy.admin.visitors import COOKIE, SignInError, Visitors
from proxy.backends.pool import BackendPool
from proxy.history.groups import GROUPED_BY
from proxy.history.queries import HistoryError
from proxy.history.record import OUTCOMES
from proxy.session.explain.text import text, without_files
from proxy.session.explain.view import ExplainView
from proxy.upstream.errors import BackendError
from rewriter import SkipReason

log = logging.getLogger(__name__)

_HERE: Final = Path(__file__).parent
# The page Live loads itself anew if its reader wants it.
_REFRESH_S: Final = 10
# The style sheet changes with a release alone.
_STYLE_S: Final = 3_600
# The longest form with a name and a password, or a backend's name. Anybody can send one without signing in.
_FORM_BYTES_MAX: Final = 16 * 1024
_FORM_FIELDS_MAX: Final = 20
_NO_BACKEND: Final = "There is no such backend any more."
_FORM: Final = "application/x-www-form-urlencoded"

T = TypeVar("T")
Explained = Callable[[ExplainRequest, str, str], Awaitable[ExplainView]]


class Pages:
    """The pages, each made for the visitor who asks for it."""

    def __init__(  # noqa: PLR0913 - the parts that pages show, and may change
        self,
        view: StatementsView,
        visitors: Visitors,
        backends: BackendPool,
        explained: Explained,
        cancels: Cancels,
        *,
        is_alone: bool,
    ) -> None:
        """With several workers, one of them (not `is_alone`) cannot drain a backend for all."""
        self._view = view
        self._visitors = visitors
        self._backends = backends
        self._explained = explained
        self._cancels = cancels
        self._is_alone = is_alone
        self._shown = {
            "/": self._today,
            "/live": self._live,
            "/live/drain": self._ask_to_drain,
            "/live/cancel": self._ask_to_cancel,
            "/history": self._history,
            "/history.csv": self._history_csv,
            "/history/{id}": self._statement,
            "/digests/page": self._digests,
            "/groups": self._groups,
            "/why-not": self._why_not,
            "/shadow": self._shadow,
            "/explain": self._explain_form,
        }
        self._templates = formats.templates(_HERE / "templates")
        self._style = (_HERE / "static" / "style.css").read_bytes()

    def routes(self) -> list[web.RouteDef]:
        """The routes of the pages, and of the style sheet."""
        return [
            *(web.get(path, self._for_visitor(handler)) for path, handler in self._shown.items()),
            web.post("/explain/page", self._explain),
            web.post("/backends/page", self._drain),
            web.post("/live/cancel", self._cancel),
            web.get("/sign-in", self._sign_in_form),
            web.post("/sign-in", self._sign_in),
            web.post("/sign-out", self._sign_out),
            web.get("/static/style.css", self._style_sheet),
        ]

    def error(self, status: HTTPStatus, sentence: str) -> web.Response:
        """A page that says what went wrong."""
        return self._page("error.html", None, "", status=status, sentence=sentence)

    # --- the views

    async def _today(self, request: web.Request, visitor: Visitor) -> web.Response:
        today, failure = await _found(self._view.today(visitor))
        # Asked for by itself: this reads all that is kept, and may take too long.
        charts, charts_failure = await _found(self._view.savings_over_time(visitor))
        told: dict[str, Any] = {"failure": failure, "charts_failure": charts_failure, **self._view.notices()}
        return self._answer(request, visitor, "today.html", place="today", today=today, charts=charts, **told)

    async def _live(self, request: web.Request, visitor: Visitor) -> web.Response:
        answer = self._answer(
            request,
            visitor,
            "live.html",
            place="live",
            now=await self._view.now(visitor),
            quarantine=await self._view.quarantine(visitor),
            backends=self._backends.views(),
            refreshes="refresh" in request.query,
            is_alone=self._is_alone,
            # Another worker may answer the next request, and could not cancel what runs here.
            cancellable=self._cancels.cancellable if visitor.is_administrator and self._is_alone else (),
            **self._view.notices(),
        )
        if "refresh" in request.query:
            answer.headers["Refresh"] = str(_REFRESH_S)
        return answer

    async def _ask_to_drain(self, request: web.Request, visitor: Visitor) -> web.Response:
        """Show the effects of draining a backend, with the button that drains it."""
        if not visitor.is_administrator:
            raise Refusal(HTTPStatus.FORBIDDEN, "Only an administrator may do this.")
        name, views = request.query.get("name", ""), self._backends.views()
        if not any(one.name == name for one in views):
            raise Refusal(HTTPStatus.NOT_FOUND, _NO_BACKEND)
        others = [one for one in views if one.name != name and not one.draining]
        sessions = self._view.history.sessions_at(name)
        return self._answer(
            request, visitor, "drain.html", place="live", name=name, sessions=sessions, others=others
        )

    async def _drain(self, request: web.Request) -> web.Response:
        """Stop or resume giving sessions to a backend, by a button."""
        visitor = await self._known(request)
        form = await self._form(request)
        is_administrator = visitor is not None and visitor.is_administrator
        if form is None or not is_administrator or not await self._visitors.may_administrate(request):
            return self.error(HTTPStatus.FORBIDDEN, "Only an administrator may do this, by the page's button.")
        if not self._is_alone:
            return self.error(HTTPStatus.CONFLICT, NOT_ALONE)
        if not self._backends.drain(form.get("name", ""), on=form.get("on") == "yes"):
            return self.error(HTTPStatus.NOT_FOUND, _NO_BACKEND)
        return _see("/live#backends")

    async def _ask_to_cancel(self, request: web.Request, visitor: Visitor) -> web.Response:
        """Show a statement that runs, with the button that cancels it."""
        record = await self._cancels.asked_about(request, request.query.get("id", ""))
        return self._answer(request, visitor, "cancel.html", place="live", record=record)

    async def _cancel(self, request: web.Request) -> web.Response:
        """Cancel a statement, by a button."""
        form = await self._form(request)
        if form is None:
            return self.error(HTTPStatus.FORBIDDEN, "The form is too old; load the page again.")
        await self._cancels.cancel(request, form.get("id", ""))
        return _see("/live#running")

    async def _history(self, request: web.Request, visitor: Visitor) -> web.Response:
        asked, before = fields_of(request.query), request.query.get("before", "")
        page, failure = None, ""
        try:
            page = await self._view.statements(filter_of(asked, visitor.seen_by, before))
        except HistoryError as error:
            failure = str(error)
        given = {name: value for name, value in asked.items() if value}
        untimed = {name: value for name, value in given.items() if name not in {"last", "since", "until"}}
        older = urlencode({**given, "before": page.next}) if page is not None and page.next else ""
        last = {words: urlencode({**untimed, "last": words}) for words in LAST}
        form = {"asked": asked, "given": given, "is_first": not before, "first": urlencode(given), "last": last}
        lists = {"outcomes": OUTCOMES, "reasons": sorted(SkipReason.__members__), "csv_rows": CSV_ROWS_MAX}
        shown: dict[str, Any] = {"page": page, "older": older, "failure": failure, **form, **lists}
        return self._answer(request, visitor, "history.html", place="history", **shown)

    async def _history_csv(self, request: web.Request, visitor: Visitor) -> web.Response:
        try:
            found = await self._view.csv(filter_of(fields_of(request.query), visitor.seen_by))
        except HistoryError:
            # The page says why.
            return _see(f"/history?{request.query_string}")
        headers = {"Content-Disposition": 'attachment; filename="statements.csv"'}
        return web.Response(body=found, content_type="text/csv", charset="utf-8", headers=headers)

    async def _statement(self, request: web.Request, visitor: Visitor) -> web.Response:
        record, failure = await _found(self._view.statement(request.match_info["id"], visitor))
        if failure:
            return self.error(HTTPStatus.SERVICE_UNAVAILABLE, failure)
        if record is None:
            return self.error(
                HTTPStatus.NOT_FOUND, "There is no such statement any more, or it is another user's."
            )
        original, rewritten = compared(record.original, record.rewritten or record.original)
        return self._answer(
            request,
            visitor,
            "statement.html",
            place="history",
            record=record,
            original=original,
            rewritten=rewritten if record.rewritten is not None else None,
            graph=join_graph(record),
            spans=timeline(record),
            parts_of_time=parts(record),
        )

    async def _digests(self, request: web.Request, visitor: Visitor) -> web.Response:
        digests, failure, wanted = [], "", WantedDigests()
        try:
            # Fields that were left empty are not given.
            given = {name: value for name, value in request.query.items() if value}
            wanted = msgspec.convert(given, WantedDigests, strict=False)
            digests = await self._view.digests(visitor, compared=wanted.compared)
        except HistoryError as error:
            failure = str(error)
        except msgspec.ValidationError as error:
            failure = f"The days are not understood: {error}."
        return self._answer(
            request,
            visitor,
            "digests.html",
            place="digests",
            digests=digests,
            failure=failure,
            days=REASON_DAYS,
            wanted=wanted,
        )

    async def _groups(self, request: web.Request, visitor: Visitor) -> web.Response:
        wanted = request.query.get("by", "")
        by = next((one for one in GROUPED_BY if one == wanted), GROUPED_BY[0])
        groups, failure = await _found(self._view.groups(visitor, by))
        shown: dict[str, Any] = {"failure": failure, "by": by, "all_by": GROUPED_BY, "days": REASON_DAYS}
        return self._answer(request, visitor, "groups.html", place="groups", groups=groups, **shown)

    async def _why_not(self, request: web.Request, visitor: Visitor) -> web.Response:
        reasons, failure = await _found(self._view.reasons(visitor))
        return self._answer(
            request, visitor, "why_not.html", place="why-not", reasons=reasons, failure=failure, days=REASON_DAYS
        )

    async def _shadow(self, request: web.Request, visitor: Visitor) -> web.Response:
        report, failure = await _found(self._view.shadows(visitor))
        told = sentences(report, REASON_DAYS) if report is not None else []
        return self._answer(
            request, visitor, "shadow.html", place="shadow", report=report, sentences=told, failure=failure
        )

    async def _explain_form(self, request: web.Request, visitor: Visitor) -> web.Response:
        asked = {"sql": "", "database": "", "user": visitor.name}
        identifier = request.query.get("statement", "")
        if identifier:
            record, _ = await _found(self._view.statement(identifier, visitor))
            if record is not None:
                asked |= {"sql": record.original, "database": record.database}
        return self._answer(
            request, visitor, "explain.html", place="explain", asked=asked, explained=None, failure=""
        )

    async def _explain(self, request: web.Request) -> web.Response:
        visitor = await self._known(request)
        form = None if visitor is None else await self._form(request, has_statement=True)
        if form is None or visitor is None:
            return self.error(HTTPStatus.FORBIDDEN, "The form is too old; load the page again.")
        asked = {name: form.get(name, "") for name in ("sql", "database", "user")}
        shown: dict[str, Any] = {"explained": None, "failure": ""}
        wanted = ExplainRequest(asked["sql"], asked["database"] or None, run_key_queries="keys" in form)
        try:
            login = BasicLogin(asked["user"] or ANONYMOUS, form.get("password", "") or ANONYMOUS)
            if login != BasicLogin(ANONYMOUS, ANONYMOUS):
                await self._visitors.try_at_backend(request, login)
            explained = await self._explained(wanted, login.user, login.password)
            texts: tuple[Parts, Parts | None] = [(explained.original, False)], None
            if explained.changed:
                texts = compared(explained.original, without_files(explained.rewritten))
            shown |= {"explained": explained, "texts": texts, "as_text": text(explained)}
        except (BackendError, SignInError) as error:
            shown["failure"] = str(error)
        return self._answer(request, visitor, "explain.html", place="explain", asked=asked, **shown)

    # --- signing in

    async def _sign_in_form(self, request: web.Request) -> web.Response:
        return self._sign_in_page(request, "", self._return_path(request.query.get("next", "")))

    async def _sign_in(self, request: web.Request) -> web.Response:
        form = await self._form(request)
        if form is None:
            return self._sign_in_page(request, "The form was too old; try again.", "", HTTPStatus.FORBIDDEN)
        wanted = self._return_path(form.get("next", ""))
        try:
            visitor = await self._visitors.sign_in(request, form.get("user", ""), form.get("password", ""))
        except SignInError as error:
            return self._sign_in_page(request, str(error), wanted, error.status)
        answer = _see(wanted)
        self._visitors.set_cookie(answer, request, self._visitors.tickets.cookie(visitor, formats.now()))
        return answer

    def _return_path(self, wanted: str) -> str:
        try:
            return return_path(wanted, self._shown)
        except ValueError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"The request is not understood: {error}.") from None

    async def _sign_out(self, request: web.Request) -> web.Response:
        if await self._form(request) is None:
            return self.error(HTTPStatus.FORBIDDEN, "The form is too old; load the page again.")
        answer = _see("/sign-in")
        answer.del_cookie(COOKIE, path="/")
        return answer

    def _sign_in_page(
        self, request: web.Request, failure: str, wanted: str, status: HTTPStatus = HTTPStatus.OK
    ) -> web.Response:
        return self._answer(request, None, "sign_in.html", place="", failure=failure, wanted=wanted, status=status)

    async def _style_sheet(self, _: web.Request) -> web.Response:
        headers = {"Cache-Control": f"max-age={_STYLE_S}"}
        return web.Response(body=self._style, content_type="text/css", charset="utf-8", headers=headers)

    # --- parts of all of them

    def _for_visitor(self, handler: Callable[[web.Request, Visitor], Awaitable[web.Response]]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            visitor = await self._known(request)
            if visitor is None:
                return _see(f"/sign-in?{urlencode({'next': request.path_qs})}")
            return await handler(request, visitor)

        return handle

    async def _known(self, request: web.Request) -> Visitor | None:
        try:
            return await self._visitors.of_request(request)
        except SignInError:
            return None

    async def _form(self, request: web.Request, *, has_statement: bool = False) -> dict[str, str] | None:
        """The fields of a form that we have shown to this visitor; None for any other."""
        cookie = request.cookies.get(COOKIE, "")
        if request.content_type != _FORM or not self._visitors.tickets.is_cookie(cookie, formats.now()):
            return None
        body = await request.app[DOORS].body_of(request, None if has_statement else _FORM_BYTES_MAX)
        try:
            fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FORM_FIELDS_MAX))
        except ValueError:
            return None
        return fields if self._visitors.tickets.is_token(fields.get("token", ""), cookie) else None

    def _answer(
        self,
        request: web.Request,
        visitor: Visitor | None,
        template: str,
        *,
        place: str,
        status: HTTPStatus = HTTPStatus.OK,
        **values: Any,
    ) -> web.Response:
        cookie = self._visitors.cookie_of(request)
        token = self._visitors.tickets.token(cookie)
        answer = self._page(template, visitor, token, place=place, status=status, **values)
        if cookie != request.cookies.get(COOKIE):
            self._visitors.set_cookie(answer, request, cookie)
        return answer

    def _page(
        self,
        template: str,
        visitor: Visitor | None,
        token: str,
        *,
        status: HTTPStatus = HTTPStatus.OK,
        **values: Any,
    ) -> web.Response:
        shown = self._templates.get_template(template).render(
            visitor=visitor,
            token=token,
            sentence_of=sentence_of,
            remedy_of=remedy_of,
            has_shadows=self._view.has_shadows,
            **{"place": "", **values},
        )
        return web.Response(text=shown, status=status, content_type="text/html", charset="utf-8")


async def _found(answer: Awaitable[T]) -> tuple[T | None, str]:
    """The answer of the history; or None, and the sentence that says why there is none."""
    try:
        return await answer, ""
    except HistoryError as error:
        return None, str(error)


def _see(path: str) -> web.Response:
    """A redirect within this origin."""
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": path})
