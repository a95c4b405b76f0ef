"""Figures about the imports of the three trees: `python -m tools.architecture_figures [CHECKOUT]`.

A room is a package or a module directly below a tree. An arrow is an import between two rooms. A room stands one
floor above the highest room that it imports, so an arrow's span is the number of floors between its ends. Rooms
that import one another in a circle share a floor, and arrows between them run up as much as down.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import mean
from typing import Final

ROOT: Final = Path(__file__).parent.parent
TREES: Final = ("rewriter", "proxy", "pipeline")
# An arrow over this many floors is one that a reader has to follow far.
LONG_SPAN: Final = 5
TITLES: Final = (
    "tree",
    "modules",
    "lines",
    "rooms",
    "floors",
    "arrows",
    "of these in circles",
    f"over {LONG_SPAN} and more floors",
    "mean span",
)


@dataclass(frozen=True)
class Figures:
    """The figures of one tree."""

    tree: str
    modules: int
    lines: int
    rooms: int
    floors: int
    arrows: int
    arrows_in_circles: int
    long_arrows: int
    mean_span: float

    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        counts = self.rooms, self.floors, self.arrows, self.arrows_in_circles, self.long_arrows
        return (
            f"`{self.tree}/`",
            str(self.modules),
            f"{self.lines:,}",
            *(str(count) for count in counts),
            f"{self.mean_span:.1f}",
        )


def figures(tree: str, root: Path = ROOT) -> Figures:
    """The figures of one tree of a checkout."""
    paths = [path for path in (root / tree).rglob("*.py") if path.name != "__init__.py"]
    rooms = {room: set[str]() for room in _rooms(root / tree)}
    for path in (root / tree).rglob("*.py"):
        room = path.relative_to(root / tree).with_suffix("").parts[0]
        if room in rooms:
            rooms[room] |= {name for name in _imported(path, tree) if name in rooms} - {room}
    floors = _floors(rooms)
    arrows = [(room, other) for room, others in rooms.items() for other in others]
    spans = [floors[room] - floors[other] for room, other in arrows]
    return Figures(
        tree=tree,
        modules=len(paths),
        lines=sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths),
        rooms=len(rooms),
        floors=max(floors.values()),
        arrows=len(arrows),
        arrows_in_circles=spans.count(0),
        long_arrows=sum(span >= LONG_SPAN for span in spans),
        mean_span=mean(spans),
    )


def table(root: Path = ROOT) -> str:
    """The figures of all trees as a table in Markdown."""
    rows = [TITLES, ("---",) * len(TITLES), *(figures(tree, root).cells() for tree in TREES)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _rooms(tree: Path) -> Iterator[str]:
    for path in tree.iterdir():
        if path.suffix == ".py" and path.name != "__init__.py":
            yield path.stem
        elif path.is_dir() and any(path.rglob("*.py")):
            yield path.name


def _imported(path: Path, tree: str) -> Iterator[str]:
    """The rooms of the tree that a module imports, by `import tree.room` or `from tree import room`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            first, *rest = name.split(".")
            if first == tree and rest:
                yield rest[0]


def _floors(rooms: Mapping[str, set[str]]) -> dict[str, int]:
    """The floor of each room, from 1; rooms in a circle have one in common."""
    below = {room: _reachable(room, rooms) for room in rooms}
    circle = {room: min({room} | {other for other in below[room] if room in below[other]}) for room in rooms}
    imports: dict[str, set[str]] = {circle[room]: set() for room in rooms}
    for room, others in rooms.items():
        imports[circle[room]] |= {circle[other] for other in others} - {circle[room]}
    floors: dict[str, int] = {}
    for room in TopologicalSorter(imports).static_order():
        floors[room] = 1 + max((floors[other] for other in imports[room]), default=0)
    return {room: floors[circle[room]] for room in rooms}


def _reachable(room: str, rooms: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(rooms[room])
    while waiting:
        other = waiting.pop()
        if other not in seen:
            seen.add(other)
            waiting += rooms[other]
    return seen


if __name__ == "__main__":
    sys.stdout.write(table(Path(sys.argv[1]) if sys.argv[1:] else ROOT) + "\n")
