"""Limits on what one scan of a table may read, and the judgement of scans by them. Pure values.

Of a user's limits, the first one that names a scan's table counts. If a number is not known, or only an upper
bound is, and that is above the limit, then the limit says whether the statement may run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from functools import partial
from typing import Self

from proxy.config.limits import LimitingSection, LimitSection
from rewriter import TableName

# The error class of a refusal, and its SQLSTATE: 42 stands for access, and none of Spark's begins with 42Z.
ERROR_CLASS = "STARPRUNER_LIMIT"
SQL_STATE = "42ZSL"

# A table that is read by its path, as in delta.`/lake/f`, has one of these in place of a database.
_READ_BY_PATH = frozenset({"delta", "iceberg", "hudi", "parquet", "orc", "csv", "json", "avro", "text"})
_PATH_SEPARATOR = "/"


class Result(Enum):
    """The results of a limit that a statement met. The values are codes in the metrics and the history."""

    REJECTED = "rejected"
    WARNED = "warned"
    WOULD_REJECT = "would_reject"  # in a dry run
    UNKNOWN = "unknown"  # and runs: it is not known what would be read


@dataclass(frozen=True)
class ScanRead:
    """The amount that one scan reads of a table. None is a number that is not known."""

    # The full name, or the name as written where the full one is not known.
    table: TableName
    # None where the table is not known, and empty for one without partitions.
    columns: tuple[str, ...] | None
    partitions: int | None = None
    partitions_total: int | None = None
    files: int | None = None
    size_bytes: int | None = None
    # True if a filter on a partition column leaves out partitions, or could.
    is_filtered: bool | None = None
    # True if the numbers are upper bounds: less may be read.
    is_at_most: bool = False
    # True if it may read no file: Delta and Iceberg can count rows by their metadata.
    may_read_none: bool = False
    # False if Spark tells the table's columns but no full name: a bare name may then be of any database.
    has_full_name: bool = True


@dataclass(frozen=True)
class Finding:
    """A limit that a scan met."""

    limit: str
    table: str
    result: Result
    sentence: str
    # False where it is not known if more would be read than the limit allows.
    is_certain: bool = False
    # The columns to add a filter on, and the number of partitions that it may leave.
    columns: tuple[str, ...] = ()
    partitions_max: int = 0

    @property
    def error(self) -> str:
        """The message of a refusal, in the form of Spark's."""
        return f"[{ERROR_CLASS}] {self.sentence} SQLSTATE: {SQL_STATE}"


@dataclass(frozen=True)
class Limit:
    """One limit, for the users and tables that it names."""

    section: LimitSection
    # Patterns of users, those of groups included.
    users: tuple[str, ...]
    # Patterns of tables: the parts of their names, in lower case.
    tables: tuple[tuple[str, ...], ...]
    is_dry_run: bool

    @classmethod
    def of(cls, section: LimitSection, terms: LimitingSection) -> Self:
        """The limit of a section of the configuration."""
        named = (terms.groups[one[1:]] if one.startswith("@") else (one,) for one in section.users)
        users = tuple(user for group in named for user in group)
        tables = tuple(tuple(pattern.lower().split(".")) for pattern in section.tables)
        return cls(section, users, tables, terms.dry_run)

    @property
    def bounds(self) -> bool:
        """True if it bounds anything; one that does not exempts its users from the limits behind it."""
        section = self.section
        return bool(section.partitions_max or section.files_max or section.bytes_max or section.partition_filter)

    def counts_for(self, user: str) -> bool:
        """True if it counts for a user."""
        return not self.section.users or any(fnmatchcase(user, pattern) for pattern in self.users)

    def names(self, scan: ScanRead) -> bool:
        """True if it names the table, or bounds it and may name it where the table's full name is not known."""
        parts = tuple(part.lower() for part in scan.table.parts)
        is_known = (scan.columns is not None and scan.has_full_name) or not self.bounds
        return any(_is_named(pattern, parts, is_known=is_known) for pattern in self.tables)

    def judge(self, scan: ScanRead) -> Finding | None:
        """Judge a scan of a table that it names, by what is certain first; None where it is within the limit."""
        found = list(self._judged(scan))
        return next((one for one in found if one.is_certain), found[0] if found else None)

    def _judged(self, scan: ScanRead) -> Iterator[Finding]:
        section, table = self.section, shown(scan.table)
        found = partial(self._found, scan)
        kept, of_all = scan.partitions, f" of {scan.partitions_total:,}" if scan.partitions_total else ""
        files, size_bytes = f"{scan.files or 0:,} files", size(scan.size_bytes or 0)
        sizes = [
            (section.files_max, scan.files, f"{files} of {table}", f"{section.files_max:,} files"),
            (section.bytes_max, scan.size_bytes, f"{size_bytes} of {table}", size(section.bytes_max)),
        ]
        if scan.columns != ():
            read = f" ({size(scan.size_bytes)})" if scan.size_bytes is not None else ""
            what = f"{kept or 0:,}{of_all} partitions of {table}{read}"
            sizes.insert(0, (section.partitions_max, kept, what, f"{section.partitions_max:,}"))
            if section.partition_filter and scan.is_filtered is not True:
                needed = f"This statement has no filter on a partition column of {table}. The limit for"
                is_certain = scan.is_filtered is False and not scan.may_read_none
                yield found(f"{needed} {section.name} asks for one.", is_certain=is_certain)
        for most, number, what, limit in sizes:
            if most and (number is None or number > most):
                sentence = f"This statement would read {what}. The limit for {section.name} is {limit}."
                yield found(sentence, is_certain=number is not None and not scan.is_at_most)

    def unknown(self, table: str, why: str) -> Finding:
        """The finding for a statement if it is not known how much it would read."""
        sentence = f"It is not known what this statement would read of {table}: {why}."
        rejects = self.section.action == "reject" and self.section.unknown == "reject"
        result = Result.REJECTED if rejects else Result.UNKNOWN
        if rejects:
            sentence += f" The limit for {self.section.name} lets none of these run."
        return Finding(self.section.name, table, self._dry(result), sentence)

    def _found(self, scan: ScanRead, sentence: str, *, is_certain: bool) -> Finding:
        if not is_certain:
            return self.unknown(shown(scan.table), "Starpruner and the plan of Spark do not tell")
        result = Result.REJECTED if self.section.action == "reject" else Result.WARNED
        return Finding(
            self.section.name,
            shown(scan.table),
            self._dry(result),
            sentence,
            is_certain=True,
            columns=scan.columns or (),
            partitions_max=self.section.partitions_max,
        )

    def _dry(self, result: Result) -> Result:
        return Result.WOULD_REJECT if self.is_dry_run and result is Result.REJECTED else result


