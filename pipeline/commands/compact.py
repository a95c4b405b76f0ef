"""`starpruner pipeline compact`."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.core import ParameterSource
from pyspark.sql import SparkSession

from pipeline.commands.options import column_names, sentences_for_errors, setting, size_bytes
from pipeline.compaction.compaction import Compacted, Compaction, compact, plan_compaction
from pipeline.compaction.iceberg import IcebergCompaction, iceberg_catalog
from pipeline.compaction.plan import Limits, PartitionPlan
from pipeline.spark.session import spark_session, to_stderr

# Of a dry run: the ones that gain most come first.
PLANS_SHOWN_MAX = 100


@click.command("compact")
@click.option("--table", required=True, metavar="DB.TABLE", help="Parquet or ORC table of Spark's, or Iceberg's.")
@click.option("--index", help="The file index to bring up to date, a table; made if needed.")
@click.option("--where", metavar="CONDITION", help="Only partitions of which this holds: \"ds >= '2026-11-01'\".")
@click.option(
    "--sort-by", default="", metavar="A[,B]", help="Sort the rows of each new file; neighbours by A become one."
)
@click.option(
    "--target-size",
    callback=size_bytes,
    default="128m",
    show_default=True,
    help="Of the old files that become one; a split of Spark's.",
)
@click.option(
    "--min-files",
    type=click.IntRange(min=2),
    default=Limits().files_min,
    show_default=True,
    help="Leave a partition alone that has fewer small files.",
)
@click.option(
    "--file-worth",
    callback=size_bytes,
    default="64m",
    show_default=True,
    help="Bytes to write again, at most, for each file that there is less.",
)
@click.option(
    "--grace-minutes",
    type=click.FloatRange(min=0),
    default=10,
    show_default=True,
    help="How long statements may go on reading the old files.",
)
@click.option(
    "--keep-hours",
    type=click.FloatRange(min=0),
    default=24,
    show_default=True,
    help="How long the second place of a partition is kept, for statements that saw it there.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done.")
@click.option("--master", help="Spark's master; by default the one of spark-submit, else local.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be repeated.")
def compact_command(  # noqa: PLR0913 - one parameter per option
    *,
    table: str,
    index: str | None,
    where: str | None,
    sort_by: str,
    target_size: int,
    min_files: int,
    file_worth: int,
    grace_minutes: float,
    keep_hours: float,
    dry_run: bool,
    master: str | None,
    conf: tuple[str, ...],
) -> None:
    """Make few files of many small ones, while others read and append.

    It can be stopped at any moment and run again. A table of Iceberg's is compacted by Iceberg's own procedure, to
    which --index, --file-worth, --grace-minutes and --keep-hours do not apply.
    """
    limits = Limits(target_size, min_files, file_worth)
    request = Compaction(table, index, where, column_names(sort_by), limits, grace_minutes * 60, keep_hours * 3600)
    with sentences_for_errors(), spark_session(master, dict(map(setting, conf))) as spark:
        if (catalog := iceberg_catalog(spark, table)) is not None:
            _refuse_options_given(table)
            iceberg = IcebergCompaction(spark, catalog, request)
            click.echo(iceberg.plan() if dry_run else iceberg.run(to_stderr))
        else:
            click.echo(_compacted(spark, request, is_dry_run=dry_run))


# How our own compaction goes about it. Of tables of Iceberg's this is Iceberg's business.
_OF_OURS_ALONE = ("index", "file_worth", "grace_minutes", "keep_hours")


def _refuse_options_given(table: str) -> None:
    """Rather than ignore what somebody asked for."""
    context = click.get_current_context()
    given = [name for name in _OF_OURS_ALONE if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(
            f"{table} is a table of Iceberg's, compacted by its own procedure, which has no {options}"
        )


def _compacted(spark: SparkSession, request: Compaction, *, is_dry_run: bool) -> str:
    if is_dry_run:
        return _shown(request.table, plan_compaction(spark, request, to_stderr))
    return _said(request.table, compact(spark, request, to_stderr))


def _said(table: str, done: Compacted) -> str:
    lines = [
        (
            f"{table}: {done.files_before} files of {done.partitions} partitions became {done.files_after}, "
            f"{_size(done.rewritten_bytes)} rewritten"
        )
    ]
    if done.changed:
        lines.append(f"{done.changed} partitions changed meanwhile and are left to the next run")
    return "\n".join([*lines, done.indexed] if done.indexed else lines)


def _shown(table: str, plans: Sequence[PartitionPlan]) -> str:
    lines = [
        f"{plan.directory or table}: {plan.files} files would become {plan.files - plan.saved}, "
        f"{_size(plan.rewritten_bytes)} rewritten"
        for plan in plans[:PLANS_SHOWN_MAX]
    ]
    if len(plans) > PLANS_SHOWN_MAX:
        lines.append(f"and {len(plans) - PLANS_SHOWN_MAX} more partitions")
    before, saved = sum(plan.files for plan in plans), sum(plan.saved for plan in plans)
    size = _size(sum(plan.rewritten_bytes for plan in plans))
    total = f"{table}: {before} files of {len(plans)} partitions would become {before - saved}, {size} rewritten"
    return "\n".join([*lines, total])


def _size(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.1f} MB"
