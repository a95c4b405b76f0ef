"""Limits on what a statement may read of Delta tables."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from support.limited_tables import RUNS, limited_proxy, misjudged

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess

TABLES = """
CREATE DATABASE limited;
CREATE TABLE limited.visits (id INT, k INT, ds STRING) USING delta PARTITIONED BY (ds)
TBLPROPERTIES (delta.enableChangeDataFeed = true);
INSERT INTO limited.visits SELECT /*+ REPARTITION(1) */ INT(id), INT(id), concat('d', id DIV 10) FROM range(100);
CREATE TABLE limited.days (ds STRING, g INT) USING delta;
INSERT INTO limited.days VALUES ('d3', 1), ('d7', 1), ('d8', 2);
CREATE VIEW limited.shown AS SELECT * FROM limited.visits"""
# Each of the ten partitions has a file of some 750 bytes.
LIMITS = """
[[limits]]
name = "filtered"
users = ["fay"]
tables = ["limited.visits"]
partition_filter = true
unknown = "reject"

[[limits]]
name = "small"
users = ["bea"]
tables = ["limited.visits"]
bytes_max = 3_000
unknown = "reject"

[[limits]]
name = "counted"
users = ["carl"]
tables = ["limited.visits"]
partitions_max = 1
bytes_max = 3_000
"""
ALL = "SELECT * FROM limited.visits"
STAR = f"{ALL} v JOIN limited.days d ON v.ds = d.ds WHERE d.g = 1"


@pytest.fixture(scope="module")
def bounded(delta_server: PipelineServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with limited_proxy(delta_server, tmp_path_factory.mktemp("limited"), TABLES, LIMITS) as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (
            "fay",
            {
                ALL: "no filter on a partition column of limited.visits",
                f"{ALL} WHERE k > 5": "no filter on a partition column",
                "SELECT * FROM limited.shown WHERE k > 5 AND 'PartitionFilters: [x]' <> ds": RUNS,
                "SELECT * FROM limited.shown WHERE concat(k, 'PartitionFilters: [x]') <> 'a'": "no filter on a",
                f"{ALL} WHERE ds = 'd3'": RUNS,
                f"{ALL} VERSION AS OF 1": "no filter on a partition column",
                f"{ALL} VERSION AS OF 1 WHERE ds = 'd3'": RUNS,
                "SELECT * FROM limited.shown WHERE ds = 'd3'": RUNS,
                "SELECT count(*) FROM limited.visits": RUNS,
                STAR: RUNS,
            },
        ),
        (
            "bea",
            {
                ALL: "would read 7.5 KB of limited.visits. The limit for small is 3.0 KB",
                f"{ALL} WHERE ds > 'd2'": "would read 5.",
                f"{ALL} WHERE ds = 'd3'": RUNS,
                f"{ALL} WHERE ds = 'd99'": RUNS,
                f"{ALL} WHERE k < 25": RUNS,
                STAR: RUNS,
            },
        ),
        (
            "carl",
            {
                # The number of partitions is not known, which hides no other bound.
                f"{ALL} WHERE ds = 'd3'": RUNS,
                ALL: "would read 7.5 KB",
            },
        ),
    ],
)
def test_what_delta_leaves_counts(bounded: ProxyProcess, user: str, expected: dict[str, str]) -> None:
    assert not misjudged(bounded, user, expected)


def test_what_delta_does_not_tell_is_not_known(bounded: ProxyProcess, delta_server: PipelineServer) -> None:
    with closing(connect(delta_server.endpoint)) as session:
        [detail] = run(session, "DESCRIBE DETAIL limited.visits")
    by_path = f"SELECT * FROM delta.`{detail[4]}`"
    hidden = (
        *(by_path, f"{by_path} WHERE ds = 'd3'", f"{by_path} UNION ALL {ALL} WHERE ds = 'd3'"),
        "SELECT * FROM table_changes('limited.visits', 1)",
        "CREATE TABLE limited.copy USING delta AS TABLE limited.visits",
        "CREATE OR REPLACE TABLE limited.copy USING delta AS TABLE limited.visits",
    )
    assert not misjudged(bounded, "fay", dict.fromkeys(hidden, "It is not known what this statement would"))
    assert not misjudged(bounded, "carl", {by_path: RUNS, hidden[1]: RUNS})
