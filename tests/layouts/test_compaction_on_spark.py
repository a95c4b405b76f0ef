"""`starpruner pipeline compact` with a metastore, as sessions of its Thrift Server see it."""

from contextlib import closing

import pytest
from pipeline_server import CommandError, PipelineServer

from demo.hive import connect, run

AT_ONCE = ("--min-files", "2", "--grace-minutes", "0", "--keep-hours", "0")


@pytest.mark.parametrize(
    ("partitioned", "expected"),
    [
        ("PARTITIONED BY (p)", "4 files of 2 partitions became 2"),
        # Two writing tasks for two rows.
        ("", "4 files of 1 partitions became 1"),
    ],
)
def test_a_table_of_the_metastore_is_compacted_and_is_where_it_was(
    pipeline_spark: PipelineServer, partitioned: str, expected: str
) -> None:
    table = f"small_files_{len(partitioned)}"
    with closing(connect(pipeline_spark.endpoint)) as session:
        run(session, f"CREATE TABLE {table} (id INT, p STRING) USING parquet {partitioned}")
        for row in (1, 2):
            run(session, f"INSERT INTO {table} VALUES ({row}, NULL), ({row}, 'a b%c/=''{{x}}')")
        before = sorted(run(session, f"SELECT id, p FROM {table}"), key=str)
        location = run(session, f"DESCRIBE TABLE EXTENDED {table}")
        planned = pipeline_spark.pipeline("compact", "--table", table, *AT_ONCE, "--dry-run")
        assert "would become" in planned
        assert sorted(run(session, f"SELECT id, p FROM {table}"), key=str) == before
        done = pipeline_spark.pipeline("compact", "--table", table, *AT_ONCE)
        assert f"{table}: {expected}" in done
        run(session, f"REFRESH TABLE {table}")
        assert sorted(run(session, f"SELECT id, p FROM {table}"), key=str) == before
        assert [row for row in run(session, f"DESCRIBE TABLE EXTENDED {table}") if row[0] == "Location"] == [
            row for row in location if row[0] == "Location"
        ]
        run(session, f"INSERT INTO {table} VALUES (3, 'c')")
        assert len(run(session, f"SELECT id, p FROM {table}")) == len(before) + 1
        run(session, f"DROP TABLE {table}")


def test_a_table_of_hive_is_refused_with_what_to_do(pipeline_spark: PipelineServer) -> None:
    with closing(connect(pipeline_spark.endpoint)) as session:
        run(session, "CREATE TABLE small_files_of_hive STORED AS PARQUET AS SELECT 1 AS id")
        with pytest.raises(CommandError, match=r"CREATE TABLE \.\. USING parquet"):
            pipeline_spark.pipeline("compact", "--table", "small_files_of_hive")
