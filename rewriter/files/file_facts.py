"""Facts of one file, read from a row of the file index.

The index is a table that anyone may have written, so nothing in it is trusted to be well formed: a value that is
not understood is unknown, and a file without known facts is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias, TypeGuard

from rewriter.domains.instants import INSTANT, LOCAL_TIME, is_certain, micros_of_local_time
from rewriter.domains.literals import Key, UnreadableKeyError, integers_of
from rewriter.domains.positions import Line, line

# The JSON of one row: bounds of a hundred columns with texts of a hundred letters are 40,000 characters.
JSON_CHARS_MAX = 1 << 20

# Runs of row groups that are taken of one file's column, and of all files of an index: a run takes some 200 bytes.
_RUNS_MAX = 64
_RUNS_KEPT_MAX = 50_000

# Skewed tuples of a file that are looked at. The load that makes them allows far fewer.
_TUPLES_MAX = 10_000

_BIGINT_MAX = (1 << 63) - 1
# Long enough for any bigint, and short enough that reading it takes no time.
_INTEGER = re.compile(r"-?[0-9]{1,20}")
# A setting of the session may count days before this one by another calendar (parquet.datetimeRebaseModeInRead).
_GREGORIAN = "1582-10-15"
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BOOLEANS = {"true": True, "false": False}


def file_identity(path: str, size_bytes: int, modified_ms: int) -> str:
    """Path, size and time as the file hint compares them: the two numbers at the end delimit the path."""
    return f"{path}|{size_bytes}|{modified_ms}"


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups of a file that follow one another, with one column's values from `low` to `high`.

    A row group is what a reader skips within a file: a row group of Parquet, one of its pages where the file has
    an index of them, or a stripe of ORC. In mean one spans one of `steps` equal parts of the values.
    """

    low: Key
    high: Key
    count: int
    steps: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """One column's values in one file: from `low` to `high`, and a number of nulls. None is unknown."""

    low: Key | None
    high: Key | None
    nulls: int | None
    # Empty where they are not known, or where each may hold any of the file's values. They only tell if a
    # condition is worth its cost: no row group is left out because of them.
    row_groups: tuple[RowGroups, ...] = ()
    # True if the file has a null in each row, so neither bound.
    only_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Lack:
    """Tuples of some columns that no row of a file has."""

    columns: tuple[str, ...]
    tuples: frozenset[tuple[Key, ...]]


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as it was indexed. If its path, size and time are equal, it is unchanged."""

    path: str
    size_bytes: int
    modified_ms: int
    rows: int | None
    # The bounds of each column, by its name in lower case.
    bounds: Mapping[str, Bounds]
    lacks: tuple[Lack, ...]

    @property
    def identity(self) -> str:
        """The file and its version: path, size and modification time."""
        return file_identity(self.path, self.size_bytes, self.modified_ms)


def read_files(
    rows: Iterable[Sequence[object]], type_names: Mapping[str, str], files_max: int
) -> Iterator[FileFacts]:
    """The files of the index table's rows, without rows that are not understood.

    Each row is path, size, modification time, row count, and the bounds and lacks as JSON.
    """
    reader = _RowReader(type_names)
    found = (reader.facts(row) for row in islice(rows, files_max))
    return (facts for facts in found if facts is not None)


class _RowReader:
    """Reads rows of one table's files."""

    def __init__(self, type_names: Mapping[str, str]) -> None:
        self._columns = {name: (type_name, value_reader(type_name)) for name, type_name in type_names.items()}
        self._runs_left = _RUNS_KEPT_MAX
        # Thousands of files share few lists of lacks, each of which is stored once.
        self._lacks: dict[tuple[str, frozenset[str]], tuple[Lack, ...]] = {}

    def facts(self, row: Sequence[object]) -> FileFacts | None:
        if len(row) != _ROW_VALUES:
            return None
        path, size_bytes, modified_ms, count, columns, lacks = row
        if not (_is_path(path) and _is_count(size_bytes) and _is_count(modified_ms)):
            return None
        bounds = dict(self._bounds(_parsed(columns), count))
        return FileFacts(
            path,
            size_bytes,
            modified_ms,
            rows=count if _is_count(count) else None,
            bounds=bounds,
            lacks=self._lacking(lacks, bounds),
        )

    def _bounds(self, parsed: object, rows: object) -> Iterator[tuple[str, Bounds]]:
        for name, value in parsed.items() if isinstance(parsed, dict) else ():
            type_name, read = self._columns.get(name, (None, None))
            if read is None or not isinstance(value, dict) or value.get("type") != type_name:
                continue
            nulls = value.get("nulls")
            low, high = read(value.get("low")), read(value.get("high"))
            known = value.get("row_groups")
            if _is_step_count(known):
                # The index has their number alone: they get the file's own bounds.
                known = [{**value, "count": known}]
            row_groups = tuple(self._row_groups(known, read))
            # A count of nulls shows that the file has a column of exactly that name, and nothing in its place.
            has_no_ends = value.get("low") is None and value.get("high") is None
            only_nulls = has_no_ends and _is_count(nulls) and _is_count(rows) and nulls == rows > 0
            yield name, Bounds(low, high, nulls if _is_count(nulls) else None, row_groups, only_nulls)

    def _row_groups(self, parsed: object, read: ValueReader) -> Iterator[RowGroups]:
        """The runs of row groups that are understood; none once an index has too many of them."""
        for run in parsed[:_RUNS_MAX] if isinstance(parsed, list) and self._runs_left > 0 else ():
            if not isinstance(run, dict):
                continue
            low, high, count = read(run.get("low")), read(run.get("high")), run.get("count")
            steps = run.get("steps", count)
            if low is not None and high is not None and _is_step_count(count) and _is_step_count(steps):
                self._runs_left -= 1
                yield RowGroups(low, high, count, min(steps, count))

    def _lacking(self, text: object, bounds: Mapping[str, Bounds]) -> tuple[Lack, ...]:
        """The lacks of a file, in columns whose types are unchanged: the bounds alone show the indexed types."""
        if not isinstance(text, str):
            return ()
        key = text, frozenset(bounds)
        if key not in self._lacks:
            parsed = _parsed(text)
            lacks = (self._lack(entry, bounds) for entry in (parsed if isinstance(parsed, list) else ()))
            self._lacks[key] = tuple(lack for lack in lacks if lack is not None)
        return self._lacks[key]

    def _lack(self, parsed: object, bounds: Mapping[str, Bounds]) -> Lack | None:
        columns, tuples = (
            (parsed.get("columns"), parsed.get("tuples")) if isinstance(parsed, dict) else (None, None)
        )
        if not isinstance(columns, list) or not isinstance(tuples, list) or len(tuples) > _TUPLES_MAX:
            return None
        if not columns or not all(isinstance(name, str) and name in bounds for name in columns):
            return None
        on = [(line(self._columns[name][0]), self._columns[name][1]) for name in columns]
        read = (_read_tuple(values, on) for values in tuples)
        return Lack(tuple(columns), frozenset(values for values in read if values is not None))


