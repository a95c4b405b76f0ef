"""Files that Delta skips by what the proxy says of keys."""

from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from support.explain_requests import explanation_of

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess

DATABASE = "skipped"
TABLES = f"""
CREATE DATABASE {DATABASE};
USE {DATABASE};
CREATE TABLE visits (id INT, k INT, ds STRING) USING delta PARTITIONED BY (ds);
INSERT INTO visits SELECT /*+ REPARTITION(1) */ INT(id), INT(id), concat('d', id DIV 10) FROM range(100);
CREATE TABLE events (id INT, k INT) USING delta;
INSERT INTO events SELECT INT(id), INT(id) FROM range(0, 400, 1, 40);
CREATE TABLE days (ds STRING, k INT, g INT) USING delta;
INSERT INTO days VALUES ('d3', 5, 1), ('d7', 395, 1);
INSERT INTO days SELECT concat('d', id % 5), 100 + id, 2 FROM range(60)"""


@pytest.fixture(scope="module", autouse=True)
def _tables(delta_server: PipelineServer) -> None:
    with closing(connect(delta_server.endpoint)) as session:
        for statement in TABLES.split(";\n"):
            run(session, statement)


@pytest.mark.parametrize(
    ("fact", "condition", "files"),
    [
        ("visits", "f.ds = d.ds WHERE d.g = 1", 2),
        ("events", "f.k = d.k WHERE d.g = 1", 2),
        # 60 numbers, in 30 ranges.
        ("events", "f.k = d.k WHERE d.g = 2", 6),
    ],
)
def test_delta_reads_the_files_that_hold_keys(
    fact: str, condition: str, files: int, delta_server: PipelineServer, delta_proxy: ProxyProcess
) -> None:
    sql = f"SELECT f.id FROM {fact} f JOIN days d ON {condition}"
    found = explanation_of(delta_proxy.admin_url, sql=sql, database=DATABASE)
    (scan,) = [scan for scan in found["scans"] if scan["alias"] == "f"]
    sizes = f"SELECT DISTINCT _metadata.file_name, _metadata.file_size FROM {DATABASE}.{fact}"
    with closing(connect(delta_server.endpoint)) as session:
        read, in_all = run(session, f"{sizes} WHERE {scan['predicate']}"), run(session, sizes)
    assert len(read) == files
    for told, counted in ((scan["bytes"]["kept"], read), (scan["bytes"]["total"], in_all)):
        assert told == pytest.approx(sum(size for _, size in counted), rel=0.01)
