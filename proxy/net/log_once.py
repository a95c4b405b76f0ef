"""What the log has been told already, where each connection of a client would say it again."""

from __future__ import annotations

from typing import Final

# Addresses of clients. Past that all are forgotten, and the next one of each is said once more.
SUBJECTS_MAX: Final = 1_000


class LogOnce:
    """Whom something has been said about."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def is_news(self, subject: str) -> bool:
        """Whether nothing has been said about it yet."""
        if subject in self._told:
            return False
        if len(self._told) >= SUBJECTS_MAX:
            self._told.clear()
        self._told.add(subject)
        return True
