"""Answers of the admin port: JSON, errors in one shape, and the headers that all of them have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from math import ceil
from typing import Final

import msgspec
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# Nothing is loaded from elsewhere, no page frames ours, and no script runs.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" a browser would not name the origin of our own forms either.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Browsers keep no statements in their cache; the style sheet's answer sets its own value.
    "Cache-Control": "no-store",
}


class Refusal(Exception):  # noqa: N818 - it is no fault
    """A request is not answered. The message is a sentence for the user."""

    def __init__(self, status: HTTPStatus, sentence: str, wait_s: float = 0.0) -> None:
        """`wait_s` is the time after which another try may succeed."""
        super().__init__(sentence)
        self.status = status
        self.wait_s = wait_s

    @property
    def headers(self) -> dict[str, str]:
        """The headers that go with the status."""
        headers = {}
        if self.status is HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = 'Basic realm="starpruner", charset="UTF-8"'
        if self.wait_s:
            headers["Retry-After"] = str(ceil(self.wait_s))
        return headers


class ErrorAnswer(msgspec.Struct):
    """The body of every answer that is an error: a sentence."""

    error: str


def json_answer(answer: object, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    """The value as JSON."""
    return web.Response(body=msgspec.json.encode(answer), status=status, content_type="application/json")


def error_answer(status: HTTPStatus, sentence: str) -> web.Response:
    """The sentence as JSON."""
    return json_answer(ErrorAnswer(sentence), status)


def wants_html(request: web.Request) -> bool:
    """True if a browser shows the answer as a page."""
    return "text/html" in request.headers.get("Accept", "")


def add_headers(response: web.StreamResponse) -> None:
    """Add the headers of every answer."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
