"""The tables of reach in docs/coverage.md, made from tests/reach/expectations.json: `python -m tools.reach_table`.

A statement's share is that of its fact scans that a filter on partitions could narrow.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "coverage.md"
EXPECTATIONS: Final = ROOT / "tests" / "reach" / "expectations.json"
COMMAND: Final = "python -m tools.reach_table"
BEGIN: Final = f"<!-- reach: made by {COMMAND} -->"
END: Final = "<!-- end of reach -->"

# The names of tools by the files in tests/reach/statements, in the order of the page.
TOOLS: Final = {
    "tableau": "Tableau",
    "power_bi": "Power BI",
    "superset": "Superset",
    "looker": "Looker",
    "metabase": "Metabase",
    "dbt": "dbt",
    "microstrategy": "MicroStrategy",
    "sap_bo": "SAP BO",
    "qlik": "Qlik",
    "cube": "Cube",
    "excel": "Excel",
    "warehouse": "jobs of warehouses",
    "hand_written": "by hand",
}
# The kinds of statements, the plain one first.
KINDS: Final = {
    "star": "star joins",
    "outer_join": "outer joins that a filter makes inner",
    "timestamp": "timestamps in the small side's filters",
    "null_safe": "`a = b OR (a IS NULL AND b IS NULL)`",
    "condition": "other conditions over partition columns",
    "view": "facts in views",
    "tiny": "tiny small sides without a filter",
    "followed": "small sides that are facts",
    "subquery": "anti joins, top-n, windows, correlated subqueries",
    "form": "forms of the text: CTEs behind CREATE TABLE, `db.table.column`",
}

Entry = Mapping[str, Any]


def page(now: str) -> str:
    """The page with the tables as the expectations have them."""
    before, _, rest = now.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{_tables(_entries())}\n\n{END}{after}"


def _entries() -> dict[str, Entry]:
    entries: dict[str, Entry] = json.loads(EXPECTATIONS.read_text(encoding="utf-8"))
    return entries


def _tables(entries: Mapping[str, Entry]) -> str:
    by_tool = [
        (title, [one for name, one in entries.items() if name.startswith(f"{tool}: ")])
        for tool, title in TOOLS.items()
    ]
    # A statement of two kinds counts for the first one.
    by_kind = [
        (title, [one for one in entries.values() if one["kinds"][0] == kind]) for kind, title in KINDS.items()
    ]
    every = ("all", list(entries.values()))
    return "\n\n".join(
        [_table("tool", [*by_tool, every]), _table("kind", by_kind), "\n".join(_reasons(entries.values()))]
    )


def _table(heading: str, groups: Iterable[tuple[str, Sequence[Entry]]]) -> str:
    titles = f"| {heading} | statements | fact scans | narrowed | pruned by Spark at run time |"
    return "\n".join([titles, "|---|---|---|---|---|", *(_row(name, group) for name, group in groups)])


def _row(name: str, group: Sequence[Entry]) -> str:
    narrowable, narrowed, pruned = (
        sum(one[count] for one in group) for count in ("narrowable", "narrowed", "pruned_by_spark")
    )
    shares = (f"{count} ({count / max(narrowable, 1):.0%})" for count in (narrowed, pruned))
    return f"| {name} | {len(group)} | {narrowable} | {' | '.join(shares)} |"


def _reasons(entries: Iterable[Entry]) -> Iterator[str]:
    """A row for each reason, with the kinds of the statements that it stands for."""
    kinds: dict[str, Counter[str]] = {}
    for one in entries:
        for reason in one["left"]:
            kinds.setdefault(reason, Counter())[one["kinds"][0]] += 1
    yield "| left alone | reason | kinds |"
    yield "|---|---|---|"
    for reason, counts in sorted(kinds.items(), key=lambda one: (-one[1].total(), one[0])):
        shown = ", ".join(
            f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        )
        yield f"| {counts.total()} | `{reason}` | {shown.replace('_', ' ')} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
