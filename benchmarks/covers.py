"""Cost of many keys on a table of many partitions: the index of partitions, the search in it, the cover, the text.

`make bench` runs it. Times are CPU time, which a busy machine does not stretch.
"""

import platform
import statistics
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from math import log
from pathlib import Path
from random import Random
from time import process_time
from typing import TypeAlias

import click
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from proxy.config.rewriting import CatalogSection
from proxy.session.layout.lmdb_store import LmdbPartitionStore, lmdb_store
from proxy.session.layout.partition_store import ListKey
from rewriter import Column, KeySet, RewriteLimits
from rewriter.domains.cover import Cover
from rewriter.domains.gap_costs import Costs
from rewriter.domains.literals import Key
from rewriter.domains.widen import widen
from rewriter.partitions.pruning import partition_costs
from rewriter.predicates.partition_predicate import Budget, partition_predicate
from rewriter.predicates.predicate import Restriction

Row: TypeAlias = tuple[Key, ...]

LIMITS = RewriteLimits()
BUDGET = Budget(LIMITS.metastore, LIMITS.predicate_chars_max)
_PARTITIONS = (1_000, 10_000, 100_000, 1_000_000)
_PARTITIONS_PER_KEY = 10
# No two partitions follow on each other: every key is a range of its own.
_STEP = 3
# Regions of each day in the grid of two columns.
_REGIONS = 100
_SEED = 4
_LIST = ListKey(("someone",), ("f",))
_MEGABYTE = 1 << 20
_STORE_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Series:
    """A kind of table: its partition columns, and the values of each partition by its number."""

    name: str
    type_names: tuple[str, ...]
    row: Callable[[int], Row]
    keys_max: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """The partition columns: k0, k1 and so on."""
        return tuple(Column(f"k{index}", type_name) for index, type_name in enumerate(self.type_names))

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self.columns]

    def specs(self, partitions: int) -> list[str]:
        """The partitions as SHOW PARTITIONS names them."""
        names = self.names
        rows = map(self.row, range(partitions))
        return ["/".join(f"{name}={value}" for name, value in zip(names, row, strict=True)) for row in rows]

    def keys(self, partitions: int) -> list[Row]:
        """The values of some of the partitions, scattered and in no order."""
        count = min(partitions // _PARTITIONS_PER_KEY, self.keys_max)
        chosen = Random(_SEED).sample(range(partitions), count)  # noqa: S311 - the same ones each time
        return list(map(self.row, chosen))


def _day(number: int) -> str:
    return date.fromordinal(1 + _STEP * number).isoformat()


_KEYS_MAX = 100_000
SERIES = (
    Series("int", ("int",), lambda n: (_STEP * n,), _KEYS_MAX),
    Series("string", ("string",), lambda n: (f"{_STEP * n:08}",), _KEYS_MAX),
    Series("date", ("date",), lambda n: (_day(n),), _KEYS_MAX),
    # As many pairs as the proxy takes, where each day has every region, and where each partition has its own.
    Series(
        "day x region",
        ("date", "string"),
        lambda n: (_day(n // _REGIONS), f"{n % _REGIONS:02}"),
        LIMITS.key_rows_max,
    ),
    Series(
        "own pairs",
        ("int", "string"),
        lambda n: (_STEP * n, f"{_STEP * n:08}"),
        LIMITS.key_rows_max,
    ),
)


@dataclass(frozen=True)
class Cost:
    """Milliseconds of each step. `render` has the cover and its widening in it: a statement waits for no more."""

    store: float
    load: float
    key_set: float
    cover: float
    widen: float
    render: float


@dataclass(frozen=True)
class Memory:
    """Megabytes that a step takes at its most, of which `load` and `key_set` keep a part."""

    store: float
    load: float
    load_kept: float
    key_set: float
    key_set_kept: float
    render: float


@dataclass(frozen=True)
class Measured:
    """One size of a series."""

    series: str
    partitions: int
    keys: int
    boxes: int
    chars: int
    cost: Cost
    memory: Memory
    # The power of the number of partitions, and so of keys, that a step grew with since the size before.
    exponents: Mapping[str, float]


@dataclass(frozen=True)
class Report:
    """All measurements."""

    python: str
    sizes: Sequence[Measured]


def sizes(largest: int, runs: int) -> Iterator[Measured]:
    """Every series, up to the largest number of partitions."""
    for series in SERIES:
        before: Measured | None = None
        for partitions in (count for count in _PARTITIONS if count <= largest):
            settings = CatalogSection(partitions_max=partitions, store_bytes_max=_STORE_BYTES_MAX)
            with lmdb_store(settings) as store:
                before = _measured(Steps(series, partitions, store), runs, before)
            yield before


class Steps:
    """The steps from a list of partitions and a list of keys to a predicate, for one size of a series."""

    def __init__(self, series: Series, partitions: int, store: LmdbPartitionStore) -> None:
        self.series, self.partitions, self._store = series, partitions, store
        self._specs, self.rows = series.specs(partitions), series.keys(partitions)
        self.store()
        self._costs = self.load()
        self._restriction = Restriction(series.columns, self.key_set())
        self._cover = self.cover()

    def store(self) -> None:
        """Parse the names of the partitions and put them into the store, in order."""
        if not self._store.put(_LIST, self.series.names, self.series.type_names, self._specs):
            raise RuntimeError("the store did not keep the list that is to be measured")

    def load(self) -> Mapping[str, Costs]:
        """Find the list in the store, and the positions of its partitions."""
        index = self._store.get(_LIST)
        if index is None:
            raise RuntimeError("the store does not find the list that is to be measured")
        return partition_costs(index)

    def key_set(self) -> KeySet:
        """Put the keys in order."""
        return KeySet.of(self.series.type_names, self.rows)

    def cover(self) -> Cover:
        """The exact cover of these keys."""
        return self._restriction.cover

    def widen(self) -> Cover:
        """The widened cover, which a metastore can evaluate."""
        return widen(self._cover, self.series.names, BUDGET.metastore, self._costs)

    def render(self) -> str:
        """The predicate's text; None where it would be too long."""
        predicate = partition_predicate([self._restriction], self.series.names, BUDGET, self._costs)
        return "" if predicate is None else predicate.sql


def _measured(steps: Steps, runs: int, before: Measured | None) -> Measured:
    cost = Cost(
        # These take seconds, and so are not noise.
        store=_milliseconds(steps.store, 1),
        load=_milliseconds(steps.load, 1),
        key_set=_milliseconds(steps.key_set, runs),
        cover=_milliseconds(steps.cover, runs),
        widen=_milliseconds(steps.widen, runs),
        render=_milliseconds(steps.render, runs),
    )
    return Measured(
        series=steps.series.name,
        partitions=steps.partitions,
        keys=len(steps.rows),
        boxes=len(steps.cover().boxes),
        chars=len(steps.render()),
        cost=cost,
        memory=_memory(steps),
        exponents=_exponents(cost, steps.partitions, before) if before is not None else {},
    )


def _milliseconds(step: Callable[[], object], runs: int) -> float:
    return statistics.median(_timed(step) for _ in range(runs))


def _timed(step: Callable[[], object]) -> float:
    start = process_time()
    _ = step()
    return (process_time() - start) * 1_000


def _memory(steps: Steps) -> Memory:
    tracemalloc.start()
    try:
        load, load_kept = _megabytes(steps.load)
        key_set, key_set_kept = _megabytes(steps.key_set)
        store, render_ = _megabytes(steps.store)[0], _megabytes(steps.render)[0]
    finally:
        tracemalloc.stop()
    return Memory(store, load, load_kept, key_set, key_set_kept, render_)


def _megabytes(step: Callable[[], object]) -> tuple[float, float]:
    """The most memory that the step takes at once, and the memory that its result keeps."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    result = step()
    after, peak = tracemalloc.get_traced_memory()
    del result
    return (peak - before) / _MEGABYTE, (after - before) / _MEGABYTE


def _exponents(cost: Cost, partitions: int, before: Measured) -> Mapping[str, float]:
    growth = log(partitions / before.partitions)
    pairs = ((step, took, asdict(before.cost)[step]) for step, took in asdict(cost).items())
    return {step: log(took / earlier) / growth for step, took, earlier in pairs if took and earlier}


def show(console: Console, report: Report) -> None:
    """The report as three tables."""
    console.print(f"Python {report.python}")
    console.print(_table("milliseconds of CPU time", Cost, report, lambda one: asdict(one.cost), ".1f"))
    console.print(
        _table("the power of the size that they grow with", Cost, report, lambda one: one.exponents, ".2f")
    )
    console.print(_table("megabytes", Memory, report, lambda one: asdict(one.memory), ".1f"))
    console.print(_sizes_table(report))


def _table(
    title: str,
    steps: type[Cost | Memory],
    report: Report,
    values: Callable[[Measured], Mapping[str, float]],
    form: str,
) -> Table:
    names = [field.name for field in fields(steps)]
    table = _titled(title, [name.replace("_", " ") for name in names])
    for one in report.sizes:
        found = values(one)
        shown = (format(found[name], f",{form}") if name in found else "" for name in names)
        table.add_row(one.series, f"{one.partitions:,}", f"{one.keys:,}", *shown)
    return table


def _sizes_table(report: Report) -> Table:
    table = _titled("what was said", ["boxes of the keys", "characters"])
    for one in report.sizes:
        counts = (one.partitions, one.keys, one.boxes, one.chars)
        table.add_row(one.series, *(f"{count:,}" for count in counts))
    return table


def _titled(title: str, names: Sequence[str]) -> Table:
    table = Table("key columns", title=title, title_justify="left", box=SIMPLE)
    for name in ("partitions", "keys", *names):
        table.add_column(name, justify="right")
    return table


@click.command()
@json_option
@click.option("--largest", default=_PARTITIONS[-1], show_default=True, help="The largest number of partitions.")
@click.option("--runs", default=5, show_default=True, help="Runs of each short step, of which the median counts.")
def main(json_path: Path | None, largest: int, runs: int) -> None:
    """Measure what many keys on many partitions cost."""
    report = Report(platform.python_version(), list(sizes(largest, runs)))
    show(Console(), report)
    write_json(json_path, report)


if __name__ == "__main__":
    main()
