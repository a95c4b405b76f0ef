"""State that all connections of a process share, and workers with each other: handle owners, operation aliases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.access.handle_owners import HandleOwners, LocalHandleOwners
from proxy.operations.operation_aliases import LocalOperationAliases, OperationAliases


def _nobody() -> int:
    return 0


def _untold(_: int) -> None:
    pass


@dataclass(frozen=True)
class ProcessScope:
    """The scope of a process. The default serves alone; `proxy.workers` makes the scope of several."""

    handles: HandleOwners = field(default_factory=LocalHandleOwners)
    aliases: OperationAliases = field(default_factory=LocalOperationAliases)
    # True if other processes listen on the same ports.
    shares_ports: bool = False
    # True if this process serves the listeners that only one can.
    is_first: bool = True
    # The number of the other processes' clients, which take threads of the same backend; and the report of ours.
    connections_elsewhere: Callable[[], int] = _nobody
    count_connections: Callable[[int], None] = _untold
