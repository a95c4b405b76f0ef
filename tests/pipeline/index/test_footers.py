"""Bounds from footers against the values that Spark reads, for every type of key."""

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pyspark.sql import SparkSession

from pipeline.index.file_listing import certain_bounds, file_profiles
from pipeline.index.footers import FooterReader
from pipeline.index.indexed_table import IndexedTable, find_indexed_table
from pipeline.index.orc_bounds import OrcFooter
from pipeline.index.parquet_bounds import ABSENT, ParquetFooter
from pipeline.index.row_groups import RUNS_MAX, row_group_runs
from pipeline.index.rows import FileColumnBounds, IndexedFile
from pipeline.index.scan_bounds import ScanReader

Footer: TypeAlias = ParquetFooter | OrcFooter
FooterOf: TypeAlias = Callable[[str, str, Mapping[str, Any]], Footer]

COLUMNS = """b TINYINT, h SMALLINT, i INT, l BIGINT, t BOOLEAN, d DATE, s STRING,
d9 DECIMAL(9,2), d18 DECIMAL(18,0), d38 DECIMAL(38,10), `nested.name` INT, st STRUCT<a: INT>, after INT, f INT"""
SEED = 20261120
FILES = 6
ROWS = 450
TEXTS = ("", "a", "é", "\U0001f600", "z" * 2000, "a\nb", "Zürich", "zzz", "A", "\uffee")


def some_row(chance: random.Random, file: int) -> tuple[object, ...]:
    """Values of all sizes; the last file has nothing but nulls, and each has its own share of them."""
    nulls = 1.0 if file == FILES - 1 else file / FILES
    whole = 10 ** chance.randint(0, 37)
    values = (
        *(chance.randint(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)),
        chance.random() < file / 2,
        date(1582, 10, 15) + timedelta(chance.randint(-3 if file == 1 else 0, 3_000_000)),
        chance.choice(TEXTS[:3] if file % 2 else TEXTS),
        Decimal(chance.randint(-(10**9) + 1, 10**9 - 1)).scaleb(-2),
        Decimal(chance.randint(-(10**18) + 1, 10**18 - 1)),
        Decimal(f"{chance.randint(-whole, whole)}E-10"),
        chance.randint(-5, 5),
        (chance.randint(-5, 5),),
        chance.randint(-5, 5),
    )
    return *(None if chance.random() < nulls else value for value in values), file


@pytest.fixture(scope="module", params=["parquet", "orc"])
def of_all_types(local_spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[IndexedTable]:
    chance = random.Random(SEED)  # noqa: S311 - for data
    rows = [some_row(chance, file) for file in range(FILES) for _ in range(ROWS)]
    name = f"default.all_types_{request.param}"
    local_spark.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING {request.param} PARTITIONED BY (f) "
        f"OPTIONS ('parquet.block.size' = '4096', 'parquet.page.size.row.check.min' = '50')"
    )
    local_spark.createDataFrame(rows, COLUMNS).coalesce(1).write.insertInto(name)
    yield find_indexed_table(local_spark, name)
    local_spark.sql(f"DROP TABLE {name}")


def by_footers(spark: SparkSession, table: IndexedTable, files: list[IndexedFile]) -> dict[str, IndexedFile]:
    return {file.path: file for file in FooterReader(spark, table).read(files)}


def test_footers_say_exactly_what_spark_reads(local_spark: SparkSession, of_all_types: IndexedTable) -> None:
    reader = ScanReader.of(local_spark, of_all_types)
    files = reader.listed("TRUE", FILES + 1)
    told = by_footers(local_spark, of_all_types, files)
    assert len(told) == len(files) == FILES
    # Whose name could be a nested one's is read by Spark, and ORC knows no such doubt.
    unsaid = {"nested.name"} if of_all_types.provider == "parquet" else set()
    for read in file_profiles(reader.session, of_all_types, of_all_types.data_columns, "TRUE", FILES + 1):
        said = told[read.path].columns
        assert said.keys() == of_all_types.columns.keys() - unsaid
        for name in of_all_types.data_columns.keys() - unsaid:
            assert as_values(said[name]) == as_values(read.columns[name]), f"{name} of {read.path}, seed {SEED}"


