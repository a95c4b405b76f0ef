"""`starpruner pipeline compact` of tables that keep lists of their own files."""

from contextlib import closing

from pipeline_server import PipelineServer

from demo.hive import connect, run


def test_iceberg_tables_are_compacted_by_their_own_procedure(iceberg_server: PipelineServer) -> None:
    table = "ice.compacted.days"
    options = ("--table", table, "--min-files", "2")
    with closing(connect(iceberg_server.endpoint)) as session:
        run(session, "CREATE DATABASE ice.compacted")
        run(session, f"CREATE TABLE {table} (k BIGINT, `a day` INT) USING iceberg PARTITIONED BY (`a day`)")
        for start in (20, 0, 10):
            run(session, f"INSERT INTO {table} SELECT {start} + 7 * id % 10, id % 2 FROM range(10)")
        before = sorted(run(session, f"SELECT * FROM {table}"))
        planned = iceberg_server.pipeline("compact", *options, "--dry-run")
        assert f"{table}: 6 files of 2 partitions are candidates" in planned
        done = iceberg_server.pipeline("compact", *options, "--where", "`a day` = 1", "--sort-by", "k")
        assert f"{table}: 3 files became 1" in done
        run(session, f"REFRESH TABLE {table}")
        assert sorted(run(session, f"SELECT * FROM {table}")) == before
        files = run(session, f"SELECT `partition`.`a day`, count(*) FROM {table}.files GROUP BY ALL ORDER BY 1")
        assert files == [(0, 3), (1, 1)]
        of_one = [row[0] for row in run(session, f"SELECT k FROM {table} WHERE `a day` = 1")]
        assert of_one == sorted(of_one)