def limits_of(sections: Sequence[LimitSection], terms: LimitingSection) -> tuple[Limit, ...]:
    """The limits of a configuration, in their order."""
    return tuple(Limit.of(section, terms) for section in sections)


def limits_for(limits: Sequence[Limit], user: str | None) -> tuple[Limit, ...]:
    """The limits that may count for a user, up to the first for all tables; all if the user is not known."""
    found: list[Limit] = []
    for limit in limits:
        if user is None or limit.counts_for(user):
            found.append(limit)
            if user is not None and ("*",) in limit.tables:
                break
    return tuple(found) if any(limit.bounds for limit in found) else ()


def limit_of(limits: Sequence[Limit], scan: ScanRead) -> Limit | None:
    """The first limit that names a scan's table; None if none does, or if that one has no bound."""
    limit = next((limit for limit in limits if limit.names(scan)), None)
    return limit if limit is not None and limit.bounds else None


def judge(limits: Sequence[Limit], scans: Iterable[ScanRead]) -> Iterator[Finding]:
    """Judge scans by a user's limits: each by the first one that names its table."""
    for scan in scans:
        limit = limit_of(limits, scan)
        found = limit.judge(scan) if limit is not None else None
        if found is not None:
            yield found


def unknown(limits: Sequence[Limit], why: str) -> Finding:
    """The finding for a statement whose tables are not known: by the strictest limit."""
    findings = [limit.unknown("its tables", why) for limit in limits if limit.bounds]
    return next((one for one in findings if one.result is not Result.UNKNOWN), findings[0])


def size(count: int) -> str:
    """A number of bytes in a unit.

    >>> size(8_100_000_000_000), size(900)
    ('8.1 TB', '900 bytes')
    """
    for unit, worth in (("PB", 10**15), ("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= worth:
            return f"{count / worth:.1f} {unit}"
    return f"{count} bytes"


def shown(table: TableName) -> str:
    """The name without its catalog."""
    return ".".join(table.parts[-2:])


def _is_named(pattern: tuple[str, ...], parts: tuple[str, ...], *, is_known: bool) -> bool:
    """True if a pattern names a table; one that is not known may be of any database, or any table by its path."""
    *within, last = pattern
    *around, name = parts
    is_by_path = not is_known and _PATH_SEPARATOR in name and around and around[-1] in _READ_BY_PATH
    if pattern == ("*",) or is_by_path:
        return True
    if last not in ("*", name):
        return False
    if not is_known and len(around) < len(within):
        return not around or around == within[-len(around) :]
    return around[len(around) - len(within) :] == within
