from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import Row, SparkSession

from pipeline.errors import PipelineError
from pipeline.index_table import known_rows
from pipeline.load import Load, load
from pipeline.skew import Skew
from pipeline.source import Source

INDEX = "load_index"
SKEW = Skew(("x",), (), top=2, share_min=0.1, values_max=100)


@pytest.fixture
def made(local_spark: SparkSession) -> Iterator[SparkSession]:
    """Drops what a test may have made, before and after it."""
    for table in ("loaded", "rows_in", INDEX):
        local_spark.sql(f"DROP TABLE IF EXISTS {table}")
    yield local_spark
    for table in ("loaded", "rows_in", INDEX):
        local_spark.sql(f"DROP TABLE IF EXISTS {table}")


def request(source: str, skew: Skew = SKEW, **others: object) -> Load:
    return replace(Load("loaded", Source(query=source), skew, INDEX), **others)  # type: ignore[arg-type]


def quietly(_: str) -> None:
    pass


def answers(spark: SparkSession, query: str) -> Counter[Row]:
    return Counter(spark.sql(query).collect())


def groups(spark: SparkSession, columns: str, partition: str = "'all'") -> dict[str, list[set[tuple[object, ...]]]]:
    """For each partition, what each of its files holds of the columns."""
    found: dict[str, dict[str, set[tuple[object, ...]]]] = defaultdict(lambda: defaultdict(set))
    for row in spark.sql(f"SELECT {partition}, _metadata.file_path, {columns} FROM loaded").collect():
        found[row[0]][row[1]].add(tuple(row[2:]))
    return {name: sorted(files.values(), key=lambda held: sorted(map(str, held))) for name, files in found.items()}


# In partition a, 10 and 20 are frequent; in partition b, 20 and 30. One row in ten has no value.
TWO_DAYS = """
SELECT CAST(id AS INT) AS id, CASE
    WHEN id % 10 = 9 THEN NULL WHEN id % 10 < 3 THEN IF(id < 100, 10, 30) WHEN id % 10 < 6 THEN 20
    ELSE CAST(1000 + id AS INT) END AS x, IF(id < 100, 'a', 'b') AS ds
FROM range(200)"""


def test_each_skewed_value_has_its_file_and_the_lists_differ_from_partition_to_partition(made: SparkSession) -> None:
    done = load(made, request(TWO_DAYS, partition_by=("ds",)), quietly)
    assert (done.rows, done.files, done.skewed_files, done.indexed_files) == (200, 6, 4, 6)
    held = groups(made, "x", "ds")
    for day, values in (("a", {10, 20}), ("b", {20, 30})):
        single = [file for file in held[day] if len(file) == 1]
        assert sorted(single, key=str) == [{(value,)} for value in sorted(values)]
        [others] = [file for file in held[day] if len(file) > 1]
        assert not others & {(value,) for value in values}
        assert (None,) in others
    assert answers(made, "SELECT id, x, ds FROM loaded") == answers(made, TWO_DAYS)


def test_the_index_says_what_each_file_holds_and_what_the_others_lack(made: SparkSession) -> None:
    load(made, request(TWO_DAYS, partition_by=("ds",)), quietly)
    rows = known_rows(made, INDEX, "spark_catalog.default.loaded").collect()
    said = {(row.columns["ds"].low, row.columns["x"].low): row for row in rows}
    assert {key for key, row in said.items() if not row.lacks} == {("a", "10"), ("a", "20"), ("b", "20"), ("b", "30")}
    others = said["a", "1006"]
    assert others.columns["x"].asDict() == {"type": "int", "low": "1006", "high": "1098", "nulls": 10}
    assert [entry.asDict() for entry in others.lacks] == [{"columns": ["x"], "tuples": [["10"], ["20"]]}]
    assert said["b", "1106"].lacks[0].tuples == [["20"], ["30"]]
    current = made.sql(
        "SELECT DISTINCT _metadata.file_path, _metadata.file_size, unix_millis(_metadata.file_modification_time), "
        "count(*) OVER (PARTITION BY _metadata.file_path) FROM loaded"
    ).collect()
    assert {tuple(row) for row in current} == {(row.path, row.size_bytes, row.modified_ms, row.rows) for row in rows}
