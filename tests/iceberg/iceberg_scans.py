"""What Spark's scans of an Iceberg table did, from the metrics that Iceberg reports while it plans."""

import re
from dataclasses import dataclass, fields
from typing import Self

from demo.metrics import Metrics, SparkUi, count


@dataclass(frozen=True)
class IcebergScan:
    """What the scans of one table did, added up over one or more executions."""

    manifests_total: int
    manifests_read: int
    # What planning came to, once there were runtime filters: files of data, and their sizes.
    files_planned: int
    bytes_planned: int
    # What tasks were given. A file is one split here: tests and benchmark keep files smaller than a split.
    splits_read: int
    delete_files: int
    rows_read: int
    planning_ms: int

    @classmethod
    def of_metrics(cls, metrics: Metrics) -> Self:
        """By Iceberg's names for them."""
        return cls(
            manifests_total=count(metrics.get("total data manifests")),
            manifests_read=count(metrics.get("number of scanned data manifests")),
            files_planned=count(metrics.get("number of result data files")),
            bytes_planned=count(metrics.get("total data file size (bytes)")),
            splits_read=count(metrics.get("number of file splits read")),
            delete_files=count(metrics.get("number of result delete files")),
            rows_read=count(metrics.get("number of output rows")),
            planning_ms=count(metrics.get("total planning duration (ms)")),
        )


def scans_of(ui: SparkUi, table: str, *, after: int) -> IcebergScan:
    """What was scanned of a table since that execution; raises if nothing was."""
    found = ui.metrics_of(rf"BatchScan .*\.{re.escape(table)}", after=after)
    scans = [IcebergScan.of_metrics(metrics) for metrics in found]
    return IcebergScan(*(sum(getattr(scan, field.name) for scan in scans) for field in fields(IcebergScan)))
