"""Statements in a world of tables that change: a session through the proxy has to answer as a direct one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Protocol

import pytest
from grammar import TARGET, Query
from pipeline_server import PipelineServer
from pyhive import hive
from star_tables import Star

from demo.hive import run
from support.executed_texts import has_hint, has_keys, texts_after

Answer = Counter[tuple[str, ...]]


class World(Protocol):
    """Tables, and two sessions that see them."""

    # What runs one seed again.
    test: ClassVar[str]
    star: Star
    events: list[str]
    server: PipelineServer
    direct: hive.Connection
    proxied: hive.Connection


def compared(world: World, seed: int, change: int, statements: Iterable[tuple[int, Query]]) -> Counter[str]:
    """Compare statements, by their numbers, after so many changes, and count those that were narrowed."""
    counts: Counter[str] = Counter()
    before = world.server.ui.last_execution()
    for index, query in statements:
        direct = answer(world, world.direct, query)
        if isinstance(direct, hive.Error):
            # Which rows an error comes from is not promised, so fewer rows may well raise none.
            counts["failed"] += 1
            continue
        counts["compared"] += 1
        latest = world.server.ui.last_execution()
        proxied = answer(world, world.proxied, query)
        if proxied != direct:
            rerun = f"STARPRUNER_SEED={seed} pytest {world.test}"
            sent = "\n".join(texts_after(world.server.ui, latest))
            happened = f"change {change}, statement {index}, after {', '.join(world.events)}"
            wrong = difference(direct, proxied)
            pytest.fail(f"{rerun}\n{happened}\n{query.sql}\nsent: {sent}\n{wrong}\n{world.star}")
    texts = texts_after(world.server.ui, before)
    counts["hinted"] = sum(map(has_hint, texts))
    counts["given keys"] = sum(map(has_keys, texts))
    return counts


def answer(world: World, session: hive.Connection, query: Query) -> Answer | hive.Error:
    """The rows of the statement, or of what it wrote; the server's error where it has none."""
    try:
        if query.read_back is None:
            return Counter(tuple(map(repr, row)) for row in run(session, query.sql))
        for statement in (f"DROP TABLE IF EXISTS {TARGET}", *query.setup):
            run(world.direct, statement)
        run(session, query.sql)
        run(world.direct, f"REFRESH TABLE {TARGET}")
        return Counter(tuple(map(repr, row)) for row in run(world.direct, query.read_back))
    except hive.Error as error:
        return error


def difference(direct: Answer, proxied: Answer | hive.Error) -> str:
    """How the answers differ."""
    if isinstance(proxied, hive.Error):
        return f"fails: {proxied}"
    return f"missing: {sorted((direct - proxied).elements())}\nadded: {sorted((proxied - direct).elements())}"
