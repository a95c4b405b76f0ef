"""`starpruner pipeline load`."""

from __future__ import annotations

import click

from pipeline.commands.options import column_names, sentences_for_errors, setting, size_bytes
from pipeline.load.load import Load
from pipeline.load.load import load as load_table
from pipeline.load.skew import Skew
from pipeline.load.source import PATH_FORMATS, Source
from pipeline.spark.session import spark_session, to_stderr
from pipeline.tables.table import NATIVE_FORMATS


@click.command()
@click.option("--table", required=True, help="Spark-native table to load; made if there is none.")
@click.option("--query", help="Where the rows come from: a query;")
@click.option("--source-table", help="or a table or view;")
@click.option("--path", help="or files, of --format.")
@click.option("--format", "path_format", type=click.Choice(PATH_FORMATS), default="parquet", show_default=True)
@click.option("--skewed-by", required=True, metavar="X[,Y]", help="The skewed columns.")
@click.option(
    "--skewed-value",
    "values",
    multiple=True,
    metavar="VALUE",
    help="One skewed value, or tuple as a line of CSV ('10,a'); may be repeated. Without it they are found.",
)
@click.option("--top", type=click.IntRange(min=1), help="Of the values found, at most so many in each partition.")
@click.option(
    "--min-share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.05,
    show_default=True,
    help="Of a partition's rows: what a value must have to be found skewed.",
)
@click.option("--skewed-values-max", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--mode", type=click.Choice(["append", "overwrite"]), default="append", show_default=True)
@click.option(
    "--file-size", callback=size_bytes, default="128m", show_default=True, help="Larger groups get several files."
)
@click.option("--table-format", type=click.Choice(NATIVE_FORMATS), default="parquet", show_default=True)
@click.option("--partition-by", default="", metavar="C[,D]", help="Partition columns of a table that is made.")
@click.option("--index", help="The file index to keep, a table; made if there is none.")
@click.option("--master", help="Spark's master; by default the one of spark-submit, else local.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be repeated.")
def load(  # noqa: PLR0913 - one parameter per option
    *,
    table: str,
    query: str | None,
    source_table: str | None,
    path: str | None,
    path_format: str,
    skewed_by: str,
    values: tuple[str, ...],
    top: int | None,
    min_share: float,
    skewed_values_max: int,
    mode: str,
    file_size: int,
    table_format: str,
    partition_by: str,
    index: str | None,
    master: str | None,
    conf: tuple[str, ...],
) -> None:
    """Load a table with files of their own for skewed values.

    In overwrite mode the partitions that the source has rows for are replaced, and a table without partitions as a
    whole.
    """
    if sum(given is not None for given in (query, source_table, path)) != 1:
        raise click.UsageError("expected one of --query, --source-table and --path")
    request = Load(
        table,
        Source(query, source_table, path, path_format),
        Skew(column_names(skewed_by), values, top, min_share, skewed_values_max),
        index,
        overwrite=mode == "overwrite",
        file_bytes=file_size,
        table_format=table_format,
        partition_by=column_names(partition_by),
    )
    with sentences_for_errors(), spark_session(master, dict(map(setting, conf))) as spark:
        done = load_table(spark, request, to_stderr)
    click.echo(
        f"{table}: {done.rows} rows in {done.files} files, {done.skewed_files} of them of one skewed value each; "
        f"{done.replaced_files} files replaced, {done.indexed_files} indexed"
    )
