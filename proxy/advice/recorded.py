"""Statements of the history for which a layout may be wanted: one text for each fingerprint and database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proxy.history.record import TEXT_CHARS_MAX, id_of_time
from proxy.history.store import FILE_NAME, connect
from proxy.statements.literals import LITERAL, without_literals

# A max() among the columns makes SQLite take the others from its row: the newest text. Shadowed statements are
# parsed too, and have no fingerprint but that of their shadow run.
_STATEMENTS: Final = """
SELECT fingerprint, json_extract(CAST(record AS TEXT), '$.database') AS database, count(*),
  total(total_s), max(id), original
FROM statements
WHERE id >= ? AND fingerprint IS NOT NULL AND outcome IN ('rewritten', 'original', 'fallback')
GROUP BY fingerprint, database ORDER BY 4 DESC
"""


class HistoryMissingError(Exception):
    """There are no statements to advise on. The message is a sentence for the user."""


@dataclass(frozen=True)
class RecordedStatement:
    """The runs of one fingerprint in one database, by the text of the newest one."""

    fingerprint: str
    database: str
    text: str
    runs: int
    # Of all runs, deciding included.
    seconds: float
    last_id: str


@dataclass(frozen=True)
class Recorded:
    """The statements that took most seconds, and the number of those that were left out."""

    statements: tuple[RecordedStatement, ...]
    left_out: int = 0
    # The number of those whose text is kept without its literals, or not as a whole.
    unusable: int = 0


def recorded(path: Path, since: float, *, database: str | None = None, statements_max: int) -> Recorded:
    """The statements of a history since a time. Raises HistoryMissingError."""
    file = path / FILE_NAME if path.is_dir() else path
    try:
        if not file.exists():
            raise HistoryMissingError(f"there is no history in {path}: name the directory of history.path")
        with closing(connect(file, reads_only=True)) as connection:
            rows = connection.execute(_STATEMENTS, (id_of_time(since),)).fetchall()
    except (sqlite3.Error, OSError) as error:
        raise HistoryMissingError(f"the history {file} cannot be read: {error}") from error
    found = [
        RecordedStatement(fingerprint, in_database or "", text, runs, seconds, last_id)
        for fingerprint, in_database, runs, seconds, last_id, text in rows
        if database is None or in_database == database
    ]
    if not found:
        raise HistoryMissingError(
            f"the history {file} has no statement of that time that could be parsed: let statements with joins run"
            " through the proxy first, or ask for more --days"
        )
    usable = [each for each in found if is_whole(each.text)]
    if not usable:
        raise HistoryMissingError(
            f"the history {file} has no texts with their literals, without which no keys can be asked for: set"
            " history.literals = true, and let statements run"
        )
    kept = tuple(usable[:statements_max])
    return Recorded(kept, left_out=len(usable) - len(kept), unusable=len(found) - len(usable))


def is_whole(text: str) -> bool:
    """True if the text was kept whole, with its literals.

    >>> is_whole("SELECT 1 FROM t WHERE a = '?'"), is_whole("SELECT ? FROM t")
    (True, False)
    """
    if len(text) > TEXT_CHARS_MAX:
        return False
    return LITERAL not in text or without_literals(text) != text
