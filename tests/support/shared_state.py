"""A ledger in a test's own directory, and what worker number so and so has of it."""

from collections.abc import Iterator
from contextlib import contextmanager

from proxy.access.handle_owners import Digests
from proxy.workers.ledger import Ledger, ledger_directory

DIGESTS = Digests(b"k" * 32)


@contextmanager
def ledger(slot: int = 0) -> Iterator[Ledger]:
    with ledger_directory() as directory:
        opened = Ledger(directory, slot)
        try:
            yield opened
        finally:
            opened.close()


class Beside(Ledger):
    """Another worker on the same environment, since a process can open it only once."""

    def __init__(self, of: Ledger, slot: int) -> None:
        self.slot = slot
        self.environment = of.environment
        self._flag = of._flag  # noqa: SLF001 - of the same class
        self._counts = of._counts  # noqa: SLF001 - the same
