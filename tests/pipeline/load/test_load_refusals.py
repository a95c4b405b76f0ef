import click
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from support.loaded_tables import answers, quietly

from pipeline.cli import pipeline
from pipeline.commands.options import size_bytes
from pipeline.load.load import Load, load
from pipeline.load.skew import Skew
from pipeline.load.source import Source
from pipeline.spark.errors import PipelineError

ROWS = """
SELECT 1 AS id, 10 AS x, CAST(1.5 AS DECIMAL(3, 1)) AS d, 1.0D AS f, DATE'2024-01-01' AS day, 's' AS s,
    'a' AS ds"""


@pytest.fixture(scope="module")
def refusing(local_spark: SparkSession) -> SparkSession:
    """A table with a row, and tables that no load can work on."""
    local_spark.sql(f"CREATE TABLE strict USING parquet PARTITIONED BY (ds) AS {ROWS}")
    local_spark.sql("CREATE VIEW a_view AS SELECT * FROM strict")
    local_spark.sql("CREATE TABLE in_buckets (x INT) USING parquet CLUSTERED BY (x) INTO 2 BUCKETS")
    local_spark.sql("CREATE TABLE as_text (x STRING) USING text")
    local_spark.sql("CREATE TABLE padded (x INT, c CHAR(3)) USING parquet")
    return local_spark


def skew(columns: str, *values: str, values_max: int = 3) -> Skew:
    return Skew(tuple(columns.split(",")), values, None, 0.001, values_max)


@pytest.mark.parametrize(
    ("table", "query", "wanted", "message"),
    [
        ("strict", ROWS, skew("nope"), "nope: .* has no such column; it has id, x"),
        ("strict", ROWS, skew("DS"), "ds: a partition column has one value in each file already"),
        ("strict", ROWS, skew("f"), "f: its type, double, has no equality"),
        ("strict", ROWS, skew("x,X"), "--skewed-by x,X: x is named more than once"),
        (
            "strict",
            ROWS,
            skew("x", "1", "2", "3", "4"),
            "4 skewed values are given, and at most 3 .* a file of its",
        ),
        ("strict", ROWS, skew("x", "ten"), r"'ten' cannot be read as \(x int\)"),
        ("strict", ROWS, skew("x", "3000000000"), "cannot be read"),
        ("strict", ROWS, skew("x,s", "3"), "'3' has 1 values; expected one of each: x, s"),
        ("strict", ROWS, skew("d", "1.55"), r"cannot be read as \(d decimal\(3,1\)\)"),
        ("strict", ROWS, skew("day", "2024-02-30"), r"cannot be read as \(day date\)"),
        ("strict", f"SELECT *, 1 AS more FROM ({ROWS})", skew("x"), "more is not in the table"),
        ("strict", "SELECT 1 AS id, 'a' AS ds", skew("x"), "d is missing; day is missing"),
        ("strict", ROWS.replace("10 AS x", "10L AS x"), skew("x"), "x is bigint where the table has int"),
        ("strict", "SELECT 1 AS x, 2 AS X", skew("x"), "two columns of one name"),
        ("strict", "SELECT * FROM nowhere", skew("x"), "the source cannot be read: .*nowhere"),
        ("a_view", ROWS, skew("x"), "a_view is a view"),
        ("in_buckets", "SELECT 1 AS x", skew("x"), "in_buckets is bucketed"),
        ("as_text", "SELECT '1' AS x", skew("x"), "of format text; expected one of parquet, orc"),
        ("padded", "SELECT 1 AS x, 'c' AS c", skew("x"), r"\(c char\(3\)\)"),
        ("a b", ROWS, skew("x"), "'a b' is not the name of a table"),
        ("other.default.t", ROWS, skew("x"), "only tables of Spark's own catalog"),
    ],
)
def test_what_cannot_be_loaded_is_refused_before_anything_is_written(
    refusing: SparkSession, table: str, query: str, wanted: Skew, message: str
) -> None:
    with pytest.raises(PipelineError, match=message):
        load(refusing, Load(table, Source(query=query), wanted), quietly)
    assert answers(refusing, "TABLE strict") == answers(refusing, ROWS)


def test_more_values_found_than_allowed_are_refused(refusing: SparkSession) -> None:
    many = "SELECT 1 AS id, CAST(n.id AS INT) AS x, d, f, day, s, ds FROM strict, range(4) AS n"
    with pytest.raises(PipelineError, match="4 skewed values are found in one partition, and at most 3"):
        load(refusing, Load("strict", Source(query=many), skew("x")), quietly)
    assert answers(refusing, "TABLE strict") == answers(refusing, ROWS)


def test_an_existing_table_keeps_its_partitioning(refusing: SparkSession) -> None:
    with pytest.raises(PipelineError, match="exists and is partitioned by ds"):
        load(refusing, Load("strict", Source(query=ROWS), skew("x"), partition_by=("s",)), quietly)


def test_sizes_have_units() -> None:
    option = click.Option(["--size"])
    context = click.Context(pipeline)
    sizes = [size_bytes(context, option, text) for text in ("128m", "1G", "10", "2k")]
    assert sizes == [128 << 20, 1 << 30, 10, 2048]


@pytest.mark.parametrize("text", ["", "0", "m", "1t", "-1"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        size_bytes(click.Context(pipeline), click.Option(["--size"]), text)


def test_the_command_takes_one_source() -> None:
    answer = CliRunner().invoke(
        pipeline, ["load", "--table", "t", "--skewed-by", "x", "--query", "q", "--path", "p"]
    )
    assert answer.exit_code == 2
    assert "expected one of --query, --source-table and --path" in answer.output
