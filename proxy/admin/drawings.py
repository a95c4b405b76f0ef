"""Drawings of the pages, as plain numbers: the join graph, and the timeline of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proxy.history.record import Record
from proxy.session.explain.summary import scan_name, small_sides
from proxy.session.explain.view import ReducerView, ScanView

WIDTH: Final = 760
# Three columns of boxes: narrowed tables, equalities with their keys, small sides.
_BOX_WIDTH: Final = 200
_BOX_HEIGHT: Final = 40
_ROW_HEIGHT: Final = 56
_MIDDLE_X: Final = (WIDTH - _BOX_WIDTH) // 2
_RIGHT_X: Final = WIDTH - _BOX_WIDTH
# The most scans that are drawn: nobody can follow the lines of more.
_DRAWN_MAX: Final = 12
# The purposes of queries, as AskedQuery has them.
_QUERIES: Final = {"keys": "Key query", "descriptions": "Description"}
# Characters that fit into a box.
_BOX_CHARS: Final = 28


@dataclass(frozen=True)
class Box:
    """A table, or an equality with the keys that came by it."""

    kind: str
    x: int
    y: int
    lines: tuple[str, ...]
    width: int = _BOX_WIDTH
    height: int = _BOX_HEIGHT

    @property
    def text_ys(self) -> list[tuple[str, int]]:
        """The lines, each with its place."""
        top = self.y + (25 if len(self.lines) == 1 else 17)
        return [(line, top + 16 * number) for number, line in enumerate(self.lines)]


@dataclass(frozen=True)
class Line:
    """The way of keys between two boxes."""

    x1: int
    y1: int
    x2: int
    y2: int


@dataclass(frozen=True)
class JoinGraph:
    """Narrowed tables on the left, small sides on the right, and between them the equalities."""

    boxes: list[Box]
    lines: list[Line]
    height: int
    width: int = WIDTH

    @property
    def sentence(self) -> str:
        """The graph in words, for those who do not see it."""
        return "; ".join(", ".join(box.lines) for box in self.boxes if box.kind == "keys")


@dataclass(frozen=True)
class Span:
    """A part of the time that a statement took."""

    label: str
    kind: str
    seconds: float
    # From the statement's arrival.
    after_s: float
    x: float
    width: float


def join_graph(record: Record) -> JoinGraph | None:
    """The graph of a statement's narrowed scans; None where keys narrow none."""
    scans = [scan for scan in record.scans if scan.reducers][:_DRAWN_MAX]
    if not scans:
        return None
    boxes: list[Box] = []
    lines: list[Line] = []
    sides: dict[str, int] = {}
    place = 0
    for scan in scans:
        first = place
        fact_y = _middle(first)
        for reducer in scan.reducers:
            side = sides.setdefault(_small_side(reducer, scan, record.scans), len(sides))
            keys = "keys not known" if reducer.keys is None else f"{reducer.keys:,} {reducer.asks_for}"
            boxes.append(Box("keys", _MIDDLE_X, place * _ROW_HEIGHT, (_short(reducer.join, _BOX_CHARS), keys)))
            lines.append(Line(_MIDDLE_X, _middle(place), _BOX_WIDTH, fact_y))
            lines.append(Line(_RIGHT_X, _middle(side), _MIDDLE_X + _BOX_WIDTH, _middle(place)))
            place += 1
        kind = "narrowed" if scan.predicate is not None else "unchanged"
        boxes.append(Box(kind, 0, first * _ROW_HEIGHT, (_name(scan),)))
    boxes += [Box("side", _RIGHT_X, row * _ROW_HEIGHT, (_short(side, _BOX_CHARS),)) for side, row in sides.items()]
    return JoinGraph(boxes, lines, max(place, len(sides)) * _ROW_HEIGHT - (_ROW_HEIGHT - _BOX_HEIGHT))


def _middle(row: int) -> int:
    return row * _ROW_HEIGHT + _BOX_HEIGHT // 2


def timeline(record: Record) -> list[Span]:
    """A statement's time as bars, later ones over earlier ones: the decision, each of its queries, and the run."""
    run_s = record.run_s or 0.0
    scale = WIDTH / ((record.deciding_s + run_s) or 1.0)

    def bar(label: str, kind: str, seconds: float, after_s: float) -> Span:
        return Span(label, kind, seconds, after_s, round(scale * after_s, 1), round(scale * seconds, 1))

    queries = [bar(_QUERIES[one.purpose], one.purpose, one.seconds, one.after_s) for one in record.asked]
    decision = bar("Parsing and planning", "planning", record.deciding_s, 0.0)
    return [decision, *queries, bar("Run by Spark", "run", run_s, record.deciding_s)]


def parts(record: Record) -> list[tuple[str, str, float | None]]:
    """The parts of a statement's time, each with its kind and its seconds."""
    planning_s = max(0.0, record.deciding_s - record.descriptions_s - record.key_queries_s)
    return [
        ("Parsing and planning", "planning", planning_s),
        ("Descriptions of tables", "descriptions", record.descriptions_s),
        ("Key queries", "keys", record.key_queries_s),
        ("Run by Spark", "run", record.run_s),
    ]


def _name(scan: ScanView) -> str:
    return _short(scan_name(scan), _BOX_CHARS)


def _small_side(reducer: ReducerView, scan: ScanView, scans: list[ScanView]) -> str:
    return ", ".join(dict.fromkeys(map(_name, small_sides(reducer, scan, scans)))) or "the small side"


def _short(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 2]}.."
