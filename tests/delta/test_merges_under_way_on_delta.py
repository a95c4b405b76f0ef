"""A MERGE into Delta takes effect once or not at all, by its source at one moment."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline_server import PipelineServer
from support.merges_under_way import (
    CASES,
    Stage,
    cut_short,
    killed,
    merge_stage,
    of_several_days_at_once,
    while_the_source_changes,
)


@pytest.fixture
def stage(delta_server: PipelineServer, tmp_path: Path) -> Iterator[Stage]:
    with merge_stage(delta_server, tmp_path / "merges", "delta") as found:
        yield found


@pytest.mark.parametrize(("is_late", "run_async"), CASES)
def test_a_merge_into_delta_that_is_cut_short_takes_effect_once_or_not_at_all(
    stage: Stage, *, is_late: bool, run_async: bool
) -> None:
    assert not cut_short(stage, is_late=is_late, run_async=run_async)


@pytest.mark.parametrize("call", ["ExecuteStatement", "GetOperationStatus"])
def test_a_merge_into_delta_whose_proxy_is_killed_takes_effect_once_or_not_at_all(
    stage: Stage, call: str, tmp_path: Path
) -> None:
    assert not killed(stage, call, tmp_path)


@pytest.mark.parametrize("cost_gate", ["false", "true"])
def test_narrowed_merges_of_several_days_into_delta_at_once_do_not_fail(stage: Stage, cost_gate: str) -> None:
    failed, found, right = of_several_days_at_once(stage, cost_gate)
    assert not failed
    assert found == right


def test_a_merge_into_delta_is_by_its_source_at_one_moment(stage: Stage) -> None:
    assert not while_the_source_changes(stage)
