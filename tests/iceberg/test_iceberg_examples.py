"""What narrowing saves on Iceberg tables, by Iceberg's own count of the files that it planned and read."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from equality_deletes import delete_keys
from iceberg_sides import Sides, drop_namespace, make_namespace
from pipeline_server import PipelineServer

from demo.hive import run
from demo.proxy_process import ProxyProcess

NAMESPACE = "ice.examples"

# Eight files of ten courses each, and of the departments one has its courses in two of them.
STUDENT_FILES = 8
TABLES = f"""
CREATE TABLE students (id BIGINT, name STRING, course INT) USING iceberg;
INSERT INTO students SELECT id, concat('student ', id), CAST(id DIV 50 AS INT)
  FROM range(0, 4000, 1, {STUDENT_FILES});
CREATE TABLE courses (id INT, title STRING, department STRING, credits INT) USING iceberg;
INSERT INTO courses SELECT CAST(id AS INT), concat('course ', id),
  CASE WHEN id IN (3, 5, 71) THEN 'history' WHEN id >= 60 THEN 'physics' ELSE 'law' END, CAST(id % 5 AS INT)
  FROM range(80);
CREATE TABLE crossed (v INT, a INT, b INT) USING iceberg PARTITIONED BY (a, b);
INSERT INTO crossed SELECT CAST(id AS INT), 1 + CAST(id DIV 50 AS INT), 1 + CAST(id % 2 AS INT)
  FROM range(100);
CREATE TABLE wanted (a INT, b INT, g INT) USING iceberg;
INSERT INTO wanted VALUES (1, 1, 1), (2, 2, 1), (1, 2, 2);
CREATE TABLE many (k INT, v BIGINT) USING iceberg;
INSERT INTO many SELECT CAST(id AS INT), id FROM range(0, 20000, 1, 10);
CREATE TABLE many_keys (k INT, g INT) USING iceberg;
INSERT INTO many_keys SELECT CAST(id AS INT), IF(id < 500 OR id BETWEEN 9000 AND 9499, 1, 2) FROM range(10000);
CREATE TABLE deleted (k INT, v BIGINT) USING iceberg
  TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read');
INSERT INTO deleted SELECT CAST(id AS INT), id FROM range(0, 800, 1, 4);
DELETE FROM deleted WHERE k % 2 = 0;
UPDATE deleted SET v = -v WHERE k IN (101, 501);
CREATE TABLE evolved (k INT, price DECIMAL(5,2), gone STRING, name STRING) USING iceberg;
INSERT INTO evolved SELECT CAST(id AS INT), CAST(id AS DECIMAL(5,2)), 'gone',
  concat('n', lpad(id, 3, '0')) FROM range(0, 90, 1, 3);
ALTER TABLE evolved RENAME COLUMN k TO key;
ALTER TABLE evolved ALTER COLUMN key TYPE BIGINT;
ALTER TABLE evolved ALTER COLUMN price TYPE DECIMAL(9,2);
ALTER TABLE evolved DROP COLUMN gone;
ALTER TABLE evolved ADD COLUMN added INT;
ALTER TABLE evolved ALTER COLUMN name FIRST;
ALTER TABLE evolved ADD COLUMN gone STRING;
INSERT INTO evolved SELECT concat('n', lpad(id, 3, '0')), id, CAST(id AS DECIMAL(9,2)), CAST(id DIV 30 AS INT),
  concat('back', id) FROM range(60, 180, 1, 4);
CREATE TABLE evolved_keys (key BIGINT, price DECIMAL(9,2), name STRING, added INT, gone STRING, g INT)
  USING iceberg;
INSERT INTO evolved_keys VALUES (3, 3.00, 'n003', 3, 'back70', 1), (65, 65.00, 'n065', 4, 'back71', 1),
  (170, 170.00, 'n170', 9, 'gone', 1), (4, 5.00, 'n', 1, NULL, 2);
