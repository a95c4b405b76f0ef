"""The order of the demo: a first query soon, how to connect, the rest of the sample, all queries, the table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rich.console import Console

from demo.compare import Comparison
from demo.progress import ShownProgress
from demo.queries import SAMPLE_QUERIES, SampleQuery
from demo.report import print_heading, print_line, print_table


@dataclass(frozen=True)
class Tour:
    """One run of the demo, with servers that are up and a sample that may still be loading."""

    measure: Callable[[SampleQuery], Comparison]
    progress: ShownProgress
    # Loads a part of the sample each time it is asked to go on.
    loading: Iterator[int]
    # Everything that was compared until now, also where Ctrl-C cuts the tour short.
    compared: list[Comparison] = field(default_factory=list)

    def whole(self) -> list[Comparison]:
        """Compares all queries on the whole sample, and prints nothing."""
        self._load_the_rest()
        return [self._compare(query) for query in SAMPLE_QUERIES]

    def first_look(self, console: Console, loaded: int, partitions: int) -> Comparison:
        """Shows the first query on as much of the sample as is loaded."""
        first = self._compare(SAMPLE_QUERIES[0])
        with self.progress.hidden():
            if loaded < partitions:
                console.print(
                    f"A first look at the newest {loaded:,} of {partitions:,} partitions:\n", highlight=False
                )
            print_heading(console)
            print_line(console, first)
        return first

    def show_all(self, console: Console, first: Comparison | None, runs: int) -> None:
        """Shows every query as soon as it is measured on the whole sample, and then the table of all of them.

        `first` is the comparison of the first query, if that was made on the whole sample.
        """
        self._load_the_rest()
        with self.progress.hidden():
            print_heading(console)
        measured = [] if first is None else [first]
        for query in SAMPLE_QUERIES[len(measured) :]:
            measured.append(self._compare(query))
            with self.progress.hidden():
                print_line(console, measured[-1])
        with self.progress.hidden():
            print_table(console, measured, runs)

    def _compare(self, query: SampleQuery) -> Comparison:
        comparison = self.measure(query)
        self.compared.append(comparison)
        return comparison

    def _load_the_rest(self) -> None:
        for _ in self.loading:
            pass
