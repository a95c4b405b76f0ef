"""Somebody commits while the proxy prepares a statement, whose answer is that before the commit or after it."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
from grammar import Query
from iceberg_server import CATALOG
from iceberg_statements import chosen_statements
from iceberg_tables import iceberg_star
from iceberg_world import IcebergWorld
from pipeline_server import PipelineServer
from pyhive import hive
from seeding import seeded, seeds
from support.both_sides import answer
from support.executed_texts import has_keys, texts_after
from support.fault_acts import First
from support.fault_proxy import Fault, Middle
from support.profile import DEEP
from support.proxies import patient
from support.server_version import SNAPSHOTS_IN_PLANS, needs

from demo.hive import connect
from demo.proxy_process import ProxyProcess, proxy_process

SEEDS = seeds(quick=1, deep=30)
STATEMENTS = 30 if DEEP else 8
# Descriptions, plans and key queries: the commit comes before one of so many calls, or else between them and the
# narrowed statement.
CALLS = 5
NARROWED = r"\(SELECT \* FROM "
TEST = "tests/iceberg/test_commits_between.py"


@pytest.fixture
def middle(iceberg_server: PipelineServer) -> Iterator[Middle]:
    with closing(Middle(iceberg_server.endpoint)) as middle:
        threading.Thread(target=middle.serve, daemon=True).start()
        yield middle


@pytest.fixture
def proxy(middle: Middle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    # A snapshot that is gone lets a statement fail, which is no reason to leave those after it alone.
    options = patient("rewrite.quarantine_s=0.001", files=True)
    with proxy_process(middle.endpoint, tmp_path_factory.mktemp("between"), options=options) as process:
        yield process


def test_an_answer_is_that_before_a_commit_or_that_after_it(
    iceberg_server: PipelineServer, middle: Middle, proxy: ProxyProcess
) -> None:
    # Without a snapshot a small side may change between its keys and the statement, as any other.
    with closing(connect(iceberg_server.endpoint)) as session:
        needs(session, *SNAPSHOTS_IN_PLANS)
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        rng = seeded(seed)
        star = iceberg_star(rng, all_iceberg=True)
        with IcebergWorld(rng, star, f"{CATALOG}.between_{seed}", iceberg_server, proxy) as world:
            first = iceberg_server.ui.last_execution()
            for _, query in chosen_statements(star, STATEMENTS, seed):
                counts[_interrupted(world, middle, seed, query)] += 1
            texts = texts_after(iceberg_server.ui, first)
            counts["given keys"] += sum(map(has_keys, texts))
            counts["of a version"] += sum("VERSION AS OF" in text for text in texts)
        if DEEP:
            sys.stderr.write(f"seed {seed} of {len(SEEDS)}: {dict(counts)}\n")
    for happened in ("between", "given keys", "of a version"):
        assert counts[happened], counts


def _interrupted(world: IcebergWorld, middle: Middle, seed: int, query: Query) -> str:
    """Ask while a commit is made, and say when that was."""
    before = answer(world, world.direct, query)
    commit = world.next_commit()
    fault = Fault(First(commit), "ExecuteStatement", times=1)
    if world.rng.random() < 0.5:
        fault.pattern = NARROWED
    else:
        fault.skip = world.rng.randrange(CALLS)
    latest = world.server.ui.last_execution()
    with middle.faulty(fault):
        found = answer(world, world.proxied, query)
    if not fault.done:
        commit()
    after = answer(world, world.direct, query)
    if isinstance(before, hive.Error) or isinstance(after, hive.Error):
        return "failed"
    if found not in (before, after):
        rerun = f"STARPRUNER_SEED={seed} pytest {TEST}"
        sent = "\n".join(texts_after(world.server.ui, latest))
        answers = f"before: {before}\nfound: {found}\nafter: {after}"
        pytest.fail(
            f"{rerun}\n{query.sql}\nafter {', '.join(world.events)}\nsent: {sent}\n{answers}\n{world.star}"
        )
    return "between" if fault.done else "after"
