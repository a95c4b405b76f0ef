"""The command `starpruner pipeline compact`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import click
from click.core import ParameterSource
from pyspark.sql import SparkSession

from pipeline.commands.options import SparkOptions, column_names, size_bytes, spark_options
from pipeline.compaction.compaction import Compacted, Compaction, compact, plan_compaction
from pipeline.compaction.delta import DeltaCompaction
from pipeline.compaction.iceberg import IcebergCompaction, iceberg_catalog
from pipeline.compaction.own_procedure import described
from pipeline.compaction.plan import Limits, PartitionPlan
from pipeline.spark.session import to_stderr

# The plans that a dry run shows; those that save most files for their bytes come first.
PLANS_SHOWN_MAX = 100


def _limit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of the limits to a command, which gets them as `limits`."""

    @click.option(
        "--target-size",
        callback=size_bytes,
        default="128m",
        show_default=True,
        help="The size of the old files that become one; a split of Spark's.",
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
        help="The bytes to write again, at most, for each file less.",
    )
    @functools.wraps(command)
    def with_limits(*, target_size: int, min_files: int, file_worth: int, **others: object) -> None:
        command(limits=Limits(target_size, min_files, file_worth), **others)

    return with_limits


@click.command("compact")
@click.option(
    "--table", required=True, metavar="DB.TABLE", help="Parquet or ORC table of Spark's, or Delta's or Iceberg's."
)
@click.option("--index", help="The file index to bring up to date, a table; created if needed.")
@click.option("--where", metavar="CONDITION", help="Only partitions of which this holds: \"ds >= '2026-11-01'\".")
@click.option(
    "--sort-by", default="", metavar="A[,B]", help="Sort the rows of each new file; neighbours by A become one."
)
@_limit_options
@click.option(
    "--grace-minutes",
    type=click.FloatRange(min=0),
    default=10,
    show_default=True,
    help="The time for which statements may go on reading the old files.",
)
@click.option(
    "--keep-hours",
    type=click.FloatRange(min=0),
    default=24,
    show_default=True,
    help="The time for which a partition's temporary location is kept, for statements that saw it.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done.")
@spark_options
def compact_command(  # noqa: PLR0913 - one parameter per option or group of options
    *,
    table: str,
    index: str | None,
    where: str | None,
    sort_by: str,
    limits: Limits,
    grace_minutes: float,
    keep_hours: float,
    dry_run: bool,
    spark_options: SparkOptions,
) -> None:
    """Make few files of many small ones, while others read and append.

    It can be stopped at any moment and run again. An Iceberg table is compacted by Iceberg's own procedure,
    to which --index, --file-worth, --grace-minutes and --keep-hours do not apply, and a Delta table by Delta's
    OPTIMIZE, which takes --target-size and --where alone.
    """
    request = Compaction(table, index, where, column_names(sort_by), limits, grace_minutes * 60, keep_hours * 3600)
    with spark_options.session() as spark:
        told = described(spark, table)
        provider = told.get("Provider", "").lower()
        if provider == "iceberg":
            _refuse_options_given(
                f"{table} is a table of Iceberg's, compacted by its own procedure", _NOT_FOR_ICEBERG
            )
            iceberg = IcebergCompaction(spark, iceberg_catalog(spark, table, told), request)
            click.echo(iceberg.plan() if dry_run else iceberg.run(to_stderr))
        elif provider == "delta":
            _refuse_options_given(f"{table} is a table of Delta's, compacted by its own OPTIMIZE", _NOT_FOR_DELTA)
            delta = DeltaCompaction(spark, request)
            click.echo(delta.plan() if dry_run else delta.run(to_stderr))
        else:
            click.echo(_compacted(spark, request, is_dry_run=dry_run))


# Parameters of our own compaction, which the formats' own procedures do not have.
_NOT_FOR_ICEBERG = ("index", "file_worth", "grace_minutes", "keep_hours")
# Delta sorts by ZORDER BY alone, with which every run writes all files again.
_NOT_FOR_DELTA = (*_NOT_FOR_ICEBERG, "sort_by", "min_files")


def _refuse_options_given(table_is: str, refused: Sequence[str]) -> None:
    """Raises UsageError for options that a table format's own procedure would ignore."""
    context = click.get_current_context()
    given = [name for name in refused if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"{table_is}, which has no {options}")


def _compacted(spark: SparkSession, request: Compaction, *, is_dry_run: bool) -> str:
    if is_dry_run:
        return _dry_run_report(request.table, plan_compaction(spark, request, to_stderr))
    return _report(request.table, compact(spark, request, to_stderr))


def _report(table: str, done: Compacted) -> str:
    lines = [
        (
            f"{table}: {done.files_before} files of {done.partitions} partitions became {done.files_after}, "
            f"{_size(done.rewritten_bytes)} rewritten"
        )
    ]
    if done.changed:
        lines.append(f"{done.changed} partitions changed meanwhile and are left to the next run")
    return "\n".join([*lines, done.indexed] if done.indexed else lines)


def _dry_run_report(table: str, plans: Sequence[PartitionPlan]) -> str:
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
