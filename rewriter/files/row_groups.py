"""Count of the row groups that a condition leaves of a table's files, by the bounds of their runs.

An estimate: it tells if a condition is worth its cost, and never which rows to read. Readers find the row groups
by themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rewriter.domains.domain import Domain
from rewriter.domains.literals import UnreadableKeyError
from rewriter.domains.positions import line
from rewriter.files.bounds import on_scale
from rewriter.files.file_facts import FileFacts, RowGroups

# The least part of the bytes that a condition must save, by files or by row groups: Spark compares each row that
# it reads with the condition again, which made a scan of few columns a sixth slower.
BYTES_SPARED_MIN = 0.1

# Files, and steps of row groups in them, that are looked at for one condition: some 20 ms. With more of them, only
# every second file is looked at, or fewer.
FILES_MAX = 1_000
STEPS_MAX = 1 << 14


@dataclass(frozen=True)
class RowGroupCount:
    """The row groups of the files that are read, and those of them that may hold a row."""

    total: int
    kept: int
    total_bytes: int
    kept_bytes: int
    # True if the row groups of all the files are known. A file without known ones counts as one, which is kept.
    is_complete: bool

    @property
    def spares_enough(self) -> bool:
        """True if skipping the others makes up for evaluating a condition on each row that is read."""
        return self.total_bytes - self.kept_bytes >= self.total_bytes * BYTES_SPARED_MIN


def count_row_groups(files: Sequence[FileFacts], domains: Mapping[str, Domain]) -> RowGroupCount | None:
    """The row groups of these files that may hold values of all the domains; None if none are known.

    The domains are those of columns in lower case. Row groups are pages for one column and others for another:
    those of the column that leaves least are counted.
    """
    hits = {name: hits for name, domain in domains.items() if (hits := _hits_of(domain)) is not None}
    stride = max(1, -(-len(files) // FILES_MAX))
    known = [_known(facts, hits) for facts in files[::stride]]
    if not any(known):
        return None
    steps = sum(run.steps for runs in known for run in _all_runs(runs))
    sparser = -(-steps // STEPS_MAX)
    stride *= sparser
    total = kept = total_bytes = 0
    kept_bytes = 0.0
    for facts, runs in zip(files[::stride], known[::sparser], strict=True):
        of_file, left = _least(runs, hits)
        total, kept = total + of_file, kept + left
        total_bytes += facts.size_bytes
        kept_bytes += facts.size_bytes * left / of_file
    is_complete = all(known)
    return RowGroupCount(
        total * stride, kept * stride, total_bytes * stride, int(kept_bytes) * stride, is_complete
    )


def sizes_of_row_groups(facts: FileFacts, name: str) -> list[int]:
    """The bytes of each of a file's runs of row groups by a column, or of the file if it has none."""
    bounds = facts.bounds.get(name)
    runs = bounds.row_groups if bounds is not None else ()
    total = sum(run.count for run in runs)
    return [facts.size_bytes * run.count // total for run in runs] if total else [facts.size_bytes]


# Finds how many steps of a run may hold a value of a domain, and how many it has.
_Hits = Callable[[RowGroups], tuple[int, int]]


def _known(facts: FileFacts, hits: Mapping[str, _Hits]) -> Mapping[str, tuple[RowGroups, ...]]:
    found = ((name, facts.bounds.get(name)) for name in hits)
    return {name: bounds.row_groups for name, bounds in found if bounds is not None and bounds.row_groups}


def _all_runs(runs: Mapping[str, tuple[RowGroups, ...]]) -> Iterable[RowGroups]:
    return (run for of_column in runs.values() for run in of_column)


def _least(runs: Mapping[str, tuple[RowGroups, ...]], hits: Mapping[str, _Hits]) -> tuple[int, int]:
    """The row groups of one file and those that are left, by the column that leaves the smallest part."""
    counts = [_count(of_column, hits[name]) for name, of_column in runs.items()]
    return min(counts, key=lambda count: count[1] / count[0], default=(1, 1))


def _count(runs: Iterable[RowGroups], hits: _Hits) -> tuple[int, int]:
    total = kept = 0
    for run in runs:
        hit, steps = hits(run)
        total += run.count
        kept += -(-run.count * hit // steps)
    return total, kept


def _hits_of(domain: Domain) -> _Hits | None:
    """The function for one domain; None if every row group may hold a null that it asks for."""
    if domain.nullable:
        return None
    on, lows, highs = line(domain.type_name), *_ends(domain)

    def hits(run: RowGroups) -> tuple[int, int]:
        try:
            low, high = on_scale(domain.type_name, on.positions([run.low, run.high]))
        except UnreadableKeyError:
            return 1, 1
        if low > high:
            return 1, 1
        steps = _steps_told_apart(domain.type_name, high + 1 - low, run.steps)
        return _steps_hit(lows, highs, low, high, steps), steps

    return hits


def _steps_told_apart(type_name: str, width: int, steps: int) -> int:
    """The steps, at most one for each value: a value that fills several row groups is in all of them.

    Strings with equal first bytes differ by one on the scale at most, wherever they lie.
    """
    return 1 if type_name == "string" and width <= _WIDTH_OF_EQUAL_STARTS else min(steps, width)


_WIDTH_OF_EQUAL_STARTS = 2


def _ends(domain: Domain) -> tuple[Sequence[int], Sequence[int]]:
    """The first and the last number of each range on the scale: strings by their first bytes, so roughly."""
    lows, highs = (on_scale(domain.type_name, domain.cuts[start::2]) for start in (0, 1))
    is_rough = domain.type_name == "string"
    return lows, highs if is_rough else [high - 1 for high in highs]


def _steps_hit(lows: Sequence[int], highs: Sequence[int], low: int, high: int, steps: int) -> int:
    """The number of equal steps from `low` to `high` that meet one of the ranges.

    >>> _steps_hit([5, 17], [5, 35], 0, 99, 10)
    4
    """
    width = high + 1 - low
    found, step, at = 0, 0, bisect_left(highs, low)
    # Each turn takes another range and another step, so the fewer of the two bound the loop.
    while at < len(lows) and lows[at] <= high and step < steps:
        first = max(step, (max(lows[at], low) - low) * steps // width)
        last = (min(highs[at], high) - low) * steps // width
        if last >= first:
            found += last + 1 - first
            step = last + 1
        # The next range that reaches beyond the steps counted so far.
        at = max(at + 1, bisect_left(highs, low + -(-step * width // steps), at))
    return found