CREATE TABLE respecified (k INT, v BIGINT) USING iceberg;
INSERT INTO respecified SELECT CAST(id AS INT), id FROM range(0, 100, 1, 2);
ALTER TABLE respecified ADD PARTITION FIELD bucket(4, k);
INSERT INTO respecified SELECT CAST(id AS INT), id FROM range(100, 200);
ALTER TABLE respecified REPLACE PARTITION FIELD bucket(4, k) WITH truncate(50, k);
INSERT INTO respecified SELECT CAST(id AS INT), id FROM range(200, 400);
ALTER TABLE respecified DROP PARTITION FIELD truncate(50, k);
INSERT INTO respecified SELECT CAST(id AS INT), id FROM range(400, 500);
CREATE TABLE voided (k INT, p INT) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ('format-version'='1');
INSERT INTO voided SELECT CAST(id AS INT), CAST(id DIV 50 AS INT) FROM range(100);
ALTER TABLE voided REPLACE PARTITION FIELD p WITH bucket(4, k);
INSERT INTO voided SELECT CAST(id AS INT), CAST(id DIV 50 AS INT) FROM range(100, 400);
ALTER TABLE voided DROP PARTITION FIELD bucket(4, k);
INSERT INTO voided SELECT CAST(id AS INT), CAST(id DIV 50 AS INT) FROM range(400, 500);
CREATE TABLE few (k INT, ds DATE, s STRING, g INT) USING iceberg;
INSERT INTO few VALUES (7, DATE'2026-01-01', 'ab1', 1), (410, DATE'2026-04-11', 'cd2', 1),
  (2, NULL, NULL, 2), (101, NULL, NULL, 3)"""

BEHIND = (
    """SELECT count(*), max(id) FROM students
       WHERE course IN (SELECT id FROM courses WHERE department = 'history')""",
    """SELECT s.course, count(*) FROM students s WHERE EXISTS
       (SELECT 1 FROM courses c WHERE c.id = s.course AND c.department = 'history') GROUP BY s.course""",
    """SELECT t.course, t.n, c.title FROM (SELECT course, count(*) AS n FROM students GROUP BY course) t
       JOIN courses c ON t.course = c.id WHERE c.department = 'history'""",
)

# In how many files the keys of `few` are at most, by the transform; and the column that it hides behind.
HIDDEN = {
    "days(ds)": ("ds", 2),
    "months(ds)": ("ds", 2),
    "years(ds)": ("ds", 1),
    "bucket(16, k)": ("k", 2),
    "truncate(100, k)": ("k", 2),
    "truncate(2, s)": ("s", 2),
}
HIDDEN_ROWS = """SELECT CAST(id AS INT) AS k, date_add(DATE'2026-01-01', 100 * CAST(id % 12 AS INT)) AS ds,
  concat(substr('abcdefgh', 1 + 2 * CAST(id % 4 AS INT), 2), id % 9) AS s, id AS v FROM range(0, 590, 1, 1)"""
STRATEGIES = ("without a broadcast", "MERGE(c)", "SHUFFLE_HASH(c)", "BROADCAST(c)")


@pytest.fixture(scope="module")
def sides(iceberg_server: PipelineServer, iceberg_proxy: ProxyProcess) -> Iterator[Sides]:
    make_namespace(iceberg_server, NAMESPACE, TABLES)
    with Sides.opened(iceberg_server, iceberg_proxy.endpoint, NAMESPACE) as sides:
        yield sides
    drop_namespace(iceberg_server, NAMESPACE)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_departments_students_are_in_the_files_of_its_courses(sides: Sides, strategy: str) -> None:
    hint = f"/*+ {strategy} */" if "(" in strategy else ""
    sides.both(f"SET spark.sql.autoBroadcastJoinThreshold={'10MB' if hint else '-1'}")
    found = sides.compared(
        f"SELECT {hint} s.name, c.title FROM students s JOIN courses c ON s.course = c.id "
        "WHERE c.department = 'history'",
        "students",
    )
    assert len(found.rows) == 150
    assert (found.direct.files_planned, found.proxied.files_planned) == (STUDENT_FILES, 2)


def test_students_without_a_course_of_the_department_are_counted_as_before(sides: Sides) -> None:
    found = sides.compared(
        "SELECT count(*) FROM students s LEFT JOIN courses c ON s.course = c.id AND c.department = 'history'",
        "students",
    )
    assert found.direct.files_planned == found.proxied.files_planned


@pytest.mark.parametrize("sql", BEHIND)
def test_files_are_left_out_behind_semi_joins_and_aggregates(sides: Sides, sql: str) -> None:
    found = sides.compared(sql, "students")
    assert (found.direct.files_planned, found.proxied.files_planned) == (STUDENT_FILES, 2)


@pytest.mark.parametrize("hint", ["BROADCAST(d)", "MERGE(d)"])
def test_two_of_four_partitions_are_read_for_two_pairs(sides: Sides, hint: str) -> None:
    found = sides.compared(
        f"SELECT /*+ {hint} */ count(*), sum(f.v) FROM crossed f JOIN wanted d ON f.a = d.a AND f.b = d.b "
        "WHERE d.g = 1",
        "crossed",
    )
    assert found.rows[0][0] == 50
    assert (found.direct.splits_read, found.proxied.splits_read) == (4, 2)


def test_more_keys_than_iceberg_compares_still_leave_files_out(sides: Sides) -> None:
    found = sides.compared(
        "SELECT /*+ MERGE(d) */ count(*), sum(f.v) FROM many f JOIN many_keys d ON f.k = d.k WHERE d.g = 1", "many"
    )
    assert found.rows[0][0] == 1000
    assert (found.direct.files_planned, found.proxied.files_planned) == (10, 2)


def test_a_key_set_without_any_key_reads_no_file(sides: Sides) -> None:
    sql = "SELECT count(*) FROM students s JOIN courses c ON s.course = c.id WHERE c.department = 'alchemy'"
    with sides.planned_once():
        found = sides.compared(sql, "courses")
    assert found.rows == [(0,)]
    assert found.is_narrowed


def test_rows_that_were_deleted_on_read_stay_deleted(sides: Sides) -> None:
    found = sides.compared(
        "SELECT /*+ MERGE(d) */ f.k, f.v FROM deleted f JOIN few d ON f.k = d.k WHERE d.g <> 2", "deleted"
    )
    assert sorted(found.rows) == [(7, 7), (101, -101)]
    assert found.direct.delete_files > 0
    assert found.proxied.files_planned < found.direct.files_planned


@pytest.mark.parametrize("column", ["key", "price", "name", "added", "gone"])
def test_columns_that_were_renamed_moved_widened_added_and_dropped_answer_as_before(
    sides: Sides, column: str
) -> None:
    found = sides.compared(
        f"SELECT /*+ MERGE(d) */ f.* FROM evolved f JOIN evolved_keys d ON f.{column} = d.{column} WHERE d.g = 1",
        "evolved",
    )
    assert found.rows
    assert found.is_narrowed
    assert found.proxied.files_planned <= found.direct.files_planned


@pytest.mark.parametrize("column", ["key", "price", "name"])
def test_files_from_before_the_columns_changed_are_left_out_too(sides: Sides, column: str) -> None:
    found = sides.compared(
        f"SELECT /*+ MERGE(d) */ count(*) FROM evolved f JOIN evolved_keys d ON f.{column} = d.{column} "
        "WHERE d.g = 1 AND d.added = 3",
        "evolved",
    )
    assert found.rows == [(1,)]
    assert (found.direct.files_planned, found.proxied.files_planned) == (7, 1)


@pytest.mark.parametrize("table", ["respecified", "voided"])
def test_files_of_every_partition_spec_that_a_table_had_are_left_out(sides: Sides, table: str) -> None:
    found = sides.compared(
        f"SELECT /*+ MERGE(d) */ f.k FROM {table} f JOIN few d ON f.k = d.k WHERE d.g = 1", table
    )
    assert sorted(found.rows) == [(7,), (410,)]
    assert found.proxied.files_planned == 2 < found.direct.files_planned


def test_rows_whose_keys_others_deleted_stay_deleted(sides: Sides) -> None:
    for table in ("deleted_by_keys", "gone"):
        run(sides.direct, f"CREATE TABLE {table} (k INT) USING iceberg TBLPROPERTIES ('format-version'='2')")
    run(sides.direct, "INSERT INTO deleted_by_keys SELECT CAST(id AS INT) FROM range(0, 800, 1, 8)")
    run(sides.direct, "INSERT INTO gone VALUES (7), (150)")
    delete_keys(location(sides, "deleted_by_keys"), location(sides, "gone"), "k")
    sides.both("REFRESH TABLE deleted_by_keys")
    found = sides.compared(
        "SELECT /*+ MERGE(d) */ f.k FROM deleted_by_keys f JOIN few d ON f.k = d.k WHERE d.g <> 2",
        "deleted_by_keys",
    )
    assert sorted(found.rows) == [(101,), (410,)]
    assert found.direct.delete_files > 0
    assert found.proxied.files_planned == 3 < found.direct.files_planned


@pytest.mark.parametrize(
    ("table", "said"),
    [("respecified", "by nothing now; files of 3 partition specs"), ("deleted", "  deletes      ")],
)
def test_explain_says_what_else_a_table_has_than_rows_in_its_partitions(
    sides: Sides, table: str, said: str
) -> None:
    explained = run(
        sides.proxied, f"EXPLAIN REWRITE SELECT f.v FROM {table} f JOIN few d ON f.k = d.k WHERE d.g = 1"
    )
    assert said in "\n".join(line for (line,) in explained)


def location(sides: Sides, table: str) -> str:
    described = {row[0]: row[1] for row in run(sides.direct, f"DESCRIBE TABLE EXTENDED {table}")}
    return str(described["Location"])


@dataclass(frozen=True)
class Hidden:
    """A table whose partitions no statement names."""

    table: str
    column: str
    files: int


@pytest.fixture(params=HIDDEN, ids=str)
def hidden(request: pytest.FixtureRequest, sides: Sides) -> Hidden:
    column, files = HIDDEN[request.param]
    table = f"hidden_{request.param.partition('(')[0]}_{column}"
    columns = "k INT, ds DATE, s STRING, v BIGINT"
    run(sides.direct, f"CREATE TABLE {table} ({columns}) USING iceberg PARTITIONED BY ({request.param})")
    run(sides.direct, f"INSERT INTO {table} {HIDDEN_ROWS}")
    return Hidden(table, column, files)


def test_hidden_partitions_are_left_out_though_no_statement_names_them(sides: Sides, hidden: Hidden) -> None:
    found = sides.compared(
        f"SELECT /*+ MERGE(d) */ count(*), sum(f.v) FROM {hidden.table} f "
        f"JOIN few d ON f.{hidden.column} = d.{hidden.column} WHERE d.g = 1",
        hidden.table,
    )
    assert found.is_narrowed
    assert found.proxied.files_planned <= hidden.files < found.direct.files_planned
