"""The golden cases about Delta tables on the real server: same rows with and without, and the recorded text.

`pytest tests/delta/test_golden_on_delta.py --update-goldens` records what the server says; read the difference
before you commit it.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from delta_server import delta_artifacts
from iceberg_server import spark_for_formats
from pipeline_server import PipelineServer
from support.golden_cases import Refusal, Take, catalog, refusals, takes
from support.golden_sets import DELTA as CASES
from support.golden_stage import Stage, staged
from support.golden_tables import facts
from support.stamps import spark_version

KIND = CASES.kind


@pytest.fixture(scope="module")
def stage(
    delta_server: PipelineServer, tmp_path_factory: pytest.TempPathFactory, *, updating: bool
) -> Iterator[Stage]:
    """The cases in a database of their own."""
    engine = f"{spark_version(spark_for_formats() / 'pyspark')} {delta_artifacts()[0]}"
    directory = tmp_path_factory.mktemp("golden")
    with staged(CASES, delta_server.endpoint, directory, updating=updating, engine=engine) as stage:
        yield stage


@pytest.mark.parametrize("name", sorted(catalog(KIND)))
def test_a_table_is_what_the_pure_cases_take_it_for(name: str, stage: Stage) -> None:
    # Only EXPLAIN tells the size of a Delta table.
    assert replace(stage.described(name), full_name=None) == replace(
        facts(KIND)[name], size_bytes=None, full_name=None
    )


@pytest.mark.parametrize("rule", sorted({case.rule for case in takes(KIND)}))
def test_a_rule_rewrites_to_what_is_recorded(rule: str, stage: Stage, *, updating: bool) -> None:
    stage.check_rule(rule, updating=updating)


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_narrowed_statement_answers_as_it_came(case: Take, stage: Stage) -> None:
    stage.check_take(case)


@pytest.mark.parametrize("case", [case for case in refusals(KIND) if case.executes], ids=str)
def test_a_refused_statement_is_one_that_runs(case: Refusal, stage: Stage) -> None:
    stage.check_refusal(case)
