"""Groups of statements: by table, by user, by client, and by label."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from proxy.history.savings import Savings, savings

By: TypeAlias = Literal["table", "user", "client", "label"]
GROUPED_BY: Final[tuple[By, ...]] = get_args(By)

# A plus or CROSS keeps SQLite to the index of sums: by the index of users or tables, SQLite would read each row.
_TABLES: Final = ("+t.name", "CROSS JOIN tables AS t ON t.id = s.id")
# Lines of one page.
_GROUPS_MAX: Final = 200
_LINES: Final = """
SELECT {column}, count(*), count(*) FILTER (WHERE outcome = 'rewritten'), total(total_s),
  total(partitions_total - partitions_kept) FILTER (WHERE outcome = 'rewritten'),
  total(partitions_total) FILTER (WHERE outcome = 'rewritten' AND partitions_kept IS NOT NULL),
  total(total_s) FILTER (WHERE outcome = 'original' AND {is_candidate})
FROM statements AS s {join} WHERE {where} GROUP BY 1 ORDER BY 4 DESC LIMIT ?
"""


class Group(msgspec.Struct):
    """The statements of a table, a user, a client or a label; the name is null where there is none."""

    name: str | None
    runs: int
    rewritten: int
    seconds: float
    # Of finished rewritten runs of which the numbers are known.
    partitions_spared: float
    partitions_total: float
    # Of originals that had something to decide.
    left_s: float
    savings: Savings = msgspec.field(default_factory=Savings)


def groups(
    connection: sqlite3.Connection, by: By, where: str, values: Sequence[object], is_candidate: str
) -> list[Group]:
    """The groups of statements that satisfy a condition, those that took most seconds in all first."""
    column, join = grouping = _TABLES if by == "table" else (f"+s.{by}", "")
    question = _LINES.format(column=column, join=join, where=where, is_candidate=is_candidate)
    saved = savings(connection, where, values, grouping=grouping)
    lines = [Group(*row) for row in connection.execute(question, (*values, _GROUPS_MAX))]
    for line in lines:
        line.savings = saved.get(line.name, Savings())
    return lines
