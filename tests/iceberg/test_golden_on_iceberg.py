"""The golden cases about Iceberg tables on the real server: same rows with and without, and the recorded text.

`pytest tests/iceberg/test_golden_on_iceberg.py --update-goldens` records what the server says; read the difference
before you commit it.
"""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from iceberg_server import iceberg_runtime, spark_for_formats
from pipeline_server import PipelineServer
from pyhive import hive
from support.golden_cases import Refusal, Take, refusals, takes
from support.golden_sets import ICEBERG
from support.golden_stage import Stage, staged
from support.golden_tables import PARTITIONING, facts
from support.stamps import spark_version

from demo.hive import Row, run
from rewriter import TableKind

KIND = ICEBERG.kind


@pytest.fixture(scope="module")
def stage(
    iceberg_server: PipelineServer, tmp_path_factory: pytest.TempPathFactory, *, updating: bool
) -> Iterator[Stage]:
    """The cases in a database of their own."""
    engine = f"{spark_version(spark_for_formats() / 'pyspark')} {iceberg_runtime().replace(':', '-')}"
    directory = tmp_path_factory.mktemp("golden")
    with staged(ICEBERG, iceberg_server.endpoint, directory, updating=updating, engine=engine) as stage:
        yield stage


def described(connection: hive.Connection, name: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The columns of a table, and the transforms that it is partitioned by."""
    parts, heading = defaultdict[str, list[Row]](list), ""
    for row in run(connection, f"DESCRIBE TABLE {name}"):
        heading = row[0] if row[0].startswith("# ") and row[0] != "# col_name" else heading
        parts[heading] += [row] if row[0] and not row[0].startswith("#") else []
    columns = {column: type_name for column, type_name, _ in parts[""]}
    transforms = tuple(transform for _, transform, _ in parts["# Partitioning"])
    return columns, transforms or tuple(column for column, _, _ in parts["# Partition Information"])


def test_the_tables_are_what_the_pure_cases_take_them_for(stage: Stage) -> None:
    known = facts(KIND)
    tables = [name for name, table in known.items() if table.kind is TableKind.TABLE and name != "files"]
    for name in tables:
        columns = {column.name: column.type_name for column in known[name].columns}
        assert described(stage.direct, name) == (columns, PARTITIONING.get(name, ())), name


@pytest.mark.parametrize("rule", sorted({case.rule for case in takes(KIND)}))
def test_a_rule_rewrites_to_what_is_recorded(rule: str, stage: Stage, *, updating: bool) -> None:
    stage.check_rule(rule, updating=updating)


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_narrowed_statement_answers_as_it_came(case: Take, stage: Stage) -> None:
    stage.check_take(case)


@pytest.mark.parametrize("case", [case for case in refusals(KIND) if case.executes], ids=str)
def test_a_refused_statement_is_one_that_runs(case: Refusal, stage: Stage) -> None:
    stage.check_refusal(case)
