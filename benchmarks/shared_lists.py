"""Cost of a list of a million partitions in HBase, beside the same work in the embedded store (LMDB).

The list is written, read as a whole, and scanned in ranges of a thousand partitions. Filters are answered by
scans, as at a replica that does not hold the list, and what is left of them is tested in HBase or here. HBase is a
real one of one process behind its Thrift gateway, on the same machine: times are those of a busy pair of cores,
and the ratios count. What a statement waits for is one header, as in `catalog.store_deadline_s`.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeVar

import click
from reports import json_option, write_json
from rich.console import Console
from rich.table import Table
from support.hbase_server import hbase

from demo.java import find_java
from proxy.config.rewriting import CatalogSection
from proxy.hbase.table import HBaseTable
from proxy.session.layout import hbase_lists
from proxy.session.layout.lmdb_store import ListTimes, LmdbPartitionStore, StoredList, lmdb_store
from proxy.session.layout.partition_store import ListKey
from proxy.session.layout.row_filters import row_filter
from proxy.session.layout.shared_rows import SharedHeader, is_entry
from rewriter.partitions.filter_text import read_filter
from rewriter.partitions.filter_tree import And, PartitionTest
from rewriter.partitions.index import in_order
from rewriter.partitions.key_encoding import END, PartitionKeys
from rewriter.partitions.scan_plan import ScanPlan, plan_scans

_KEY = ListKey(("ann", "ann"), ("sales", "default", "spark_catalog", "file:/sales", "today"))
_KEYS = PartitionKeys(("ds", "r"), ("date", "string"))
_REGIONS = 100
_FIRST_DAY = date(2000, 1, 1).toordinal()
_RANGE_PARTITIONS = 1_000
_RANGES = 30
_HEADERS = 300
_FILTERS = (
    "ds = '2001-03-01'",
    "ds BETWEEN '2001-03-01' AND '2001-03-31'",
    "ds BETWEEN '2001-01-01' AND '2001-12-31' AND r = '07'",
    "ds BETWEEN '2001-01-01' AND '2001-12-31' AND r > '96'",
    "r = '07'",
)
_FILTER_RUNS = 3
_SEED = 7
_STORE_BYTES_MAX = 4 * 1024 * 1024 * 1024
# Longer than the benchmark.
_TTL_S = 10_000.0

Result = TypeVar("Result")


@dataclass(frozen=True)
class StoreCost:
    """Seconds to write the list and to read it as a whole, and milliseconds of a range scan."""

    store: str
    write_s: float
    read_s: float
    range_ms: float
    range_ms_max: float


@dataclass(frozen=True)
class FilterCost:
    """Seconds of a filter's scans: what is left of it tested in HBase, and tested here."""

    filter: str
    kept: int
    in_hbase_s: float
    here_s: float


@dataclass(frozen=True)
class Report:
    """All measurements. The header is what a statement waits for: milliseconds."""

    partitions: int
    encode_s: float
    stores: Sequence[StoreCost]
    publish_unchanged_s: float
    header_ms: float
    header_ms_95: float
    header_ms_max: float
    filters: Sequence[FilterCost]


