"""Random Delta tables that others commit to: a session through the proxy answers as a direct one."""

from __future__ import annotations

import sys
from collections import Counter

from delta_world import DeltaWorld, delta_star
from iceberg_statements import chosen_statements
from pipeline_server import PipelineServer
from seeding import seeded, seeds
from support.both_sides import compared
from support.profile import DEEP

from demo.proxy_process import ProxyProcess

SEEDS = seeds(quick=2, deep=40)
CHANGES = 8 if DEEP else 1
STATEMENTS = 12 if DEEP else 6
# Few enough for any seed, and enough that a run in which nothing is narrowed any more does not pass.
NARROWED_SHARE_MIN = 0.2


def test_a_proxied_session_answers_as_a_direct_one_whoever_has_committed_to_delta(
    delta_server: PipelineServer, delta_proxy: ProxyProcess
) -> None:
    counts: Counter[str] = Counter()
    for number, seed in enumerate(SEEDS, start=1):
        rng = seeded(seed)
        database = f"spark_catalog.random_{seed}"
        with DeltaWorld(rng, delta_star(rng), database, delta_server, delta_proxy) as world:
            for change in range(CHANGES + 1):
                if change:
                    world.change()
                counts += compared(world, seed, change, chosen_statements(world.star, STATEMENTS, seed, change))
        if DEEP:
            sys.stderr.write(f"seed {seed}, {number} of {len(SEEDS)}: {dict(counts)}\n")
    assert counts["compared"] >= len(SEEDS) * (CHANGES + 1) * STATEMENTS / 2, counts
    if len(SEEDS) > 1:
        assert counts["given keys"] >= counts["compared"] * NARROWED_SHARE_MIN, counts
