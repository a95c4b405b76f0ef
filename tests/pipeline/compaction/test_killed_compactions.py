"""Compactions on real tables that are killed before a change to files or catalog, and what others do then.

STARPRUNER_DEEP=1 kills before every change.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.loaded_tables import answers, quietly
from support.profile import DEEP

from pipeline.compaction.compaction import Compaction, compact
from pipeline.compaction.plan import Limits
from pipeline.spark.errors import PipelineError
from pipeline.tables.partitions import CatalogLocations
from pipeline.tables.reserved_paths import EXCHANGES
from pipeline.tables.storage import Storage

# More than any of these compactions makes.
CHANGES_MAX = 100
# When the catalog has just been told of the second place; and on the way home, with half of the old files deleted.
SOME_CHANGES = (10, 18)
BEFORE = Counter([(1, 1), (2, 1)])
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
KINDS = ["managed", "external", "managed, partitioned", "external, partitioned"]


class KilledError(BaseException):
    """From here on the process does nothing more to files and catalog."""


@contextmanager
def killed(monkeypatch: pytest.MonkeyPatch, change: int) -> Iterator[None]:
    """Ends the process, as far as others can tell, before the change of that number."""
    left = [change]

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object) -> object:
            if left[0] == 0:
                raise KilledError
            left[0] -= 1
            return function(*arguments)

        return called

    with monkeypatch.context() as patch:
        for owner, names in (
            (Storage, ("move", "copy", "delete", "create")),
            (CatalogLocations, ("set_location",)),
        ):
            for name in names:
                patch.setattr(owner, name, counted(getattr(owner, name)))
        yield


@pytest.fixture
def spark(local_spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """With a database of the test's own."""
    local_spark.sql(f"CREATE DATABASE killed LOCATION '{tmp_path / 'killed'}'")
    yield local_spark
    local_spark.sql("DROP DATABASE killed CASCADE")


def made(spark: SparkSession, kind: str, place: Path, name: str) -> str:
    """A table of two small files."""
    table = f"killed.{name}"
    partitioned = "PARTITIONED BY (p)" if "partitioned" in kind else ""
    location = f"LOCATION '{place / name}'" if "external" in kind else ""
    spark.sql(f"CREATE TABLE {table} (id INT, p INT) USING parquet {partitioned} {location}")
    for row in (1, 2):
        spark.sql(f"INSERT INTO {table} VALUES ({row}, 1)")
    return table


def compacted(spark: SparkSession, table: str) -> None:
    compact(spark, Compaction(table, limits=Limits(files_min=2), grace_s=0, keep_s=0), quietly)


def is_killed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, table: str, change: int) -> bool:
    """Compacts it, until it is killed if it makes so many changes."""
    with killed(monkeypatch, change):
        try:
            compacted(spark, table)
        except KilledError:
            return True
    return False


Kills = Callable[[str], Iterator[tuple[int, str]]]


@pytest.fixture
def kills(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kills:
    """Tables of a kind whose compaction was killed, each before another change."""

    def tables(kind: str) -> Iterator[tuple[int, str]]:
        for change in range(CHANGES_MAX) if DEEP else SOME_CHANGES:
            table = made(spark, kind, tmp_path, f"t{change}")
            was_killed = is_killed(spark, monkeypatch, table, change)
            yield change, table
            spark.sql(f"DROP TABLE {table}")
            if not was_killed:
                assert DEEP, "some of the changes are none"
                return

    return tables


def refusal(spark: SparkSession, table: str) -> str | None:
    """Why the table is not compacted, if it is not."""
    try:
        compacted(spark, table)
    except PipelineError as error:
        return str(error)
    return None


def is_away(spark: SparkSession, table: str) -> bool:
    spark.sql(f"REFRESH TABLE {table}")
    return any(EXCHANGES in path for path in spark.table(table).inputFiles())


@pytest.mark.parametrize("kind", KINDS)
def test_a_compaction_that_is_killed_is_finished_by_the_next(spark: SparkSession, kills: Kills, kind: str) -> None:
    for change, table in kills(kind):
        assert Counter(spark.newSession().table(table).collect()) == BEFORE, change
        compacted(spark, table)
        compacted(spark, table)
        assert answers(spark, f"TABLE {table}") == BEFORE, change
        [path] = spark.table(table).inputFiles()
        assert EXCHANGES not in path, change


@pytest.mark.parametrize(
    ("kind", "mode", "statement"),
    [
        ("managed", "static", "INSERT OVERWRITE {} VALUES (7, 1)"),
        ("managed", "static", "TRUNCATE TABLE {}"),
        # Without a partition the static mode would clear the whole table, and the record too.
        ("managed, partitioned", "dynamic", "INSERT OVERWRITE {} VALUES (7, 1)"),
        ("managed, partitioned", "static", "INSERT OVERWRITE {} PARTITION (p = 1) VALUES (7)"),
        ("managed, partitioned", "static", "TRUNCATE TABLE {}"),
        ("external, partitioned", "static", "INSERT OVERWRITE {} PARTITION (p = 1) VALUES (7)"),
    ],
)
def test_a_statement_that_replaces_rows_after_a_kill_has_the_last_word(
    spark: SparkSession, kills: Kills, kind: str, mode: str, statement: str
) -> None:
    rows: Counter[object] = Counter() if "TRUNCATE" in statement else Counter([(7, 1)])
    for change, table in kills(kind):
        spark.sql(f"REFRESH TABLE {table}")
        spark.conf.set(OVERWRITE_MODE, mode)
        try:
            spark.sql(statement.format(table))
        finally:
            spark.conf.unset(OVERWRITE_MODE)
        for _ in range(3):
            assert answers(spark, f"TABLE {table}") == rows, change
            compacted(spark, table)
            spark.sql(f"REFRESH TABLE {table}")
        assert not is_away(spark, table), change


@pytest.mark.parametrize("kind", ["managed, partitioned", "external, partitioned"])
def test_a_partition_that_is_renamed_after_a_kill_keeps_its_rows(
    spark: SparkSession, kills: Kills, kind: str
) -> None:
    renamed = Counter([(1, 2), (2, 2)])
    for change, table in kills(kind):
        spark.sql(f"ALTER TABLE {table} PARTITION (p = 1) RENAME TO PARTITION (p = 2)")
        for _ in range(2):
            compacted(spark, table)
            spark.sql(f"REFRESH TABLE {table}")
            assert answers(spark, f"TABLE {table}") == renamed, change


def test_a_managed_partition_that_is_made_anew_after_a_kill_is_not_guessed(
    spark: SparkSession, kills: Kills
) -> None:
    refused = 0
    for change, table in kills("managed, partitioned"):
        was_away = is_away(spark, table)
        spark.sql(f"ALTER TABLE {table} DROP PARTITION (p = 1)")
        spark.sql(f"INSERT INTO {table} VALUES (7, 1)")
        said = refusal(spark, table)
        if said is None:
            assert answers(spark, f"TABLE {table}") == Counter([(7, 1)]), change
        else:
            # DROP deletes what is at the second place: at home there may be files of before.
            assert was_away, change
            assert "was dropped and made anew" in said
            refused += 1
    assert refused
