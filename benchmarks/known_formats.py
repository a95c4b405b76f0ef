"""The table formats that are measured: Iceberg and Delta, which keep bounds of their files themselves."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from delta_server import delta_server
from iceberg_scans import IcebergScan, scans_of
from iceberg_server import CATALOG, iceberg_server
from pairs import COLD, WARM
from pipeline_server import PipelineServer
from pyhive import hive

from demo.hive import run
from demo.metrics import ScanMetrics, SparkUi

Scan: TypeAlias = IcebergScan | ScanMetrics

# A table whose files are this small has as many manifests as one of a terabyte in Iceberg's own 8 MiB.
_MANIFEST_BYTES = 64 << 10


@dataclass(frozen=True)
class TableFormat:
    """A format, the server that has it, and what is measured of it unless options say otherwise."""

    # As in USING.
    name: str
    server: Callable[..., AbstractContextManager[PipelineServer]]
    scans_of: Callable[..., Scan]
    # Fields of a scan that are shown, by their headings.
    counts: Mapping[str, str]
    files: Sequence[int]
    keys: Sequence[int]
    listings: Sequence[str] = (WARM,)
    # In front of a database's name.
    catalog: str = ""
    # As in TBLPROPERTIES.
    properties: str = ""


ICEBERG = TableFormat(
    "iceberg",
    iceberg_server,
    scans_of,
    {"manifests": "manifests_read", "files planned": "files_planned", "files read": "splits_read"},
    files=(100, 1_000, 10_000),
    keys=(10, 100, 1_000, 10_000),
    catalog=f"{CATALOG}.",
    properties=(
        f"'commit.manifest.target-size-bytes' = '{_MANIFEST_BYTES}', 'write.distribution-mode' = 'none', "
    ),
)
DELTA = TableFormat(
    "delta",
    delta_server,
    SparkUi.scans_of,
    # Between the two is what Spark's dynamic pruning leaves out.
    {"files planned": "files_listed", "files read": "files_read"},
    files=(1_000, 10_000),
    keys=(10, 1_000),
    listings=(WARM, COLD),
)
FORMATS = {one.name: one for one in (ICEBERG, DELTA)}


def commit_to_delta(session: hive.Connection, table: str) -> None:
    """Commit to a Delta table as another writer does that adds no file.

    Spark would make a checkpoint of every tenth commit, which Delta 4.2 cannot read on Spark 4.1.4.
    """
    described = run(session, f"DESCRIBE TABLE EXTENDED {table}")
    location = next(str(value) for name, value, *_ in described if name == "Location")
    log = Path(urlsplit(location).path) / "_delta_log"
    version = 1 + max(int(commit.stem) for commit in log.glob("*.json"))
    action = {"txn": {"appId": "starpruner", "version": version}}
    _ = (log / f"{version:020}.json").write_text(f"{json.dumps(action)}\n", encoding="utf-8")
