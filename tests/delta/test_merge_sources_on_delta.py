"""MERGE into Delta tables whose source is a star join: it leaves what it leaves without the proxy."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from pyhive import hive
from support.executed_texts import texts_after
from support.narrowed_merges import made

from demo.hive import connect, run, same_answer
from demo.proxy_process import ProxyProcess

DATABASE = "merged"
# Orders 0 to 99 of ten days, a few days, and a target that has each third order.
TABLES = f"""
CREATE DATABASE {DATABASE};
USE {DATABASE};
CREATE TABLE orders (id INT, amount INT, ds STRING) USING delta PARTITIONED BY (ds);
INSERT INTO orders SELECT INT(id), INT(id), concat('d', id DIV 10) FROM range(100);
CREATE TABLE days (ds STRING, g INT) USING delta;
INSERT INTO days VALUES ('d3', 1), ('d7', 1), ('d8', 2), (NULL, 1);
CREATE TABLE totals USING delta PARTITIONED BY (ds) AS SELECT id, -1 AS amount, ds FROM orders WHERE id % 3 = 0"""
SOURCE = "SELECT o.id, o.amount, o.ds FROM orders o JOIN days d ON o.ds = d.ds WHERE d.g = 1"
MERGES = {
    "updates and inserts": (
        "MERGE INTO {} t USING ({}) s ON t.id = s.id AND t.ds = s.ds"
        " WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED THEN INSERT *"
    ),
    "all three by conditions": (
        "MERGE INTO {} AS t USING ({}) AS s ON (t.id = s.id) WHEN MATCHED AND (s.id > 50) THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.id IN (31, 71) THEN"
        " INSERT (id, amount, ds) VALUES (s.id, abs(s.amount), s.ds)"
    ),
    "a CTE": "WITH s AS ({1}) MERGE INTO {0} t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "totals": (
        "MERGE INTO {} t USING (SELECT max(id) AS id, sum(amount) AS amount, ds FROM ({}) q GROUP BY ds) s"
        " ON t.ds = s.ds AND t.id = s.id WHEN MATCHED THEN UPDATE SET amount = s.amount"
        " WHEN NOT MATCHED THEN INSERT *"
    ),
}
# It is left alone: whatever the source lacked would be deleted.
BY_SOURCE = "MERGE INTO {} t USING ({}) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE"


@pytest.fixture(scope="module")
def direct(delta_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(delta_server.endpoint)) as session:
        for statement in TABLES.split(";\n"):
            run(session, statement)
        yield session


@pytest.mark.parametrize("merge", [*MERGES.values(), BY_SOURCE], ids=[*MERGES, "by source"])
def test_a_merge_leaves_what_it_leaves_without_the_proxy(
    merge: str, delta_server: PipelineServer, delta_proxy: ProxyProcess, direct: hive.Connection
) -> None:
    tables = ("of_direct", "of_proxied")
    with closing(connect(delta_proxy.endpoint, database=DATABASE)) as proxied:
        for session, table in zip((direct, proxied), tables, strict=True):
            made(direct, table, "USING delta PARTITIONED BY (ds)", "SELECT * FROM totals")
            before = delta_server.ui.last_execution()
            run(session, merge.format(table, SOURCE))
    left = [run(direct, f"SELECT * FROM {table}") for table in tables]
    assert same_answer(*left)
    assert not same_answer(left[0], run(direct, "SELECT * FROM totals"))
    texts = texts_after(delta_server.ui, before)
    assert any("typeof(`ds`)" in text for text in texts) == (merge != BY_SOURCE), texts
