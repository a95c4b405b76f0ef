"""Sessions played by scripts of queries and answers."""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeAlias, TypeVar

import pytest

from proxy.config.config import Config
from proxy.operations.dispatch import Dispatch
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, ResultColumn, Rows, Value
from proxy.session.shared_state import SharedState
from support.text_session import TextSession

T = TypeVar("T")
# Work that is sent the answers to its queries.
Asking: TypeAlias = Coroutine[Any, Any, T]

SQL = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1"
KEY_QUERY = (
    "SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001"
)
NARROWED = (
    "SELECT f.id FROM (SELECT * FROM f WHERE (`ds` IN ('a') OR typeof(`ds`) <> 'string')) AS f "
    "JOIN d ON f.ds = d.ds WHERE d.g = 1"
)


def rows(*values: tuple[Value, ...]) -> Rows:
    return Rows(tuple(ResultColumn(f"c{i}", "string") for i in range(3)), values, 0.25)


def failed(kind: FailureKind) -> QueryFailed:
    return QueryFailed(kind, "a message with 'values' in it", 0.25)


PARTITION_INFORMATION = ("# Partition Information", "", ""), ("# col_name", "", ""), ("ds", "string", "")
DETAILS = ("# Detailed Table Information", "", ""), ("Type", "MANAGED", ""), ("Provider", "parquet", "")
IDENTITY = tuple((name, "f", "") for name in ("Catalog", "Database", "Table", "Location", "Created Time"))
F = rows(("id", "int", ""), ("ds", "string", ""), *PARTITION_INFORMATION, *DETAILS, *IDENTITY)
D = rows(("ds", "string", ""), ("g", "int", ""), *DETAILS)
DESCRIBE = [("DESCRIBE TABLE EXTENDED `d`", D), ("DESCRIBE TABLE EXTENDED `f`", F)]
# What a server says of its settings where nobody has set any.
SETTINGS = ("SET", rows())
Script: TypeAlias = list[tuple[str, QueryResult]]
KEYS = (KEY_QUERY, rows(("a", "string"), (None, "string")))
MANY_KEYS = (KEY_QUERY, rows(*((f"2026-01-{day:02}", "string") for day in range(1, 29, 1))))
LISTED = ("SHOW PARTITIONS `f`", rows(*((f"ds=2026-01-{day:02}",) for day in range(1, 32))))
WITHIN = "`ds` BETWEEN '2026-01-01' AND '2026-01-28'"


def of(config: Config) -> TextSession:
    return TextSession(SharedState.of(config, lambda: 0.0))


def played(queries: Asking[T], script: Sequence[tuple[str, QueryResult]]) -> T:
    """Answer the queries in order; each must be the one that the script has next.

    What the server's settings are is no part of most scripts.
    """
    remaining = list(script)
    answer: QueryResult | None = None
    while True:
        try:
            query: Query = queries.send(answer)
        except StopIteration as done:
            assert not remaining, f"never asked: {remaining}"
            result: T = done.value
            return result
        if query.sql == SETTINGS[0] and (not remaining or remaining[0][0] != SETTINGS[0]):
            answer = SETTINGS[1]
            continue
        assert remaining, f"not in the script: {query.sql}"
        expected, answer = remaining.pop(0)
        assert query.sql == expected, f"asked: {query.sql}"


def begun(queries: Asking[T], script: Sequence[tuple[str, QueryResult]] = ()) -> Query:
    """The query of a dialogue behind that for the settings, and those of a script."""
    assert queries.send(None).sql == SETTINGS[0]
    query: Query = queries.send(SETTINGS[1])
    for expected, answer in script:
        assert query.sql == expected
        query = queries.send(answer)
    return query


def ended(queries: Asking[T], answer: QueryResult) -> T:
    """The result of a dialogue that ends with this answer."""
    with pytest.raises(StopIteration) as end:
        queries.send(answer)
    result: T = end.value.value
    return result


def sent(dispatch: Asking[Dispatch], script: Sequence[tuple[str, QueryResult]]) -> str:
    """The text that goes to the backend, after the script's queries have been answered."""
    return played(dispatch, script).text
