"""Split hints for the statements of a session: whether they are on, and how its Spark packs files into splits.

Spark is asked for its slots, for settings, and whether it packs a table's files at all (EXPLAIN and SET).
None of this changes an answer. Where something is not understood, or was set by a user, the splits are left to
Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from proxy.config.rewriting import SplitsSection
from proxy.operations.query import Ask, Query, QueryResult, Rows
from proxy.operations.spark_versions import ICEBERG_SCAN
from proxy.session.catalog import late_answers
from proxy.session.catalog.answers import ANSWERS_MAX, Answers
from rewriter import KeyQuery, Keys, Plan, RewriteLimits, Rule, SkipReason, TableName
from rewriter.files.file_index import FileIndex
from rewriter.splits.packing import GroupLimits, IcebergPacking, Packing, SplitHints

# Plans of one line for each operator, which Spark shortens where a table has more than 25 columns.
_PLAN_BYTES_MAX = 1 << 20

# A range has as many splits as tasks run at once (`leafNodeDefaultParallelism`). Spark packs files by that number.
_SLOTS_SQL = "EXPLAIN SELECT * FROM range(1)"
_SLOTS = re.compile(r"\bRange \(0, 1, step=1, splits=([0-9]{1,6})\)")

_SETTINGS = "spark.sql.files."
_SPLIT_BYTES, _OPEN_COST = "maxPartitionBytes", "openCostInBytes"
# A user who sets one of these, or changes one of those sizes, has chosen the number of splits.
_CHOSEN = ("minPartitionNum", "maxPartitionNum")
_UNSET = "<undefined>"
_OFF = frozenset({"false", _UNSET})
_DEFAULT_SIZES = Packing(slots=1)
# Asked only for scans that nothing narrows. If the first is true, rows are fetched task by task: the first ones
# would come only once a task has read several splits. If the second is true, the cluster grows only as tasks wait
# for it, so the slots are not fixed. The others set another number than that of the cores.
_FIXED_SLOTS = (
    ("SET spark.sql.thriftServer.incrementalCollect", _OFF),
    ("SET spark.dynamicAllocation.enabled", _OFF),
    ("SET spark.default.parallelism", {_UNSET}),
    ("SET spark.sql.leafNodeDefaultParallelism", {_UNSET}),
)

# As Spark reads sizes (`JavaUtils.byteStringAs`): 134217728b, 128MB, 128m, and plain bytes.
_SIZE = re.compile(r"([0-9]{1,18})\s*([kmgtp]?)b?", re.IGNORECASE)
_UNITS = {unit: 1 << (10 * power) for power, unit in enumerate(("", "k", "m", "g", "t", "p"))}

_READS_FILES = re.compile(r"\bFileScan ")
# A cached table has the splits that it was cached in. Each bucket is a split, and so is each group that Iceberg
# keeps together for a join (`spark.sql.iceberg.planning.preserve-data-grouping`): by them, Spark spares a shuffle.
_LEFT_ALONE = re.compile(r"\bInMemoryRelation\b|\bBucketed: true\b|\bgroupedBy=[^)\]]")


class Reads(Enum):
    """The packer of the files of a table."""

    SPARK = "Spark"
    ICEBERG = "Iceberg"
    NOBODY = "nobody, or it matters to the plan"


class KnownPackings:
    """Packings as sessions of one state were told. Where an answer is missing, the splits are left to Spark."""

    def __init__(self, clock: Callable[[], float], tables_max: int = ANSWERS_MAX) -> None:
        self._clock = clock
        self.packing = Answers[None, Packing | None](clock)
        # True if the number of tasks that run at once stays the same while a statement runs.
        self.has_fixed_slots = Answers[None, bool](clock)
        self.reads = Answers[TableName, Reads](clock, tables_max)

    def are_current(self, names: Iterable[TableName]) -> bool:
        """True if none of the answers about these tables has expired: some may never have been asked for."""
        known = (self.packing.known(None), self.has_fixed_slots.known(None), *map(self.reads.known, names))
        return all(answer is None or answer.until > self._clock() for answer in known)

    def forget(self) -> None:
        """Forget all: settings may differ from here on, and tables be cached."""
        for answers in (self.packing, self.has_fixed_slots, self.reads):
            answers.forget()


@dataclass(frozen=True)
class SplitPacking:
    """Makes the split hints of all statements, by the section [splits]. `known` has earlier answers."""

    settings: SplitsSection
    known: KnownPackings
    deadline_s: float
    # How long ago an answer may have expired.
    grace_s: float = 0.0

    def is_on(self, limits: RewriteLimits) -> bool:
        """True if scans may be read in fewer splits at all: the sizes of their files are then worth asking for."""
        return self.settings.enabled and Rule.SPLITS not in limits.rules_off

    @property
    def files_min(self) -> int:
        """The number of files up to which nothing is worth asking."""
        return self.settings.saved_min

    async def hints(  # noqa: PLR0913 - whom to ask, and what is known of the statement
        self,
        ask: Ask,
        planned: Plan,
        answers: Mapping[KeyQuery, Keys | SkipReason],
        files: Mapping[TableName, FileIndex],
        limits: RewriteLimits,
        *,
        of_all: bool = False,
    ) -> SplitHints | None:
        """The split hints of a statement that is rewritten by these keys; None where splits are left to Spark.

        With `of_all` those of scans that nothing narrows, too.
        """
        if not self.is_on(limits):
            return None
        settings = self.settings
        names = worth_asking(files, planned.wants_packings(answers), settings.saved_min)
        asks_growth = of_all and planned.may_be_grouped and settings.unnarrowed_scans
        asking = PackingTerms(settings.asked_every_s, self.deadline_s, self.grace_s, asks_growth=asks_growth)
        found = await packings(ask, names, self.known, asking)
        limits_of_groups = GroupLimits(
            settings.max_small_splits_grouped, settings.saved_min, settings.rows_per_saved_max
        )
        return SplitHints(found, limits_of_groups)


def worth_asking(
    files: Mapping[TableName, FileIndex], names: Iterable[TableName], saved_min: int
) -> set[TableName]:
    """The tables with enough files to save so many splits: a small file is one split at most."""
    return {name for name in names if name in files and len(files[name].files) > saved_min}


@dataclass(frozen=True)
class PackingTerms:
    """The terms of questions about packing."""

    # How long an answer is believed.
    believed_s: float
    deadline_s: float
    # How long ago an answer may have expired.
    grace_s: float = 0.0
    # True if it is asked whether the number of slots is fixed, as for scans that nothing narrows.
    asks_growth: bool = False


async def packings(
    ask: Ask, names: Collection[TableName], known: KnownPackings, terms: PackingTerms
) -> dict[TableName, Packing]:
    """The packing of those tables whose files the session's Spark packs itself."""
    if not names:
        return {}
    packing = await known.packing.get_or_ask(None, partial(_ask_packing, ask, terms), terms.grace_s)
    if packing is None:
        return {}
    if terms.asks_growth:
        asking = partial(_ask_fixed_slots, ask, terms)
        has_fixed_slots = await known.has_fixed_slots.get_or_ask(None, asking, terms.grace_s)
        packing = replace(packing, has_fixed_slots=has_fixed_slots)
    found = {}
    for name in sorted(names, key=str):
        reads = await known.reads.get_or_ask(name, partial(_ask_reads, ask, name, terms), terms.grace_s)
        if reads is not Reads.NOBODY:
            found[name] = packing if reads is Reads.SPARK else _of_iceberg(packing)
    return found


