"""Says what is being waited for: a spinner on a terminal, lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

Progress = Callable[[str], None]


@contextmanager
def shown_progress(console: Console) -> Iterator[Progress]:
    """Shows the latest message until the context ends."""
    if not console.is_terminal:
        yield lambda message: console.print(message, markup=False, highlight=False)
        return
    with console.status("") as status:
        yield status.update