def as_values(bounds: FileColumnBounds) -> tuple[object, ...]:
    is_decimal = bounds.type_name.startswith("decimal")
    low, high = (Decimal(text) if is_decimal and text is not None else text for text in (bounds.low, bounds.high))
    return bounds.type_name, low, high, bounds.nulls


def test_the_row_groups_of_a_parquet_file_count_together(local_spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "groups")
    frame = local_spark.sql("SELECT id AS x, CAST(id % 7 AS STRING) AS s FROM range(0, 5000, 1, 1)")
    frame.write.option("parquet.block.size", 1024).option("parquet.page.size.row.check.min", 100).parquet(folder)
    [path] = local_spark.read.parquet(folder).inputFiles()
    jvm = local_spark._jvm  # noqa: SLF001
    assert jvm is not None
    conf = local_spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    footer = ParquetFooter.open(jvm, conf, jvm.org.apache.hadoop.fs.Path(path))
    try:
        assert footer.blocks.size() > 1
        assert footer.bounds("x", "bigint") == ("0", "4999", 0)
        assert footer.bounds("s", "string") == ("0", "6", 0)
        # Of other letters, and not there.
        assert footer.bounds("X", "bigint") == footer.bounds("y", "int") == ABSENT
        # Of another type.
        assert footer.bounds("x", "int") is footer.bounds("s", "decimal(10,0)") is None
    finally:
        footer.close()


PAGES = 10


@pytest.fixture
def footer_of(local_spark: SparkSession, tmp_path: Path) -> Iterator[FooterOf]:
    """Opens the footer of the one file that a query is written to."""
    jvm = local_spark._jvm  # noqa: SLF001
    assert jvm is not None
    conf = local_spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    opened: list[Footer] = []

    def written(provider: str, query: str, options: Mapping[str, Any]) -> Footer:
        folder = str(tmp_path / f"{len(opened)}")
        local_spark.sql(query).write.format(provider).options(**options).save(folder)
        [path] = local_spark.read.format(provider).load(folder).inputFiles()
        kind = OrcFooter if provider == "orc" else ParquetFooter
        opened.append(kind.open(jvm, conf, jvm.org.apache.hadoop.fs.Path(path)))
        return opened[-1]

    yield written
    for footer in opened:
        footer.close()


VALUES = """SELECT id AS x, CAST(id * 7919 % 20000 AS INT) AS r, concat('k ], [', lpad(id, 9, '0')) AS s,
  date_add(DATE'2026-01-01', CAST(id DIV 100 AS INT)) AS d, CAST(id - 5 AS DECIMAL(9,2)) AS p,
  IF(id < 2000, NULL, id) AS n FROM range(0, 20000, 1, 1)"""


