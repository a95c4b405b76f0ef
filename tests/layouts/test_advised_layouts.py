"""Advice from the statements of a real proxy: its commands run as printed, and save what was forecast."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from advised_statements import DATABASE, ROWS, TOLERANCE, advice, recorded_history, two_tables
from pipeline_server import FILE_INDEX, PipelineServer

from demo.hive import connect, run, same_answer
from demo.proxy_process import ProxyProcess

TABLES = f"""{two_tables("parquet")}
CREATE TABLE {DATABASE}.wanted USING parquet AS SELECT * FROM VALUES
  ('ship', 20100), ('ship', 20101), ('customer', 1207), ('customer', 31009), ('region', 3), ('kind', 2),
  ('kind', 909) AS t(what, k);
CREATE TABLE {DATABASE}.of_few_values USING parquet AS
  SELECT /*+ REPARTITION(12) */ CAST(id % 8 AS INT) AS region, {ROWS};
CREATE TABLE {DATABASE}.of_frequent_values USING parquet PARTITIONED BY (half) AS
  SELECT CAST(IF(id % 10 < 8, id % 4, 900 + id % 3000) AS INT) AS kind, sha2(string(id), 256) AS text,
    CAST(id % 2 AS INT) AS half FROM range(0, 40000, 1, 4)"""


@dataclass(frozen=True)
class Advised:
    """A statement, the table that it reads, and the layout that is proposed for it."""

    table: str
    column: str
    layout: str
    what: str

    @property
    def sql(self) -> str:
        return (
            f"SELECT count(*), sum(length(f.text)) FROM {self.table} f JOIN wanted w ON f.{self.column} = w.k"
            f" WHERE w.what = '{self.what}'"
        )


EXPECTED = (
    Advised("in_order", "ship", "an index of its files as they lie", "ship"),
    Advised("in_any_order", "customer", "files by ranges of values", "customer"),
    Advised("of_few_values", "region", "partitions", "region"),
    Advised("of_frequent_values", "kind", "files of their own for frequent values", "kind"),
)


@pytest.fixture(scope="module")
def history(pipeline_spark: PipelineServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The history of a proxy through which each statement ran twice, with other constants."""
    directory = tmp_path_factory.mktemp("advised")
    statements = [(expected.sql, expected.what) for expected in EXPECTED]
    with closing(connect(pipeline_spark.endpoint)) as direct:
        for statement in TABLES.split(";"):
            run(direct, statement)
        yield recorded_history(pipeline_spark, directory, statements, f"files.index={FILE_INDEX}")
        run(direct, f"DROP DATABASE {DATABASE} CASCADE")


def test_the_report_names_what_it_rests_on(pipeline_spark: PipelineServer, history: Path) -> None:
    text = advice(pipeline_spark, history)
    assert "History of 7 days: 4 different statements, 8 runs" in text
    assert "measured on 12 of 12 files" in text
    assert f"starpruner pipeline index --table {DATABASE}.in_order --index {FILE_INDEX}" in text
    assert f"CREATE TABLE {DATABASE}.of_few_values_laid_out USING parquet PARTITIONED BY (region)" in text


@pytest.fixture(scope="module")
def proposals(pipeline_spark: PipelineServer, history: Path) -> dict[str, Any]:
    """The proposals by the tables' own names."""
    found = json.loads(advice(pipeline_spark, history, "--json"))
    return {each["measured"]["table"].rpartition(".")[2]: each for each in found["proposals"]}


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.table)
def test_the_proposed_commands_save_what_was_forecast(
    expected: Advised, proposals: dict[str, Any], pipeline_spark: PipelineServer, indexed_proxy: ProxyProcess
) -> None:
    proposal = proposals[expected.table]
    assert proposal["layout"] == expected.layout
    assert proposal["column"] in {expected.column, None}
    assert proposal["runs"] == 2
    (scan,) = proposal["scans"]
    with closing(connect(pipeline_spark.endpoint, database=DATABASE)) as direct:
        before = run(direct, expected.sql)
        for command in proposal["commands"]:
            if command["kind"] == "sql":
                run(direct, command["text"])
            else:
                program, group, *words = shlex.split(command["text"])
                assert (program, group) == ("starpruner", "pipeline")
                pipeline_spark.pipeline(*words)
        run(direct, f"REFRESH TABLE {expected.table}")
        assert same_answer(before, run(direct, expected.sql))
    # A user of whom the proxy remembers nothing.
    user = f"advised_{expected.table}"
    with closing(connect(indexed_proxy.endpoint, database=DATABASE, user=user)) as proxied:
        last = pipeline_spark.ui.last_execution()
        assert same_answer(before, run(proxied, expected.sql))
        narrowed = pipeline_spark.ui.scans_of(expected.table, after=last)
    size_bytes = proposal["measured"]["bytes"]
    assert scan["share_today"] == pytest.approx(1)
    assert narrowed.bytes_read / size_bytes == pytest.approx(scan["share_then"], abs=TOLERANCE)
    assert scan["share_then"] < 0.5
