"""Files and bytes of partitions, by the directories in which a table's indexed files lie.

Example: the file `file:/sales/ds=2026-01-01/region=eu/part-0.parquet` belongs to the partition
`ds=2026-01-01/region=eu`, which lies below `file:/sales`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from rewriter.files.file_facts import FileFacts


class FileSum(NamedTuple):
    """A number of files, and their bytes."""

    files: int = 0
    size_bytes: int = 0

    def plus(self, other: FileSum) -> FileSum:
        """Both together."""
        return FileSum(self.files + other.files, self.size_bytes + other.size_bytes)


@dataclass(frozen=True)
class PartitionFiles:
    """The files of each partition, by its name as SHOW PARTITIONS has it."""

    # The directory below which they all lie, None where there are several.
    location: str | None
    by_partition: Mapping[str, FileSum]

    @classmethod
    def of(cls, files: Iterable[FileFacts], columns: tuple[str, ...]) -> PartitionFiles | None:
        """The files by partition; None where one lies in no directory with the names of these columns.

        Such a partition was given a location of its own, and its files do not say which one it is.
        """
        found: dict[str, FileSum] = {}
        locations: set[str] = set()
        for facts in files:
            parts = facts.path.rsplit("/", len(columns) + 1)
            names = [part.partition("=")[0].lower() for part in parts[1:-1]]
            if names != [column.lower() for column in columns]:
                return None
            # The path is a URI: a character that the directory has as %25 is %2525 there.
            name = "/".join(map(unquote, parts[1:-1]))
            locations.add(parts[0])
            found[name] = found.get(name, FileSum()).plus(FileSum(1, facts.size_bytes))
        return cls(locations.pop() if len(locations) == 1 else None, found)

    def sum_of(self, names: Iterable[str]) -> FileSum:
        """The files of these partitions. One without indexed files has none."""
        found = [self.by_partition[name] for name in names if name in self.by_partition]
        return FileSum(sum(one.files for one in found), sum(one.size_bytes for one in found))

    @property
    def total(self) -> FileSum:
        """All files."""
        return self.sum_of(self.by_partition)
