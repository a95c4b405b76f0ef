"""The command `starpruner pipeline index`."""

from __future__ import annotations

import click

from pipeline.commands.options import SparkOptions, spark_options
from pipeline.index.build import index_files
from pipeline.spark.session import to_stderr


@click.command()
@click.option("--table", "tables", required=True, multiple=True, metavar="DB.TABLE", help="May be repeated.")
@click.option("--index", "index_name", required=True, metavar="DB.TABLE", help="The file index; made if needed.")
@click.option("--columns", metavar="A,B,C", help="To index; else all whose type can be. For one table.")
@spark_options
def index(tables: tuple[str, ...], index_name: str, columns: str | None, spark_options: SparkOptions) -> None:
    """Index the contents of each file of a table, so that the proxy can skip files.

    Only files that are new or have changed are looked at, so it is cheap to run often. It can be stopped at any
    moment and run again.
    """
    if columns is not None and len(tables) > 1:
        raise click.UsageError("--columns are those of one table: run once for each table")
    wanted = [name for part in (columns or "").split(",") if (name := part.strip())]
    with spark_options.session() as spark:
        for table in tables:
            click.echo(str(index_files(spark, table, index_name, wanted, to_stderr)))
