"""How a session's Spark packs the files of tables: by how many slots and which settings, and whether at all.

None of this changes an answer. What is not understood, or was chosen by somebody, leaves the splits to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, TypeVar

from proxy.queries import Query, QueryResult, Rows
from rewriter import TableName
from rewriter.files import FileIndex
from rewriter.splits import IcebergPacking, Packing

T = TypeVar("T")
_Asking: TypeAlias = Generator[Query, QueryResult, T]

# Tables of one session's state that it is remembered of. Few have files that are small and many.
_TABLES_MAX = 1_000

# Plans of one line for each operator, which Spark shortens where a table has more than 25 columns.
_PLAN_BYTES_MAX = 1 << 20
# Spark plans these without a job, in some hundredths of a second.
_DEADLINE_S = 5.0

# A range has as many splits as tasks run at once (`leafNodeDefaultParallelism`), which files are packed by.
_SLOTS_SQL = "EXPLAIN SELECT * FROM range(1)"
_SLOTS = re.compile(r"\bRange \(0, 1, step=1, splits=([0-9]{1,6})\)")

_SETTINGS = "spark.sql.files."
_SPLIT_BYTES, _OPEN_COST = "maxPartitionBytes", "openCostInBytes"
# Whoever sets one of these has said how many splits there are to be.
_CHOSEN = ("minPartitionNum", "maxPartitionNum")
_UNSET = "<undefined>"

# As Spark reads sizes (`JavaUtils.byteStringAs`): 134217728b, 128MB, 128m, and plain bytes.
_SIZE = re.compile(r"([0-9]{1,18})\s*([kmgtp]?)b?", re.IGNORECASE)
_UNITS = {unit: 1 << (10 * power) for power, unit in enumerate(("", "k", "m", "g", "t", "p"))}

_READS_FILES, _READS_ICEBERG = re.compile(r"\bFileScan "), re.compile(r"\bIcebergScan\(")
# From memory a table has the splits that it was cached in. Of buckets, and of what Iceberg keeps together for a
# join (`spark.sql.iceberg.planning.preserve-data-grouping`), each is a split, by which Spark spares a shuffle.
_LEFT_ALONE = re.compile(r"\bInMemoryRelation\b|\bBucketed: true\b|\bgroupedBy=[^)]")


class Reads(Enum):
    """Who packs the files of a table that Spark reads."""

    SPARK = "Spark"
    ICEBERG = "Iceberg"
    NOBODY = "nobody, or it matters to the plan"


@dataclass
class KnownPackings:
    """What sessions of one state were told. Used by several threads at once: each value is set as a whole."""

    # None until it was asked, then with the time until which that is believed; None is for what is left to Spark.
    packing: tuple[Packing | None, float] | None = None
    # Who packs a table's files, and until when that is believed.
    tables: dict[TableName, tuple[Reads, float]] = field(default_factory=dict)

    def forget(self) -> None:
        """Settings may differ from here on, and tables be cached."""
        self.packing, self.tables = None, {}


def worth_asking(
    files: Mapping[TableName, FileIndex], names: Iterable[TableName], saved_min: int
) -> set[TableName]:
    """The tables with files enough that so many splits could be saved: a small file is one at most."""
    return {name for name in names if name in files and len(files[name].files) > saved_min}


def packings(
    names: Collection[TableName], known: KnownPackings, now: float, believed_s: float
) -> _Asking[dict[TableName, Packing]]:
    """How the session's Spark packs the files of tables, of those whose files it packs."""
    if not names:
        return {}
    if known.packing is None or known.packing[1] <= now:
        known.packing = ((yield from _ask_packing()), now + believed_s)
    packing, _ = known.packing
    if packing is None:
        return {}
    found = {}
    for name in sorted(names, key=str):
        reads, until = known.tables.get(name, (Reads.NOBODY, now))
        if until <= now:
            reads = read_plan((yield _query(f"EXPLAIN SELECT * FROM {name.sql}")))  # noqa: S608 - a quoted name
            _keep(known.tables, name, (reads, now + believed_s))
        if reads is not Reads.NOBODY:
            found[name] = packing if reads is Reads.SPARK else IcebergPacking(packing.slots)
    return found


def _keep(tables: dict[TableName, tuple[Reads, float]], name: TableName, told: tuple[Reads, float]) -> None:
    if len(tables) >= _TABLES_MAX:
        tables.clear()
    tables[name] = told


def _ask_packing() -> _Asking[Packing | None]:
    slots = read_slots((yield _query(_SLOTS_SQL)))
    if slots is None:
        return None
    for name in _CHOSEN:
        if _setting((yield _query(f"SET {_SETTINGS}{name}"))) != _UNSET:
            return None
    split_bytes = read_size(_setting((yield _query(f"SET {_SETTINGS}{_SPLIT_BYTES}"))))
    open_cost = read_size(_setting((yield _query(f"SET {_SETTINGS}{_OPEN_COST}"))))
    return Packing(slots, split_bytes, open_cost) if split_bytes and open_cost is not None else None


def _query(sql: str) -> Query:
    return Query(sql, rows_max=1, bytes_max=_PLAN_BYTES_MAX, deadline_s=_DEADLINE_S)


def read_slots(answer: QueryResult) -> int | None:
    """How many tasks run at once."""
    found = _SLOTS.search(_text(answer))
    return int(found[1]) if found is not None and int(found[1]) else None


def read_size(text: str) -> int | None:
    """A size as Spark's settings have it, in bytes.

    >>> read_size("134217728b"), read_size("128MB"), read_size("4194304"), read_size("half")
    (134217728, 134217728, 4194304, None)
    """
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] if found is not None else None


def read_plan(answer: QueryResult) -> Reads:
    """Who packs the files of a table, by the plan that reads all of it."""
    text = _text(answer)
    if _LEFT_ALONE.search(text) is not None:
        return Reads.NOBODY
    if _READS_ICEBERG.search(text) is not None:
        return Reads.ICEBERG
    return Reads.SPARK if _READS_FILES.search(text) is not None else Reads.NOBODY


def _text(answer: QueryResult) -> str:
    return str(answer.rows[0][0]) if isinstance(answer, Rows) and answer.rows else ""


def _setting(answer: QueryResult) -> str:
    """What SET says of a setting; empty where it says nothing."""
    return str(answer.rows[0][1]) if isinstance(answer, Rows) and answer.rows else ""
