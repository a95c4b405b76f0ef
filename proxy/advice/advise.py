"""Running of the advisor in backend sessions of its own, one for each database. Shell."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from proxy.advice.advisor import AdviceSettings, Advisor, Found
from proxy.advice.commands import shown_name
from proxy.advice.proposals import advice
from proxy.advice.recorded import HistoryMissingError, recorded
from proxy.advice.report import Advice
from proxy.config.config import Config
from proxy.history.queries import DAY_S
from proxy.session.shared_state import SharedState
from proxy.upstream.client import BackendClient

# Opens a session in a database; None is the user's own.
OpenSession: TypeAlias = Callable[[str | None], AbstractAsyncContextManager[BackendClient]]


@dataclass(frozen=True)
class AdviceRequest:
    """The statements to look at: of which history and database, and how many."""

    history: str | None
    database: str | None
    statements_max: int
    settings: AdviceSettings


async def advise(
    config: Config, request: AdviceRequest, open_session: OpenSession, progress: Callable[[str], None]
) -> Advice:
    """Advise on the statements of a history. Raises HistoryMissingError and BackendError."""
    settings = request.settings
    progress("Reading the history")
    since = time.time() - settings.days * DAY_S
    found = Found()
    statements = recorded(
        _path(config, request.history), since, database=request.database, statements_max=request.statements_max
    )
    # No statement waits for a description here.
    catalog = replace(config.catalog, query_deadline_s=settings.query_deadline_s)
    advisor = Advisor(SharedState.of(replace(config, catalog=catalog)), settings, progress)
    for database in dict.fromkeys(each.database for each in statements.statements):
        of_database = [each for each in statements.statements if each.database == database]
        async with open_session(database or None) as client:
            await client.drive(partial(advisor.look_at, of_database, found))
    samples = {}
    tables = found.tables()[: settings.tables_max]
    if tables:
        async with open_session(None) as client:
            for number, table in enumerate(tables, 1):
                progress(f"Table {number} of {len(tables)}: looking at files and rows of {shown_name(table)}")
                samples[table] = await client.drive(partial(advisor.measure, table, found))
    return advice(statements, found, samples, settings, progress)


def _path(config: Config, named: str | None) -> Path:
    if named is not None:
        return Path(named)
    if not config.history.enabled:
        raise HistoryMissingError("the history is switched off: set history.enabled = true, and history.path")
    if not config.history.path:
        raise HistoryMissingError(
            "history.path is not set, so the history ends with the proxy: set it to a directory that is kept, or"
            " name one by --history"
        )
    return Path(config.history.path)
