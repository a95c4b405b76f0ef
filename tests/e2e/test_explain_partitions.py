"""EXPLAIN PARTITIONS and GET /partitions on Spark: the partitions that Spark itself keeps, and refusals."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from pyhive import hive

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

LOGIN = b64encode(b"tester:secret").decode()
SECONDS_MAX = 120
TABLE = "visits_by_month"


@pytest.fixture(scope="module")
def table(spark: ThriftServer) -> Iterator[str]:
    """Partitions of two columns, one of them null."""
    with closing(connect(spark.endpoint)) as direct:
        run(direct, f"CREATE TABLE {TABLE} (x INT, y INT, place STRING) USING parquet PARTITIONED BY (y, place)")
        rows = ", ".join(f"(1, {y}, '{place}')" for y in range(2020, 2024) for place in ("ab", "ac", "b"))
        run(direct, f"INSERT INTO {TABLE} VALUES {rows}, (1, NULL, 'ab')")
        yield TABLE
        run(direct, f"DROP TABLE {TABLE}")


def explained(session: hive.Connection, table: str, condition: str) -> dict[str, Any]:
    ((answer,),) = run(session, f"EXPLAIN PARTITIONS JSON {table} WHERE {condition}")
    found: dict[str, Any] = json.loads(answer)
    return found


@pytest.mark.parametrize(
    ("condition", "scanned"),
    [
        ("y = 2021", 3),
        ("y >= 2022 AND place = 'b'", 4),
        ("y BETWEEN 2020 AND 2021 AND place NOT LIKE 'a%'", 2),
        ("NOT (y = 2020 OR place LIKE 'a_')", 9),
        ("y IS NULL OR y > 2022", 4),
        ("place IN ('ab', 'b')", 13),
        ("y = 2021 OR place = 'b'", 13),
    ],
)
def test_the_plan_keeps_the_partitions_that_spark_keeps(
    proxied: hive.Connection, direct: hive.Connection, table: str, condition: str, scanned: int
) -> None:
    plan = explained(proxied, table, condition)
    rows = run(direct, f"SELECT DISTINCT y, place FROM {table} WHERE {condition}")
    names = {f"y={'__HIVE_DEFAULT_PARTITION__' if y is None else y}/place={place}" for y, place in rows}
    assert set(plan["names"]) == names
    assert (plan["partitions"], plan["scanned"]) == ({"total": 13, "kept": len(names)}, scanned)
    assert (plan["full_scan"] is not None) is (scanned == plan["partitions"]["total"])


# The filters of the design of the metastore on HBase (HIVE-9452), each with the scans of its plan: the start, the
# stop and the filter that remains. A bracket includes its end, a parenthesis does not. The integer after 10 is 11.
PLANS_OF_HIVE = {
    "p1 > 10 AND p1 < 20": ["[p1 = 11, p1 = 20)"],
    "p1 = 10": ["[p1 = 10, p1 = 11)"],
    "p1 = 9 OR p1 = 11": ["[p1 = 9, p1 = 10)", "[p1 = 11, p1 = 12)"],
    "p1 = 9 OR p1 = 10": ["[p1 = 9, p1 = 11)"],
    "p1 > 10 AND p1 > 20 AND p1 < 30 AND p1 < 40": ["[p1 = 21, p1 = 30)"],
    "p1 > 20 AND p1 < 10": [],
    "c1 = 5": ["[first, last] c1 = 5"],
    "p1 > 10 AND c1 = 5": ["[p1 = 11, last] c1 = 5"],
    "p1 < 20 AND c1 = 5": ["(p1 IS NULL, p1 = 20) c1 = 5"],
    "p1 = 10 AND c1 > 5": ["[p1 = 10, c1 = 6, p1 = 10]"],
    "p1 = 10 AND c1 = 5 AND c2 = 'x'": ["[p1 = 10, c1 = 5, c2 = 'x', p1 = 10, c1 = 5, c2 = 'x']"],
    "p1 > 20 OR c1 = 5": ["[first, last] p1 > 20 OR c1 = 5"],
    "p1 > 10 AND (p1 > 20 OR c1 = 5)": ["[p1 = 11, last] p1 > 20 OR c1 = 5"],
}


@pytest.fixture(scope="module")
def ordered(spark: ThriftServer) -> Iterator[str]:
    """A table with the partition columns of the design: some partitions on each side of its numbers."""
    name = "plans_of_hive"
    with closing(connect(spark.endpoint)) as direct:
        run(
            direct,
            f"CREATE TABLE {name} (x INT, p1 INT, c1 INT, c2 STRING) USING parquet PARTITIONED BY (p1, c1, c2)",
        )
        numbers = (5, 9, 10, 11, 15, 20, 25, 30, 50)
        rows = ", ".join(f"(1, {p1}, {c1}, '{c2}')" for p1 in numbers for c1, c2 in ((5, "x"), (5, "y"), (6, "x")))
        run(direct, f"INSERT INTO {name} VALUES {rows}")
        yield name
        run(direct, f"DROP TABLE {name}")


@pytest.mark.parametrize("condition", PLANS_OF_HIVE)
def test_a_filter_of_hive_s_design_has_its_plan_and_keeps_what_spark_keeps(
    proxied: hive.Connection, direct: hive.Connection, ordered: str, condition: str
) -> None:
    plan = explained(proxied, ordered, condition)
    assert [as_interval(scan) for scan in plan["scans"]] == PLANS_OF_HIVE[condition]
    rows = run(direct, f"SELECT DISTINCT p1, c1, c2 FROM {ordered} WHERE {condition}")
    assert set(plan["names"]) == {f"p1={p1}/c1={c1}/c2={c2}" for p1, c1, c2 in rows}


def as_interval(scan: dict[str, Any]) -> str:
    """A scan of the plan as an interval, and the filter that remains behind it."""
    opened, closed = "(["[scan["start_included"]], ")]"[scan["stop_included"]]
    interval = f"{opened}{scan['start'] or 'first'}, {scan['stop'] or 'last'}{closed}"
    return " ".join(filter(None, (interval, scan["filter_left"])))


def test_the_lines_are_a_result_set_that_begins_with_the_result(proxied: hive.Connection, table: str) -> None:
    lines = [line for (line,) in run(proxied, f"EXPLAIN PARTITIONS {table} WHERE y >= 2023 AND place = 'b'")]
    assert lines[0] == f"1 of 13 partitions of {table}, 1 looked at"
    assert lines[-1] == "  y=2023/place=b"


def test_partitions_that_were_added_are_in_the_next_plan(proxied: hive.Connection, table: str) -> None:
    assert explained(proxied, table, "y = 2030")["partitions"]["kept"] == 0
    run(proxied, f"ALTER TABLE {table} ADD PARTITION (y = 2030, place = 'ab')")
    assert explained(proxied, table, "y = 2030")["names"] == ["y=2030/place=ab"]
    run(proxied, f"ALTER TABLE {table} DROP PARTITION (y = 2030, place = 'ab')")
    assert explained(proxied, table, "y = 2030")["names"] == []


def test_a_sentence_says_why_there_is_no_plan(proxied: hive.Connection, table: str) -> None:
    said = {
        f"{table} WHERE x = 1": "x is not a partition column; the columns are y, place.",
        f"{table} WHERE y = ": "The filter is not understood as a condition of Spark SQL.",
        "nowhere": "nowhere cannot be described in this session.",
    }
    for asked, sentence in said.items():
        assert run(proxied, f"EXPLAIN PARTITIONS {asked}") == [(sentence,)]


def get(proxy: ProxyProcess, **query: str) -> Any:
    request = Request(
        f"{proxy.admin_url}/partitions?{urlencode(query)}", headers={"Authorization": f"Basic {LOGIN}"}
    )
    with urlopen(request, timeout=SECONDS_MAX) as reply:
        return json.load(reply)


def test_get_partitions_answers_the_same_plan(proxy: ProxyProcess, proxied: hive.Connection, table: str) -> None:
    plan = get(proxy, table=table, filter="y = 2021", database="default")
    assert plan == explained(proxied, table, "y = 2021")
    with pytest.raises(HTTPError) as refused:
        get(proxy, filter="y = 2021")
    with refused.value as reply:
        assert reply.code == HTTPStatus.BAD_REQUEST
