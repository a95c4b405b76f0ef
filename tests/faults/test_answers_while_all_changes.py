"""Sessions that ask while views, databases, settings and tables change: no answer that no serial order allows.

Changes come in the same session, on the same connection or on another one, in other sessions, through another
worker and past the proxy. A quarter of a minute of it in every run, an hour with STARPRUNER_DEEP=1, and half as
much again over HTTP.
"""

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pytest
from changing_world import SESSIONS, ChangingSession, Opening, World, change_tables, tables
from seeding import seeded
from support.profile import DEEP
from support.proxies import patient
from support.spark_over_http import connect_over_http, proxy_with_http
from support.worker_processes import TWO_WORKERS

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

SECONDS = float(os.environ.get("STARPRUNER_CHANGING_S") or (3_600 if DEEP else 15))
# A report now and then, for who watches.
REPORT_S = 60.0


OPTIONS = (*patient("rewrite.quarantine_s=0.001"),)


@dataclass(frozen=True)
class Way:
    """A proxy, and how its clients reach it."""

    proxy: ProxyProcess
    opening: Opening
    seconds: float


@pytest.fixture(scope="module", params=["binary", "http"])
def way(
    request: pytest.FixtureRequest, spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Way]:
    with closing(connect(spark.endpoint)) as session:
        for sql in tables():
            run(session, sql)
    directory = tmp_path_factory.mktemp("changing")
    if request.param == "binary":
        with proxy_process(spark.endpoint, directory, options=(*OPTIONS, *TWO_WORKERS)) as proxy:
            yield Way(proxy, lambda: connect(proxy.endpoint), SECONDS)
    else:
        # Calls of one session come to any worker, and are then not rewritten: so there is one.
        with proxy_with_http(spark.endpoint, directory, "sasl", options=OPTIONS) as (proxy, http):
            yield Way(proxy, lambda: connect_over_http(http), SECONDS / 2)


def guarded(world: World, act: Callable[[], None]) -> threading.Thread:
    """A thread whose failure ends all others."""

    def acts() -> None:
        try:
            act()
        except Exception:  # noqa: BLE001 - the test tells it
            world.fail(traceback.format_exc())

    return threading.Thread(target=acts)


def test_no_answer_is_one_that_no_serial_order_allows(
    spark: ThriftServer, way: Way, capsys: pytest.CaptureFixture[str]
) -> None:
    world, seed = World(), int(time.time())
    shared, alone = ("inside", "overwritten", "growing"), ("outside",)
    threads = [
        guarded(world, lambda: change_tables(world, way.opening, seeded(seed, 100), shared)),
        guarded(world, lambda: change_tables(world, lambda: connect(spark.endpoint), seeded(seed, 101), alone)),
    ]
    for number in range(SESSIONS):
        session = ChangingSession(number, world, way.opening, seeded(seed, number))
        threads.append(guarded(world, partial(session.run, own_connection=number < SESSIONS // 2)))
    for thread in threads:
        thread.start()
    end = time.monotonic() + way.seconds
    while (left_s := end - time.monotonic()) > 0 and not world.stop.wait(min(REPORT_S, left_s)):
        with capsys.disabled():
            if DEEP:
                print(f"\n{left_s:.0f} s left: {world.counts}", flush=True)  # noqa: T201 - long work shows progress
    world.stop.set()
    for thread in threads:
        thread.join()
    log = way.proxy.child.log.read_text()
    rewritten, overtaken = log.count(" narrowed 1 of "), log.count("was overtaken")
    told = f"seed {seed}, {rewritten} rewritten, {overtaken} overtaken, {world.counts}"
    assert not world.wrong, "\n\n".join((*world.wrong, told))
    assert world.counts["answers"] > rewritten / 2 > 0, told
