"""How much of a compaction is done at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.compaction_plan import PartitionPlan
from pipeline.merging import GROUPS_PER_STATEMENT, Group

# Written before any of it is shown, and lost when the command is killed as it writes.
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
    """The groups of the partitions, by codec, so many at a time as one statement writes."""
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
