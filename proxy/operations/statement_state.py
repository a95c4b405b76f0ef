"""The states of a statement that went to the backend, and which may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class StatementState(Enum):
    """The progress of a statement, and the part of its answer that the client knows.

    Example: a rewritten statement that fails and then works goes SENT, FALLING_BACK_FAILED, SENT_AGAIN, OVER.
    """

    ORIGINAL_SENT = "sent as the original"
    # Rewritten, and the client knows nothing of its answer.
    SENT = "sent"
    # The client knows its columns: it was analysed in the session state for which it was rewritten.
    COLUMNS_SHOWN = "columns shown"
    # The client knows that it finished. Its first rows may still bring an error: Spark may compute them as they
    # are fetched.
    FINISHED_AWAITING_ROWS = "finished, awaiting rows"
    # The rewritten statement failed, and the original is being sent.
    FALLING_BACK_FAILED = "failed, falling back"
    # Its answer was overtaken, and the original is being sent. Nothing of the first operation is let out.
    FALLING_BACK_OVERTAKEN = "overtaken, falling back"
    # The backend runs the original.
    SENT_AGAIN = "sent again as the original"
    # Its answer was overtaken, and nothing could replace it; or it writes, and nobody knows the end of its
    # original. The client has been told so, and is told so again.
    WITHHELD = "withheld"
    OVER = "over"


_S = StatementState

FOLLOWING: Final[Mapping[StatementState, frozenset[StatementState]]] = {
    _S.ORIGINAL_SENT: frozenset({_S.OVER}),
    _S.SENT: frozenset(
        {
            _S.COLUMNS_SHOWN,
            _S.FINISHED_AWAITING_ROWS,
            _S.FALLING_BACK_FAILED,
            _S.FALLING_BACK_OVERTAKEN,
            _S.WITHHELD,
            _S.OVER,
        }
    ),
    _S.COLUMNS_SHOWN: frozenset(
        {
            _S.FINISHED_AWAITING_ROWS,
            _S.FALLING_BACK_FAILED,
            _S.FALLING_BACK_OVERTAKEN,
            _S.WITHHELD,
            _S.OVER,
        }
    ),
    _S.FINISHED_AWAITING_ROWS: frozenset({_S.FALLING_BACK_FAILED, _S.OVER}),
    _S.FALLING_BACK_FAILED: frozenset({_S.SENT_AGAIN, _S.WITHHELD, _S.OVER}),
    _S.FALLING_BACK_OVERTAKEN: frozenset({_S.SENT_AGAIN, _S.WITHHELD}),
    _S.SENT_AGAIN: frozenset({_S.OVER}),
    _S.WITHHELD: frozenset(),
    _S.OVER: frozenset(),
}

# Rewritten, and the client has been told neither that it finished nor that it failed: its premises are checked
# before the client is told.
ANSWER_UNKNOWN: Final = frozenset({_S.SENT, _S.COLUMNS_SHOWN})
# The original may be run in its place, unless the statement was stopped.
MAY_FALL_BACK: Final = frozenset({_S.SENT, _S.COLUMNS_SHOWN, _S.FINISHED_AWAITING_ROWS})
# The backend runs it, as far as the client has been told.
RUNNING: Final = ANSWER_UNKNOWN | {_S.ORIGINAL_SENT, _S.SENT_AGAIN}
FALLING_BACK: Final = frozenset({_S.FALLING_BACK_FAILED, _S.FALLING_BACK_OVERTAKEN})
# No answer of its operation is let out.
KEPT_FROM_CLIENT: Final = frozenset({_S.FALLING_BACK_OVERTAKEN, _S.WITHHELD})
# Its answer has to be judged before it is let out, so its record is kept until it is closed.
UNSETTLED: Final = ANSWER_UNKNOWN | KEPT_FROM_CLIENT
# Replies about it are kept back until they have been judged.
JUDGED: Final = MAY_FALL_BACK | FALLING_BACK | KEPT_FROM_CLIENT
# Its first rows tell its end.
ENDS_WITH_ROWS: Final = frozenset({_S.FINISHED_AWAITING_ROWS, _S.SENT_AGAIN}) | FALLING_BACK
ENDED: Final = frozenset({_S.WITHHELD, _S.OVER})
