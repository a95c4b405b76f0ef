"""The TPC-DS tables on a Spark Thrift Server: a database for each scale, each table loaded when first used."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kept_tables import COMPLETE_PROPERTY, is_complete, mark_complete
from pyhive import hive
from spark_tables import load
from star_benchmark import StarBenchmark
from tpcds import tpcds

from demo.hive import run
from demo.progress import Progress

PARQUET = "parquet"


@dataclass(frozen=True)
class TpcdsTables:
    """The TPC-DS tables of one scale and format, in a folder that this machine shares with the server."""

    folder: Path
    scale: float
    days_per_partition: int
    # As in USING.
    table_format: str

    @property
    def database(self) -> str:
        """The database that holds them, such as tpcds_sf0_05_days10 or, of Delta tables, tpcds_sf1_days1_delta."""
        of_format = "" if self.table_format == PARQUET else f"_{self.table_format}"
        return f"tpcds_sf{self.scale:g}_days{self.days_per_partition}{of_format}".replace(".", "_")

    def ensure(self, server: hive.Connection, names: Iterable[str], progress: Progress) -> None:
        """Load those that are missing; the session then stays in their database."""
        run(server, f"CREATE DATABASE IF NOT EXISTS {self.database}")
        run(server, f"USE {self.database}")
        if missing := [name for name in names if not is_complete(server, name)]:
            self._load(server, missing, progress)

    def _load(self, server: hive.Connection, names: Iterable[str], progress: Progress) -> None:
        files = (self.folder / self.database).resolve()
        files.mkdir(parents=True, exist_ok=True)
        progress(f"Making TPC-DS at scale {self.scale:g}")
        made = tpcds(scale=self.scale, days_per_partition=self.days_per_partition)
        for name in names:
            progress(f"Loading {name} into {self.database}")
            run(server, f"DROP TABLE IF EXISTS {name}")
            shutil.rmtree(files / name, ignore_errors=True)
            if self.table_format == PARQUET:
                load(made, server, files, [name])
                mark_complete(server, name)
            else:
                self._make_at_once(made, server, files, name)

    def _make_at_once(self, made: StarBenchmark, server: hive.Connection, files: Path, name: str) -> None:
        """Make and fill a table by one statement: Delta 4.2 cannot set a property later on Spark 4.1.4."""
        rows = files / f"{name}.parquet"
        _ = made.connection.execute(f"COPY {name} TO '{rows}' (FORMAT parquet)")
        column = made.partition_columns.get(name)
        # All rows of a partition in one task, which writes them into one file.
        hint, partitioned = (
            ("", "") if column is None else (f"/*+ REPARTITION({column}) */", f"PARTITIONED BY ({column})")
        )
        run(
            server,
            f"CREATE TABLE {name} USING {self.table_format} {partitioned} LOCATION '{files / name}' "
            f"TBLPROPERTIES ({COMPLETE_PROPERTY}) AS SELECT {hint} * FROM parquet.`{rows}`",
        )
        rows.unlink()
