"""A MERGE into Iceberg takes effect once or not at all, by its source at one moment."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from iceberg_server import CATALOG
from pipeline_server import PipelineServer
from support.merges_under_way import (
    CASES,
    DATABASE,
    Stage,
    cut_short,
    killed,
    merge_stage,
    of_several_days_at_once,
    while_the_source_changes,
)
from support.server_version import ONE_SNAPSHOT_A_STATEMENT, version_of

from demo.hive import run

# Iceberg for Spark 4.0 and before loads the target anew for each of a MERGE's two scans of it if the catalog keeps
# no tables, and fails if another writer has come between them (SparkCopyOnWriteScan). Nothing is written by then.
TWO_SNAPSHOTS = "Runtime file filtering is not possible: the table has been concurrently modified"
# The session's catalog keeps no tables here, the other one does, as Iceberg does by itself.
SEVERAL_DAYS = [("spark_catalog", "false"), ("spark_catalog", "true"), (CATALOG, "false")]


@pytest.fixture
def stage(iceberg_server: PipelineServer, tmp_path: Path) -> Iterator[Stage]:
    with merge_stage(iceberg_server, tmp_path / "merges", "iceberg") as found:
        yield found


@pytest.mark.parametrize(("is_late", "run_async"), CASES)
def test_a_merge_into_iceberg_that_is_cut_short_takes_effect_once_or_not_at_all(
    stage: Stage, *, is_late: bool, run_async: bool
) -> None:
    assert not cut_short(stage, is_late=is_late, run_async=run_async)


@pytest.mark.parametrize("call", ["ExecuteStatement", "GetOperationStatus"])
def test_a_merge_into_iceberg_whose_proxy_is_killed_takes_effect_once_or_not_at_all(
    stage: Stage, call: str, tmp_path: Path
) -> None:
    assert not killed(stage, call, tmp_path)


@pytest.mark.parametrize(("catalog", "cost_gate"), SEVERAL_DAYS)
def test_narrowed_merges_of_several_days_into_iceberg_at_once_do_not_fail(
    stage: Stage, catalog: str, cost_gate: str
) -> None:
    run(stage.direct, f"CREATE NAMESPACE IF NOT EXISTS {catalog}.{DATABASE}")
    failed, found, right = of_several_days_at_once(stage, cost_gate, f"{catalog}.{DATABASE}")
    assert found == right
    if catalog == "spark_catalog" and version_of(stage.direct) < ONE_SNAPSHOT_A_STATEMENT:
        failed = [(text, error) for text, error in failed if TWO_SNAPSHOTS not in error]
    assert not failed


def test_a_merge_into_iceberg_is_by_its_source_at_one_moment(stage: Stage) -> None:
    assert not while_the_source_changes(stage)
