"""The demo shows a first line soon, and every line as soon as there is one."""

from collections.abc import Iterator
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

    def loading(self) -> Iterator[int]:
        """Two more parts of the sample."""
        for count in (1_472, 2_924):
            self.text.write(f"[loaded {count}]\n")
            yield count

    def measure(self, query: SampleQuery) -> Comparison:
        """A measurement that takes no time."""
        self.text.write(f"[measured {query.name}]\n")
        return _comparison(query)

    def lines(self) -> list[str]:
        """All lines that are not blank."""
        return [line for line in self.text.getvalue().splitlines() if line.strip()]


def test_the_first_line_stands_before_the_rest_is_loaded_and_each_other_one_when_it_is_measured() -> None:
    screen = Screen()
    tour = Tour(screen.measure, screen.progress, screen.loading())
    tour.first_look(screen.console, 736, 2_924)
    shown = screen.lines()
    assert shown[0] == f"[measured {NAMES[0]}]"
    assert "736 of 2,924" in shown[1]
    assert shown[3].split()[-10:] == ["9.00", "1.50", "6.0x", "2,924", "→", "124", "124", "→", "124", "yes"]
    assert len(shown) == 4

    tour.show_all(screen.console, None, runs=1)
    following = screen.lines()[4:]
    assert following[:2] == ["[loaded 1472]", "[loaded 2924]"]
    for name, (measured, line) in zip(NAMES, zip(following[3:13:2], following[4:13:2], strict=True), strict=True):
        assert measured == f"[measured {name}]"
        assert line.startswith(name)
        assert len(line) <= 80
    assert [comparison.query.name for comparison in tour.compared] == [NAMES[0], *NAMES]


def test_a_first_line_of_the_whole_sample_is_not_measured_again() -> None:
    screen = Screen()
    tour = Tour(screen.measure, screen.progress, iter(()))
    first = tour.first_look(screen.console, 2_924, 2_924)
    tour.show_all(screen.console, first, runs=3)
    assert [line for line in screen.lines() if line.startswith("[measured")] == [
        f"[measured {name}]" for name in NAMES
    ]
    assert "medians of 3 runs" in screen.text.getvalue()


def test_an_answer_that_differs_is_said_on_its_line_and_kept_for_the_exit_code() -> None:
    screen = Screen()
    tour = Tour(lambda query: _comparison(query, equal=False), screen.progress, iter(()))
    tour.first_look(screen.console, 2_924, 2_924)
    assert screen.lines()[-1].endswith(" NO")
    assert not all(comparison.equal for comparison in tour.compared)


def test_ctrl_c_leaves_what_was_compared_so_far() -> None:
    def measure(query: SampleQuery) -> Comparison:
        if query.name == NAMES[2]:
            raise KeyboardInterrupt
        return _comparison(query)

    screen = Screen()
    tour = Tour(measure, screen.progress, iter(()))
    with pytest.raises(KeyboardInterrupt):
        tour.show_all(screen.console, None, runs=1)
    assert [comparison.query.name for comparison in tour.compared] == NAMES[:2]
