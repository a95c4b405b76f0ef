"""The order of the demo: a first query, how to connect, all other queries, the table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from demo.compare import Comparison
from demo.progress import ShownProgress
from demo.queries import SAMPLE_QUERIES, SampleQuery
from demo.report import print_heading, print_line, print_table


@dataclass(frozen=True)
class Tour:
    """One run of the demo, with servers that are up and a sample that is loaded."""

    measure: Callable[[SampleQuery], Comparison]
    progress: ShownProgress
    # Everything that was compared until now, also where Ctrl-C cuts the tour short.
    compared: list[Comparison] = field(default_factory=list)

    def whole(self) -> list[Comparison]:
        """Compares all queries, and prints nothing."""
        for query in SAMPLE_QUERIES:
            self.compared.append(self.measure(query))
        return self.compared

    def show_first(self, console: Console) -> None:
        """Shows the first query."""
        with self.progress.hidden():
            print_heading(console)
        self._show(SAMPLE_QUERIES[:1], console)

    def show_others(self, console: Console, runs: int) -> None:
        """Shows every other query as soon as it is measured, and then the table of all of them."""
        self._show(SAMPLE_QUERIES[1:], console)
        with self.progress.hidden():
            print_table(console, self.compared, runs)

    def _show(self, queries: Sequence[SampleQuery], console: Console) -> None:
        for query in queries:
            self.compared.append(self.measure(query))
            with self.progress.hidden():
                print_line(console, self.compared[-1])
