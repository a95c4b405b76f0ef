"""Statements that only Iceberg tables take, through the proxy: versions, branches, tags, and changes of rows."""

from collections.abc import Iterator

import pytest
from iceberg_sides import Sides, drop_namespace, make_namespace
from pipeline_server import PipelineServer
from support.executed_texts import texts_after
from support.server_version import SNAPSHOTS_IN_PLANS, needs

from demo.hive import run, same_answer
from demo.proxy_process import ProxyProcess

NAMESPACE = "ice.statements"

# The tags `before` and `first` are older than what the tables hold now, and the branch has a row of its own.
TABLES = f"""
CREATE TABLE facts (k INT, v BIGINT) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read');
INSERT INTO facts SELECT CAST(id AS INT), id FROM range(0, 400, 1, 4);
ALTER TABLE facts CREATE TAG before;
DELETE FROM facts WHERE k % 10 = 5 AND k < 200;
INSERT INTO facts SELECT CAST(id AS INT), id FROM range(400, 500, 1, 1);
CREATE TABLE small (k INT, g INT) USING iceberg;
INSERT INTO small VALUES (5, 1), (350, 1), (7, 2), (NULL, 1);
ALTER TABLE small CREATE TAG first;
ALTER TABLE small CREATE BRANCH trial;
INSERT INTO small VALUES (450, 1);
INSERT INTO {NAMESPACE}.small.branch_trial VALUES (120, 1)"""

# What is read of the fact and of the small side, by what these stand for.
PLAIN = ("facts f", "small d")
READ = {
    "as they are": (PLAIN, [350, 450]),
    "an older fact": (("facts VERSION AS OF 'before' f", "small d"), [5, 350]),
    "an older small side": (("facts f", "small VERSION AS OF 'first' d"), [350]),
    "both as they were": (
        ("facts FOR VERSION AS OF 'before' AS f", "small FOR VERSION AS OF 'first' AS d"),
        [5, 350],
    ),
    "a branch": (("facts f", "small VERSION AS OF 'trial' d"), [120, 350]),
    "a branch by its name": (("facts f", f"{NAMESPACE}.small.branch_trial d"), [120, 350]),
    "tags by their names": ((f"{NAMESPACE}.facts.tag_before f", f"{NAMESPACE}.small.tag_first d"), [5, 350]),
    "a moment": (("facts TIMESTAMP AS OF '2100-01-01' f", "small TIMESTAMP AS OF '2100-01-01' d"), [350, 450]),
    "two versions in one": (("facts f JOIN facts VERSION AS OF 'before' g ON f.k = g.k", "small d"), [350]),
    "its files beside it": (
        (f"facts f JOIN {NAMESPACE}.facts.files x ON x.spec_id = f.k - 350", "small d"),
        [350],
    ),
}
JOIN = "SELECT DISTINCT f.k FROM {} JOIN {} ON f.k = d.k WHERE d.g = 1"

JOINED = "SELECT f.k, f.v FROM facts f JOIN small d ON f.k = d.k WHERE d.g = 1"
WRITES = (
    "DELETE FROM {} WHERE k IN (SELECT k FROM small WHERE g = 1)",
    "UPDATE {} SET v = -1 WHERE k IN (SELECT k FROM small WHERE g = 1)",
    "UPDATE {} SET v = -1 WHERE EXISTS (SELECT 1 FROM small d WHERE d.k = v AND d.g = 2)",
    f"""MERGE INTO {{}} t USING ({JOINED}) s ON t.k = s.k + 50
        WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *""",
    """MERGE INTO {} t USING (SELECT k FROM small WHERE g = 1) s ON t.k = s.k
       WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = v + 1""",
    f"INSERT INTO {{}} {JOINED}",
    "INSERT OVERWRITE {0} SELECT f.k, f.v FROM {0} f JOIN small d ON f.k = d.k WHERE d.g = 1",
    f"CREATE OR REPLACE TABLE {{}} USING iceberg AS {JOINED}",
)


@pytest.fixture(scope="module")
def sides(iceberg_server: PipelineServer, iceberg_proxy: ProxyProcess) -> Iterator[Sides]:
    make_namespace(iceberg_server, NAMESPACE, TABLES)
    with Sides.opened(iceberg_server, iceberg_proxy.endpoint, NAMESPACE) as sides:
        yield sides
    drop_namespace(iceberg_server, NAMESPACE)


@pytest.mark.parametrize("what", READ)
def test_versions_branches_and_tags_are_read_as_the_statement_says(sides: Sides, what: str) -> None:
    sources, keys = READ[what]
    sql = JOIN.format(*sources)
    direct, proxied = run(sides.direct, sql), run(sides.proxied, sql)
    assert sorted(k for (k,) in direct) == keys
    assert same_answer(direct, proxied)


@pytest.mark.parametrize("sources", [PLAIN, READ["both as they were"][0]])
def test_a_version_of_a_fact_is_narrowed_like_the_table(sides: Sides, sources: tuple[str, str]) -> None:
    found = sides.compared(JOIN.format(*sources), "facts")
    assert found.is_narrowed
    assert found.proxied.files_planned < found.direct.files_planned


def test_the_small_side_is_read_at_one_snapshot_by_keys_and_statement(sides: Sides) -> None:
    needs(sides.direct, *SNAPSHOTS_IN_PLANS)
    before = sides.server.ui.last_execution()
    # Nobody has asked this before, so that its keys are not remembered.
    run(sides.proxied, JOIN.format(*PLAIN) + " AND d.k > 6")
    ((snapshot,),) = run(sides.direct, f"SELECT snapshot_id FROM {NAMESPACE}.small.refs WHERE name = 'main'")
    texts = texts_after(sides.server.ui, before)
    of_small = [text for text in texts if f"VERSION AS OF {snapshot}" in text and not text.startswith("EXPLAIN")]
    assert len(of_small) == 2, texts


@pytest.mark.parametrize("statement", WRITES)
def test_a_change_of_rows_leaves_what_it_leaves_without_the_proxy(sides: Sides, statement: str) -> None:
    tables = ("of_direct", "of_proxied")
    for session, table in zip((sides.direct, sides.proxied), tables, strict=True):
        run(sides.direct, f"CREATE OR REPLACE TABLE {table} USING iceberg AS SELECT * FROM facts")
        # Iceberg's catalog keeps a table for each session as the session last saw it.
        run(session, f"REFRESH TABLE {table}")
        run(session, statement.format(table))
        run(sides.direct, f"REFRESH TABLE {table}")
    left = [run(sides.direct, f"SELECT * FROM {table}") for table in tables]
    assert same_answer(*left)
    assert not same_answer(left[0], run(sides.direct, "SELECT * FROM facts"))
