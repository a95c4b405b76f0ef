"""Reports of filters on a table's partitions: the scans that answer one, and the partitions that they look at.

The words are those of the plans of HIVE-9452: a scan has a start and a stop, each included or not, and a filter
that remains to be tested; a plan that looks at every partition is a full scan, and has a cause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from rewriter.domains.literals import Key
from rewriter.partitions.filter_text import filter_sql
from rewriter.partitions.filter_tree import And, FieldTest, Like, Or, PartitionFilter
from rewriter.partitions.index import PartitionIndex, matching
from rewriter.partitions.key_encoding import END, NULL, VALUE, PartitionKeys
from rewriter.partitions.scan_plan import Scan, ScanPlan, plan_scans

# The bytes of a field of fixed width that its successor may have lost: a decimal(38,0) has 17.
_FIELD_BYTES_MAX = 32


@dataclass(frozen=True)
class Marker:
    """An end of a scan: the values of the leading columns, and whether partitions with them are scanned.

    The last value may be the beginning of a text.
    """

    values: tuple[Key | None, ...]
    is_included: bool


@dataclass(frozen=True)
class ScanReport:
    """A range scan. Without a start or a stop it begins with the first partition or ends with the last one."""

    start: Marker | None
    stop: Marker | None
    # The conditions that are tested on each partition of the scan; none if all of them are kept.
    residual: tuple[PartitionFilter, ...]
    # The number of partitions in the scan, None if not known; and the number of those that the filter keeps.
    scanned: int | None
    kept: int


@dataclass(frozen=True)
class FilterReport:
    """The plan of a filter and its result. `kept` and `total` count the unreadable partitions too."""

    scans: tuple[ScanReport, ...]
    # A sentence; None where the scans leave partitions out without a look at them.
    full_scan_cause: str | None
    total: int
    kept: int
    # Partitions whose values are not certain, so that they are never left out.
    unreadable: int

    @property
    def scanned(self) -> int | None:
        """The number of partitions that are looked at; None if the number of a scan is not known."""
        known = [scan.scanned for scan in self.scans if scan.scanned is not None]
        return sum(known) + self.unreadable if len(known) == len(self.scans) else None


def report(
    condition: PartitionFilter, index: PartitionIndex, scanned: tuple[int | None, ...] | None = None
) -> FilterReport:
    """The report of a filter over the partitions of a table. Raises NotIndexableError.

    `scanned` has the numbers of partitions in the scans, where the index may lack some that are not kept.
    """
    scans = tuple(_scan_report(scan, index) for scan in plan_scans(condition, index.keys).scans)
    if scanned is not None:
        scans = tuple(replace(scan, scanned=count) for scan, count in zip(scans, scanned, strict=True))
    unreadable = len(index.unreadable)
    return FilterReport(
        scans,
        _full_scan_cause(condition, index.keys),
        index.count,
        sum(scan.kept for scan in scans) + unreadable,
        unreadable,
    )


def _scan_report(scan: Scan, index: PartitionIndex) -> ScanReport:
    scanned = sum(1 for _ in index.entries.scan(scan.start, scan.stop))
    kept = sum(1 for _ in matching(ScanPlan((scan,)), index.keys, index.entries)) if scan.residual else scanned
    return ScanReport(
        _marker(scan.start, index.keys, is_start=True),
        _marker(scan.stop, index.keys, is_start=False),
        scan.residual,
        scanned,
        kept,
    )


def _marker(key: bytes, keys: PartitionKeys, *, is_start: bool) -> Marker | None:
    """The values at an end of a scan: a key, or the place behind all keys that begin with some values."""
    if key in {b"", NULL, END}:
        return None
    at = _values(key, keys)
    if at is not None:
        return Marker(at, is_included=is_start)
    behind = _values_before(key, keys)
    if behind is not None:
        return Marker(behind, is_included=not is_start)
    return Marker(_values_of_prefix(key, keys), is_included=is_start)


def _values(key: bytes, keys: PartitionKeys) -> tuple[Key | None, ...] | None:
    """The values of leading columns that a key consists of; None for any other bytes."""
    values: list[Key | None] = []
    for column in range(len(keys.columns)):
        if not key:
            return tuple(values)
        field = _whole_field(key, column, keys)
        if field is None:
            return None
        try:
            values.append(keys.decode_field(column, field))
        except ValueError:
            # The bytes stand behind the last day, or end within a character.
            return None
        key = key[len(field) :]
    return None if key else tuple(values)


def _whole_field(key: bytes, column: int, keys: PartitionKeys) -> bytes | None:
    """The field of a column that the bytes begin with; None where no whole one is there."""
    if key[:1] >= END:
        return None
    length = keys.field_end(key, 0, column)
    return key[:length] if length <= len(key) else None


def _values_before(key: bytes, keys: PartitionKeys) -> tuple[Key | None, ...] | None:
    """The values whose `successor` is the key: without bytes 255 at the end, and with a last byte one higher."""
    last = key[-1]
    if last == 0:
        return None
    before = key[:-1] + bytes((last - 1,))
    if key[-1:] == END and (values := _values(key[:-1], keys)) is not None:
        # The key stands behind all values of the next column.
        return values
    for _ in range(_FIELD_BYTES_MAX):
        values = _values(before, keys)
        if values is not None:
            return values
        before += b"\xff"
    return None


def _values_of_prefix(key: bytes, keys: PartitionKeys) -> tuple[Key | None, ...]:
    """The values of a key that ends within a text."""
    ends = [0]
    for column in range(len(keys.columns)):
        field = _whole_field(key[ends[-1] :], column, keys)
        if field is None:
            break
        ends.append(ends[-1] + len(field))
    text = key[ends[-1] + len(VALUE) :].replace(b"\x00\xff", b"\x00").decode(errors="replace")
    whole = _values(key[: ends[-1]], keys) or ()
    return (*whole, text) if text else whole


def _full_scan_cause(condition: PartitionFilter, keys: PartitionKeys) -> str | None:
    """A sentence for the first condition that makes the whole plan a full scan; None where it is none."""
    if not _is_full(condition, keys):
        return None
    node = condition
    while isinstance(node, And | Or):
        # An AND is full only if all of its terms are; an OR by one of them, or by several together.
        full = next((term for term in node.terms if _is_full(term, keys)), None)
        if full is None:
            break
        node = full
    return _sentence(node, keys)


def _is_full(node: PartitionFilter, keys: PartitionKeys) -> bool:
    """True if the plan of a condition looks at every partition, or at every one whose first value is not null."""
    scans = plan_scans(node, keys).scans
    if not scans or scans[0].start not in {b"", NULL, VALUE} or scans[-1].stop != END:
        return False
    is_gapless = all(one.stop == other.start for one, other in pairwise(scans))
    return is_gapless and (scans[0].start != VALUE or scans[0].residual != ())


def _sentence(node: PartitionFilter, keys: PartitionKeys) -> str:
    if isinstance(node, And | Or):
        return "The conditions together leave no partition out without a look at it."
    first = keys.columns[0]
    test = FieldTest.of(node, keys)
    if test.column:
        return (
            f"{filter_sql(node)} is a full scan: partitions are in the order of {first}, and only a condition"
            f" on {first} leaves some out without a look at them."
        )
    if isinstance(node, Like) and test.pattern is not None:
        where = "is negated" if node.negated else "begins with a wildcard"
        return f"{filter_sql(node)} is a full scan: its pattern {where}."
    return f"{filter_sql(node)} is a full scan."