@click.command()
@click.option("--partitions", default=1_000_000, show_default=True, type=click.IntRange(_RANGE_PARTITIONS))
@json_option
def main(partitions: int, json_path: Path | None) -> None:
    """Measure and print."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="starpruner-hbase-")))
        server = stack.enter_context(hbase(find_java(), directory, memory="1g"))
        table = server.table("lists")
        stack.callback(table.close)
        settings = CatalogSection(partitions_max=partitions, store_bytes_max=_STORE_BYTES_MAX)
        own = stack.enter_context(lmdb_store(settings))
        report = measured(partitions, own, table)
    show(report)
    write_json(json_path, report)


def measured(partitions: int, own: LmdbPartitionStore, table: HBaseTable) -> Report:
    """Measure both stores with the same list."""
    table.create(hbase_lists.TABLE_TTL_S)
    encode_s, (entries, _) = _timed(lambda: in_order(_KEYS, _specs(partitions)))
    now = time.time()
    kept = StoredList(_KEYS, entries, (), ListTimes(b"version1", now, now + _TTL_S))
    ranges = list(_ranges(entries))
    lmdb = _lmdb(own, kept, ranges)
    in_hbase, header = _hbase(table, kept, ranges)
    unchanged_s, _ = _timed(lambda: hbase_lists.publish(table, _KEY, kept, now, lambda: False))
    headers = sorted(1_000 * _timed(lambda: _header(table, partitions))[0] for _ in range(_HEADERS))
    if header.count != partitions:
        raise RuntimeError("the list in HBase is not the one that was written")
    return Report(
        partitions,
        encode_s,
        (lmdb, in_hbase),
        unchanged_s,
        statistics.median(headers),
        headers[int(0.95 * len(headers))],
        headers[-1],
        [_filter_cost(table, header, text) for text in _FILTERS],
    )


def _lmdb(own: LmdbPartitionStore, kept: StoredList, ranges: Sequence[tuple[bytes, bytes]]) -> StoreCost:
    write_s, is_kept = _timed(lambda: own.keep(_KEY, kept))
    index = own.get(_KEY)
    if not is_kept or index is None:
        raise RuntimeError("the store did not keep the list")
    return _cost("LMDB", write_s, index.entries.scan, ranges, lambda: list(index.entries.scan(b"", END)))


def _hbase(
    table: HBaseTable, kept: StoredList, ranges: Sequence[tuple[bytes, bytes]]
) -> tuple[StoreCost, SharedHeader]:
    write_s, _ = _timed(lambda: hbase_lists.publish(table, _KEY, kept, time.time(), lambda: False))
    header = _header(table, len(kept.entries))
    if header is None:
        raise RuntimeError("HBase did not keep the list")
    scan = partial(hbase_lists.scan, table, header)
    return _cost("HBase", write_s, scan, ranges, lambda: hbase_lists.load(table, header)), header


def _cost(
    name: str,
    write_s: float,
    scan: Callable[[bytes, bytes], Iterator[bytes]],
    ranges: Sequence[tuple[bytes, bytes]],
    read: Callable[[], Sequence[bytes] | None],
) -> StoreCost:
    read_s, found = _timed(read)
    if not found:
        raise RuntimeError(f"{name} does not find the list")
    times = [_timed(partial(_count, scan, start, stop)) for start, stop in ranges]
    if any(count != _RANGE_PARTITIONS for _, count in times):
        raise RuntimeError(f"{name} does not find a range")
    milliseconds = [1_000 * seconds for seconds, _ in times]
    return StoreCost(name, write_s, read_s, statistics.median(milliseconds), max(milliseconds))


def _filter_cost(table: HBaseTable, header: SharedHeader, text: str) -> FilterCost:
    plan = plan_scans(read_filter(text, _KEYS), _KEYS)
    in_hbase = [_timed(lambda: _kept(table, header, plan, is_pushed_down=True)) for _ in range(_FILTER_RUNS)]
    here_s, kept = _timed(lambda: _kept(table, header, plan, is_pushed_down=False))
    if {found for _, found in in_hbase} != {kept}:
        raise RuntimeError(f"HBase answers {text} in another way")
    return FilterCost(text, kept, statistics.median(seconds for seconds, _ in in_hbase), here_s)


def _kept(table: HBaseTable, header: SharedHeader, plan: ScanPlan, *, is_pushed_down: bool) -> int:
    kept = 0
    for start, stop, conditions in plan.scans:
        pushed_down = row_filter(conditions, _KEYS) if is_pushed_down else b""
        test = PartitionTest.of(And(conditions), _KEYS)
        found = hbase_lists.scan(table, header, start, stop, pushed_down)
        kept += sum(1 for entry in found if is_entry(_KEYS, entry) and test.holds(entry))
    return kept


def _count(scan: Callable[[bytes, bytes], Iterator[bytes]], start: bytes, stop: bytes) -> int:
    return sum(1 for _ in scan(start, stop))


def _header(table: HBaseTable, partitions_max: int) -> SharedHeader | None:
    return hbase_lists.read_header(table, _KEY, partitions_max).header


def _specs(partitions: int) -> Iterator[str]:
    for number in range(partitions):
        day = date.fromordinal(_FIRST_DAY + number // _REGIONS)
        yield f"ds={day.isoformat()}/r={number % _REGIONS:02}"


def _ranges(entries: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    chance = Random(_SEED)  # noqa: S311 - the same ones each time
    for _ in range(_RANGES):
        at = chance.randrange(len(entries) - _RANGE_PARTITIONS)
        yield entries[at], entries[at + _RANGE_PARTITIONS]


def _timed(step: Callable[[], Result]) -> tuple[float, Result]:
    start = time.perf_counter()
    result = step()
    return time.perf_counter() - start, result


def show(report: Report) -> None:
    """Print the tables."""
    console = Console()
    table = Table(title=f"{report.partitions:,} partitions, encoded and sorted in {report.encode_s:.1f} s")
    for column in ("store", "write", "read it all", "range of 1,000, median", "max"):
        table.add_column(column, justify="left" if column == "store" else "right")
    for cost in report.stores:
        table.add_row(
            cost.store,
            f"{cost.write_s:.1f} s",
            f"{cost.read_s:.1f} s",
            f"{cost.range_ms:.1f} ms",
            f"{cost.range_ms_max:.1f} ms",
        )
    console.print(table)
    filters = Table("filter", "kept", "left to HBase", "tested here", title="Filters answered by scans")
    for asked in report.filters:
        filters.add_row(asked.filter, f"{asked.kept:,}", f"{asked.in_hbase_s:.2f} s", f"{asked.here_s:.2f} s")
    console.print(filters)
    console.print(
        f"The list published again, unchanged: {report.publish_unchanged_s:.1f} s. A header:"
        f" median {report.header_ms:.2f} ms, 95 of 100 in {report.header_ms_95:.2f} ms, max"
        f" {report.header_ms_max:.1f} ms."
    )


if __name__ == "__main__":
    main()
