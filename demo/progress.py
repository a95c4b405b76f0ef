"""Messages that say what is being waited for: a spinner on a terminal, lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.status import Status

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ShownProgress:
    """Shows the latest message."""

    console: Console
    spinner: Status | None

    def __call__(self, message: str) -> None:
        """Shows a message in place of the one before."""
        if self.spinner is None:
            self.console.print(message, markup=False, highlight=False)
        else:
            self.spinner.update(message)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Takes the spinner away while other lines are printed, which it would divert to its own stream."""
        if self.spinner is None:
            yield
            return
        self.spinner.stop()
        try:
            yield
        finally:
            self.spinner.start()


@contextmanager
def shown_progress(console: Console) -> Iterator[ShownProgress]:
    """Shows the latest message until the context ends."""
    if not console.is_terminal:
        yield ShownProgress(console, None)
        return
    with console.status("") as spinner:
        yield ShownProgress(console, spinner)
