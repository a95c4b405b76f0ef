"""The state of a session: everything beside the tables that may change the answers to its queries, as a digest."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Final

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.session_port import KnownState, SessionOpening, folded
from proxy.session.consistency.write_fence import CLOSING_S
from proxy.statements.statement_class import StatementClass, is_search_path_setting

# A session of the proxy's own is brought into a state by so many statements and characters at most. Clients that
# change more settings than that ask for themselves.
_STATEMENTS_MAX: Final = 30
_STATEMENT_CHARS_MAX: Final = 2_000

# The statement may be changing the session yet.
_UNSEEN: Final = frozenset({OutcomeKind.UNKNOWN, OutcomeKind.LOST})


class SessionState:
    """The user of a session, its settings at the opening, and its changes since.

    The same query in two sessions of the same digest has the same answer as long as no table is written.
    """

    def __init__(self, opened: SessionOpening, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._opened = opened
        configuration = opened.configuration
        settings = (text for pair in sorted(configuration.items()) for text in pair)
        self._digest = folded(b"", opened.owner, "", *settings)
        # The statements that were folded into the digest; None where they are too many.
        self._statements: tuple[str, ...] | None = ()
        # Set by any thread, and never unset.
        self._is_private = False
        self._has_search_path = any(map(is_search_path_setting, configuration))
        self._has_variables = False
        # The statements that are changing the state now, and until when one may be whose end was not seen.
        self._changing: set[object] = set()
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
        """Whether the meaning of names and settings may change from one moment to the next."""
        return bool(self._changing) or self._clock() < self._unseen_until

    @property
    def has_search_path(self) -> bool:
        """Whether a bare name may denote another table than the one that DESCRIBE shows.

        To Spark 4.3, DESCRIBE d is about the current database's d, whichever one a query reads by the path. A name
        of one of Spark's functions may denote another function in the same way.
        """
        return self._has_search_path

    @property
    def has_variables(self) -> bool:
        """Whether a name that is no column's may be that of a variable."""
        return self._has_variables

    def may_be_changed_by(self, statement: StatementClass) -> bool:
        """Whether names or settings may mean something else once a statement has run."""
        return not statement.leaves_session_unchanged or (self._is_private and statement.may_drop_views)

    def begin(self, statement: StatementClass) -> Callable[[Outcome], None] | None:
        """Count a statement that is about to be released. Returns a listener for its outcome, if that matters."""
        if statement.leaves_session_unchanged:
            self.changes += self._is_private and statement.may_drop_views
            return None
        self._has_search_path |= statement.may_set_search_path
        self._has_variables |= statement.may_declare_variables
        self.changes += 1
        # Of two that change the state at once, nobody knows which came first.
        self._is_private |= not statement.has_known_effect or self.is_changing
        change = object()
        self._changing.add(change)
        return partial(self._ended, change, statement.text)

    def _ended(self, change: object, sql: str, outcome: Outcome) -> None:
        """Fold in a statement: a failed one may have done a part of it, one without a seen end may do it yet."""
        self._is_private |= outcome.kind is not OutcomeKind.FINISHED
        if outcome.kind in _UNSEEN:
            self._unseen_until = self._clock() + CLOSING_S
        self._digest = folded(self._digest, sql)
        is_repeatable = self._statements is not None and len(sql) <= _STATEMENT_CHARS_MAX
        self._statements = (*(self._statements or ()), sql) if is_repeatable else None
        if self._statements is not None and len(self._statements) > _STATEMENTS_MAX:
            self._statements = None
        self._changing.discard(change)
