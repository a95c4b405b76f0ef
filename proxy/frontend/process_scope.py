"""What a process stands on: whose the handles are, what stands for what, and who else serves clients beside it."""

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
    """By default that of a process that serves alone. `proxy.workers` has the one of several."""

    handles: HandleOwners = field(default_factory=LocalHandleOwners)
    aliases: OperationAliases = field(default_factory=LocalOperationAliases)
    # Whether others listen on the same ports.
    shares_ports: bool = False
    # Whether this one serves the listeners that only one of them can.
    is_first: bool = True
    # How many clients the others serve, which take threads of the same backend; and whom to tell of ours.
    connections_elsewhere: Callable[[], int] = _nobody
    count_connections: Callable[[int], None] = _untold
