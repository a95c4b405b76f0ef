"""Row groups of a file as the index keeps them: a few runs of neighbours, with the values that they lie between.

The proxy estimates by them how much keys would skip within the file. So a value that is not known is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from pipeline.index.texts import key_text
from rewriter.domains.literals import Key, UnreadableKeyError
from rewriter.domains.positions import line
from rewriter.files.bounds import on_scale
from rewriter.files.file_facts import value_reader

# Runs of one column: beside their bounds they tell how many of their row groups a value is in, so few are enough.
RUNS_MAX = 8

# The least and the greatest value of one row group, as Spark casts them to strings.
RowGroupBounds: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RowGroupRun:
    """Row groups that follow one another, with values from `low` to `high` as key texts.

    In mean one of them spans one of `steps` equal parts of the values.
    """

    low: str
    high: str
    count: int
    steps: int


def row_group_runs(type_name: str, row_groups: Sequence[RowGroupBounds]) -> tuple[RowGroupRun, ...]:
    """The runs of a file's row groups, in the file's order; none if each may hold any of the file's values."""
    known = [part for low, high in row_groups if (part := _on_scale(type_name, low, high)) is not None]
    if _steps([(low, high) for low, high, _ in known]) < _STEPS_MIN:
        return ()
    ends = [len(known) * number // RUNS_MAX for number in range(RUNS_MAX + 1)]
    return tuple(_run(known[start:stop]) for start, stop in pairwise(ends) if start < stop)


# A file whose row groups span more than half of its values each is in no order: nothing in it is skipped.
_STEPS_MIN = 2

# The numbers of the least and the greatest value along the type's line, and both as key texts.
_Part: TypeAlias = tuple[int, int, RowGroupBounds]


def _on_scale(type_name: str, low: str, high: str) -> _Part | None:
    texts, read = (key_text(type_name, low), key_text(type_name, high)), value_reader(type_name)
    keys: list[Key] = [key for key in map(read, texts) if key is not None]
    try:
        first, last = on_scale(type_name, line(type_name).positions(keys))
    except (UnreadableKeyError, ValueError):
        return None
    if texts[0] is None or texts[1] is None or first > last:
        return None
    return first, last, (texts[0], texts[1])


def _steps(parts: Sequence[tuple[int, int]]) -> int:
    """The number of parts of the values, each as wide as the mean row group; at most one for each row group."""
    if not parts:
        return 1
    whole = max(high for _, high in parts) + 1 - min(low for low, _ in parts)
    spans = sum(high + 1 - low for low, high in parts)
    return max(1, min(len(parts), round(whole * len(parts) / spans)))


def _run(parts: Sequence[_Part]) -> RowGroupRun:
    least, greatest = min(parts, key=lambda part: part[0]), max(parts, key=lambda part: part[1])
    steps = _steps([(low, high) for low, high, _ in parts])
    return RowGroupRun(least[2][0], greatest[2][1], len(parts), steps)
