"""The target of a statement is told from what it reads, wherever the statement is of a form that says it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.statements.written_tables import WriteTargets, WrittenTables, tables_written
from rewriter import TableName

CALENDAR, X = TableName(("calendar",)), TableName(("db", "x"))
# Far above the milliseconds that a look at a statement takes.
PATIENCE_S = 5.0

READS = "SELECT c.day, s.amount FROM sales s JOIN calendar c ON s.day = c.day"
# As dbt's adapter for Spark sends them, with the comment that it puts in front of each.
DBT = '/* {"app": "dbt", "dbt_version": "1.9.0", "node_id": "model.shop.x"} */\n\n  '
WRITES_X = [
    f"{DBT}create or replace table db.x\n\n    using iceberg\n\n    partitioned by (day)\n    as\n      {READS}",
    f"{DBT}create table db.x\n      using parquet\n      location '/lake/x'\n      as {READS}",
    f"{DBT}insert overwrite table db.x\n    partition (day)\n    {READS}",
    f"{DBT}insert into table db.x\n    {READS}",
    f"{DBT}create or replace view db.x\n  comment 'of the day'\n  as\n    with c as (select 1)\n {READS}",
    f"{DBT}merge into db.x as dbt_to\n  using calendar as dbt_from\n  on a = b\n  when matched then update set *",
    f"CREATE TABLE db.x AS {READS}",
    f"CREATE TABLE IF NOT EXISTS `db` . `x` ({READS})",
    f"CREATE EXTERNAL TABLE db.x WITH c AS (SELECT 1) {READS}",
    f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW X(a, b) AS {READS}",
    f"REPLACE TABLE db.x AS {READS}",
    f"ALTER VIEW db.x AS {READS}",
    f"INSERT INTO db.x {READS}",
    f"INSERT INTO db.x (day, amount) {READS}",
    f"INSERT INTO db.x ({READS})",
    "INSERT INTO db.x FROM calendar SELECT day",
    f"INSERT INTO db.x BY NAME {READS}",
    f"INSERT INTO db.x REPLACE WHERE day = 'd1' {READS}",
    f"INSERT WITH SCHEMA EVOLUTION INTO db.x {READS}",
    f"INSERT INTO `db`.`x`{READS}",
    f"INSERT INTO db.x SELECT '${{day}}', c.* FROM ({READS}) c",
    f"WITH c AS ({READS}) INSERT INTO db.x SELECT * FROM c",
    "FROM calendar INSERT INTO db.x SELECT day INSERT OVERWRITE TABLE db.y SELECT day",
    "MERGE INTO db.x USING calendar ON x.day = calendar.day WHEN MATCHED THEN DELETE",
    "MERGE WITH SCHEMA EVOLUTION INTO db.x t USING (SELECT * FROM calendar) c ON a = b WHEN MATCHED THEN DELETE",
    "UPDATE db.x SET a = (SELECT max(day) FROM calendar)",
    "UPDATE db.x AS t SET a = 1 WHERE EXISTS (SELECT 1 FROM calendar c WHERE c.day = t.day)",
    "DELETE FROM db.x WHERE day IN (SELECT day FROM calendar)",
    "DELETE FROM db.x t WHERE t.day IN (SELECT day FROM calendar)",
    "WITH c AS (SELECT day FROM calendar) DELETE FROM db.x WHERE day IN (SELECT day FROM c)",
    "REFRESH TABLE db.x",
    f"{DBT}refresh table `db`.x ;",
    "OPTIMIZE db.x",
    "optimize lake.db.`x`;",
    "OPTIMIZE db.x WHERE calendar >= '2026-01-01' ZORDER BY (sales)",
    "OPTIMIZE db.x FULL",
    "VACUUM db.x",
    "VACUUM db.x USING INVENTORY (SELECT * FROM calendar) RETAIN 168 HOURS",
    f"{DBT}VACUUM db.x LITE RETAIN 0 HOURS DRY RUN",
    "CALL system.rewrite_data_files('db.x')",
    "CALL lake.system.rewrite_data_files(table => 'db.x', where => 'calendar > 3')",
    "CALL `lake` . system . expire_snapshots ( TABLE=>'lake.db.x', retain_last => 3 )",
    "CALL lake.system.rewrite_manifests('db.x')",
    "CALL lake.system.rewrite_position_delete_files(table => 'db.x', options => map('rewrite-all', 'true'))",
    "CALL lake.system.compute_table_stats('db.x')",
]


@pytest.mark.parametrize("sql", WRITES_X, ids=lambda sql: " ".join(sql.removeprefix(DBT).split())[:60])
def test_a_statement_writes_its_target_and_not_what_it_reads(sql: str) -> None:
    tables = tables_written(sql)
    assert isinstance(tables, WriteTargets)
    assert tables.hold(X)
    assert not tables.hold(CALENDAR)
    assert not tables.hold(TableName(("db", "sales")))


def test_each_target_of_an_insert_of_several_is_written() -> None:
    tables = tables_written(
        "FROM calendar INSERT INTO x SELECT a then INSERT OVERWRITE y SELECT b INSERT INTO z SELECT c"
    )
    assert isinstance(tables, WriteTargets)
    assert [tables.hold(TableName((name,))) for name in ("x", "y", "z", "calendar")] == [True, True, True, False]


# Spark may read these otherwise than the form says: any word of the text counts as a table.
@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO /* into */ db.x {READS}",
        f"INSERT INTO db /* a name that goes on */ . x {READS}",
        f"INSERT INTO db -- a name that goes on\n.x {READS}",
        f'INSERT INTO "x" {READS}',
        f"INSERT INTO table {READS.replace('sales', 'x')}",
        f"INSERT INTO TABLE values {READS.replace('sales', 'x')}",
        f"INSERT INTO db.x TABLE calendar -- {READS}",
        f"INSERT INTO db.x WITH ('mergeSchema' = 'true') {READS}",
        f"INSERT INTO somehow db.x {READS}",
        f"CREATE TABLE IF ! EXISTS db.x AS {READS}",
        f"CREATE SHINY TABLE db.x AS {READS}",
        f"CREATE MATERIALIZED VIEW db.x AS {READS}",
        "CREATE TABLE db.x LIKE calendar",
        "CREATE TABLE db.x SHALLOW CLONE calendar",
        f"CACHE TABLE x AS {READS}",
        f"WITH c AS ({READS}) MERGE INTO db.x USING c ON c.day = x.day WHEN MATCHED THEN DELETE",
        f"WITH c AS ({READS}) -- insert what is new\nINSERT INTO db.x SELECT * FROM c",
        f"FROM calendar INSERT INTO db.x SELECT `update` INSERT INTO db.y -- {READS}",
        "DELETE FROM db.x c USING calendar",
    ],
)
def test_of_any_other_form_each_word_may_be_a_table_that_is_written(sql: str) -> None:
    tables = tables_written(sql)
    assert type(tables) is WrittenTables
    assert tables.hold(X)
    assert tables.hold(CALENDAR)


@pytest.mark.parametrize("query", ["", f" AS {READS.replace('calendar', 'days')}"])
def test_a_location_may_be_that_of_another_table(query: str) -> None:
    tables = tables_written(f"CREATE TABLE db.x USING delta LOCATION '/lake/calendar'{query}")
    assert isinstance(tables, WriteTargets)
    assert tables.hold(CALENDAR)
    assert tables.hold(X)


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO IDENTIFIER('db.x') {READS}",
        f"INSERT INTO db.IDENTIFIER('x') {READS}",
        f"CREATE TABLE IDENTIFIER(:target) AS {READS}",
        f"INSERT INTO parquet.`/lake/x` {READS}",
        f"INSERT INTO `delta` . `/lake/x` {READS}",
        f"INSERT OVERWRITE DIRECTORY '/lake/x' USING parquet {READS}",
        f"INSERT OVERWRITE LOCAL DIRECTORY '/lake/x' {READS}",
        f"FROM calendar INSERT INTO x SELECT 1 INSERT OVERWRITE DIRECTORY '/lake/y' {READS}",
        f"INSERT INTO ${{target}} {READS}",
        f"/* ${{comment}} */ INSERT INTO x {READS}",
        f"${{comment}} INSERT INTO x {READS}",
        f"${{hint}}; WITH c AS (SELECT 1) INSERT INTO x {READS}",
        "FROM calendar INSERT INTO x SELECT 1 ${further}",
        f"COPY INTO x FROM ({READS})",
        *(
            "OPTIMIZE '/lake/x'",
            'VACUUM "/lake/x"',
            "OPTIMIZE delta.`/lake/x`",
            "VACUUM ${target}",
            "OPTIMIZE table",
        ),
        *("REFRESH TABLE", "REFRESH x", "REFRESH '/lake/x'", "REFRESH FUNCTION x", "REFRESH TABLE x, y"),
        *("OPTIMIZE x /* a name that goes on */ .y", "OPTIMIZE x then WHERE a = 1", "VACUUM IDENTIFIER('x')"),
        *("OPTIMIZE", "VACUUM x, y", "CALL lake.system.rewrite_data_files()", "CALL lake.system.x('db.x')"),
        *("CALL lake.system.rollback_to_snapshot('db.x', 1)", "CALL lake.system.rewrite_data_files(x)"),
        *("CALL lake.rewrite_data_files('db.x')", "CALL lake.db.system.rewrite_data_files('db.x')"),
        *("CALL lake.system.rewrite_data_files('db.' 'x')", "CALL lake.system.rewrite_data_files('db.' || 'x')"),
        "CALL lake.system.rewrite_data_files(r'db.x')",
        "CALL lake.system.rewrite_data_files(where => 'a = 1', table => 'db.x')",
        *("CALL lake.system.rewrite_data_files('db.\\x')", 'CALL lake.system.rewrite_data_files("db.x")'),
        "CALL lake.system.rewrite_data_files('db.${x}')",
        "CALL lake.system.remove_orphan_files(table => 'db.x', location => '/lake/calendar')",
        f"BEGIN INSERT INTO x {READS}; END",
        f"EXECUTE IMMEDIATE 'INSERT INTO x {READS}'",
        f"/* /* */ */ INSERT INTO x {READS}",
        f"FROM calendar {'INSERT INTO x SELECT 1 ' * 600}",
        f"WITH c AS (SELECT '{'x' * 300_000}') INSERT INTO x SELECT * FROM c",
    ],
    ids=lambda sql: sql[:60],
)
def test_a_target_that_is_not_named_may_be_any_table(sql: str) -> None:
    tables = tables_written(sql)
    assert tables is not None
    assert tables.words is None


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        (f"INSERT INTO x {READS}", False),
        (
            f"MERGE INTO x USING calendar ON a = b WHEN MATCHED AND replace(a, b) = 'drop' THEN DELETE -- {READS}",
            False,
        ),
        (f"CREATE TABLE x AS {READS}", True),
        (f"CREATE TABLE IF NOT EXISTS x AS {READS}", True),
        (f"INSERT INTO x (id, type) {READS}", False),
        ("ALTER TABLE x ADD PARTITION (type = 'a')", False),
        ("ALTER TABLE `a`.x ADD IF NOT EXISTS PARTITION (type = 'a') LOCATION 'drop'", False),
        ("ALTER TABLE x RECOVER PARTITIONS", False),
        ("ALTER TABLE x RENAME TO y", True),
        ("ALTER TABLE x SET SERDE 'a'", True),
        ("/* add partition ( */ ALTER TABLE x ALTER g FIRST", True),
        ("ALTER TABLE /*x add partition (*/ x ALTER g FIRST", True),
        ("ALTER TABLE `x add partition (y` ALTER g FIRST", True),
        ("ALTER TABLE x ALTER `add` AFTER `partition`", True),
        ("ALTER TABLE x ALTER partition.add TYPE bigint", True),
        ("CREATE TABLE x LIKE y", True),
        ("CREATE TABLE x SHALLOW CLONE y", True),
        (f"CREATE TABLE x COMMENT 'exists' AS {READS}", True),
        (f"CREATE TABLE /* if not exists */ x AS {READS}", True),
        ("REPLACE TABLE x (a int)", True),
        ("DROP TABLE x", True),
        ("ANALYZE TABLE x COMPUTE STATISTICS FOR ALL COLUMNS", False),
        (f"INSERT OVERWRITE x WITH ('overwriteSchema' = 'true') {READS}", True),
        (f"WITH c AS (SELECT 1) INSERT INTO x WITH ('merge\\u0053chema' = 'true') {READS}", True),
        (f"WITH c AS (SELECT 1) INSERT INTO x {READS}", False),
        ("ALTER TABLE x ALTER g FIRST", True),
        ("ALTER TABLE x ALTER g AFTER h", True),
        ("ALTER TABLE x ALTER g TYPE bigint", True),
        (f"CREATE OR REPLACE TABLE x AS {READS}", True),
        (f"CREATE OR REPLACE VIEW x AS {READS}", True),
        (f"ALTER VIEW x AS {READS}", True),
        (f"INSERT WITH SCHEMA EVOLUTION INTO x {READS}", True),
        ("MERGE WITH SCHEMA EVOLUTION INTO x USING calendar ON a = b WHEN MATCHED THEN DELETE", True),
        (f"INSERT INTO x WITH ('mergeSchema' = 'true') {READS}", True),
        (f"INSERT INTO x WITH ('merge-schema' = 'true') {READS}", True),
    ],
)
def test_a_statement_changes_the_columns_of_its_target_or_of_none(sql: str, *, changes: bool) -> None:
    tables = tables_written(sql)
    assert tables is not None
    assert tables.may_change_columns is changes


@pytest.mark.parametrize(
    ("sql", "maybe_views"),
    [
        ("DELETE FROM db.x WHERE a = 1", [("db", "x")]),
        ("WITH c AS (SELECT 1) DELETE FROM `d``b`.`x y`", [("d`b", "x y")]),
        ("MERGE INTO x USING y ON x.a = y.a WHEN MATCHED THEN DELETE", [("x",)]),
        ("MERGE INTO global_temp.x USING y ON x.a = y.a WHEN MATCHED THEN DELETE", [("global_temp", "x")]),
        ("UPDATE Global_Temp.x SET a = 1", [("Global_Temp", "x")]),
        ("UPDATE x SET a = 1", [("x",)]),
        ("UPDATE db.x SET a = 1", []),
        ("MERGE INTO db.x USING y ON x.a = y.a WHEN MATCHED THEN DELETE", []),
        ("INSERT INTO x SELECT 1", []),
        ("CREATE TABLE x AS SELECT 1", []),
    ],
)
def test_what_is_deleted_from_may_be_a_view_of_any_table(sql: str, maybe_views: list[tuple[str, ...]]) -> None:
    """Spark 4.1 with Iceberg removes rows through any view; Delta changes them through temporary ones."""
    tables = tables_written(sql)
    assert isinstance(tables, WriteTargets)
    assert [name.parts for name in tables.maybe_views] == maybe_views
    assert tables.given(lambda _: True) is tables
    assert (tables.given(lambda _: False).words is None) is bool(maybe_views)


SPACES = st.text(" \t\n\r", min_size=1, max_size=3)
PLAIN = st.from_regex(r"[a-z][a-z0-9_]{0,8}x", fullmatch=True)
QUOTED = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
DOTS = st.sampled_from([".", " . ", "\n."])


@st.composite
def heads(draw: st.DrawFn) -> tuple[str, TableName]:
    """A head in any case and spacing, with the name in it."""
    before, after = draw(
        st.sampled_from(
            [
                ("INSERT INTO", "SELECT"),
                ("insert overwrite table", "PARTITION (p) SELECT"),
                ("Create Or Replace Table", "USING iceberg AS SELECT"),
                ("CREATE VIEW IF NOT EXISTS", "AS SELECT"),
                ("MERGE INTO", "AS t USING"),
                ("UPDATE", "SET a = "),
                ("DELETE FROM", "WHERE"),
                ("WITH c AS (SELECT 1) INSERT INTO", "SELECT"),
            ]
        )
    )
    parts = draw(st.lists(PLAIN | QUOTED, min_size=1, max_size=3))
    is_plain = [part.isidentifier() and part.isascii() and draw(st.booleans()) for part in parts]
    written = [
        part if plain else f"`{part.replace('`', '``')}`" for part, plain in zip(parts, is_plain, strict=True)
    ]
    words = draw(SPACES).join(before.split())
    return f"{words}{draw(SPACES)}{draw(DOTS).join(written)}{draw(SPACES)}{after} ", TableName(tuple(parts))


@given(heads(), st.text(max_size=40))
def test_a_target_is_found_whatever_its_name_and_whatever_follows(head: tuple[str, TableName], rest: str) -> None:
    text, name = head
    tables = tables_written(text + rest)
    assert tables is not None
    assert tables.hold(name)


@given(
    st.lists(
        st.sampled_from([*"`.(/*-;$", "INSERT INTO ", "a ", "with ", "merge into a using ", "\n"]), max_size=60
    )
)
def test_no_text_is_too_much(pieces: list[str]) -> None:
    _ = tables_written("".join(pieces))


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO `{'``' * 50_000}",
        f"INSERT INTO {'a . ' * 50_000}",
        f"INSERT INTO a {' ' * 200_000}x",
        f"MERGE INTO {'`' * 100_001} {'b ' * 50_000}",
        f"CREATE TABLE x AS SELECT {'a, ' * 50_000}b FROM calendar",
    ],
    ids=lambda sql: sql[:20],
)
def test_a_long_text_is_looked_at_once(sql: str) -> None:
    started = time.process_time()
    _ = tables_written(sql)
    assert time.process_time() - started < PATIENCE_S
