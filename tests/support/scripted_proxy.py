"""A real proxy in this process whose sessions send the texts of the test, so that a rewrite can fail."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvloop

from demo.hive import Endpoint
from proxy.config.address import Address
from proxy.config.endpoints import Listener, Transport, UpstreamSection
from proxy.operations.dispatch import Dispatch, Outcome, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.query import Query, QueryResult, ask_driver
from proxy.operations.session_port import KnownState
from proxy.server import Proxy
from proxy.statements.statement_class import StatementClass
from support.server_config import server_config

START_SECONDS_MAX = 60


@dataclass
class Script:
    """What is sent in place of a statement, what is asked first, and how the statements ended."""

    texts: Mapping[str, str] = field(default_factory=dict)
    queries: tuple[Query, ...] = ()
    results: list[QueryResult] = field(default_factory=list)
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)

    async def rewrite(self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST) -> Dispatch:
        sql = statement.text
        if sql in self.texts:
            for query in self.queries:
                self.results.append(await ask_driver(query))
        text = self.texts.get(sql, sql)
        return Dispatch(text, may_fall_back=True, on_outcome=lambda outcome: self.outcomes.append((sql, outcome)))

    def known_state(self) -> KnownState | None:
        return None

    def is_quick(self, statement: StatementClass) -> bool:
        return not statement.may_have_a_join

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        return Dispatch(statement.text)

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:  # noqa: ARG002 - none is rewritten here
        return ()

    def used_elsewhere(self) -> None:
        """Nothing is kept by session."""

    def closed(self, *, is_forgotten: bool = False) -> None:
        """Nothing is kept by session."""


@contextmanager
def scripted_proxy(backend: Endpoint, script: Script, transport: Transport = Transport.SASL) -> Iterator[Endpoint]:
    """A proxy that listens as long as the context lasts, on the event loop that users run it on.

    Clients and backend speak the same transport.
    """
    listener = Listener(Address("127.0.0.1", 0), transport)
    proxy = Proxy(server_config((listener,), str(backend), UpstreamSection(transport)), lambda _opened: script)
    started, stop = threading.Event(), asyncio.Event()
    loop = uvloop.new_event_loop()

    async def serve() -> None:
        await proxy.start()
        started.set()
        await stop.wait()
        await proxy.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert started.wait(START_SECONDS_MAX)
        yield Endpoint("127.0.0.1", proxy.port)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
