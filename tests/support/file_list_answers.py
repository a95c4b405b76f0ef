"""The file index as the server answers for it."""

from proxy.operations.query import QueryResult
from rewriter import Column, TableFacts, TableName
from support.played_sessions import rows

TABLES = (
    "SELECT table_name, count(*), sum(size_bytes), unix_micros(CAST(max(indexed_at) AS TIMESTAMP))"
    " FROM `s`.`files` GROUP BY table_name"
)
FILES = (
    "SELECT path, size_bytes, modified_ms, `rows`, to_json(columns), to_json(lacks) FROM `s`.`files`"
    " WHERE table_name = 'c.d.t'"
)
FACTS = TableFacts((Column("X", "int"), Column("y", "string")), full_name=TableName(("c", "D", "t")))


def indexed(files: int = 1, at: int = 5) -> tuple[str, QueryResult]:
    return TABLES, rows(("c.d.t", files, 100, at), ("c.d.other", 3, 30, 1))
