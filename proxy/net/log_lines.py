"""Log lines about errors, without the errors' own words: these may quote a statement, or the headers of a request.

Our own lines leave them out. aiohttp logs the line of a request that it cannot read, with its `Authorization`, and
asyncio logs a task with its error.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from typing import Any

log = logging.getLogger(__name__)


def log_wordless(handler: logging.Handler) -> None:
    """Let the handler write errors without their words, and log the errors that end a thread."""
    handler.addFilter(_without_words)
    threading.excepthook = _thread_failed


def loop_failed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that nobody awaits: the exception handler of the event loop."""
    log.error("%s", context.get("message"), exc_info=context.get("exception"))


def _without_words(record: logging.LogRecord) -> bool:
    """Replace the error of a record by its place and its kind."""
    if record.exc_info:
        kind, _, place = record.exc_info
        record.exc_text = "".join([*traceback.format_tb(place), "" if kind is None else kind.__name__])
        record.exc_info = None
    return True


def _thread_failed(error: threading.ExceptHookArgs) -> None:
    name = "a thread" if error.thread is None else error.thread.name
    log.error("%s has failed", name, exc_info=error.exc_value)
