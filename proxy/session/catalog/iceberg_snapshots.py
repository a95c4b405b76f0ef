"""The current snapshots of Iceberg tables by name, from Spark's plans of scans.

`t VERSION AS OF n` reads what `t` reads only while snapshot n has the schema that the table has now. Names and
types of columns do not tell this: a column that was dropped and added again is another column. A reader of the
table sees null in all older rows, while a reader of the version still sees the old values. So both scans are
planned, which runs no job. Both plans must name the same table, schema number and snapshot, and no branch. A
session that stages its writes (spark.wap.branch), or that keeps a table as it was for a while (Iceberg's catalog
does, by default), is answered as its own statements are.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Final

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import Ask, Query, QueryResult, Rows
from proxy.operations.spark_versions import ICEBERG_SCAN
from proxy.session.catalog.caches import NegativeCache
from rewriter import TableName, UnpinnedReason

# Spark's error for a statement whose version was expired in the meantime.
SNAPSHOT_GONE: Final = "Cannot find snapshot with ID"

# A snapshot of each of some hundreds of small tables, by the names that statements have for them.
READ_ALIKE_MAX: Final = 10_000
# A plan is one row, and an error a few.
SCAN_ROWS_MAX: Final = 100
# A plan of one scan. That of a name which is not a table may be longer, and is of no use.
_PLAN_BYTES_MAX: Final = 65_536
# How long an Iceberg version whose plans do not tell the snapshot is left alone: a restart of the server changes
# it.
_SILENT_S: Final = 600.0

# As Iceberg 1.12 describes its scans on Spark 4.1, of tables whose names are plain.
_SCAN = re.compile(
    r"IcebergScan\(table=([\w.-]+), schemaId=(\d{1,10}), snapshotId=(\d{1,19}), branch=null, ", re.ASCII
)
_ON_A_BRANCH = re.compile(r"IcebergScan\([^()]{0,500}, branch=(?!null, )")
_ANY_SCAN: Final = "IcebergScan("
_SCHEMA: Final = "schemaId="


@dataclass(frozen=True)
class SnapshotRead:
    """The table, schema and snapshot that a scan reads, as Iceberg describes them."""

    table: str
    schema_id: int
    snapshot_id: int


def scan_sql(name: TableName) -> str:
    """The statement whose answer `read_scan` reads, of a name or of a version of it."""
    return f"EXPLAIN SELECT 1 FROM {name.sql}"  # noqa: S608 - a quoted name


async def _scan(
    ask: Ask, name: TableName, settings: CatalogSection, unanswered: NegativeCache
) -> QueryResult | None:
    """The plan of a scan; None where it could not be had recently.

    A name is planned in the client's session, which may see a table as it was for a while. A version is the same
    in each.
    """
    sql = scan_sql(name)
    if unanswered.holds(sql):
        return None
    limits = SCAN_ROWS_MAX, _PLAN_BYTES_MAX, settings.query_deadline_s
    answer = await ask(Query(sql, *limits, is_for_client=not name.version))
    if not isinstance(answer, Rows):
        unanswered.add(sql)
    return answer


def read_scan(result: QueryResult | None) -> SnapshotRead | None:
    """The one scan in a plan; None where it reads no snapshot of a table, or the plan says too little."""
    text = _text(result)
    found = _SCAN.search(text)
    if found is None or text.count(_ANY_SCAN) != 1:
        return None
    return SnapshotRead(found[1], int(found[2]), int(found[3]))


def _text(result: QueryResult | None) -> str:
    return "\n".join(str(row[0]) for row in result.rows) if isinstance(result, Rows) else ""


class Snapshots:
    """Snapshots that names read, and whether their versions read the same. Used by several threads at once."""

    def __init__(self, clock: Callable[[], float], read_alike_max: int = READ_ALIKE_MAX) -> None:
        self._clock = clock
        self._read_alike_max = read_alike_max
        self._lock = Lock()
        # True if a name's version reads what the name did. A snapshot has one schema for ever.
        self._read_alike: OrderedDict[tuple[TableName, SnapshotRead], bool] = OrderedDict()
        self._silent_until = -inf

    async def current(
        self, ask: Ask, names: Iterable[TableName], settings: CatalogSection, unanswered: NegativeCache
    ) -> dict[TableName, SnapshotRead | UnpinnedReason]:
        """The scans of names now, where the version of the snapshot reads the same; else why none is to be named.

        `unanswered` belongs to the sessions that ask: another user may get an answer where one gets none.
        """
        found: dict[TableName, SnapshotRead | UnpinnedReason] = {}
        for name in sorted(names, key=str):
            found[name] = await self._current(ask, name, settings, unanswered)
        return found

    async def _current(
        self, ask: Ask, name: TableName, settings: CatalogSection, unanswered: NegativeCache
    ) -> SnapshotRead | UnpinnedReason:
        if self._clock() < self._silent_until:
            return UnpinnedReason.PLANS_TELL_NO_SCHEMA
        answer = await _scan(ask, name, settings, unanswered)
        scanned = read_scan(answer)
        if scanned is not None:
            return await self._read_alike_at(ask, name, scanned, settings, unanswered)
        why = _refusal(answer)
        if why is UnpinnedReason.PLANS_TELL_NO_SCHEMA:
            # No need to ask it with each statement.
            self._silent_until = self._clock() + _SILENT_S
        return why

    async def _read_alike_at(
        self, ask: Ask, name: TableName, scanned: SnapshotRead, settings: CatalogSection, unanswered: NegativeCache
    ) -> SnapshotRead | UnpinnedReason:
        """The scan of a name, if its version reads the same."""
        key = name, scanned
        known = self._read_alike.get(key)
        if known is None:
            answer = await _scan(ask, name.at(scanned.snapshot_id), settings, unanswered)
            if not isinstance(answer, Rows):
                return UnpinnedReason.PLAN_FAILED
            known = read_scan(answer) == scanned
            self._keep(key, known)
        return scanned if known else UnpinnedReason.SCHEMA_CHANGED

    def _keep(self, key: tuple[TableName, SnapshotRead], is_read_alike: bool) -> None:  # noqa: FBT001 - what is kept
        with self._lock:
            self._read_alike[key] = is_read_alike
            if len(self._read_alike) > self._read_alike_max:
                _ = self._read_alike.popitem(last=False)


def _refusal(answer: QueryResult | None) -> UnpinnedReason:
    """The reason why a plan does not tell the snapshot of a name."""
    if not isinstance(answer, Rows):
        return UnpinnedReason.PLAN_FAILED
    text = _text(answer)
    if ICEBERG_SCAN.search(text) is not None and _SCHEMA not in text:
        return UnpinnedReason.PLANS_TELL_NO_SCHEMA
    return UnpinnedReason.ON_A_BRANCH if _ON_A_BRANCH.search(text) else UnpinnedReason.PLAN_UNCLEAR
