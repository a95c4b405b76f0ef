"""The real proxy as a child process: `starpruner serve` on free ports."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.child import Child
from demo.hive import Endpoint

# The proxy starts within a second, or on an overloaded machine within a minute.
START_SECONDS_MAX = 120
START_POLL_SECONDS = 0.05

READY = re.compile(r"^starpruner: listening on (?P<endpoint>\S+), admin (?P<admin>http://[^\s,]+)", re.MULTILINE)


class ProxyError(Exception):
    """The proxy did not start; the message ends with the tail of its log."""


@dataclass(frozen=True)
class ProxyProcess:
    """A proxy that is ready, with its addresses."""

    endpoint: Endpoint
    admin_url: str
    child: Child


@contextmanager
def proxy_process(
    backend: Endpoint | None, directory: Path, *, port: int | None = 0, options: tuple[str, ...] = ()
) -> Iterator[ProxyProcess]:
    """Runs `starpruner serve` as long as the context lasts, in front of a backend or of those in its options.

    Without a port it listens only where its configuration file says so.
    """
    directory.mkdir(parents=True, exist_ok=True)
    command = [
        *starpruner_command(),
        *("serve", *(() if backend is None else ("--backend", str(backend)))),
        *(("--set", "proxy.listen=") if port is None else ("--listen", f"127.0.0.1:{port}")),
        *("--admin", "127.0.0.1:0"),
        *options,
    ]
    # Its ready line is read from the log, which Python would otherwise hold back in a buffer.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    log = directory / "proxy.log"
    # On SIGTERM the proxy would wait for its clients' sessions.
    stop_by = signal.SIGINT
    with Child.start(command, log=log, directory=directory, environment=environment, stop_signal=stop_by) as child:
        ready = _wait_until_ready(child)
        yield ProxyProcess(Endpoint.parse(ready["endpoint"]), ready["admin"], child)


def starpruner_command() -> list[str]:
    """Runs our own command line, also where the environment's bin/ is not on PATH."""
    return [sys.executable, "-c", "from proxy.cli import main; main()"]


def _wait_until_ready(child: Child) -> re.Match[str]:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if ready := READY.search(child.log.read_text()):
            return ready
        if (code := child.exit_code) is not None:
            raise ProxyError(f"starpruner serve ended with exit code {code}:\n{child.log_tail()}")
        time.sleep(START_POLL_SECONDS)
    raise ProxyError(f"starpruner serve was not ready within {START_SECONDS_MAX} s:\n{child.log_tail()}")