def test_the_pages_of_a_parquet_file_are_told_in_their_order(footer_of: FooterOf) -> None:
    footer = footer_of("parquet", VALUES, {"parquet.page.row.count.limit": 20_000 // PAGES})
    assert footer.row_groups("x", "bigint")[1] == ("2000", "3999")
    assert len(footer.row_groups("x", "bigint")) == PAGES
    assert footer.row_groups("s", "string")[0] == ("k ], [000000000", "k ], [000001999")
    assert footer.row_groups("d", "date")[0] == ("2026-01-01", "2026-01-20")
    assert footer.row_groups("p", "decimal(9,2)")[0] == ("-5.00", "1994.00")
    # The first page has nulls alone.
    assert footer.row_groups("n", "bigint")[0] == ("2000", "3999")
    assert len(footer.row_groups("r", "int")) == PAGES


TIMES = """SELECT timestamp_micros(1767225600000000 + id) AS at,
  TIMESTAMP_NTZ'2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) AS local,
  timestamp_micros(-2208988800000000 + id) AS old FROM range(0, 20000, 1, 1)"""
OUTPUT_TYPE = "spark.sql.parquet.outputTimestampType"


@pytest.fixture(params=["UTC", "America/Sao_Paulo"])
def zone(local_spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """A time zone of the session, which no bound depends on."""
    local_spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    local_spark.conf.unset("spark.sql.session.timeZone")
    local_spark.conf.unset(OUTPUT_TYPE)


@pytest.mark.usefixtures("zone")
def test_times_in_microseconds_have_bounds_and_pages(local_spark: SparkSession, footer_of: FooterOf) -> None:
    local_spark.conf.set(OUTPUT_TYPE, "TIMESTAMP_MICROS")
    footer = footer_of("parquet", TIMES, {"parquet.page.row.count.limit": 20_000 // PAGES})
    assert footer.bounds("at", "timestamp") == ("1767225600000000", "1767225600019999", 0)
    assert footer.bounds("local", "timestamp_ntz") == (
        "2026-01-01 00:00:00.000000",
        "2026-01-01 05:33:19.000000",
        0,
    )
    assert footer.row_groups("at", "timestamp")[1] == ("1767225600002000", "1767225600003999")
    assert len(row_group_runs("timestamp", footer.row_groups("at", "timestamp"))) == RUNS_MAX
    assert len(row_group_runs("timestamp_ntz", footer.row_groups("local", "timestamp_ntz"))) == RUNS_MAX
    # An instant is no local time: Spark casts one to the other by the session's zone.
    assert footer.bounds("at", "timestamp_ntz") == footer.bounds("local", "timestamp") == ABSENT
    old = footer.bounds("old", "timestamp")
    assert old is not None
    assert certain_bounds("timestamp", *old).low is None


@pytest.mark.parametrize("written", ["INT96", "TIMESTAMP_MILLIS"])
def test_times_of_other_units_have_no_bounds(
    local_spark: SparkSession, footer_of: FooterOf, written: str, zone: str
) -> None:
    assert zone
    local_spark.conf.set(OUTPUT_TYPE, written)
    assert footer_of("parquet", TIMES, {}).bounds("at", "timestamp") == ABSENT


@pytest.mark.usefixtures("zone")
def test_times_in_orc_have_no_bounds(footer_of: FooterOf) -> None:
    footer = footer_of("orc", TIMES, {})
    assert footer.bounds("at", "timestamp") == footer.bounds("local", "timestamp_ntz") == ABSENT


def test_row_groups_count_where_a_file_has_too_many_to_ask_for_pages(
    footer_of: FooterOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.index.parquet_bounds.PAGES_ASKED_MAX", 1)
    options = {"parquet.block.size": 1024, "parquet.page.size.row.check.min": 100}
    footer = footer_of("parquet", VALUES, options)
    found = footer.row_groups("x", "bigint")
    assert isinstance(footer, ParquetFooter)
    assert len(found) == footer.blocks.size() > 1
    assert (found[0][0], found[-1][1]) == ("0", "19999")


def test_the_stripes_of_an_orc_file_are_told_in_their_order(footer_of: FooterOf) -> None:
    footer = footer_of("orc", VALUES, {"orc.stripe.size": 65_536, "orc.stripe.row.count": 5_000})
    found = footer.row_groups("x", "bigint")
    assert len(found) > 1
    assert (found[0][0], found[-1][1]) == ("0", "19999")
    assert all(int(before[1]) < int(after[0]) for before, after in pairwise(found))


def test_a_file_that_changed_after_it_was_listed_is_left_out(local_spark: SparkSession, tmp_path: Path) -> None:
    name = "default.changing"
    local_spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{tmp_path}' AS SELECT id AS x FROM range(9)")
    try:
        table = find_indexed_table(local_spark, name)
        files = ScanReader.of(local_spark, table).listed("TRUE", 10)
        for written in tmp_path.glob("*.parquet"):
            written.touch()
        assert not by_footers(local_spark, table, files)
    finally:
        local_spark.sql(f"DROP TABLE {name}")


def test_a_footer_that_cannot_be_read_says_nothing(local_spark: SparkSession, tmp_path: Path) -> None:
    name = "default.unreadable"
    local_spark.sql(f"CREATE TABLE {name} (x BIGINT) USING parquet LOCATION '{tmp_path}'")
    try:
        no_file = IndexedFile(f"file:{tmp_path}/none.parquet", 4, 5, 6, {})
        [told] = FooterReader(local_spark, find_indexed_table(local_spark, name)).read([no_file])
        assert told == no_file
    finally:
        local_spark.sql(f"DROP TABLE {name}")
