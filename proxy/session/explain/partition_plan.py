"""Plans of partition filters for users: EXPLAIN PARTITIONS and GET /partitions.

A filter is answered from the ordered list of a table's partitions (`rewriter.partitions`); nothing is run on the
table. The session describes the table and lists its partitions, so nobody learns more than SHOW PARTITIONS tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, Protocol

import msgspec
from sqlglot import exp
from sqlglot.errors import SqlglotError

from proxy.session.explain.summary import megabytes
from proxy.session.explain.view import CountView
from proxy.session.session_catalog import KnownPartitions
from rewriter import TableName
from rewriter.files.file_index import FileIndex
from rewriter.files.partition_files import PartitionFiles
from rewriter.partitions.filter_report import FilterReport, Marker, ScanReport, report
from rewriter.partitions.filter_text import FilterError, filter_sql, read_filter, shown
from rewriter.partitions.filter_tree import And, PartitionFilter
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.value_encoding import NotIndexableError
from rewriter.sql.bounded_parser import parsed_into

# A plan may have ten thousand scans, and a table a million partitions.
_SCANS_SHOWN_MAX = 100
_NAMES_SHOWN_MAX = 1_000
_NAMES_IN_TEXT_MAX = 20
_FILTER_CHARS_MAX = 2_000


class PartitionScanView(msgspec.Struct):
    """A range scan of the ordered list, and the condition that is left to test on each of its partitions.

    `start` and `stop` are null at the first and the last partition. `scanned` is the number of partitions in the
    scan, null where HBase has left some out by the condition, `kept` that of those that satisfy the condition.
    """

    start: str | None
    start_included: bool
    stop: str | None
    stop_included: bool
    filter_left: str | None
    scanned: int | None
    kept: int


class PartitionPlanView(msgspec.Struct):
    """The answer of GET /partitions.

    `columns` are the partition columns with their types, in the order of the list. `refusal` is a sentence that
    says why there is no plan, null where there is one. `scans` and `names` are the first of them, `scan_count` and
    `partitions.kept` their numbers. `full_scan` is a sentence that says why every partition is looked at, null
    where some are left out without a look. `scanned` is null where it is for one of the scans. `unreadable` counts
    partitions whose values are not certain; no filter leaves them out. `files` and `bytes` are those of the file
    index as a statement has fetched it, and `location` is the directory in which the partitions lie, each by its
    name. They are null where no statement has needed the file index so far, where it does not have all partitions
    that are kept or has others than the list, and where partitions do not lie in one directory.
    """

    table: str
    filter: str
    columns: dict[str, str] = {}
    refusal: str | None = None
    full_scan: str | None = None
    scan_count: int = 0
    scans: list[PartitionScanView] = []
    scanned: int | None = 0
    unreadable: int = 0
    partitions: CountView = msgspec.field(default_factory=CountView)
    names: list[str] = []
    files: CountView = msgspec.field(default_factory=CountView)
    bytes: CountView = msgspec.field(default_factory=CountView)
    location: str | None = None


class ListingSession(Protocol):
    """A session that can describe a table and list its partitions."""

    async def known_partitions(self, name: TableName, condition: str) -> KnownPartitions:
        """The table as it is described, and its partitions, or those that the filter keeps, as far as known."""
        ...


async def partition_plan(session: ListingSession, table: str, condition: str | None) -> PartitionPlanView:
    """The plan of a filter on the partitions of a table; without a filter that of all partitions."""
    condition = "TRUE" if condition is None else condition.strip().removesuffix(";").rstrip()
    name = _table_name(table)
    if name is None:
        return PartitionPlanView(table, condition, refusal="The name of the table is not understood.")
    known = await session.known_partitions(name, condition)
    if known.index is None:
        return PartitionPlanView(table, condition, refusal=_no_list(table, known))
    return planned(table, condition, known.index, known.files, known.scanned)


def planned(
    table: str,
    condition: str,
    index: PartitionIndex,
    files: FileIndex | None = None,
    scanned: tuple[int | None, ...] | None = None,
) -> PartitionPlanView:
    """The plan over a list of partitions, with their files where these are known.

    The list may lack partitions that the filter does not keep: then `scanned` has the numbers of those in scans.
    """
    keys = index.keys
    columns = dict(zip(keys.columns, keys.type_names, strict=True))
    try:
        read = read_filter(condition, keys)
        found = report(read, index, scanned)
        names = list(islice(index.matching(read), _NAMES_SHOWN_MAX))
        known_files = _files(read, index, files) if files is not None else _Files()
    except FilterError as error:
        return PartitionPlanView(table, condition, columns, refusal=str(error))
    except NotIndexableError as error:
        return PartitionPlanView(table, condition, columns, refusal=f"No range answers the filter: {error}.")
    return _view(table, _cut(filter_sql(read)), index, found, names, known_files)


class _Files(NamedTuple):
    """The directory below which all partitions lie, and their indexed files."""

    location: str | None = None
    files: CountView = CountView()
    size_bytes: CountView = CountView()


def _files(read: PartitionFilter, index: PartitionIndex, files: FileIndex) -> _Files:
    """The files of kept partitions, out of all files; unknown where the file index and the list do not fit.

    The names of the files' directories are looked up in the list, which may be far longer.
    """
    by_partition = PartitionFiles.of(files.files, index.keys.columns)
    if by_partition is None:
        return _Files()
    kept = by_partition.sum_of(index.matching(read))
    if kept is None or not index.has_all(by_partition.by_partition):
        # Some partitions are newer, were dropped since, or have names that are written in another way.
        return _Files()
    total = by_partition.total
    sizes = CountView(total.size_bytes, kept.size_bytes)
    return _Files(by_partition.location, CountView(total.files, kept.files), sizes)


def _view(  # noqa: PLR0913, PLR0917 - the parts of the answer
    table: str, condition: str, index: PartitionIndex, found: FilterReport, names: list[str], files: _Files
) -> PartitionPlanView:
    keys = index.keys
    return PartitionPlanView(
        table,
        condition,
        dict(zip(keys.columns, keys.type_names, strict=True)),
        full_scan=found.full_scan_cause,
        scan_count=len(found.scans),
        scans=[_scan(scan, keys.columns) for scan in found.scans[:_SCANS_SHOWN_MAX]],
        scanned=found.scanned,
        unreadable=found.unreadable,
        partitions=CountView(found.total, found.kept),
        names=names,
        files=files.files,
        bytes=files.size_bytes,
        location=files.location,
    )


def _scan(scan: ScanReport, columns: tuple[str, ...]) -> PartitionScanView:
    start, stop = scan.start, scan.stop
    return PartitionScanView(
        start=_marker(start, columns),
        start_included=start is None or start.is_included,
        stop=_marker(stop, columns),
        stop_included=stop is None or stop.is_included,
        filter_left=_left(scan.residual),
        scanned=scan.scanned,
        kept=scan.kept,
    )


def _marker(marker: Marker | None, columns: tuple[str, ...]) -> str | None:
    if marker is None:
        return None
    fields = zip(columns, marker.values, strict=False)
    return ", ".join(f"{name} IS NULL" if value is None else f"{name} = {shown(value)}" for name, value in fields)


def _left(residual: tuple[PartitionFilter, ...]) -> str | None:
    if not residual:
        return None
    return _cut(filter_sql(residual[0] if len(residual) == 1 else And(residual)))


def _cut(text: str) -> str:
    return text if len(text) <= _FILTER_CHARS_MAX else f"{text[:_FILTER_CHARS_MAX]} .."


def _no_list(table: str, known: KnownPartitions) -> str:
    if known.facts is None:
        return f"{table} cannot be described in this session."
    if not known.facts.partition_columns:
        return f"{table} has no partitions that a filter could leave out."
    return f"The partitions of {table} cannot be listed, or their columns have a type without a certain order."


def _table_name(text: str) -> TableName | None:
    """The name of a table as SQL writes it; None for anything else."""
    try:
        found = parsed_into(exp.Table, text)
    except (SqlglotError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(found, exp.Table) or not all(isinstance(part, exp.Identifier) for part in found.parts):
        return None
    if any(value for name, value in found.args.items() if name not in {"this", "db", "catalog"}):
        return None
    return TableName(tuple(part.name for part in found.parts))


def plan_lines(plan: PartitionPlanView) -> list[str]:
    """The plan as lines for a terminal: the result first, and behind it the scans and the names."""
    if plan.refusal is not None:
        return [plan.refusal]
    kept, total = plan.partitions.kept, plan.partitions.total
    order = ", ".join(f"{name} {type_name}" for name, type_name in plan.columns.items())
    lines = [
        f"{kept} of {total} partitions of {plan.table}" + _looked_at(plan.scanned),
        "",
        f"Filter      {plan.filter}",
        f"Order       {order}",
    ]
    lines += [f"Full scan   {plan.full_scan}"] if plan.full_scan is not None else []
    lines += [f"Unreadable  {plan.unreadable} partitions, which no filter leaves out"] if plan.unreadable else []
    if plan.files.total is not None:
        size = f"{megabytes(plan.bytes.kept)} of {megabytes(plan.bytes.total)}"
        lines.append(f"Files       {plan.files.kept} of {plan.files.total} as indexed, {size}")
    lines += [f"Location    {plan.location}"] if plan.location is not None else []
    for number, scan in enumerate(plan.scans, start=1):
        lines += ["", *_scan_lines(number, scan)]
    lines += _more(plan.scan_count - len(plan.scans), "scans")
    lines += ["", "Partitions", *(f"  {name}" for name in plan.names[:_NAMES_IN_TEXT_MAX])] if plan.names else []
    return lines + _more((kept or 0) - len(plan.names[:_NAMES_IN_TEXT_MAX]), "partitions")


def _scan_lines(number: int, scan: PartitionScanView) -> Iterator[str]:
    yield f"Scan {number}"
    yield f"  start        {_end(scan.start, 'first', is_included=scan.start_included)}"
    yield f"  stop         {_end(scan.stop, 'last', is_included=scan.stop_included)}"
    if scan.filter_left is not None:
        yield f"  filter left  {scan.filter_left}"
    among = "" if scan.scanned is None else f" of {scan.scanned}"
    yield f"  partitions   {scan.kept}{among} kept"


def _looked_at(scanned: int | None) -> str:
    return "" if scanned is None else f", {scanned} looked at"


def _end(values: str | None, open_end: str, *, is_included: bool) -> str:
    if values is None:
        return f"the {open_end} partition"
    return f"{values} ({'included' if is_included else 'excluded'})"


def _more(count: int, what: str) -> list[str]:
    return [f"  .. and {count} more {what}"] if count > 0 else []
