"""Spark's own metrics of its scans: partitions and files listed and read, from the REST API of its UI."""

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

# The gauge of Spark's events that have not reached its UI yet.
_EVENTS_WAITING = ".LiveListenerBus.queue.appStatus.size"

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

# The metrics of a plan's node, by Spark's own names; a node that never ran has none.
Metrics: TypeAlias = Mapping[str, str]


class MetricsError(Exception):
    """Spark's UI did not have the metrics in time."""


@dataclass(frozen=True)
class ScanMetrics:
    """The metrics of the scans of one table, added up over one or more executions."""

    # Without dynamic partition pruning the files listed are the files read.
    files_listed: int
    files_read: int
    partitions_read: int
    # The rows that the scans returned; rows of skipped row groups are not counted.
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
        return max((execution["id"] for execution in self._executions(details=False)), default=-1)

    def scans_of(self, table: str, *, after: int) -> ScanMetrics:
        """The metrics of a table's scans since that execution; raises MetricsError if there were none."""
        found = self.metrics_of(rf"Scan .*\.{re.escape(table)}", after=after)
        return _sum([_scan(metrics) for metrics in found])

    def metrics_of(self, nodes: str, *, after: int) -> list[Metrics]:
        """The metrics of nodes whose whole names match, in plans since that execution; raises without any."""
        wanted = re.compile(nodes)
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            executions = [e for e in self._executions(details=True) if e["id"] > after]
            found = [node for e in executions for node in e["nodes"] if wanted.fullmatch(node["nodeName"])]
            # A cancelled execution, as that of a key query may be, has ended too.
            if found and not _has_running(executions):
                return [{metric["name"]: metric["value"] for metric in node["metrics"]} for node in found]
            time.sleep(SETTLE_POLL_SECONDS)
        raise MetricsError(
            f"{self.url} shows no completed {nodes!r} after execution {after} within {SETTLE_SECONDS_MAX} s"
        )

    def _wait_until_all_is_heard(self) -> None:
        """Waits until the UI has all earlier executions, which would otherwise be taken for later ones."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            gauges = _get(f"{self.url}/metrics/json/")["gauges"]
            if not any(gauge["value"] for name, gauge in gauges.items() if name.endswith(_EVENTS_WAITING)):
                return
            time.sleep(SETTLE_POLL_SECONDS)
        raise MetricsError(f"{self.url} has not heard of all that was run within {SETTLE_SECONDS_MAX} s")

    def input_bytes(self) -> int:
        """The bytes that all ended tasks read together, by Spark's own count."""
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
            executions = [e for e in self._executions(details=False) if e["id"] > after]
            jobs = [job for execution in executions for job in execution["successJobIds"]]
            if jobs and not _has_running(executions):
                return sum(_get(f"{self._application}/jobs/{job}")["numCompletedTasks"] for job in jobs)
            time.sleep(SETTLE_POLL_SECONDS)
        raise MetricsError(f"{self.url} shows no completed job after execution {after} in {SETTLE_SECONDS_MAX} s")

    def has_running_execution(self) -> bool:
        """True if a SQL execution has not ended, as far as the UI has heard."""
        return _has_running(self._executions(details=False))

    def _executions(self, *, details: bool) -> list[dict[str, Any]]:
        # Spark keeps no more executions than spark.sql.ui.retainedExecutions.
        query = f"details={str(details).lower()}&planDescription=false&offset=0&length=2147483647"
        executions: list[dict[str, Any]] = _get(f"{self._application}/sql?{query}")
        return executions


def _has_running(executions: list[dict[str, Any]]) -> bool:
    return any(execution["status"] == "RUNNING" for execution in executions)


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
