"""File hints on the server: what they name is not read, and what is not just as it was named is."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyhive import hive

from demo.hive import Row, run
from demo.metrics import SparkUi
from rewriter.files.file_index import FileFacts, file_hint

# Directories are named after these, percent-encoded once by Spark and once more where it names their files.
_PARTITIONS = ("plain", "a b", "c%d", "e=f/g", "it''s", "é中", "x|y:z")

_ROWS = "SELECT id AS x, element_at(array({}), CAST(1 + id % 7 AS INT)) AS p FROM range(0, 700, 1, 1)"


def files_of(session: hive.Connection, table: str) -> list[FileFacts]:
    """The files of a table as Spark names them, each with its row count."""
    found = run(
        session,
        "SELECT _metadata.file_path, _metadata.file_size, unix_millis(_metadata.file_modification_time), count(*) "
        f"FROM {table} GROUP BY ALL ORDER BY 1",
    )
    return [FileFacts(path, size, time, rows, {}, ()) for path, size, time, rows in found]


def without(table: str, misses: Sequence[FileFacts], *, doubt: str = "FALSE") -> str:
    """A query of all rows but those of some files, as a narrowed scan has it."""
    hint, named = file_hint(misses, 1_000_000)
    assert len(named) == len(misses)
    return f"SELECT * FROM (SELECT * FROM {table} WHERE ({hint} OR {doubt})) t"


def create(session: hive.Connection, table: str, body: str) -> None:
    run(session, f"DROP TABLE IF EXISTS {table}")
    run(session, f"CREATE TABLE {table} {body}")


@pytest.mark.parametrize("provider", ["parquet", "orc", "csv", "json"])
@pytest.mark.parametrize("clause", ["", "PARTITIONED BY (p)"], ids=["whole", "partitioned"])
def test_files_that_a_hint_names_are_not_read(
    direct: hive.Connection, spark_ui: SparkUi, provider: str, clause: str
) -> None:
    table = "hinted"
    values = ", ".join(f"'{value}'" for value in _PARTITIONS)
    create(direct, table, f"USING {provider} {clause} AS {_ROWS.format(values)}")
    for _ in range(2):
        run(direct, f"INSERT INTO {table} {_ROWS.format(values)}")
    files = files_of(direct, table)
    misses, left = files[1::2], files[::2]
    assert len(files) == (21 if clause else 3)
    before = spark_ui.last_execution()
    rows = run(direct, without(table, misses, doubt="typeof(`x`) <> 'bigint'"))
    metrics = spark_ui.scans_of(table, after=before)
    assert metrics.files_read == len(left)
    assert len(rows) == sum(facts.rows or 0 for facts in left)
    before = spark_ui.last_execution()
    assert len(run(direct, without(table, misses, doubt="typeof(`x`) <> 'int'"))) == 2_100
    assert spark_ui.scans_of(table, after=before).files_read == len(files)


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("count", [1, 11, 401, 4_000])
def test_a_hint_may_name_files_by_the_thousand(
    direct: hive.Connection, spark_ui: SparkUi, count: int, *, ansi: bool
) -> None:
    create(direct, "hinted", "USING parquet AS SELECT /*+ REPARTITION(3) */ id AS x FROM range(0, 30)")
    files = files_of(direct, "hinted")
    others = [FileFacts(f"file:/gone/part-{number:05d}", number, number, 1, {}, ()) for number in range(count - 1)]
    run(direct, f"SET spark.sql.ansi.enabled={ansi}".lower())
    before = spark_ui.last_execution()
    rows = run(direct, without("hinted", [files[1], *others]))
    assert spark_ui.scans_of("hinted", after=before).files_read == len(files) - 1
    assert len(rows) == 30 - (files[1].rows or 0)


def test_a_path_may_hold_what_literals_escape(direct: hive.Connection, spark_ui: SparkUi, tmp_path: Path) -> None:
    folder = tmp_path / "it's $x; -- é"
    create(direct, "hinted", f"""USING parquet LOCATION "{folder}" AS SELECT 1 AS x""")
    run(direct, "INSERT INTO hinted VALUES (2)")
    one, other = files_of(direct, "hinted")
    before = spark_ui.last_execution()
    assert len(run(direct, without("hinted", [one]))) == 1
    assert spark_ui.scans_of("hinted", after=before).files_read == 1
    assert run(direct, without("hinted", [one, other])) == []


def test_a_file_that_came_after_the_index_is_read(direct: hive.Connection) -> None:
    create(direct, "hinted", "USING parquet AS SELECT 1 AS x")
    misses = files_of(direct, "hinted")
    assert run(direct, without("hinted", misses)) == []
    run(direct, "INSERT INTO hinted VALUES (2)")
    assert run(direct, without("hinted", misses)) == [(2,)]
    run(direct, "INSERT OVERWRITE hinted VALUES (3)")
    assert run(direct, without("hinted", misses)) == [(3,)]


def on_disk(facts: FileFacts) -> Path:
    return Path(unquote(facts.path.removeprefix("file:")))


def put(source: Path, target: Path) -> None:
    """Write a file again under its old name, as a writer does that reuses names."""
    target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
    shutil.copyfile(source, target)


def rewritten(session: hive.Connection) -> tuple[FileFacts, list[Row]]:
    """A file as it was indexed, after its rows became other ones; and these."""
    create(session, "hinted", "USING parquet AS SELECT 1 AS x")
    create(session, "other", "USING parquet AS SELECT 7 AS x")
    (facts,), (other,) = files_of(session, "hinted"), files_of(session, "other")
    put(on_disk(other), on_disk(facts))
    run(session, "REFRESH TABLE hinted")
    return facts, [(7,)]


def test_a_file_with_new_rows_under_its_old_name_is_read(direct: hive.Connection) -> None:
    facts, rows = rewritten(direct)
    (now,) = files_of(direct, "hinted")
    assert now.path == facts.path
    assert run(direct, without("hinted", [facts])) == rows


def test_a_file_of_the_same_name_and_size_but_of_another_time_is_read(direct: hive.Connection) -> None:
    facts, rows = rewritten(direct)
    (now,) = files_of(direct, "hinted")
    earlier = FileFacts(now.path, now.size_bytes, now.modified_ms - 1, None, {}, ())
    assert now.size_bytes == facts.size_bytes, "one integer takes as many bytes as another"
    assert run(direct, without("hinted", [earlier])) == rows
    assert run(direct, without("hinted", [now])) == []
