"""Comparison of a query that runs directly and through the proxy, with the file listing cold and warm."""

import json
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

from pyhive import hive

from demo.hive import Row, run, same_answer
from demo.metrics import ScanMetrics, SparkUi
from demo.progress import Progress
from demo.queries import SampleQuery

FACT = "sales"

# One run shows the difference, which is many times the noise. The median of three is robust against one slow run,
# but every direct cold run takes many seconds.
RUNS_DEFAULT = 1

# Lists all partitions directly and a seventh of them through the proxy.
WARM_UP = "SELECT count(*) FROM sales JOIN dates USING (ds) WHERE dates.weekday = 'Monday'"

# `POST /explain` opens its session on the backend with these. Spark Thrift Server wants a password, and takes any.
LOGIN = b64encode(b"demo:demo").decode()

# Covers a slow key query on a busy machine.
EXPLAIN_SECONDS_MAX = 60


@dataclass(frozen=True)
class Measured:
    """The measurements of one query on one connection: median seconds, and the scans of its first cold run."""

    cold_s: float
    warm_s: float
    rows: int
    scans: ScanMetrics


@dataclass(frozen=True)
class Explained:
    """The answer of `POST /explain` to a query; None where a field does not apply to a query left alone."""

    rewritten: str | None
    key_query_s: float | None
    partitions_total: int | None
    partitions_kept: int | None


@dataclass(frozen=True)
class Comparison:
    """The measurements of one query, directly and through the proxy."""

    query: SampleQuery
    direct: Measured
    proxied: Measured
    # True if all runs returned the same multiset of rows.
    equal: bool
    explained: Explained

    @property
    def cold_speedup(self) -> float:
        """The seconds of the direct query divided by those of the proxied one, with a cold file listing."""
        return self.direct.cold_s / self.proxied.cold_s


@dataclass(frozen=True)
class Bench:
    """Both connections, and the two addresses that tell what was scanned and what was rewritten."""

    direct: hive.Connection
    proxied: hive.Connection
    spark_ui: SparkUi
    admin_url: str


def warm_up(bench: Bench, progress: Progress) -> None:
    """Runs an unmeasured query on both connections.

    The first queries of a fresh JVM are slow for everybody, most of all the first listing of partitions, and the
    proxy's first query also asks for table facts. Without this the direct side, which goes first, would look
    slower than it is.
    """
    progress("Warming up Spark and the proxy, unmeasured")
    for connection in (bench.direct, bench.proxied):
        run(connection, WARM_UP)


def compare(bench: Bench, query: SampleQuery, runs: int, progress: Progress) -> Comparison:
    """Measures one query so many times on each connection, and compares all rows that came."""
    direct: list[_Sample] = []
    proxied: list[_Sample] = []
    for number in range(runs):
        turns = [("directly", bench.direct, direct), ("through the proxy", bench.proxied, proxied)]
        # The order alternates, so that no side always finds what the other left in the machine's caches.
        for way, connection, samples in turns if number % 2 == 0 else reversed(turns):
            progress(f"Running '{query.name}' {way}" + (f", {number + 1} of {runs}" if runs > 1 else ""))
            samples.append(_sample(connection, bench.spark_ui, query))
    equal = all(same_answer(direct[0].rows, sample.rows) for sample in direct + proxied)
    return Comparison(query, _measured(direct), _measured(proxied), equal, _explain(bench.admin_url, query))


@dataclass(frozen=True)
class _Sample:
    rows: list[Row]
    cold_s: float
    warm_s: float
    scans: ScanMetrics


def _sample(connection: hive.Connection, spark_ui: SparkUi, query: SampleQuery) -> _Sample:
    # The listing is cached per session: it must be forgotten in the session that runs the query.
    run(connection, f"REFRESH TABLE {FACT}")
    before = spark_ui.last_execution()
    rows, cold_s = _timed(connection, query.sql)
    scans = spark_ui.scans_of(FACT, after=before)
    _, warm_s = _timed(connection, query.sql)
    return _Sample(rows, cold_s, warm_s, scans)


def _timed(connection: hive.Connection, sql: str) -> tuple[list[Row], float]:
    started = time.perf_counter()
    rows = run(connection, sql)
    return rows, time.perf_counter() - started


def _measured(samples: Sequence[_Sample]) -> Measured:
    cold_s = median(sample.cold_s for sample in samples)
    warm_s = median(sample.warm_s for sample in samples)
    return Measured(cold_s, warm_s, len(samples[0].rows), samples[0].scans)


def _explain(admin_url: str, query: SampleQuery) -> Explained:
    request = Request(
        f"{admin_url}/explain",
        data=json.dumps({"sql": query.sql}).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Basic {LOGIN}"},
    )
    with urlopen(request, timeout=EXPLAIN_SECONDS_MAX) as answer:
        view: dict[str, Any] = json.load(answer)
    fact = next((scan for scan in view["scans"] if scan["table"].split(".")[-1] == FACT), None)
    total = fact["partitions"]["total"] if fact else None
    if not view["changed"] or fact is None:
        return Explained(None, None, total, None)
    key_query_s = view["timings_ms"]["key_queries"] / 1000
    return Explained(view["rewritten"], key_query_s, total, fact["partitions"]["kept"])