# The values of a row of the index, as it is selected.
_ROW_VALUES = 6

# Reads a value of one type from its text; None if the text is no such value.
ValueReader: TypeAlias = Callable[[object], Key | None]


def _read_tuple(parsed: object, on: Sequence[tuple[Line, ValueReader]]) -> tuple[Key, ...] | None:
    """A tuple in the spelling that domains give their values: 1.5 of decimal(5,2) is '1.50'."""
    if not isinstance(parsed, list) or len(parsed) != len(on):
        return None
    found: list[Key] = []
    for text, (along, read) in zip(parsed, on, strict=True):
        value = read(text)
        if value is None:
            return None
        try:
            (position,) = along.positions([value])
        except UnreadableKeyError:
            return None
        found.append(along.value(position))
    return tuple(found)


def value_reader(type_name: str) -> ValueReader:
    """The reader of a type's values from the texts of the index."""
    if integers_of(type_name) is not None:
        return lambda text: int(text) if isinstance(text, str) and _INTEGER.fullmatch(text) else None
    if type_name == "boolean":
        return lambda text: _BOOLEANS.get(text) if isinstance(text, str) else None
    if type_name == "date":
        return lambda text: text if isinstance(text, str) and text >= _GREGORIAN else None
    if type_name == INSTANT:
        return lambda text: _certain(int(text)) if isinstance(text, str) and _INTEGER.fullmatch(text) else None
    if type_name == LOCAL_TIME:
        return lambda text: _certain(micros_of_local_time(text)) if isinstance(text, str) else None
    return lambda text: text if isinstance(text, str) else None


def _certain(micros: int | None) -> int | None:
    """The time, unless a setting of the session may read it from a file as another one."""
    return micros if micros is not None and is_certain(micros) else None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _BIGINT_MAX


def _is_step_count(value: object) -> TypeGuard[int]:
    """True if it is a number of row groups that one file may have."""
    return _is_count(value) and 1 <= value <= _ROW_GROUPS_MAX


# Pages of 20,000 rows in a file of 20 billion rows.
_ROW_GROUPS_MAX = 1_000_000


def _is_path(value: object) -> TypeGuard[str]:
    """True if a literal can denote the path: one with half a surrogate pair has no bytes."""
    return isinstance(value, str) and not _SURROGATE.search(value)


def _parsed(text: object) -> Any:
    """The JSON that a text is, or None."""
    if not isinstance(text, str) or len(text) > JSON_CHARS_MAX:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
