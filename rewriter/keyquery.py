"""The SQL that fetches a reducer's key set, in the client's own session and words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KeyQuery:
    """A query for the distinct keys of a small side.

    Its rows are `(key, type)`: the type that the key has as the query runs, so that a stale catalog can never
    lead to a literal of the wrong type. One row more than the cap tells that there are too many.
    """

    sql: str
    type_name: str
    rows_max: int


def key_query(*, source: str, key: str, filters: tuple[str, ...], type_name: str, rows_max: int) -> KeyQuery:
    """Compose a key query from the client's text of the small side and of the filters that read it alone.

    >>> key_query(
    ...     source="dates d", key="d.`ds`", filters=("d.y = 2026",), type_name="string", rows_max=9
    ... ).sql
    'SELECT DISTINCT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.y = 2026) LIMIT 10'
    """
    where = f" WHERE {' AND '.join(f'({text})' for text in filters)}" if filters else ""
    select = f"SELECT DISTINCT {key} AS key, typeof({key}) AS type"
    sql = f"{select} FROM {source}{where} LIMIT {rows_max + 1}"
    return KeyQuery(sql, type_name, rows_max)
