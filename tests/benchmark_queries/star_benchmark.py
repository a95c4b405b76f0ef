"""A published benchmark over star schemas: its queries in Spark's words, and its tables in DuckDB."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from duckdb import DuckDBPyConnection

from rewriter import Catalog, Column, TableFacts, TableName

# Enough for the benchmarks' own types; DECIMAL(p,s) is spelled alike.
_SPARK_TYPES = {"VARCHAR": "string", "BIGINT": "bigint", "INTEGER": "int", "DATE": "date"}

# Which of several rows that sort alike a LIMIT keeps is not promised, so answers are compared without it.
_FINAL_LIMIT = re.compile(r"\s+LIMIT\s+\d+\s*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class StarBenchmark:
    """The tables are loaded when this is made. Facts are partitioned by the column that holds their date."""

    queries: Mapping[str, str]
    partition_columns: Mapping[str, str]
    connection: DuckDBPyConnection

    @cached_property
    def tables(self) -> dict[str, TableFacts]:
        """What a session on Spark would learn of each table."""
        names = [str(name) for (name,) in self.connection.execute("SHOW TABLES").fetchall()]
        return {name: self._facts(name) for name in names}

    def _facts(self, table: str) -> TableFacts:
        rows = self.connection.execute(f"DESCRIBE {table}").fetchall()
        columns = tuple(Column(row[0], _SPARK_TYPES.get(row[1], str(row[1]).lower())) for row in rows)
        partition_column = self.partition_columns.get(table)
        return TableFacts(columns, () if partition_column is None else (partition_column,))

    def catalog(self, names: frozenset[TableName]) -> Catalog:
        """The facts under the names that a statement uses, None where a name is no table."""
        return {name: self.tables.get(name.parts[-1].lower()) for name in names}

    @cached_property
    def partitions(self) -> dict[str, list[str]]:
        """Each fact's partitions as SHOW PARTITIONS spells them, without the one for null."""
        return {table: self._partitions(table, column) for table, column in self.partition_columns.items()}

    def _partitions(self, table: str, column: str) -> list[str]:
        sql = f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY ALL"
        return [f"{column}={value}" for (value,) in self.connection.execute(sql).fetchall()]

    def unlimited(self, query: str) -> str:
        """The query without its final LIMIT: every row of its answer."""
        return _FINAL_LIMIT.sub("", self.queries[query])
