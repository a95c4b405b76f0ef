"""`starpruner pipeline index`."""

from __future__ import annotations

import click

from pipeline.commands.options import sentences_for_errors, setting
from pipeline.index.build import index_files
from pipeline.spark.session import spark_session, to_stderr


@click.command()
@click.option("--table", "tables", required=True, multiple=True, metavar="DB.TABLE", help="May be repeated.")
@click.option("--index", "index_name", required=True, metavar="DB.TABLE", help="The file index; made if needed.")
@click.option("--columns", metavar="A,B,C", help="To index; else all whose type can be. For one table.")
@click.option("--master", help="Spark's master; by default the one of spark-submit, else local.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be repeated.")
def index(
    tables: tuple[str, ...], index_name: str, columns: str | None, master: str | None, conf: tuple[str, ...]
) -> None:
    """Say of each file of a table what it holds, so that the proxy can skip it.

    Only files that are new or have changed are looked at, so it is cheap to run often. It can be stopped at any
    moment and run again.
    """
    if columns is not None and len(tables) > 1:
        raise click.UsageError("--columns are those of one table: run once for each table")
    wanted = [name for part in (columns or "").split(",") if (name := part.strip())]
    with sentences_for_errors(), spark_session(master, dict(map(setting, conf))) as spark:
        for table in tables:
            click.echo(str(index_files(spark, table, index_name, wanted, to_stderr)))
