"""Small tables to load, and what tests ask of a loaded one."""

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

from pyspark.sql import Row, SparkSession

from pipeline.load.load import Load, Loaded, load
from pipeline.load.skew import Skew
from pipeline.load.source import Source

FOUND = Skew(("x",), (), top=2, share_min=0.1, values_max=100)

# In partition a, 10 and 20 are frequent; in partition b, 20 and 30. One row in ten has no value.
TWO_DAYS = """
SELECT CAST(id AS INT) AS id, CASE
    WHEN id % 10 = 9 THEN NULL WHEN id % 10 < 3 THEN IF(id < 100, 10, 30) WHEN id % 10 < 6 THEN 20
    ELSE CAST(1000 + id AS INT) END AS x, IF(id < 100, 'a', 'b') AS ds
FROM range(200)"""


def quietly(_: str) -> None:
    pass


def load_query(spark: SparkSession, table: str, query: str, skew: Skew = FOUND, **others: Any) -> Loaded:
    """Loads a query's rows, and indexes them in <table>_index."""
    request = replace(Load(table, Source(query=query), skew, f"{table}_index"), **others)
    return load(spark, request, quietly)


def answers(spark: SparkSession, query: str) -> Counter[Row]:
    """The rows of a query, as often as they come."""
    return Counter(spark.sql(query).collect())


def held(spark: SparkSession, table: str, columns: str, partition: str = "'all'") -> dict[Any, list[set[Any]]]:
    """For each partition, what each of its files holds of the columns; the smallest first."""
    found: dict[Any, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for row in spark.sql(f"SELECT {partition}, _metadata.file_path, struct({columns}) FROM {table}").collect():
        found[row[0]][row[1]].add(tuple(row[2]))
    return {name: sorted(files.values(), key=lambda file: (len(file), str(file))) for name, files in found.items()}
