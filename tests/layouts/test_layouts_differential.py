"""Random facts in random layouts: however stale the index, a session through the proxy answers as a direct one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from grammar import Query
from layout_queries import layout_query
from layout_tables import laid_out_star
from layout_world import World
from pipeline_server import PipelineServer
from seeding import seeded, seeds
from support.both_sides import compared
from support.profile import DEEP

from demo.proxy_process import ProxyProcess

SEEDS = seeds(quick=2, deep=30)
# With the index as new as the tables, and then after each of some changes.
CHANGES = 6 if DEEP else 2
STATEMENTS = 16 if DEEP else 9
# The index is made anew after some changes; after the others it stays as stale as it is.
INDEXED_AGAIN_EVERY = 3
# Few enough for any seed, and enough that a run in which nothing is skipped any more does not pass.
HINTED_SHARE_MIN = 0.1


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
                counts += compared(world, seed, change, statements(world, seed, change))
        if DEEP:
            sys.stderr.write(f"seed {seed}, {number} of {len(SEEDS)}: {dict(counts)}\n")
    assert counts["compared"] >= len(SEEDS) * (CHANGES + 1) * STATEMENTS / 2, counts
    if len(SEEDS) == 1:
        return  # too few statements to tell
    assert counts["hinted"] >= counts["compared"] * HINTED_SHARE_MIN, counts
    assert counts["given keys"], counts


def statements(world: World, seed: int, change: int) -> Iterator[tuple[int, Query]]:
    """Some with one answer each."""
    made = ((index, layout_query(world.star, seeded(seed, change, index))) for index in range(STATEMENTS))
    return ((index, query) for index, query in made if query.comparable)
