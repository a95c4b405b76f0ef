"""Plans of a compaction: the groups of files that become one, the profit of each partition, and the batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.compaction.merge_files import GROUPS_PER_STATEMENT, Group
from pipeline.tables.storage import StoredFile

# A file of at least this share of the target size is large enough: to write it again saves next to nothing.
SMALL_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Limits:
    """The conditions under which compaction pays; the defaults are those of the command."""

    # One split of Spark's (spark.sql.files.maxPartitionBytes): a larger file is read in pieces again.
    target_bytes: int = 128 << 20
    # Fewer small files than this in a partition are not worth a statement of their own.
    files_min: int = 5
    # Opening a file costs a scan as much as reading 4 MB (Spark's own spark.sql.files.openCostInBytes), and
    # writing a byte again costs about two reads: so some 32 scans pay back what is written.
    worth_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class FileKind:
    """The properties that files must have in common to become one."""

    # Spark's bucket and the compression, both from the file's name.
    bucket: int | None = None
    codec: str | None = None
    # The skewed value whose file it is, in a table with files of their own for skewed values.
    skew: Hashable = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file of a partition."""

    file: StoredFile
    kind: FileKind
    # Neighbours in this order become one.
    rank: int = 0
    # The file's identity in the file index.
    identity: str = ""


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """The plan for one partition's files; its directory is relative to the table's, '' without partitions."""

    directory: str
    # Each becomes one file.
    groups: tuple[tuple[Candidate, ...], ...]
    # Unchanged files. They are copied too, since a partition has one location for all its files.
    kept: tuple[StoredFile, ...]

    @property
    def merged(self) -> tuple[StoredFile, ...]:
        """The files that are merged into others."""
        return tuple(candidate.file for group in self.groups for candidate in group)

    @property
    def saved(self) -> int:
        """The number of files that are saved."""
        return len(self.merged) - len(self.groups)

    @property
    def files(self) -> int:
        """The number of files before the compaction."""
        return len(self.merged) + len(self.kept)

    @property
    def rewritten_bytes(self) -> int:
        """The bytes that are written again, merged or copied."""
        return sum(file.size_bytes for file in (*self.merged, *self.kept))

    @property
    def needed_bytes(self) -> int:
        """The disk space needed: a merged file is at the temporary location, and once more ready to be moved."""
        return self.rewritten_bytes + sum(file.size_bytes for file in self.merged)

    def pays(self, limits: Limits) -> bool:
        """Tells whether enough files are saved for the bytes that are rewritten."""
        is_enough = len(self.merged) >= limits.files_min
        return is_enough and self.rewritten_bytes <= self.saved * limits.worth_bytes


def plan_partition(directory: str, candidates: Sequence[Candidate], target_bytes: int) -> PartitionPlan:
    """Groups of neighbours of one kind, none larger than the target."""
    small = [candidate for candidate in candidates if candidate.file.size_bytes < target_bytes * SMALL_SHARE]
    by_kind: dict[FileKind, list[Candidate]] = defaultdict(list)
    for candidate in sorted(small, key=lambda candidate: (candidate.rank, candidate.file.name)):
        by_kind[candidate.kind].append(candidate)
    packed = [group for of_kind in by_kind.values() for group in _packed(of_kind, target_bytes)]
    groups = tuple(group for group in packed if len(group) > 1)
    merged = {candidate.file.name for group in groups for candidate in group}
    kept = tuple(candidate.file for candidate in candidates if candidate.file.name not in merged)
    return PartitionPlan(directory, groups, kept)


def _packed(candidates: Iterable[Candidate], target_bytes: int) -> Iterator[tuple[Candidate, ...]]:
    group: list[Candidate] = []
    size_bytes = 0
    for candidate in candidates:
        if group and size_bytes + candidate.file.size_bytes > target_bytes:
            yield tuple(group)
            group, size_bytes = [], 0
        group.append(candidate)
        size_bytes += candidate.file.size_bytes
    if group:
        yield tuple(group)


# The bytes that are written before readers see any of them, and lost when the command is killed meanwhile.
BATCH_BYTES = 16 << 30


def batches(plans: Sequence[PartitionPlan]) -> Iterator[tuple[int, list[PartitionPlan]]]:
    """Batches of the plans, each with the number of its first one."""
    first = groups = size_bytes = 0
    for end, plan in enumerate(plans, 1):
        groups += len(plan.groups)
        size_bytes += plan.rewritten_bytes
        if groups >= GROUPS_PER_STATEMENT or size_bytes >= BATCH_BYTES or end == len(plans):
            yield first, list(plans[first:end])
            first, groups, size_bytes = end, 0, 0


def statements(
    plans: Sequence[PartitionPlan], first: int
) -> Iterator[tuple[str | None, list[tuple[int, str, Group]]]]:
    """The groups of the partitions, by codec, as many at a time as one statement writes."""
    by_codec: dict[str | None, list[tuple[int, str, Group]]] = {}
    for number, plan in enumerate(plans, first):
        for candidates in plan.groups:
            kind = candidates[0].kind
            paths = tuple(f"{plan.directory}/{one.file.name}".removeprefix("/") for one in candidates)
            group = Group(paths, tuple(one.identity for one in candidates), kind.bucket)
            by_codec.setdefault(kind.codec, []).append((number, plan.directory, group))
    for codec, groups in by_codec.items():
        for start in range(0, len(groups), GROUPS_PER_STATEMENT):
            yield codec, groups[start : start + GROUPS_PER_STATEMENT]
