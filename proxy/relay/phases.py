"""The phases of a connection, and which may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Phase(Enum):
    """A connection is in one of these."""

    NEGOTIATING = "negotiating"
    OPEN = "open"
    HELD = "held"
    # A fallback is under way, or the reply to a statement whose remembered keys are not confirmed is awaited. The
    # client's calls wait.
    WITHHOLDING = "withholding"
    MOVING = "moving"
    TRANSPARENT = "transparent"
    CLOSED = "closed"


FOLLOWING: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.NEGOTIATING: frozenset({Phase.OPEN, Phase.TRANSPARENT, Phase.CLOSED}),
    Phase.OPEN: frozenset({Phase.HELD, Phase.WITHHOLDING, Phase.MOVING, Phase.TRANSPARENT, Phase.CLOSED}),
    Phase.HELD: frozenset({Phase.OPEN, Phase.TRANSPARENT, Phase.CLOSED}),
    Phase.WITHHOLDING: frozenset({Phase.OPEN, Phase.HELD, Phase.CLOSED}),
    Phase.MOVING: frozenset({Phase.OPEN, Phase.TRANSPARENT, Phase.CLOSED}),
    Phase.TRANSPARENT: frozenset({Phase.CLOSED}),
    Phase.CLOSED: frozenset(),
}
