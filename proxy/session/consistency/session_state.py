"""What may change the answers to a session's queries beside the tables, folded into one digest."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from math import inf
from typing import Final

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.consistency.write_fence import CLOSING_S
from proxy.session.consistency.written_tables import begins_unclearly
from rewriter.sql.classify import first_word

# What begins a statement that leaves the session as it was. What it does to tables is for the write fence to see.
_LEAVING: Final = frozenset(
    """
    select values table with from show describe desc explain list
    insert create drop alter truncate update delete merge msck load analyze comment
    """.split()
)
# What of these may take a temporary view away, so that its name is that of a table again.
_OF_VIEWS: Final = frozenset({"drop", "alter"})
# What begins a statement whose text says all that it does to a session of a known state.
_FOLDED: Final = frozenset({"set", "use", "reset"})
# What gives a session something of its own under a name, a temporary view or a variable; and text that Spark
# replaces before it reads it.
_OWN: Final = re.compile(r"\b(?:temp|temporary|var|variable)\b|\$\{", re.IGNORECASE)
# Statements that set the path along which names without a database are searched, from Spark 4.2 on, or put a
# session's own functions before Spark's, from 4.3 on. Any statement may that is not known to do something else: a
# script, EXECUTE IMMEDIATE, the declaration of a variable that it executes.
_SEARCH_PATH: Final = re.compile(
    r"(?<![\w.])path\b(?!\.)|\bspark\.sql\.(?:path|defaultpath|functionresolution)\b", re.IGNORECASE
)
_NO_SEARCH_PATH: Final = frozenset("use create add call cache uncache refresh clear".split())
# What declares no variable, beside what leaves the session as it was. Anything else may: DECLARE, a script,
# EXECUTE IMMEDIATE.
_NO_VARIABLES: Final = _NO_SEARCH_PATH | {"set", "reset"}
_UNSEEN: Final = frozenset({OutcomeKind.UNKNOWN, OutcomeKind.LOST})
# Text that is looked through for these, which takes milliseconds in which the whole process waits. What is longer
# may hold any of them.
_CHARS_MAX: Final = 250_000


class SessionState:
    """Whom the backend takes a session for, how it was opened, and what it has set since.

    The same question in two sessions of the same digest has the same answer as long as no table is written.
    """

    def __init__(
        self,
        owner: tuple[str, ...],
        configuration: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        settings = (text for pair in sorted(configuration.items()) for text in pair)
        self._digest = _folded(b"", *owner, "", *settings)
        # Set and never unset, by whichever thread.
        self._is_private = False
        self._has_search_path = any(map(_SEARCH_PATH.search, configuration))
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
    def is_changing(self) -> bool:
        """Whether what names and settings mean may change from one moment to the next."""
        return bool(self._changing) or self._clock() < self._unseen_until

    @property
    def has_search_path(self) -> bool:
        """Whether a bare name may stand for another table than the one that DESCRIBE tells of.

        To Spark 4.3, DESCRIBE d is about the current database's d, whichever one a query reads by the path. A name
        of one of Spark's functions may stand for another function in the same way.
        """
        return self._has_search_path

    @property
    def has_variables(self) -> bool:
        """Whether a name that is no column's may be that of a variable."""
        return self._has_variables

    def may_be_changed_by(self, sql: str) -> bool:
        """Whether names or settings may mean something else once a statement has run."""
        word = first_word(sql)
        return self._is_private and word in _OF_VIEWS if _leaves(sql, word) else True

    def begin(self, sql: str) -> Callable[[Outcome], None] | None:
        """A statement is about to be released. Returns whom to tell of its end, if that matters."""
        word, is_clear = first_word(sql), not begins_unclearly(sql)
        if _leaves(sql, word):
            self.changes += self._is_private and word in _OF_VIEWS
            return None
        is_own = _may_hold(_OWN, sql)
        self._has_search_path |= word not in _NO_SEARCH_PATH and _may_hold(_SEARCH_PATH, sql)
        self._has_variables |= word not in _NO_VARIABLES or not is_clear
        self.changes += 1
        # Of two that change the state at once, nobody knows which came first.
        self._is_private |= word not in _FOLDED or not is_clear or is_own or self.is_changing
        change = object()
        self._changing.add(change)
        return partial(self._ended, change, sql)

    def _ended(self, change: object, sql: str, outcome: Outcome) -> None:
        """One that failed may have done a part of what it says, and one whose end was not seen may do it yet."""
        self._is_private |= outcome.kind is not OutcomeKind.FINISHED
        if outcome.kind in _UNSEEN:
            self._unseen_until = self._clock() + CLOSING_S
        self._digest = _folded(self._digest, sql)
        self._changing.discard(change)


def _leaves(sql: str, word: str) -> bool:
    """Whether a statement leaves the session as it was, but for temporary views that it may drop."""
    gives_its_own = word == "create" and _may_hold(_OWN, sql)
    return word in _LEAVING and not gives_its_own and not begins_unclearly(sql)


def _may_hold(pattern: re.Pattern[str], sql: str) -> bool:
    return len(sql) > _CHARS_MAX or pattern.search(sql) is not None


def _folded(before: bytes, *texts: str) -> bytes:
    """One digest for what was before and the texts, each told apart from the next."""
    digest = sha256(before)
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        digest.update(len(encoded).to_bytes(8))
        digest.update(encoded)
    return digest.digest()
