"""A proxy with limits in front of a server of table formats, and the errors of its users."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from pipeline_server import PipelineServer
from pyhive import hive

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from support.proxies import patient

# Of a statement that is not refused.
RUNS = "it runs"


@contextmanager
def limited_proxy(server: PipelineServer, folder: Path, tables: str, limits: str) -> Iterator[ProxyProcess]:
    """Makes tables, and runs `starpruner serve` with limits on them."""
    with closing(connect(server.endpoint)) as session:
        for sql in tables.split(";\n"):
            run(session, sql)
    config = folder / "starpruner.toml"
    config.write_text(limits)
    options = ("--config", str(config), *patient(files=True))
    with proxy_process(server.endpoint, folder / "proxy", options=options) as proxy:
        yield proxy


def misjudged(proxy: ProxyProcess, user: str, expected: Mapping[str, str]) -> dict[str, str]:
    """The answers to a user's statements that lack what is expected of them: a part of an error, or RUNS."""
    with closing(connect(proxy.endpoint, user=user)) as session:
        found = {sql: _error_of(session, sql) for sql in expected}
    return {sql: error for sql, error in found.items() if expected[sql] not in error}


def _error_of(session: hive.Connection, sql: str) -> str:
    try:
        _ = run(session, sql)
    except hive.Error as error:
        return str(error.args[0].status.errorMessage)
    return RUNS
