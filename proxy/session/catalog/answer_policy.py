"""The answer policy: how old the answers may be that a statement uses, and whom it asks for others.

A decision has several, one after the other. `proxy.session.catalog.answers` says why an old answer may be used at
all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from proxy.operations.dispatch import always
from proxy.operations.query import Ask
from proxy.session.consistency.asking import ask_nobody


@dataclass(frozen=True)
class AnswerPolicy:
    """The old answers that may be used, and whom to ask for others. By default it takes current ones alone."""

    ask: Ask
    # Descriptions and settings may have expired so many seconds ago: they are asked for again while the statement
    # runs.
    grace_s: float = 0.0
    # The same for answers that decide about splits alone: these are asked for beside the statement.
    splits_grace_s: float = 0.0
    # Answers that came after a change of the session are not remembered: they are not those of its state.
    is_session_unchanged: Callable[[], bool] = always

    def current(self, ask: Ask | None = None) -> Self:
        """The policy that takes current answers alone: for a check, or beside a statement, where it asks anew."""
        return replace(self, ask=ask or self.ask, grace_s=0.0, splits_grace_s=0.0)

    def at_hand(self, splits_grace_s: float) -> Self:
        """The policy that asks nobody, for what decides about splits alone."""
        return replace(self, ask=ask_nobody, grace_s=0.0, splits_grace_s=splits_grace_s)
