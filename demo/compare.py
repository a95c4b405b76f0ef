"""The same query directly and through the proxy, with the file listing cold and warm."""

import json
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
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

# The median of three is robust against one slow run, and every direct cold run takes many seconds.
RUNS_DEFAULT = 3

# The proxy asks the backend as whoever asks it; Spark Thrift Server wants a password, and takes any.
LOGIN = b64encode(b"demo:demo").decode()

# Covers a slow key query on a busy machine.
EXPLAIN_SECONDS_MAX = 60


@dataclass(frozen=True)
class Measured:
    """One query on one connection: medians in seconds, and what its first cold run scanned."""

    cold_s: float
    warm_s: float
    rows: int
    scans: ScanMetrics


@dataclass(frozen=True)
class Explained:
    """What the proxy says that it does with a query; None for what does not apply to a query left alone."""

    rewritten: str | None
    key_query_s: float | None
    partitions_total: int | None
    partitions_kept: int | None


@dataclass(frozen=True)
class Comparison:
    """One query both ways."""

    query: SampleQuery
    direct: Measured
    proxied: Measured
    # Whether all runs gave the same multiset of rows.
    equal: bool
    explained: Explained

    @property
    def cold_speedup(self) -> float:
        """How many times as fast the proxied query is with a cold file listing."""
        return self.direct.cold_s / self.proxied.cold_s


@dataclass(frozen=True)
class Bench:
    """Both connections, and where to ask what happened."""

    direct: hive.Connection
    proxied: hive.Connection
    spark_ui: SparkUi
    admin_url: str


def compare(bench: Bench, queries: Sequence[SampleQuery], runs: int, progress: Progress) -> Iterator[Comparison]:
    """Measures each query in turn."""
    for connection in (bench.direct, bench.proxied):
        # A fresh JVM's first queries are slow for everybody, and the proxy's first also asks for table facts.
        run(connection, "SELECT count(*) FROM sales JOIN dates USING (ds) WHERE dates.ds = '2024-12-31'")
    for query in queries:
        yield _compare_query(bench, query, runs, progress)


def _compare_query(bench: Bench, query: SampleQuery, runs: int, progress: Progress) -> Comparison:
    direct: list[_Sample] = []
    proxied: list[_Sample] = []
    for number in range(runs):
        progress(f"Running '{query.name}', {number + 1} of {runs}")
        turns = [(bench.direct, direct), (bench.proxied, proxied)]
        # Neither side always finds what the other left in the machine's caches.
        for connection, samples in turns if number % 2 == 0 else reversed(turns):
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
