"""The command `starpruner pipeline load`."""

from __future__ import annotations

import functools
from collections.abc import Callable

import click

from pipeline.commands.options import SparkOptions, column_names, size_bytes, spark_options
from pipeline.load.load import Load
from pipeline.load.load import load as load_table
from pipeline.load.skew import Skew
from pipeline.load.source import PATH_FORMATS, Source
from pipeline.spark.session import to_stderr
from pipeline.tables.table import NATIVE_FORMATS


def _source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of the rows' source to a command, which gets them as `source`."""

    @click.option("--query", help="The source of the rows: a query;")
    @click.option("--source-table", help="or a table or view;")
    @click.option("--path", help="or files, of --format.")
    @click.option("--format", "path_format", type=click.Choice(PATH_FORMATS), default="parquet", show_default=True)
    @functools.wraps(command)
    def with_source(
        *, query: str | None, source_table: str | None, path: str | None, path_format: str, **others: object
    ) -> None:
        if sum(given is not None for given in (query, source_table, path)) != 1:
            raise click.UsageError("expected one of --query, --source-table and --path")
        command(source=Source(query, source_table, path, path_format), **others)

    return with_source


def _skew_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of the skewed values to a command, which gets them as `skew`."""

    @click.option(
        "--skewed-by",
        metavar="X[,Y]",
        help="The skewed columns. Without it they, and the skewed values, are those that the table is SKEWED BY.",
    )
    @click.option(
        "--skewed-value",
        "values",
        multiple=True,
        metavar="VALUE",
        help="One skewed value, or tuple as a line of CSV ('10,a'); may be repeated. Without it they are found, "
        "unless they are the table's.",
    )
    @click.option(
        "--skewed-nulls",
        "nulls",
        is_flag=True,
        help="Rows with a null in the skewed column get files of their own too.",
    )
    @click.option(
        "--top", type=click.IntRange(min=1), help="The number of values to find in each partition, at most."
    )
    @click.option(
        "--min-share",
        type=click.FloatRange(0, 1, min_open=True),
        default=0.05,
        show_default=True,
        help="The share of a partition's rows from which a value is found skewed.",
    )
    @click.option("--skewed-values-max", type=click.IntRange(min=1), default=1000, show_default=True)
    @functools.wraps(command)
    def with_skew(  # noqa: PLR0913 - one parameter per option
        *,
        skewed_by: str | None,
        values: tuple[str, ...],
        nulls: bool,
        top: int | None,
        min_share: float,
        skewed_values_max: int,
        **others: object,
    ) -> None:
        columns = column_names(skewed_by or "")
        if skewed_by is not None and not columns:
            raise click.UsageError("--skewed-by names no column")
        if values and top is not None:
            raise click.UsageError(
                "expected one of --skewed-value, which names the values, and --top, to find them"
            )
        command(skew=Skew(columns, values, top, min_share, skewed_values_max, nulls), **others)

    return with_skew


@click.command()
@click.option("--table", required=True, help="Spark-native table to load; created if there is none.")
@_source_options
@_skew_options
@click.option("--mode", type=click.Choice(["append", "overwrite"]), default="append", show_default=True)
@click.option(
    "--file-size", callback=size_bytes, default="128m", show_default=True, help="Larger groups get several files."
)
@click.option("--table-format", type=click.Choice(NATIVE_FORMATS), default="parquet", show_default=True)
@click.option("--partition-by", default="", metavar="C[,D]", help="Partition columns of a table that is created.")
@click.option("--index", help="The file index to keep, a table; created if there is none.")
@spark_options
def load(  # noqa: PLR0913 - one parameter per option or group of options
    *,
    table: str,
    source: Source,
    skew: Skew,
    mode: str,
    file_size: int,
    table_format: str,
    partition_by: str,
    index: str | None,
    spark_options: SparkOptions,
) -> None:
    """Load a table with files of their own for skewed values.

    In overwrite mode the partitions that the source has rows for are replaced, and a table without partitions as a
    whole.
    """
    request = Load(
        table,
        source,
        skew,
        index,
        overwrite=mode == "overwrite",
        file_bytes=file_size,
        table_format=table_format,
        partition_by=column_names(partition_by),
    )
    with spark_options.session() as spark:
        done = load_table(spark, request, to_stderr)
    click.echo(
        f"{table}: {done.rows} rows in {done.files} files, {done.skewed_files} of them of one skewed value each; "
        f"{done.replaced_files} files replaced, {done.indexed_files} indexed"
    )
