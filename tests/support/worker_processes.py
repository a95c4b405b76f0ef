"""Sessions on a worker of one's choice, for what happens between two of them."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyhive import hive

from demo.proxy_process import ProxyProcess
from support.beeline_clients import breakable_session

TWO_WORKERS = ("--set", "proxy.workers=2")
# The kernel deals connections out at random: that one of two workers gets none of these is out of the question.
TRIES_MAX = 64
# The line is written before the connection is served.
LOG_SECONDS_MAX = 30


@contextmanager
def session_on(
    proxy: ProxyProcess, slot: int, *, user: str = "demo", database: str = "default"
) -> Iterator[hive.Connection]:
    for _ in range(TRIES_MAX):
        with breakable_session(proxy.endpoint, user, database) as connection:
            if slot_of(proxy, connection) == slot:
                yield connection
                return
    raise AssertionError(f"of {TRIES_MAX} connections none came to worker {slot}")


def slot_of(proxy: ProxyProcess, connection: hive.Connection) -> int:
    """The worker that serves a connection, by what it wrote to its log."""
    port = connection._transport._trans.handle.getsockname()[1]  # noqa: SLF001 - it offers no other way
    line = re.compile(rf"worker (\d+) .*: opened from 127\.0\.0\.1:{port}$", re.MULTILINE)
    deadline = time.monotonic() + LOG_SECONDS_MAX
    while time.monotonic() < deadline:
        # A port may be used again.
        if found := line.findall(proxy.child.log.read_text()):
            return int(found[-1])
        time.sleep(0.01)
    raise AssertionError(f"no worker says that it serves the connection from port {port}")
