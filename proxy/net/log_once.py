"""Log messages that are written once for a client, and not for each of its connections."""

from __future__ import annotations

from typing import Final

# Addresses of clients. At that many all are forgotten, and each may be logged once more.
LOGGED_SUBJECTS_MAX: Final = 1_000


class LogOnce:
    """The subjects, such as a client's address, that the log has mentioned."""

    def __init__(self) -> None:
        self._mentioned: set[str] = set()

    def is_first_mention(self, subject: str) -> bool:
        """Remember the subject. Returns whether the log has not mentioned it yet."""
        if subject in self._mentioned:
            return False
        if len(self._mentioned) >= LOGGED_SUBJECTS_MAX:
            self._mentioned.clear()
        self._mentioned.add(subject)
        return True
