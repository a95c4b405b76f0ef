"""Random facts in random layouts: however stale the index, a session through the proxy answers as a direct one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from executed import has_hint, has_keys, texts_after
from grammar import TARGET, Query
from layout_queries import layout_query
from layout_tables import laid_out_star
from layout_world import World
from pipeline_server import PipelineServer
from pyhive import hive
from seeding import DEEP, seeded, seeds

from demo.hive import run
from demo.proxy_process import ProxyProcess

SEEDS = seeds(quick=2, deep=30)
# With the index as new as the tables, and then after each of some changes.
CHANGES = 6 if DEEP else 2
STATEMENTS = 16 if DEEP else 9
# The index is made anew after some changes; after the others it stays as stale as it is.
INDEXED_AGAIN_EVERY = 3
# Few enough for any seed, and enough that a run in which nothing is skipped any more does not pass.
HINTED_SHARE_MIN = 0.1

Answer = Counter[tuple[str, ...]]


def test_a_proxied_session_answers_as_a_direct_one_whatever_the_index_says(
    pipeline_spark: PipelineServer, indexed_proxy: ProxyProcess
) -> None:
    counts: Counter[str] = Counter()
    for number, seed in enumerate(SEEDS, start=1):
        rng = seeded(seed)
        star = laid_out_star(rng, seed)
        with World(rng, star, f"layouts_{seed}", pipeline_spark, indexed_proxy) as world:
            world.make()
            for change in range(CHANGES + 1):
                if change:
                    world.change()
                if change and change % INDEXED_AGAIN_EVERY == 0:
                    world.index()
                counts += compared(world, seed, change)
        if DEEP:
            sys.stderr.write(f"seed {seed}, {number} of {len(SEEDS)}: {dict(counts)}\n")
    assert counts["compared"] >= len(SEEDS) * (CHANGES + 1) * STATEMENTS / 2, counts
    if len(SEEDS) == 1:
        return  # too few statements to tell
    assert counts["hinted"] >= counts["compared"] * HINTED_SHARE_MIN, counts
    assert counts["given keys"], counts


def compared(world: World, seed: int, change: int) -> Counter[str]:
    """Compare some statements, and count those that were narrowed."""
    counts: Counter[str] = Counter()
    before = world.server.ui.last_execution()
    for index, query in statements(world, seed, change):
        direct = answer(world, world.direct, query)
        if isinstance(direct, hive.Error):
            # Which rows an error comes from is not promised, so fewer rows may well raise none.
            counts["failed"] += 1
            continue
        counts["compared"] += 1
        latest = world.server.ui.last_execution()
        proxied = answer(world, world.proxied, query)
        if proxied != direct:
            rerun = f"STARPRUNER_SEED={seed} pytest tests/layouts/test_layouts_differential.py"
            sent = "\n".join(texts_after(world.server.ui, latest))
            happened = f"change {change}, statement {index}, after {', '.join(world.events)}"
            wrong = difference(direct, proxied)
            pytest.fail(f"{rerun}\n{happened}\n{query.sql}\nsent: {sent}\n{wrong}\n{world.star}")
    texts = texts_after(world.server.ui, before)
    counts["hinted"] = sum(map(has_hint, texts))
    counts["given keys"] = sum(map(has_keys, texts))
    return counts


def statements(world: World, seed: int, change: int) -> Iterator[tuple[int, Query]]:
    """Some with one answer each."""
    made = ((index, layout_query(world.star, seeded(seed, change, index))) for index in range(STATEMENTS))
    return ((index, query) for index, query in made if query.comparable)


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
