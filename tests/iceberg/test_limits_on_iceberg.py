"""Limits on what a statement may read of Iceberg tables."""

from collections.abc import Iterator

import pytest
from pipeline_server import PipelineServer
from support.limited_tables import RUNS, limited_proxy, misjudged

from demo.proxy_process import ProxyProcess

TABLES = """
CREATE DATABASE ice.limited;
CREATE TABLE ice.limited.visits (id INT, k INT, ds STRING, at TIMESTAMP) USING iceberg
  PARTITIONED BY (ds, days(at), bucket(2, k));
INSERT INTO ice.limited.visits SELECT /*+ REPARTITION(1) */ INT(id), INT(id), concat('d', id DIV 10),
  timestamp_seconds(1760000000 + 86400 * (id DIV 10)) FROM range(100);
ALTER TABLE ice.limited.visits CREATE BRANCH audit;
CREATE TABLE ice.limited.days (ds STRING, g INT) USING iceberg;
INSERT INTO ice.limited.days VALUES ('d3', 1), ('d7', 1), ('d8', 2)"""
# Each of the ten days has two files.
LIMITS = """
[[limits]]
name = "filtered"
users = ["fay"]
tables = ["ice.limited.visits"]
partition_filter = true
unknown = "reject"

[[limits]]
name = "few"
users = ["carl"]
tables = ["ice.limited.visits"]
files_max = 5
bytes_max = 12_000
unknown = "reject"

[[limits]]
name = "counted"
users = ["paul"]
tables = ["ice.limited.visits"]
partitions_max = 1
"""
ALL = "SELECT * FROM ice.limited.visits"
BRANCH = f"{ALL}.branch_audit"
STAR = f"{ALL} v JOIN ice.limited.days d ON v.ds = d.ds WHERE d.g = 1"


@pytest.fixture(scope="module")
def bounded(iceberg_server: PipelineServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with limited_proxy(iceberg_server, tmp_path_factory.mktemp("limited"), TABLES, LIMITS) as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (
            "fay",
            {
                ALL: "no filter on a partition column of limited.visits",
                BRANCH: "no filter on a partition column",
                f"{BRANCH} WHERE ds = 'd3'": "It is not known",
                f"{ALL} WHERE id > 5": "no filter on a partition column",
                # By a range, Iceberg leaves out no bucket.
                f"{ALL} WHERE k > 5": "no filter on a partition column",
                f"{ALL} WHERE k = 5": RUNS,
                f"{ALL} WHERE ds = 'd3'": RUNS,
                f"{ALL} WHERE at >= TIMESTAMP '2025-10-12 00:00:00'": RUNS,
                f"SELECT * FROM ({ALL}) v WHERE ds = 'd3'": "It is not known",
                "SELECT count(*) FROM ice.limited.visits": RUNS,
                STAR: RUNS,
            },
        ),
        (
            "carl",
            {
                ALL: "would read 20 files of limited.visits. The limit for few is 5 files",
                BRANCH: "would read 20 files",
                f"{ALL} WHERE ds = 'd3'": RUNS,
                # By times, less is read than all, which is not known.
                f"{ALL} WHERE at >= TIMESTAMP '2025-10-12 00:00:00'": "It is not known",
                STAR: RUNS,
            },
        ),
        (
            "paul",
            {
                ALL: RUNS,
            },
        ),
    ],
)
def test_what_iceberg_leaves_counts(bounded: ProxyProcess, user: str, expected: dict[str, str]) -> None:
    assert not misjudged(bounded, user, expected)
