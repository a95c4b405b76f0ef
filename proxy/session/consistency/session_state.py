"""The state of a session: everything beside the tables that may change the answers to its queries, as a digest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.session_port import LABEL_SETTING, KnownState, SessionOpening, folded
from proxy.session.consistency.write_fence import CLOSING_S
from proxy.statements.statement_class import (
    StatementClass,
    is_evolution_setting,
    is_search_path_setting,
)
from rewriter import SkipReason

# A session of the proxy's own is brought into a state by so many statements and characters at most. Clients that
# change more settings than that ask for themselves.
_STATEMENTS_MAX: Final = 30
_STATEMENT_CHARS_MAX: Final = 2_000

# After these ends, the statement may still be changing the session.
_UNSEEN: Final = frozenset({OutcomeKind.UNKNOWN, OutcomeKind.LOST})


@dataclass(frozen=True, eq=False)
class _Change:
    """A statement that may change a session, from before it goes to the backend until its end."""

    sql: str
    has_known_effect: bool
    hidden_names: SkipReason | None
    may_declare_variables: bool
    may_set_evolution: bool

    @classmethod
    def by(cls, statement: StatementClass) -> _Change:
        """The change that a statement may make, computed before it goes, and not on the event loop."""
        known, hidden = statement.has_known_effect, statement.hidden_names
        evolves = statement.may_set_evolution
        return cls(statement.text, known, hidden, statement.may_declare_variables, evolves)


class SessionState:
    """The user of a session, its settings at the opening, and its changes since.

    The same query in two sessions of the same digest has the same answer as long as no table is written.
    """

    def __init__(self, opened: SessionOpening, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._opened = opened
        configuration = opened.configuration
        # Dashboards with labels of their own share keys: a text that could ask for a label, `${..}`, is refused.
        told = (pair for pair in sorted(configuration.items()) if pair[0].rpartition(":")[2] != LABEL_SETTING)
        settings = (text for pair in told for text in pair)
        self._digest = folded(b"", opened.owner, "", *settings)
        # The statements that were folded into the digest; None where they are too many.
        self._statements: tuple[str, ...] | None = ()
        # Set by any thread, and never unset.
        self._is_private = False
        has_search_path = any(map(is_search_path_setting, configuration))
        self._hidden_names = SkipReason.SEARCH_PATH if has_search_path else None
        self._has_variables = False
        self._sets_evolution = not opened.is_seen or any(map(is_evolution_setting, configuration))
        # The statements that are changing the state now, and the time until which one without a seen end may do
        # so.
        self._changing: set[_Change] = set()
        self._unseen_until = -inf
        # How many statements so far may have changed it.
        self.changes = 0

    @property
    def digest(self) -> bytes | None:
        """Equal for equal states; None where the state is not known, or is like that of no other session."""
        return None if self._is_private or self._changing else self._digest

    @property
    def known(self) -> KnownState | None:
        """The state, where the proxy can bring a session of its own into it."""
        digest, statements = self.digest, self._statements
        if digest is None or statements is None or not self._opened.login:
            return None
        return KnownState(digest, self._opened, statements)

    @property
    def is_changing(self) -> bool:
        """True if the meaning of names and settings may change from one moment to the next."""
        return bool(self._changing) or self._clock() < self._unseen_until

    @property
    def hidden_names(self) -> SkipReason | None:
        """The reason why a bare name may denote another table than DESCRIBE shows, or no function of Spark's.

        In Spark 4.3, DESCRIBE d describes the current database's d, even if a query reads another d by the path.
        Once a function hides one of Spark's, it does so to the end: DROP is refused for a name of Spark's.
        """
        return self._hidden_names

    @property
    def has_variables(self) -> bool:
        """True if a name that is no column's may be that of a variable."""
        return self._has_variables

    @property
    def may_set_evolution(self) -> bool:
        """True if a setting of the session's own may let its writes add columns to tables."""
        return self._sets_evolution or any(change.may_set_evolution for change in tuple(self._changing))

    def note_unseen_settings(self) -> None:
        """Note that statements that were not seen here may have set something."""
        self._sets_evolution = True

    def may_be_changed_by(self, statement: StatementClass) -> bool:
        """True if names or settings may mean something else once a statement has run."""
        return not statement.leaves_session_unchanged or (self._is_private and statement.may_drop_views)

    def begin(self, statement: StatementClass) -> Callable[[Outcome], None] | None:
        """Count a statement that is about to be released. Returns a listener for its outcome, if that matters."""
        if statement.leaves_session_unchanged:
            self.changes += self._is_private and statement.may_drop_views
            return None
        self.changes += 1
        # Of two that change the state at once, nobody knows which came first.
        self._is_private |= self.is_changing
        change = _Change.by(statement)
        self._changing.add(change)
        return partial(self._ended, change)

    def _ended(self, change: _Change, outcome: Outcome) -> None:
        """Fold in a statement: a failed one may have done a part, and one without a seen end may still do it.

        Until then the session decides about no statement.
        """
        if not outcome.did_nothing:
            self._is_private |= outcome.kind is not OutcomeKind.FINISHED or not change.has_known_effect
            self._hidden_names = self._hidden_names or change.hidden_names
            self._has_variables |= change.may_declare_variables
            self._sets_evolution |= change.may_set_evolution
            self._fold(change.sql)
        if outcome.kind in _UNSEEN:
            self._unseen_until = self._clock() + CLOSING_S
        self._changing.discard(change)

    def _fold(self, sql: str) -> None:
        self._digest = folded(self._digest, sql)
        before = self._statements
        is_kept = before is not None and len(before) < _STATEMENTS_MAX and len(sql) <= _STATEMENT_CHARS_MAX
        self._statements = (*before, sql) if before is not None and is_kept else None
