"""Scans of facts that Spark prunes by itself: those with a dynamic pruning expression or a subquery in their plan.

Spark lists all partitions of such a scan, and drops some of them as the statement runs. A comparison with literals
that Spark derives from the statement's own text while it plans is not counted: the text has it without anybody.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pyhive import hive
from reach_corpus import DIRECT, FACTS, TARGET, ReachStatement

from demo.hive import run

# The plan as it is executed, told whole.
SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.maxMetadataStringLength": "100000",
    "spark.sql.debug.maxToStringFields": "10000",
}

_SCAN: Final = re.compile(r"FileScan parquet (?:\w+\.)*(\w+)\[.*?PartitionFilters: \[(.*?)\], PushedFilters")
_PRUNED: Final = re.compile(r"dynamicpruning#|[Ss]ubquery")
_PLAN_ID: Final = re.compile(r"\[plan_id=(\d+)\]")
_OPERATOR: Final = re.compile(r"[A-Za-z*]")


@dataclass(frozen=True)
class _Line:
    depth: int
    text: str


def pruned_by_spark(session: hive.Connection, statement: ReachStatement) -> int:
    """The number of the statement's fact scans that Spark prunes, of those that could be narrowed."""
    for made in (
        *(f"SET {name}={value}" for name, value in SETTINGS.items()),
        *statement.temporary_views.values(),
    ):
        run(session, made)
    text = "\n".join(str(line) for (line,) in run(session, f"EXPLAIN {statement.query.replace(TARGET, DIRECT)}"))
    return min(statement.narrowable, pruned_scans(text))


def pruned_scans(plan: str) -> int:
    """The number of pruned fact scans in the text of a plan; a reused exchange counts as what it reuses."""
    lines = [_Line(found.start(), line) for line in plan.splitlines() if (found := _OPERATOR.search(line))]
    return sum(_is_pruned(scan) for scan in _scans(lines, range(len(lines))))


def _scans(lines: Sequence[_Line], places: range) -> Iterator[tuple[str, str]]:
    """The scans among some lines, each with its table and its partition filters."""
    for place in places:
        text = lines[place].text
        if "ReusedExchange" in text:
            yield from _scans(lines, _reused(lines, place))
        elif found := _SCAN.search(text):
            yield found[1], found[2]


def _reused(lines: Sequence[_Line], place: int) -> range:
    """The lines below the exchange that a line reuses."""
    wanted = _PLAN_ID.findall(lines[place].text)[-1:]
    for start, line in enumerate(lines[:place]):
        if "ReusedExchange" not in line.text and _PLAN_ID.findall(line.text)[-1:] == wanted:
            below = (at for at in range(start + 1, len(lines)) if lines[at].depth <= line.depth)
            return range(start + 1, min(next(below, len(lines)), place))
    return range(0)


def _is_pruned(scan: tuple[str, str]) -> bool:
    table, filters = scan
    return table.lower() in FACTS and _PRUNED.search(filters) is not None
