"""A dbt project of incremental models, run directly and through the proxy.

A first run makes the tables, the next one adds a day and changes rows of earlier ones, and the last one sees none.
"""

import json
import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from pipeline_server import PipelineServer
from pyhive import hive
from tool_page import ToolFolder, installed

from demo.hive import Endpoint, connect, run
from demo.proxy_process import ProxyProcess
from support.executed_texts import texts_after
from support.maven import ClientMissingError, is_required
from support.narrowed_merges import SMALL, rows_of, set_all

SOURCE, DIRECT, PROXIED = "spark_catalog.dbt_source", "dbt_direct", "dbt_proxied"
DAYS = "SELECT concat('d', id) AS ds, id AS number FROM range(10)"
# Ids grow with the days, so that files differ in them too.
SALES = (
    "SELECT id, CAST(id AS DOUBLE) / 2 AS amount, concat('d', id DIV 300) AS ds FROM range(3000)"
    " UNION ALL SELECT NULL, 1.0, 'd6' UNION ALL SELECT 4000, NULL, NULL"
)
# Far smaller than a target: of a source that may be as large nobody asks for keys.
UPDATES = f"SELECT * FROM ({SALES}) WHERE ds >= 'd5' AND (id % 7 = 0 OR id IS NULL)"
# The days that a run reads, as the numbers of the first and the last, and the amount that it adds to each row.
RUNS = [(0, 6, 0), (5, 7, 3), (9, 8, 1)]

PROJECT = """
name: shop
version: "1.0"
profile: shop
flags:
  send_anonymous_usage_stats: false
models:
  shop:
    +materialized: incremental
    +file_format: {file_format}
    +partition_by: [ds]
"""
# dbt-spark looks for the end of a statement every 5 seconds unless it is told otherwise.
OUTPUT = """{name}:
      type: spark
      method: thrift
      host: {host}
      port: {port}
      user: me
      schema: {schema}
      threads: 2
      connect_retries: 3
      poll_interval: 1
      server_side_parameters: {settings}
"""
PROFILE = """
shop:
  target: {proxied}
  outputs:
    """
ROWS = """
select s.id, s.amount + {{ var('added') }} as amount, s.ds
from spark_catalog.dbt_source.{{ 'UPDATES' if is_incremental() else 'sales' }} s
join spark_catalog.dbt_source.days d on s.ds = d.ds
where d.number between {{ var('first') }} and {{ var('last') }}
"""
_BY_DAY = "incremental_strategy='merge', unique_key=['id', 'ds']"
# Each model's settings, and the table that its later runs read: `sales` has partitions by day, `updates` has none.
MODELS = {
    "merged": (_BY_DAY, "updates"),
    "merged_by_id": ("incremental_strategy='merge', unique_key='id'", "updates"),
    "merged_within": (f"{_BY_DAY}, incremental_predicates=[\"DBT_INTERNAL_DEST.ds >= 'd4'\"]", "updates"),
    "merged_amounts": (f"{_BY_DAY}, merge_update_columns=['amount']", "updates"),
    "merged_from_days": (_BY_DAY, "sales"),
    "overwritten": ("incremental_strategy='insert_overwrite'", "sales"),
    "appended": ("incremental_strategy='append'", "sales"),
}
# To ask for the keys of `merged_from_days` could take as long as the model, which reads a table with partitions.
NARROWED = {"merged", "merged_by_id", "merged_within", "merged_amounts"}
_NARROWED_MERGE = re.compile(rf"merge into {PROXIED}\.(\w+) .* WHEN NOT MATCHED AND \(CASE", re.DOTALL)


@dataclass(frozen=True)
class Project:
    """A dbt project, whose targets are called as the databases that they write."""

    folder: ToolFolder
    directory: Path

    @classmethod
    def made(cls, folder: ToolFolder, directory: Path, file_format: str, ends: dict[str, Endpoint]) -> "Project":
        """The project in that directory, with a target for each end."""
        ours = {"starpruner.merge_tables": "*", "starpruner.cost_gate": "false"}
        outputs = "    ".join(
            OUTPUT.format(
                name=schema,
                host=end.host,
                port=end.port,
                schema=schema,
                settings=json.dumps({**SMALL, **(ours if schema == PROXIED else {})}),
            )
            for schema, end in ends.items()
        )
        files = {
            "dbt_project.yml": PROJECT.format(file_format=file_format),
            "profiles.yml": PROFILE.format(proxied=PROXIED) + outputs,
            **{
                f"models/{name}.sql": f"{{{{ config({how}) }}}}{ROWS.replace('UPDATES', table)}"
                for name, (how, table) in MODELS.items()
            },
        }
        for name, text in files.items():
            (directory / name).parent.mkdir(exist_ok=True, parents=True)
            (directory / name).write_text(text, encoding="utf-8")
        return cls(folder, directory)

    def run(self, target: str, days: tuple[int, int, int]) -> None:
        """One run, in which the proxy is not told that a table changes past it."""
        words = json.dumps(dict(zip(("first", "last", "added"), days, strict=True)))
        self.folder.run(
            f"cd {self.directory} && dbt run --no-partial-parse --target {target} --vars '{words}'",
            {"DBT_PROFILES_DIR": str(self.directory), "DO_NOT_TRACK": "1", "LC_ALL": "C.UTF-8"},
        )


def installed_dbt() -> ToolFolder:
    """The environment with dbt; skips the test where it cannot be had and need not be there."""
    try:
        return installed("dbt")
    except ClientMissingError as error:
        if is_required():
            raise
        pytest.skip(str(error))


def runs_that_differ(
    dbt: ToolFolder, directory: Path, file_format: str, server: PipelineServer, proxy: ProxyProcess
) -> list[tuple[str, tuple[int, int, int]]]:
    """Run the project directly and through the proxy, again and again; the models that differ after a run."""
    ends = {DIRECT: server.endpoint, PROXIED: proxy.endpoint}
    project = Project.made(dbt, directory, file_format, ends)
    before, found = server.ui.last_execution(), []
    with closing(connect(server.endpoint)) as session:
        set_all(session, SMALL)
        _make_sources(session)
        for days in RUNS:
            for target in ends:
                project.run(target, days)
            found += [
                (model, days)
                for model in MODELS
                if rows_of(session, f"{PROXIED}.{model}") != rows_of(session, f"{DIRECT}.{model}")
            ]
    texts = [text for text in texts_after(server.ui, before) if PROXIED in text]
    narrowed = {merge[1] for text in texts if (merge := _NARROWED_MERGE.search(text))}
    assert narrowed == NARROWED, f"{sorted(narrowed)} are narrowed; these differ: {found}"
    assert any("IN ('d5', 'd6', 'd7')" in text and "overwritten" in text for text in texts), "a star join"
    return found


def _make_sources(session: hive.Connection) -> None:
    for namespace in (SOURCE, DIRECT, PROXIED):
        run(session, f"CREATE NAMESPACE {namespace}")
    run(session, f"CREATE TABLE {SOURCE}.days USING parquet AS {DAYS}")
    run(session, f"CREATE TABLE {SOURCE}.updates USING parquet AS {UPDATES}")
    run(session, f"CREATE TABLE {SOURCE}.sales USING parquet PARTITIONED BY (ds) AS {SALES}")
