"""The admin port with a history of its own, on a real port: for clients and for a browser."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from proxy.admin.app import application
from proxy.admin.passwords import hash_of
from proxy.backends.pool import BackendPool
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.config import Config
from proxy.config.rewriting import RewriteSection
from proxy.config.serving import AdminSection, ProxySection
from proxy.frontend.statement_canceller import StatementCanceller
from proxy.history.history import History
from proxy.history.record import Record, ShadowRecord
from proxy.history.store import Store
from proxy.off_switch import OffSwitch
from proxy.operations.session_port import SessionOpening
from proxy.operations.tracked_statements import TrackedStatements
from proxy.session.explain.view import CountView, LimitView
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.shared_state import SharedState
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError, LoginError
from support.histories import REWRITTEN, SQL, history_in, left_alone, record, scan

PASSWORD = "right"  # noqa: S105 - of the test's own backend
ROOT_HASH = hash_of(PASSWORD)
ROOM = 1_000_000_000


async def backend_login(_config: Config, user: str, password: str, _backends: BackendPool) -> str:
    """A backend that knows one password, and whose users are in lower case."""
    if password != PASSWORD:
        raise LoginError(f"the backend refused user {user!r}")
    return user.lower()


class ScriptedCanceller(StatementCanceller):
    """Cancels whatever is among `ids`, unless the backend fails."""

    def __init__(self, *ids: str, failure: str = "") -> None:
        super().__init__(TrackedStatements(), lambda _: None, Dialer())
        self.ids, self.failure = set(ids), failure
        self.cancelled: list[tuple[str, str]] = []

    def cancellable(self) -> frozenset[str]:
        return frozenset(self.ids)

    async def cancel(self, statement_id: str, by: str) -> bool:
        if self.failure:
            raise BackendError(self.failure)
        if statement_id not in self.ids:
            return False
        self.cancelled.append((statement_id, by))
        return True


def idle_application(
    config: Config,
    backends: BackendPool,
    exposition: Callable[[], Awaitable[bytes]],
    shared: SharedState | None = None,
    **given: Any,
) -> web.Application:
    """The port of a proxy in which nothing runs, and that keeps no history."""
    given |= {"history": history_in(None, enabled=False), "canceller": ScriptedCanceller()}
    return application(config, shared or SharedState.of(config), backends, exposition, **given)


@asynccontextmanager
async def admin_port(  # noqa: PLR0913 - the port, and who comes
    monkeypatch: Any,
    history: History,
    *,
    is_open: bool = False,
    has_administrator: bool = True,
    quarantine: Callable[[Quarantine], None] = lambda _: None,
    rewrite: RewriteSection | None = None,
    clock: Callable[[], float] = time.monotonic,
    canceller: StatementCanceller | None = None,
    workers: int = 1,
) -> AsyncIterator[TestClient[Any, Any]]:
    """The port. `root` is an administrator, everybody else a user of the backend.

    Without an administrator everybody may release and drain. `quarantine` fills the quarantine.
    """
    monkeypatch.setattr("proxy.admin.app.check_login", backend_login)
    users = {"root": ROOT_HASH} if has_administrator else {}
    config = Config(
        admin=AdminSection(users=users, open=is_open),
        proxy=ProxySection(workers=workers),
        rewrite=rewrite or RewriteSection(),
    )
    shared = SharedState.of(config)
    quarantine(shared.quarantine)
    backends = BackendPool(
        [PoolMember(Address("spark-a", 10_000)), PoolMember(Address("spark-b", 10_000))], time.monotonic
    )
    backends.configured[1].record_failure("Connection refused")

    async def exposition() -> bytes:
        return b""

    directory = history.directory
    shared.off_switch = OffSwitch(str(directory / "off") if directory is not None else "")
    given: dict[str, Any] = {"history": history, "canceller": canceller or ScriptedCanceller()}
    app = application(config, shared, backends, exposition, key=b"k" * 32, clock=clock, **given)
    async with TestClient(TestServer(app)) as client:
        yield client


def busy_history(directory: Path, statements: int = 60) -> History:
    """A history with statements of every outcome, two of which run."""
    store = Store(directory, bytes_max=ROOM)
    store.add(some_statements(statements))
    store.close()
    history = history_in(directory)
    session = history.session_opened(SessionOpening({}, "o", "ann", "10.0.0.7"))
    session.began("SELECT count(*) FROM sales WHERE note = 'running'")
    history.session_opened(SessionOpening({"use:database": "shop"}, "o", "bob", "HTTP"))
    return history


def some_statements(count: int) -> list[Record]:
    """Statements of ann and bob since last night, the newest last."""
    at = time.time() - 60
    made = []
    for number in range(count):
        kind = number % 10
        one: Record
        when = at - 37 * (count - number)
        if kind in {0, 1, 2, 3}:
            text = SQL.replace("may", f"m{number}")
            one = record(at=when, original=text, run_s=1.2 + kind, lists_files=True)
        elif kind == 4:
            one = left_alone(
                "NOT_A_PARTITION_COLUMN", at=when, user="bob", run_s=95.0, original=SQL.replace("s.ds", "s.day")
            )
        elif kind == 5:
            one = left_alone("REDUCER_UNFILTERED", at=when, run_s=4.0)
        elif kind == 6:
            one = left_alone(
                at=when,
                skip_reason="NO_JOIN_IN_TEXT",
                fingerprint=None,
                scans=[],
                run_s=0.02,
                original="SHOW TABLES",
            )
        elif kind == 7:
            one = record(
                at=when,
                outcome="failed",
                end="failed",
                message="[TABLE_OR_VIEW_NOT_FOUND] The table cannot be found.",
            )
        elif kind == 8:
            one = record(at=when, outcome="fallback", end="recovered", user="bob", message="A partition was gone.")
        else:
            shadow = ShadowRecord("equal", "", 3.1, None, 38.0, 1.2, 0.1, ["sales"])
            one = left_alone(at=when, skip_reason="IN_SHADOW", shadow=shadow, fingerprint="f1", run_s=38.0)
            one.lists_files = True
            one.limits = [
                LimitView("wide", "sales", "warned", "This statement would read 2,924 partitions of sales.")
            ]
        made.append(one)
    made.append(star(at + 10))
    return made


def star(at: float) -> Record:
    """A statement with two facts, three dimensions and bytes that are known."""
    sales = scan()
    sales = msgspec.structs.replace(
        sales, files=CountView(8_000, 310), bytes=CountView(91_000_000_000, 3_400_000_000)
    )
    store = msgspec.structs.replace(sales.reducers[0], join="s.store_id = t.store_id", keys=4)
    sales = msgspec.structs.replace(sales, reducers=[*sales.reducers, store])
    returns = msgspec.structs.replace(scan("returns", 40), alias="r")
    again = msgspec.structs.replace(returns.reducers[0], join="r.ds = d.ds")
    returns = msgspec.structs.replace(returns, reducers=[again])
    left = msgspec.structs.replace(
        scan("clicks", skip="TYPES_DIFFER", cause="c.ds is of type date, d.ds of type string"), alias="c"
    )
    sides = [
        msgspec.structs.replace(scan(name, skip="NOT_PARTITIONED"), alias=alias, is_fact=False)
        for name, alias in (("dates", "d"), ("stores", "t"))
    ]
    scans = [sales, returns, left, *sides]
    one = record(at=at, fingerprint="f3", scans=scans, rewritten=REWRITTEN, rules=["inner_join", "pairs"])
    one.lists_files = True
    return one
