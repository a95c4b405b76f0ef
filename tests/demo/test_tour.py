"""The demo shows every line as soon as there is one."""

from io import StringIO

import pytest
from rich.console import Console

from demo.compare import Comparison, Explained, Measured
from demo.metrics import ScanMetrics
from demo.progress import ShownProgress
from demo.queries import SAMPLE_QUERIES, SampleQuery
from demo.tour import Tour

NAMES = [query.name for query in SAMPLE_QUERIES]


def _measured(seconds: float, listed: int, read: int) -> Measured:
    return Measured(seconds, seconds / 4, 7, ScanMetrics(listed, read, read, 0, 0))


def _comparison(query: SampleQuery, *, equal: bool = True) -> Comparison:
    explained = Explained("rewritten", 0.05, 2_924, 124)
    return Comparison(query, _measured(9.0, 2_924, 124), _measured(1.5, 124, 124), equal, explained)


class Screen:
    """A terminal's text, with the loading and the measuring of a demo noted between its lines."""

    def __init__(self) -> None:
        self.text = StringIO()
        self.console = Console(file=self.text, width=80)
        self.progress = ShownProgress(self.console, None)

    def measure(self, query: SampleQuery) -> Comparison:
        """A measurement that takes no time."""
        self.text.write(f"[measured {query.name}]\n")
        return _comparison(query)

    def lines(self) -> list[str]:
        """All lines that are not blank."""
        return [line for line in self.text.getvalue().splitlines() if line.strip()]


def test_every_line_stands_when_it_is_measured_and_the_first_before_how_to_connect() -> None:
    screen = Screen()
    tour = Tour(screen.measure, screen.progress)
    tour.show_first(screen.console)
    shown = screen.lines()
    assert shown[0].startswith("query, cold")
    assert shown[1] == f"[measured {NAMES[0]}]"
    assert shown[2].split()[-10:] == ["9.00", "1.50", "6.0x", "2,924", "→", "124", "124", "→", "124", "yes"]
    assert len(shown) == 3

    tour.show_others(screen.console, runs=3)
    following = screen.lines()[3:]
    for number, name in enumerate(NAMES[1:]):
        measured, line = following[2 * number : 2 * number + 2]
        assert measured == f"[measured {name}]"
        assert line.startswith(name)
        assert len(line) <= 80
    assert [comparison.query.name for comparison in tour.compared] == NAMES
    assert "medians of 3 runs" in screen.text.getvalue()


def test_an_answer_that_differs_is_said_on_its_line_and_kept_for_the_exit_code() -> None:
    screen = Screen()
    tour = Tour(lambda query: _comparison(query, equal=False), screen.progress)
    tour.show_first(screen.console)
    assert screen.lines()[-1].endswith(" NO")
    assert not all(comparison.equal for comparison in tour.compared)


def test_ctrl_c_leaves_what_was_compared_so_far() -> None:
    def measure(query: SampleQuery) -> Comparison:
        if query.name == NAMES[2]:
            raise KeyboardInterrupt
        return _comparison(query)

    screen = Screen()
    tour = Tour(measure, screen.progress)
    with pytest.raises(KeyboardInterrupt):
        tour.whole()
    assert [comparison.query.name for comparison in tour.compared] == NAMES[:2]
