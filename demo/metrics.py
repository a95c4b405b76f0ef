"""What Spark says about its own scans: partitions and files listed and read, from the REST API of its UI."""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.request import urlopen

# Spark's events arrive in its UI a moment after the client has its rows, on a busy machine many seconds after.
SETTLE_SECONDS_MAX = 60
SETTLE_POLL_SECONDS = 0.05
# The first question takes a busy machine a while.
ANSWER_SECONDS_MAX = 60

# How many of Spark's events its UI has still to hear of.
_EVENTS_WAITING = ".LiveListenerBus.queue.appStatus.size"

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

# What a node of a plan counts, by Spark's own names for it; what never ran counts nothing.
Metrics: TypeAlias = Mapping[str, str]


class MetricsError(Exception):
    """Spark's UI did not tell."""


@dataclass(frozen=True)
class ScanMetrics:
    """What the scans of one table did, added up over one or more executions."""

    # Without dynamic partition pruning the files listed are the files read.
    files_listed: int
    files_read: int
    partitions_read: int
    # What came out of the scans: rows of row groups that were skipped did not.
    rows_read: int
    # The size of the files read, in whole units as Spark shows it, whatever part of their columns was read.
    bytes_read: int


@dataclass(frozen=True)
class SparkUi:
    """The REST API of one application."""

    url: str

    def last_execution(self) -> int:
        """The number of the newest SQL execution, -1 before the first."""
        self._wait_until_all_is_heard()
        return max((tracked["id"] for tracked in self._tracked_statements(details=False)), default=-1)

    def scans_of(self, table: str, *, after: int) -> ScanMetrics:
        """What was scanned of a table since that execution; raises if nothing was."""
        found = self.metrics_of(rf"Scan .*\.{re.escape(table)}", after=after)
        return _sum([_scan(metrics) for metrics in found])

    def metrics_of(self, nodes: str, *, after: int) -> list[Metrics]:
        """What the nodes whose whole names match counted in plans since that execution; raises without any."""
        wanted = re.compile(nodes)
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            tracked_statements = [e for e in self._tracked_statements(details=True) if e["id"] > after]
            found = [node for e in tracked_statements for node in e["nodes"] if wanted.fullmatch(node["nodeName"])]
            # One that was cancelled, as a question of the proxy may be, has ended too.
            if found and not any(tracked["status"] == "RUNNING" for tracked in tracked_statements):
                return [{metric["name"]: metric["value"] for metric in node["metrics"]} for node in found]
            time.sleep(SETTLE_POLL_SECONDS)
        raise MetricsError(
            f"{self.url} shows no completed {nodes!r} after execution {after} within {SETTLE_SECONDS_MAX} s"
        )

    def _wait_until_all_is_heard(self) -> None:
        """What was run before may not be in the UI yet, and would be taken for what comes after."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            gauges = _get(f"{self.url}/metrics/json/")["gauges"]
            if not any(gauge["value"] for name, gauge in gauges.items() if name.endswith(_EVENTS_WAITING)):
                return
            time.sleep(SETTLE_POLL_SECONDS)
        raise MetricsError(f"{self.url} has not heard of all that was run within {SETTLE_SECONDS_MAX} s")

    def input_bytes(self) -> int:
        """What the tasks that have ended read, all together, as Spark counts it."""
        executors = _get(f"{self._application}/executors")
        return sum(int(executor["totalInputBytes"]) for executor in executors)

    @property
    def _application(self) -> str:
        (application,) = _get(f"{self.url}/api/v1/applications")
        return f"{self.url}/api/v1/applications/{application['id']}"

    def tasks(self, *, after: int) -> int:
        """The tasks of all that ran since that execution; raises if nothing did."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            tracked_statements = [e for e in self._tracked_statements(details=False) if e["id"] > after]
            jobs = [job for tracked in tracked_statements for job in tracked["successJobIds"]]
            if jobs and not any(tracked["status"] == "RUNNING" for tracked in tracked_statements):
                return sum(_get(f"{self._application}/jobs/{job}")["numCompletedTasks"] for job in jobs)
            time.sleep(SETTLE_POLL_SECONDS)
        raise MetricsError(f"{self.url} shows no completed job after execution {after} in {SETTLE_SECONDS_MAX} s")

    def _tracked_statements(self, *, details: bool) -> list[dict[str, Any]]:
        # Spark keeps no more executions than spark.sql.ui.retainedExecutions.
        query = f"details={str(details).lower()}&planDescription=false&offset=0&length=2147483647"
        tracked_statements: list[dict[str, Any]] = _get(f"{self._application}/sql?{query}")
        return tracked_statements


def _scan(metrics: Metrics) -> ScanMetrics:
    read = count(metrics.get("number of files read"))
    listed = metrics.get("static number of files read")
    return ScanMetrics(
        files_listed=read if listed is None else count(listed),
        files_read=read,
        partitions_read=count(metrics.get("number of partitions read")),
        rows_read=count(metrics.get("number of output rows")),
        bytes_read=_size(metrics.get("size of files read")),
    )


def _sum(scans: list[ScanMetrics]) -> ScanMetrics:
    return ScanMetrics(
        files_listed=sum(scan.files_listed for scan in scans),
        files_read=sum(scan.files_read for scan in scans),
        partitions_read=sum(scan.partitions_read for scan in scans),
        rows_read=sum(scan.rows_read for scan in scans),
        bytes_read=sum(scan.bytes_read for scan in scans),
    )


def count(value: str | None) -> int:
    """2924 of "2,924"; a scan that never ran has no value."""
    return int(value.replace(",", "")) if value else 0


def _size(value: str | None) -> int:
    """About 11,162 of "10.9 KiB"."""
    if not value:
        return 0
    number, unit = value.split(" ", maxsplit=1)
    return int(float(number.replace(",", "")) * 1024 ** _UNITS.index(unit))


def _get(url: str) -> Any:
    with urlopen(url, timeout=ANSWER_SECONDS_MAX) as answer:
        return json.load(answer)
