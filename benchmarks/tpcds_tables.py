"""The TPC-DS tables on a Spark Thrift Server: a database for each scale, each table loaded when first used."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kept_tables import is_complete, mark_complete
from pyhive import hive
from spark_tables import load
from tpcds import tpcds

from demo.hive import run
from demo.progress import Progress


@dataclass(frozen=True)
class TpcdsTables:
    """The TPC-DS tables of one scale; their files lie in a folder that this machine shares with the server."""

    folder: Path
    scale: float
    days_per_partition: int

    @property
    def database(self) -> str:
        """The database that holds them, such as tpcds_sf0_05_days10."""
        return f"tpcds_sf{self.scale:g}_days{self.days_per_partition}".replace(".", "_")

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
            load(made, server, files, [name])
            mark_complete(server, name)
