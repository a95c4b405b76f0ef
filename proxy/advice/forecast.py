"""Forecast of what recorded statements would read of a table in another layout, and the choice of a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from proxy.advice.layouts import Layout, LayoutKind, as_it_lies, layouts_by, today
from proxy.advice.needed_rows import NeededRows, projected
from proxy.advice.table_sample import TableSample
from rewriter.files.file_hint import file_hint
from rewriter.files.file_index import FileIndex, spares_enough

# The least part of the bytes that a proposed layout has to spare: the proxy itself skips no files for less.
SPARED_SHARE_MIN: Final = 0.1
# A cheaper layout is taken if it gains at least this part of the best layout's gain.
NEARLY_BEST: Final = 0.8
# An index leaves the table as it lies. Of the others, partitions need no index, and prune for whoever reads the
# table. A load writes the table in its place, and ranges take a new one.
_CHEAPEST_FIRST: Final = (
    LayoutKind.AS_IT_LIES,
    LayoutKind.PARTITIONS,
    LayoutKind.FREQUENT_VALUES,
    LayoutKind.RANGES,
    LayoutKind.CLUSTERED,
)
# Shares are compared as whole numbers of parts.
_PARTS: Final = 1_000_000


@dataclass(frozen=True)
class ScanForecast:
    """The part of the table's bytes that one scan reads today, and would read in the layout."""

    needed: NeededRows
    share_today: float
    share_then: float

    @property
    def spared_share(self) -> float:
        """The part of the table's bytes that each run is spared."""
        return self.share_today - self.share_then


@dataclass(frozen=True)
class Forecast:
    """A layout of a table, and what each recorded scan would read of it."""

    layout: Layout
    bytes: int
    scans: tuple[ScanForecast, ...]

    @property
    def helped(self) -> tuple[ScanForecast, ...]:
        """The scans that would read less."""
        return tuple(scan for scan in self.scans if scan.spared_share > 0)

    @property
    def read_bytes(self) -> int:
        """Bytes of files that all recorded runs of these statements read today."""
        return round(sum(scan.share_today * scan.needed.statement.runs for scan in self.scans) * self.bytes)

    @property
    def spared_bytes(self) -> int:
        """Bytes of files that the recorded runs would have been spared."""
        return round(sum(scan.spared_share * scan.needed.statement.runs for scan in self.scans) * self.bytes)

    @property
    def spared_share(self) -> float:
        """The part of these bytes that is spared."""
        return self.spared_bytes / max(1, self.read_bytes)

    @property
    def is_worth_it(self) -> bool:
        """True if it spares enough of what the runs read."""
        return self.spared_share >= SPARED_SHARE_MIN


@dataclass(frozen=True)
class TableForecasts:
    """The forecasts of a table's layouts: the best one of all, and the best one by each column alone."""

    best: Forecast
    by_column: tuple[tuple[str, Forecast], ...]


def table_forecasts(
    sample: TableSample, needed: Sequence[NeededRows], *, file_bytes: int, hint_chars_max: int
) -> TableForecasts:
    """Compare the layouts of a table for the statements that read it."""
    before, told = today(sample), frozenset[str]().union(*(one.columns for one in needed))
    read = [(one, _share_today(before, one)) for one in needed]

    def of(layout: Layout) -> Forecast:
        scans = (_scan(sample, layout, one, share_today, hint_chars_max) for one, share_today in read)
        return Forecast(layout, sample.bytes, tuple(scans))

    lying = of(as_it_lies(sample))
    made, by_column = [lying], []
    known = before.type_names.keys() if sample.facts.delta is None else set(sample.partition_columns)
    for column in sorted(told & sample.type_names.keys() - known):
        found = [of(layout) for layout in layouts_by(sample, column, file_bytes)]
        made += found
        by_column.append((column, _best([of(as_it_lies(sample, column)), *found])))
    return TableForecasts(_best(made, _spared_by_delta(sample, read)), tuple(by_column))


def _spared_by_delta(sample: TableSample, read: Sequence[tuple[NeededRows, float]]) -> int:
    """Bytes that all recorded runs are spared today by the bounds that Delta keeps of files, beside partitions."""
    if sample.facts.delta is None:
        return 0
    pruned = today(replace(sample, facts=replace(sample.facts, indexed_columns=())))
    shares = (one.statement.runs * (_share_today(pruned, one) - share) for one, share in read)
    return round(sum(shares) * sample.bytes)


def _best(found: Sequence[Forecast], spared_today: int = 0) -> Forecast:
    """The cheapest that spares nearly as much as the best one, `spared_today` added to both."""
    wanted = NEARLY_BEST * (spared_today + max(one.spared_bytes for one in found)) - spared_today
    enough = (one for one in found if one.spared_bytes >= wanted)
    return min(enough, key=lambda one: (_CHEAPEST_FIRST.index(one.layout.kind), -one.spared_bytes))


def _share_today(before: FileIndex, needed: NeededRows) -> float:
    found = before.misses(needed.cover_today(before.type_names.keys()))
    return found.kept_bytes / max(1, found.total_bytes)


def _scan(
    sample: TableSample, layout: Layout, needed: NeededRows, share_today: float, hint_chars_max: int
) -> ScanForecast:
    if layout.kind is LayoutKind.CLUSTERED:
        # Clustering loses an order by another column, which may spare the scan some files today.
        return ScanForecast(needed, share_today, _share_then(sample, layout, needed, hint_chars_max))
    told = layout.index.type_names.keys() - sample.partition_columns
    if told.isdisjoint(needed.columns):
        return ScanForecast(needed, share_today, share_today)
    share_then = _share_then(sample, layout, needed, hint_chars_max)
    spared = share_today - share_then
    is_enough = spared > 0 and spares_enough(round(spared * _PARTS), round(share_today * _PARTS))
    return ScanForecast(needed, share_today, share_then if is_enough else share_today)


def _share_then(sample: TableSample, layout: Layout, needed: NeededRows, hint_chars_max: int) -> float:
    """The part of the bytes that is read: of the partitions that are read, all files but those of the hint."""
    columns = layout.index.type_names.keys()
    cover, whole = needed.cover_by(columns), sum(facts.size_bytes for facts in layout.index.files)
    if layout.kind in {LayoutKind.PARTITIONS, LayoutKind.CLUSTERED}:
        return layout.index.misses(cover).kept_bytes / max(1, whole)
    found = layout.index.misses(cover, projected(cover, frozenset(sample.partition_columns)))
    _, named = file_hint(found.misses, round(hint_chars_max * layout.share))
    return (found.total_bytes - sum(facts.size_bytes for facts in named)) / max(1, whole)
