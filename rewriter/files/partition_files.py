"""Files and bytes of partitions, by the directories in which a table's indexed files lie.

Example: the file `file:/sales/ds=2026-01-01/region=eu/part-0.parquet` belongs to the partition
`ds=2026-01-01/region=eu`, which lies below `file:/sales`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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

    # The directory below which they all lie, None where there is no file.
    location: str | None
    by_partition: Mapping[str, FileSum]

    @classmethod
    def of(cls, files: Iterable[FileFacts], columns: tuple[str, ...]) -> PartitionFiles | None:
        """The files by partition; None where one lies in no directory with the names of these columns.

        Such a partition was given a location of its own, and the paths of its files do not name it. Paths are not
        certain below several directories either: `ds=3` may have been given the location `/old/ds=2`.
        """
        found: dict[str, FileSum] = {}
        locations: set[str] = set()
        for facts in files:
            parts = facts.path.rsplit("/", len(columns) + 1)
            names = [unquote(part.partition("=")[0]).lower() for part in parts[1:-1]]
            if names != [column.lower() for column in columns]:
                return None
            # The path is a URI: a character that the directory has as %25 is %2525 there.
            name = "/".join(map(unquote, parts[1:-1]))
            locations.add(parts[0])
            found[name] = found.get(name, FileSum()).plus(FileSum(1, facts.size_bytes))
        if len(locations) > 1:
            return None
        return cls(locations.pop() if locations else None, found)

    def sum_of(self, names: Iterable[str]) -> FileSum | None:
        """The files of these partitions; None where one has no indexed file: it may be newer than the index."""
        found: list[FileSum] = []
        for name in names:
            if name not in self.by_partition:
                return None
            found.append(self.by_partition[name])
        return _sum(found)

    @property
    def total(self) -> FileSum:
        """All files."""
        return _sum(self.by_partition.values())


def _sum(sums: Collection[FileSum]) -> FileSum:
    return FileSum(sum(one.files for one in sums), sum(one.size_bytes for one in sums))
