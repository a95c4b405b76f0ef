"""Index of a table's files, which finds the files that certainly hold no row of a cover."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from typing import Any, TypeVar

from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import is_data_key_type
from rewriter.domains.widen import column_by_column
from rewriter.files.bounds import ColumnBounds, FileCosts
from rewriter.files.file_facts import Bounds, FileFacts, Lack, read_files
from rewriter.files.file_hint import file_hint
from rewriter.files.row_groups import BYTES_SPARED_MIN, RowGroupCount, count_row_groups, sizes_of_row_groups

__all__ = ["Bounds", "FileFacts", "FileIndex", "FileSelection", "Lack", "file_hint"]

# Files of one index; all others are simply read. With the bounds of five columns these are 150 MB.
FILES_MAX = 100_000

# Files looked up in the boxes of a cover, one by one: a fifth of a second at the worst. Beyond this they are
# looked up column by column, which also keeps files of pairs that mix the keys of several boxes.
LOOKUPS_MAX = 1 << 20

# Answers that one index keeps; each statement may ask about other partitions.
ANSWERS_MAX = 64

_ALL_ROWS = Cover.all()

Answer = TypeVar("Answer")


def spares_enough(spared_bytes: int, total_bytes: int) -> bool:
    """True if skipping that many bytes makes up for evaluating the hint on each row that is read."""
    return spared_bytes >= total_bytes * BYTES_SPARED_MIN


@dataclass(frozen=True)
class FileSelection:
    """The files of a table that need not be read, and the amount that is left."""

    misses: tuple[FileFacts, ...]
    kept: int
    kept_bytes: int
    total: int
    total_bytes: int
    # The sizes of the files that are left, in no order.
    kept_sizes: tuple[int, ...] = field(default=(), repr=False)
    # The rows in the files that are left, as far as the index knows.
    kept_rows: int = 0


@dataclass(frozen=True)
class FileIndex:
    """The files of one table as they were when they were indexed."""

    # The types of the indexed columns, by their names in lower case.
    type_names: Mapping[str, str]
    files: tuple[FileFacts, ...]
    # The columns, in lower case, whose row groups are in no order that is known: their bounds are the file's.
    unordered: frozenset[str] = frozenset()
    # Both are computed when a column is used first, which takes a while. Two threads compute the same.
    _bounds: dict[str, ColumnBounds] = field(default_factory=dict, init=False, repr=False, compare=False)
    _costs: dict[str, FileCosts] = field(default_factory=dict, init=False, repr=False, compare=False)
    _with_nulls_alone: dict[str, frozenset[int]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _answers: dict[Hashable, tuple[Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[object]], type_names: Mapping[str, str]) -> FileIndex:
        """An index from rows of the index table: path, size, time, row count, bounds and lacks as JSON.

        `type_names` are the table's own columns as it has them now, indexed or not. A row that is not understood
        is left out. A column has no bounds if the file was indexed with another type of it, if keys cannot have
        its type, or if another column has its name in another case.
        """
        names = Counter(name.lower() for name in type_names)
        known = {
            name.lower(): type_name
            for name, type_name in type_names.items()
            if is_data_key_type(type_name) and names[name.lower()] == 1
        }
        files = _without_contradictions(read_files(rows, known, FILES_MAX))
        indexed = {name for facts in files for name in facts.bounds}
        return cls({name: known[name] for name in known if name in indexed}, files)

    @property
    def weight(self) -> int:
        """The memory that it takes, counted in files: ten runs of row groups take as much as one file."""
        runs = sum(len(known.row_groups) for facts in self.files for known in facts.bounds.values())
        return len(self.files) + runs // 10

    def misses(self, cover: Cover, among: Cover = _ALL_ROWS) -> FileSelection:
        """The files that certainly hold no row of the cover, of those that may hold a row of `among`."""
        files = self.files
        asked = self._holding(among, range(len(files)))
        kept = set(self._holding(cover, asked))
        misses = tuple(files[number] for number in asked if number not in kept)
        sizes = tuple(files[number].size_bytes for number in kept)
        rows = sum(files[number].rows or 0 for number in kept)
        missed_bytes = sum(facts.size_bytes for facts in misses)
        return FileSelection(
            misses,
            kept=len(kept),
            kept_bytes=sum(sizes),
            total=len(asked),
            total_bytes=sum(sizes) + missed_bytes,
            kept_sizes=sizes,
            kept_rows=rows,
        )

    def once(self, question: Hashable, compute: Callable[[], Answer]) -> Answer:
        """The answer to a question about these files. It is kept, since dashboards ask the same over and over."""
        known = self._answers.get(question)
        answer: Answer = known[0] if known is not None else compute()
        if known is None:
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            self._answers[question] = (answer,)
        return answer

    def bounds(self, column: str) -> ColumnBounds | None:
        """The bounds of all files in a column, or None if it is not indexed."""
        name = column.lower()
        if name not in self.type_names:
            return None
        if name not in self._bounds:
            of_files = (facts.bounds.get(name) for facts in self.files)
            self._bounds[name] = ColumnBounds.of(self.type_names[name], of_files)
        return self._bounds[name]

    def costs(self, column: str) -> FileCosts | None:
        """The bytes along a column, as costs of its gaps, or None if it is not indexed.

        The bytes of a file whose row groups are known lie where these do.
        """
        name, bounds = column.lower(), self.bounds(column)
        if bounds is None:
            return None
        if name not in self._costs:
            of_files = [facts.bounds.get(name) for facts in self.files]
            runs_max = max((len(known.row_groups) for known in of_files if known is not None), default=0)
            if name not in self.unordered and runs_max > 1:
                parts = ColumnBounds.of_row_groups(self.type_names[name], of_files)
                sizes = [size for facts in self.files for size in sizes_of_row_groups(facts, name)]
            else:
                parts, sizes = bounds, [facts.size_bytes for facts in self.files]
            self._costs[name] = FileCosts.of(parts, sizes, bounds)
        return self._costs[name]

    def row_groups(self, cover: Cover, among: Cover = _ALL_ROWS) -> RowGroupCount | None:
        """The row groups that may hold a row of the cover, in files that may hold such a row and one of `among`.

        None if none are known.
        """
        around = {name.lower(): domain for name, domain in column_by_column(cover.boxes).items()}
        domains = {
            name: domain
            for name, domain in around.items()
            if name not in self.unordered and self.type_names.get(name) == domain.type_name
        }
        numbers = self._holding(cover, self._holding(among, range(len(self.files)))) if domains else ()
        held = [self.files[number] for number in numbers]
        return count_row_groups(held, domains) if held else None

    def with_order_unknown(self, sorted_by: str | None) -> FileIndex:
        """The same index, in which rows are taken to be ordered by some columns alone within their files.

        These are the column that writers sort by, and those that the files themselves are ordered by.
        """
        ordered = {name for name in self.type_names if len(self.files) > 1 and self._is_clustered(name)}
        ordered = {name for name in {*ordered, sorted_by or ""} if self._has_several_row_groups(name)}
        return replace(self, unordered=frozenset(self.type_names.keys() - ordered))

    def _has_several_row_groups(self, name: str) -> bool:
        known = (facts.bounds.get(name) for facts in self.files)
        return any(run.count > 1 for bounds in known if bounds is not None for run in bounds.row_groups)

    def _is_clustered(self, column: str) -> bool:
        costs = self.costs(column)
        return costs is not None and costs.is_clustered

    def reaches_out_of(self, wide: Cover, cover: Cover) -> bool:
        """True if a file that may hold a row of the cover may hold rows outside of the wider one too.

        For pairs the answer is always True: columns are looked up one by one.
        """
        if len(wide.boxes) != 1:
            return True
        numbers = self._holding(cover, range(len(self.files)))
        for column, domain in wide.boxes[0].domains:
            bounds = self.bounds(column)
            values_outside = replace(domain.complement(), nullable=False)
            if bounds is None or bounds.holding(numbers, values_outside):
                return True
        return False

    def _holding(self, cover: Cover, numbers: Sequence[int]) -> Sequence[int]:
        """The files among the numbers that may hold a row of the cover."""
        boxes = cover.boxes
        if len(boxes) > 1:
            around = Box.of(column_by_column(boxes))
            numbers = numbers if around is None else self._holding_box(around, numbers)
            if len(numbers) * sum(len(box.domains) for box in boxes) > LOOKUPS_MAX:
                return numbers
        found: set[int] = set()
        left = numbers
        for box in boxes:
            held = self._holding_box(box, left)
            if held:
                found.update(held)
                left = [number for number in left if number not in found]
        return [number for number in numbers if number in found]

    def _holding_box(self, box: Box, numbers: Sequence[int]) -> Sequence[int]:
        for column, domain in box.domains:
            bounds = self.bounds(column)
            numbers = numbers if bounds is None else bounds.holding(numbers, domain)
            if not domain.nullable and (nulls_alone := self._nulls_alone(column)):
                numbers = [number for number in numbers if number not in nulls_alone]
        domains = {column.lower(): domain for column, domain in box.domains}
        # Thousands of files have the same lists, each of which is looked through once.
        is_lacked = cache(partial(self._lacks_all, domains=domains))
        return [number for number in numbers if not any(map(is_lacked, self.files[number].lacks))]

    def _nulls_alone(self, column: str) -> frozenset[int]:
        """The files that hold nothing but nulls in a column."""
        name = column.lower()
        if name not in self._with_nulls_alone:
            known = ((number, facts.bounds.get(name)) for number, facts in enumerate(self.files))
            found = frozenset(number for number, bounds in known if bounds is not None and bounds.only_nulls)
            self._with_nulls_alone[name] = found
        return self._with_nulls_alone[name]

    def _lacks_all(self, lack: Lack, domains: Mapping[str, Domain]) -> bool:
        """True if all tuples that the domains allow in the columns are known to be missing."""
        asked = [domains.get(column) for column in lack.columns]
        known = [domain for domain in asked if domain is not None and not domain.nullable]
        if [domain.type_name for domain in known] != [self.type_names[column] for column in lack.columns]:
            return False  # other types, or a column that may hold anything
        # More tuples than the list has cannot all be in it: so no wide domain is expanded.
        if math.prod(domain.width for domain in known) > len(lack.tuples):
            return False
        return all(values in lack.tuples for values in product(*(domain.values for domain in known)))


def _without_contradictions(files: Iterable[FileFacts]) -> tuple[FileFacts, ...]:
    """The files with one row, or equal rows, in the index: a file with two different rows is unknown."""
    found: dict[str, FileFacts | None] = {}
    for facts in files:
        is_new = found.setdefault(facts.identity, facts) == facts
        found[facts.identity] = facts if is_new else None
    return tuple(facts for facts in found.values() if facts is not None)
