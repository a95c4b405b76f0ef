"""Seconds at stake: the time of statements that finished as originals, by the reasons for which they stayed so."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

# Tables of a reason that are named.
_TABLES_MAX: Final = 3
# One statement may have several reasons, and a reason several tables of it: each counts it once.
_STAKES: Final = """
WITH stays AS MATERIALIZED (
  SELECT s.id, r.reason, r.table_name, s.deciding_s + s.run_s AS took
  FROM statements AS s JOIN reasons AS r ON r.id = s.id
  WHERE {where} AND s.outcome = 'original' AND s.run_s IS NOT NULL AND r.reason NOT IN ({left_out})
)
SELECT '' AS reason, '' AS named, count(*), total(took) AS seconds, max(id)
  FROM (SELECT DISTINCT id, took FROM stays)
UNION ALL SELECT reason, '', count(*), total(took), max(id)
  FROM (SELECT DISTINCT id, reason, took FROM stays) GROUP BY reason
UNION ALL SELECT reason, table_name, count(*), total(took), max(id)
  FROM stays WHERE table_name <> '' GROUP BY 1, 2
"""


class Stake(msgspec.Struct):
    """A reason, and the statements that stayed original for it."""

    reason: str
    statements: int
    seconds: float
    last_id: str
    # Those of them that took most.
    tables: list[str]


class Stakes(msgspec.Struct):
    """All statements that stayed original, each once, and the reasons, those that took most seconds first."""

    statements: int
    seconds: float
    by_reason: list[Stake]


def stakes(
    connection: sqlite3.Connection, where: str, values: Sequence[object], left_out: Sequence[str]
) -> Stakes:
    """The stakes of statements that satisfy a condition, without these reasons."""
    marks = ", ".join("?" * len(left_out))
    question = _STAKES.format(where=where, left_out=marks)
    rows = connection.execute(question, (*values, *left_out)).fetchall()
    # The lines of reasons before those of their tables, each by its seconds.
    rows.sort(key=lambda row: (bool(row[1]), -row[3]))
    found: dict[str, Stake] = {}
    for reason, table, statements, seconds, last_id in rows:
        stake = found.setdefault(reason, Stake(reason, statements, seconds, last_id, []))
        if table and len(stake.tables) < _TABLES_MAX:
            stake.tables.append(table)
    everything = found.pop("")
    return Stakes(everything.statements, everything.seconds, list(found.values()))
