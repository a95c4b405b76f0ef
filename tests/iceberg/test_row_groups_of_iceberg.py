"""Row groups that Iceberg's reader skips where every file holds some key, by the rows that scans gave."""

from collections.abc import Iterator

import pytest
from iceberg_sides import Sides, drop_namespace, make_namespace
from pipeline_server import PipelineServer

from demo.hive import run
from demo.proxy_process import ProxyProcess
from rewriter import SkipReason

NAMESPACE = "ice.row_groups"
FILES, ROWS_OF_A_FILE = 3, 20_000
# Some nine row groups in each file.
SMALL = """'write.distribution-mode' = 'none', 'write.parquet.row-group-size-bytes' = '65536',
  'write.parquet.row-group-check-min-record-count' = '1000'"""


def spread(name: str, order: str) -> str:
    """The statements for a table whose files all hold keys from everywhere, each file in that order if any."""
    inserts = [
        f"""INSERT INTO {name} SELECT /*+ COALESCE(1) */ CAST({FILES} * id + {number} AS INT) AS k, uuid() AS v
          FROM (SELECT id * 7919 % {ROWS_OF_A_FILE} AS id FROM range(0, {ROWS_OF_A_FILE}, 1, 1))"""
        for number in range(FILES)
    ]
    create = f"CREATE TABLE {name} (k INT, v STRING) USING iceberg TBLPROPERTIES ({SMALL})"
    return ";".join([create, *([f"ALTER TABLE {name} WRITE ORDERED BY {order}"] if order else []), *inserts])


TABLES = f"""
{spread("sorted", "k, v")};
{spread("sorted_by_v", "v, k")};
{spread("unsorted", "")};
CREATE TABLE whole (k INT, v STRING) USING iceberg TBLPROPERTIES ('write.distribution-mode' = 'none');
ALTER TABLE whole WRITE ORDERED BY k;
INSERT INTO whole SELECT CAST(id AS INT), uuid() FROM range(0, 1000, 1, 1);
INSERT INTO whole SELECT CAST(id AS INT), uuid() FROM range(0, 1000, 1, 1);
CREATE TABLE wanted (k INT, g INT) USING iceberg;
INSERT INTO wanted VALUES (30, 1), (31, 1), (32, 1);
INSERT INTO wanted SELECT CAST(id * 300 AS INT), 2 FROM range(200);
INSERT INTO wanted SELECT CAST(id AS INT), 3 FROM range(600)"""


@pytest.fixture(scope="module")
def sides(iceberg_server: PipelineServer, iceberg_proxy: ProxyProcess) -> Iterator[Sides]:
    make_namespace(iceberg_server, NAMESPACE, TABLES)
    with Sides.opened(iceberg_server, iceberg_proxy.endpoint, NAMESPACE) as sides:
        sides.both("SET spark.sql.autoBroadcastJoinThreshold=-1")
        yield sides
    drop_namespace(iceberg_server, NAMESPACE)


def joined(table: str, group: int) -> str:
    return f"SELECT count(*), max(f.v) FROM {table} f JOIN wanted d ON f.k = d.k WHERE d.g = {group}"


def explained(sides: Sides, sql: str) -> str:
    return "\n".join(line for (line,) in run(sides.proxied, f"EXPLAIN REWRITE {sql}"))


@pytest.mark.parametrize("group", [1, 3])
def test_keys_in_every_file_leave_out_row_groups_where_writers_sort_by_them(sides: Sides, group: int) -> None:
    found = sides.compared(joined("sorted", group), "sorted")
    assert found.rows[0][0] == {1: 3, 3: 600}[group]
    assert (found.direct.files_planned, found.proxied.files_planned) == (FILES, FILES)
    assert found.direct.rows_read == FILES * ROWS_OF_A_FILE
    # One row group of each file: by more keys than one IN may have, too.
    assert found.proxied.rows_read <= FILES * ROWS_OF_A_FILE / 5


def test_row_groups_before_and_after_are_told(sides: Sides) -> None:
    told = explained(sides, joined("sorted", 1))
    [line] = [line.split() for line in told.splitlines() if line.startswith("  row groups")]
    assert line[2:4] == [f"{FILES}", "of"]
    assert int(line[4]) > 5 * FILES


@pytest.mark.parametrize(
    ("table", "group"),
    [("sorted", 2), ("sorted_by_v", 1), ("unsorted", 1), ("whole", 1)],
    ids=["a key in each row group", "sorted by another column", "in no order", "files of one row group"],
)
def test_nothing_is_said_where_no_row_group_is_known_to_be_skipped(sides: Sides, table: str, group: int) -> None:
    found = sides.compared(joined(table, group), table)
    assert not found.is_narrowed
    assert SkipReason.NOTHING_TO_SKIP.sentence in explained(sides, joined(table, group))
