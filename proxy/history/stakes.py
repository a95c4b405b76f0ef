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
WITH kept AS (
  SELECT s.id, r.reason, r.table_name, s.total_s AS took
  FROM statements AS s JOIN reasons AS r ON r.id = s.id
  WHERE {where} AND s.outcome = 'original' AND s.run_s IS NOT NULL AND r.reason NOT IN ({left_out})
)
SELECT '', '', count(*), total(took) FROM (SELECT DISTINCT id, took FROM kept)
UNION ALL SELECT reason, '', count(*), total(took) FROM (SELECT DISTINCT id, reason, took FROM kept) GROUP BY 1
UNION ALL SELECT reason, table_name, count(*), total(took) FROM kept WHERE table_name <> '' GROUP BY 1, 2
"""


class Stake(msgspec.Struct):
    """The statements that stayed original for a reason, or for any where it is empty."""

    reason: str
    statements: int
    seconds: float
    # Those of them that took most.
    tables: list[str] = []


def stakes(
    connection: sqlite3.Connection, where: str, values: Sequence[object], left_out: Sequence[str]
) -> list[Stake]:
    """The stakes of statements that satisfy a condition: all together, then by reason, the most time first."""
    question = _STAKES.format(where=where, left_out=", ".join("?" * len(left_out)))
    rows = connection.execute(question, (*values, *left_out)).fetchall()
    found: dict[str, Stake] = {}
    # Each reason comes before its tables.
    for reason, table, *sums in sorted(rows, key=lambda row: (row[0] != "", row[1] != "", -row[3])):
        stake = found.setdefault(reason, Stake(reason, *sums))
        if table and len(stake.tables) < _TABLES_MAX:
            stake.tables.append(table)
    return list(found.values())