def _of_iceberg(packing: Packing) -> IcebergPacking:
    return IcebergPacking(packing.slots, has_fixed_slots=packing.has_fixed_slots)


async def _ask_reads(ask: Ask, name: TableName, terms: PackingTerms) -> tuple[Reads, float]:
    answer = await ask(_query(f"EXPLAIN SELECT * FROM {name.sql}", terms.deadline_s))  # noqa: S608 - a quoted name
    return read_plan(answer), late_answers.believed_s(answer, terms.believed_s)


async def _ask_fixed_slots(ask: Ask, terms: PackingTerms) -> tuple[bool, float]:
    is_fixed, believed_s = True, terms.believed_s
    for sql, expected in _FIXED_SLOTS:
        answer = await ask(_query(sql, terms.deadline_s))
        believed_s = late_answers.believed_s(answer, believed_s)
        is_fixed &= _setting(answer).lower() in expected
        if not is_fixed:
            break
    return is_fixed, believed_s


async def _ask_packing(ask: Ask, terms: PackingTerms) -> tuple[Packing | None, float]:
    packing = await _asked_packing(ask, terms.deadline_s)
    # Without an answer now, a busy server may give one soon.
    missing_s = min(terms.believed_s, late_answers.UNANSWERED_S)
    return packing, terms.believed_s if packing is not None else missing_s


async def _asked_packing(ask: Ask, deadline_s: float) -> Packing | None:
    slots = read_slots(await ask(_query(_SLOTS_SQL, deadline_s)))
    if slots is None:
        return None
    for name in _CHOSEN:
        if _setting(await ask(_query(f"SET {_SETTINGS}{name}", deadline_s))) != _UNSET:
            return None
    split_bytes = read_size(_setting(await ask(_query(f"SET {_SETTINGS}{_SPLIT_BYTES}", deadline_s))))
    open_cost = read_size(_setting(await ask(_query(f"SET {_SETTINGS}{_OPEN_COST}", deadline_s))))
    if (split_bytes, open_cost) != (_DEFAULT_SIZES.split_bytes_max, _DEFAULT_SIZES.open_cost_bytes):
        return None
    return Packing(slots)


def _query(sql: str, deadline_s: float) -> Query:
    return Query(sql, rows_max=1, bytes_max=_PLAN_BYTES_MAX, deadline_s=deadline_s)


def read_slots(answer: QueryResult) -> int | None:
    """The number of tasks that run at once."""
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
    """The packer of a table's files, by the plan that reads all of it."""
    text = _text(answer)
    if _LEFT_ALONE.search(text) is not None:
        return Reads.NOBODY
    if ICEBERG_SCAN.search(text) is not None:
        return Reads.ICEBERG
    return Reads.SPARK if _READS_FILES.search(text) is not None else Reads.NOBODY


def _text(answer: QueryResult) -> str:
    return str(answer.rows[0][0]) if isinstance(answer, Rows) and answer.rows else ""


def _setting(answer: QueryResult) -> str:
    """The value of a setting in an answer to SET; empty without one."""
    return str(answer.rows[0][1]) if isinstance(answer, Rows) and answer.rows else ""
