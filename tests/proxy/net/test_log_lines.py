"""The log has no words of errors: of requests that cannot be read, of statements, of tasks that nobody awaits."""

import asyncio
import io
import logging
import threading
from collections.abc import Iterator

import pytest
from aiohttp.test_utils import TestServer
from support.admin_pages import idle_application
from support.http_stage import stage

from proxy.backends.pool import BackendPool
from proxy.config.config import Config
from proxy.net.log_lines import log_wordless, loop_failed

SECRET = "hunter2"  # noqa: S105 - a test's

# Requests that aiohttp cannot read, and quotes in its error.
MALFORMED = [
    "GET /x HTTP/1.1\r\nHost: h\r\nAuthorization : Basic hunter2\r\n\r\n",
    "GET /x HTTP/1.1\r\nHost: h\r\nAuthorization: Basic hunter2\x00\r\n\r\n",
    "GET /x HTTP/1.1\r\nHost: h\r\n Cookie: session=hunter2\r\n\r\n",
    "GET /x HTTP/1.1\r\nHost: h\r\nCookie hunter2\r\n\r\n",
    "GET /?password=hunter2 HTTP/x.1\r\nHost: h\r\n\r\n",
    "GET /?password=hunter2 \x01 HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: hunter2\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nhunter2\r\n",
    "hunter2 / HTTP/1.1 hunter2\r\n\r\n",
    "GET / HTTP/1.1\r\nAuthorization: Bearer " + "hunter2" * 10_000 + "\r\n\r\n",
]


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The log as it is written."""
    written = io.StringIO()
    handler, root, hook = logging.StreamHandler(written), logging.getLogger(), threading.excepthook
    level = root.level
    log_wordless(handler)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)
    threading.excepthook = hook


async def _send(port: int, request: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode("latin-1"))
    await writer.drain()
    _ = await asyncio.wait_for(reader.read(), 60)
    writer.close()


async def test_a_request_that_the_admin_port_cannot_read_is_logged_without_its_words(lines: io.StringIO) -> None:
    config = Config()

    async def exposition() -> bytes:
        return b""

    app = idle_application(config, BackendPool([], lambda: 0.0), exposition)
    async with TestServer(app) as server:
        for request in MALFORMED:
            await _send(server.port or 0, request)
    assert "Error handling request" in lines.getvalue()
    assert SECRET not in lines.getvalue()


async def test_a_request_that_the_http_port_cannot_read_is_logged_without_its_words(lines: io.StringIO) -> None:
    async with stage() as on:
        for request in MALFORMED:
            await _send(on.proxy.port, request)
    assert "Error handling request" in lines.getvalue()
    assert SECRET not in lines.getvalue()


async def test_an_error_that_nobody_awaits_is_logged_by_its_place_and_kind(lines: io.StringIO) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(loop_failed)

    async def failing() -> None:
        raise LookupError(f"no column in {SECRET}")

    task = asyncio.create_task(failing())
    await asyncio.wait([task])
    del task
    await asyncio.sleep(0)
    thread = threading.Thread(target=asyncio.run, args=(failing(),), name="a helper")
    thread.start()
    thread.join()
    told = lines.getvalue()
    assert "Task exception was never retrieved" in told
    assert "a helper has failed" in told
    assert told.count("\nLookupError\n") == 2
    assert "in failing" in told
    assert SECRET not in told
