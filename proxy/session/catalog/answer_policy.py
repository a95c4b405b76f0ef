"""The answer policy: how old the answers may be that a statement uses, and whom it asks for others.

A decision has several, one after the other. Why an old answer may be used at all, says
`proxy.session.catalog.answers`.
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
    """The old answers that may be used, and whom to ask for others. As it is made, it takes current ones alone."""

    ask: Ask
    # Descriptions and settings may have expired so many seconds ago: they are asked for again while the statement
    # runs.
    grace_s: float = 0.0
    # So may answers that decide about splits alone, which are asked for beside it.
    splits_grace_s: float = 0.0
    # Answers that came after a change of the session are not remembered: they are not those of its state.
    is_session_unchanged: Callable[[], bool] = always

    def current(self, ask: Ask | None = None) -> Self:
        """The policy that takes current answers alone: for a check, or beside a statement, where it asks anew."""
        return replace(self, ask=ask or self.ask, grace_s=0.0, splits_grace_s=0.0)

    def at_hand(self, splits_grace_s: float) -> Self:
        """The policy that asks nobody, for what decides about splits alone."""
        return replace(self, ask=ask_nobody, grace_s=0.0, splits_grace_s=splits_grace_s)
