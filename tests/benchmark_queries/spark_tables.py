"""A benchmark's tables on Spark: Parquet files written by DuckDB, the facts' in a directory for each partition."""

from collections.abc import Iterable
from pathlib import Path

from pyhive import hive
from star_benchmark import StarBenchmark

from demo.hive import run


def load(benchmark: StarBenchmark, connection: hive.Connection, directory: Path, tables: Iterable[str]) -> None:
    """Make the tables in the session's database, their files in the directory."""
    for table in tables:
        _write(benchmark, table, directory / table)
        run(connection, _create(benchmark, table, directory / table))
        if table in benchmark.partition_columns:
            # Five times as fast as INSERT, which Spark spends on committing each partition.
            run(connection, f"MSCK REPAIR TABLE {table}")


def _write(benchmark: StarBenchmark, table: str, folder: Path) -> None:
    column = benchmark.partition_columns.get(table)
    if column is None:
        folder.mkdir()
        sql = f"COPY {table} TO '{folder}/all.parquet' (FORMAT parquet)"
    else:
        # In order, because DuckDB keeps a hundred partitions open: of rows in any other, it makes many files each.
        rows = f"(SELECT * FROM {table} ORDER BY {column})"
        sql = f"COPY {rows} TO '{folder}' (FORMAT parquet, PARTITION_BY ({column}))"
    _ = benchmark.connection.execute(sql)


def _create(benchmark: StarBenchmark, table: str, folder: Path) -> str:
    columns = ", ".join(f"{column.name} {column.type_name}" for column in benchmark.tables[table].columns)
    column = benchmark.partition_columns.get(table)
    partitioned = f"PARTITIONED BY ({column})" if column is not None else ""
    return f"CREATE TABLE {table} ({columns}) USING parquet {partitioned} LOCATION '{folder}'"
