"""Advice of `starpruner advise` on statements that ran twice through a proxy with a history."""

import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pipeline_server import FILE_INDEX, PipelineServer
from support.proxies import patient

from demo.hive import connect, run
from demo.proxy_process import proxy_process, starpruner_command

# Files of a layout: a table of 40,000 rows has a dozen.
FILE_MB = 0.125
DATABASE = "advised"
# Forecast and measured shares of a table's bytes differ by at most this: a sampled quantile is a little off, and
# files are of one size only roughly.
TOLERANCE = 0.1
ROWS = "sha2(string(id), 256) AS text FROM range(0, 40000, 1, 2)"


def two_tables(provider: str) -> str:
    """The statements that make the database, a table whose files follow a column, and one whose files do not."""
    return f"""
CREATE DATABASE {DATABASE};
CREATE TABLE {DATABASE}.in_order USING {provider} AS
  SELECT /*+ REPARTITION_BY_RANGE(12, ship) */ CAST(20000 + id div 100 AS INT) AS ship, {ROWS};
CREATE TABLE {DATABASE}.in_any_order USING {provider} AS
  SELECT /*+ REPARTITION(12) */ CAST(hash(id) % 40000 AS INT) AS customer, {ROWS};"""


def recorded_history(
    server: PipelineServer, directory: Path, statements: Sequence[tuple[str, str]], *options: str
) -> Path:
    """The history of a proxy through which each statement ran twice, the first time with another constant."""
    kept = directory / "history"
    with (
        proxy_process(
            server.endpoint, directory, options=patient(f"history.path={kept}", *options, files=True)
        ) as proxy,
        closing(connect(proxy.endpoint, database=DATABASE, user="reader")) as session,
    ):
        for sql, constant in statements:
            run(session, sql.replace(f"'{constant}'", "'nothing'"))
            run(session, sql)
    return kept


def advice(server: PipelineServer, history: Path, *words: str) -> str:
    """The answer of the command; fails with its errors."""
    command = [
        *(*starpruner_command(), "advise", "--backend", str(server.endpoint), "--history", str(history)),
        *("--index", FILE_INDEX, "--file-mb", str(FILE_MB), "--database", DATABASE, *words),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "Statement 1 of " in done.stderr
    return done.stdout
