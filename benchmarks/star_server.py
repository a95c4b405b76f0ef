"""A Spark Thrift Server with a star on it, and proxies in front of it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dashboard_tables import DashboardTables
from pairs import Sides
from pyhive import hive

from demo.hive import connect
from demo.java import find_java
from demo.progress import Progress
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ServerOptions, ThriftServer, thrift_server


@dataclass(frozen=True)
class StarServer:
    """The server, and where its proxies leave their logs."""

    server: ThriftServer
    directory: Path

    @property
    def pid(self) -> int:
        """The server's process."""
        return self.server.child.process.pid

    @contextmanager
    def proxy(self, *options: str) -> Iterator[ProxyProcess]:
        """A newly started proxy, which knows nothing of the tables yet."""
        with proxy_process(self.server.endpoint, self.directory / "proxy", options=options) as proxy:
            yield proxy

    @contextmanager
    def sides(self, proxy: ProxyProcess) -> Iterator[Sides]:
        """A session on the server and one through the proxy."""

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            return connect(proxy.endpoint if is_proxied else self.server.endpoint)

        with closing(open_session(False)) as direct, closing(open_session(True)) as proxied:  # noqa: FBT003
            yield Sides(direct, proxied, open_session, (self.pid, proxy.child.process.pid))


@contextmanager
def star_server(directory: Path, memory: str, tables: DashboardTables, progress: Progress) -> Iterator[StarServer]:
    """Runs a server as long as the context lasts; the tables are made if they are not there yet."""
    with thrift_server(ServerOptions(directory / "server", memory=memory), find_java(), progress) as server:
        with closing(connect(server.endpoint)) as session:
            tables.ensure(session, progress)
        yield StarServer(server, directory)
