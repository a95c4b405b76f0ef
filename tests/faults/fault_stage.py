"""A proxy whose backend is the real server behind a man in the middle, and small tables to ask about."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyhive import hive
from recorded_server import RecordedServer
from server_state import Held, KnownState, ServerState, promptly
from support.beeline_clients import answer
from support.fault_proxy import Middle
from support.metrics_of_proxy import own_session_count
from support.proxies import patient

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

DATABASE: Final = "faults"

# More days than are said to the metastore without a look at the partitions, so that these are listed too.
WANTED_DAYS: Final = 18
DAYS: Final = 24

_TABLES: Final = (
    "CREATE TABLE fact (v INT, ds STRING) USING parquet PARTITIONED BY (ds)",
    f"INSERT INTO fact SELECT CAST(id AS INT), concat('d', id + 10) FROM range({DAYS})",
    "CREATE TABLE dim (ds STRING, name STRING, n INT) USING parquet",
    f"INSERT INTO dim SELECT concat('d', id + 10), if(id < {WANTED_DAYS}, 'wanted', ''), 1 FROM range({DAYS})",
)

# Two lines for each day: an answer in which a lost partition, or one too many, shows.
JOIN: Final = "SELECT f.ds, f.v FROM fact f JOIN dim d ON f.ds = d.ds WHERE d.name = 'wanted'"
# With a string in double quotes, about which the session's settings are asked.
QUOTING_JOIN: Final = JOIN.replace("'wanted'", '"wanted"')
# What its text has in it once it is narrowed.
NARROWED: Final = r"FROM \(SELECT"
KEY_QUERY: Final = r"^SELECT (DISTINCT )?\S+ AS key"

Seen = tuple[str, Any]


@dataclass(frozen=True)
class Stage:
    """What the tests of faults play on."""

    middle: Middle
    proxy: ProxyProcess
    server: ThriftServer | RecordedServer

    @property
    def is_recorded(self) -> bool:
        """Whether the server has Spark's answers without Spark."""
        return isinstance(self.server, RecordedServer)

    @property
    def state(self) -> KnownState:
        """What the server holds."""
        return self.server if isinstance(self.server, RecordedServer) else ServerState(self.server.ui_url)

    @contextmanager
    def proxied(self, user: str = "demo") -> Iterator[hive.Connection]:
        """A session through proxy and middle, in the database of the tables."""
        with closing(connect(self.proxy.endpoint, database=DATABASE, user=user)) as session:
            yield session

    @contextmanager
    def direct(self) -> Iterator[hive.Connection]:
        """A session on the server itself, in the database of the tables."""
        with closing(connect(self.server.endpoint, database=DATABASE)) as session:
            yield session

    def directly(self, sql: str) -> Seen:
        """What a client of the server itself sees of a statement."""
        with self.direct() as session:
            return seen(session, sql)

    def forget(self, session: hive.Connection) -> None:
        """Make the proxy ask again for everything that it knows of the tables."""
        run(session, "REFRESH TABLE fact")

    @contextmanager
    def nothing_left_behind(self) -> Iterator[None]:
        """What goes on within leaves no session and no operation on the server, and a proxy that serves."""
        before, own = self.settled()
        yield
        left = self.state.left_over(before, own, lambda: own_session_count(self.proxy))
        assert not left, left
        assert self.serves_the_next_client()
        assert self.proxy.child.exit_code is None

    def settled(self) -> tuple[Held, int]:
        """What the server holds, and the number of the proxy's own sessions, once all of them stand on the server.

        For a moment the proxy counts the connection of a client that has left, or of a session not open yet.
        """
        held, own = self.state.held(), own_session_count(self.proxy)

        def is_settled() -> bool:
            nonlocal held, own
            held, own = self.state.held(), own_session_count(self.proxy)
            return own <= len(held.sessions)

        assert promptly(is_settled), f"{own} sessions of the proxy's own, and on the server {held.sessions}"
        return held, own

    def serves_the_next_client(self) -> bool:
        """Whether the proxy lives: another client has the right answer."""
        with self.proxied() as session:
            return seen(session, JOIN) == self.directly(JOIN)


# Keys are asked for first in each statement: then the calls of a conversation come in one order.
_ASKS_FIRST: Final = "rewrite.keys_remembered_s=0"


@contextmanager
def fault_stage(server: ThriftServer | RecordedServer, directory: Path, *options: str) -> Iterator[Stage]:
    """A proxy of its own, with the options, in front of a middle of its own."""
    with closing(Middle(server.endpoint)) as middle:
        threading.Thread(target=middle.serve, daemon=True).start()
        # Faults are to be seen in rewritten statements, whether these pay or not, and on a busy machine too: only
        # tests of slow queries have a deadline that one may come past.
        with proxy_process(middle.endpoint, directory, options=(*patient(_ASKS_FIRST), *options)) as proxy:
            yield Stage(middle, proxy, server)


def make_tables(server: ThriftServer | RecordedServer) -> None:
    """Make the tables anew."""
    with closing(connect(server.endpoint)) as session:
        run(session, f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")
        run(session, f"CREATE DATABASE {DATABASE}")
        run(session, f"USE {DATABASE}")
        for statement in _TABLES:
            run(session, statement)


def seen(session: hive.Connection, sql: str) -> Seen:
    """What a client sees of a statement, whatever the order of its rows."""
    kind, *rest = answer(session, sql)
    if kind == "error":
        return kind, tuple(rest)
    description, rows = rest
    return kind, (description, None if rows is None else Counter(map(repr, rows)))
