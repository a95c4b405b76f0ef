"""SKEWED BY and its like become table properties; any other text is no business of ours."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.statements.ddl_items import ddl_items
from proxy.statements.skewed_by import SkewStatement, skew_statement
from proxy.statements.written_tables import WriteTargets, tables_written
from rewriter import TableName
from rewriter.sql.classify import first_word

CHARS_MAX = 262_144
# Far above the milliseconds that a look at a statement takes.
PATIENCE_S = 5.0

X_30 = (
    """'starpruner.skewed.by' = '["x"]', 'starpruner.skewed.on' = '[["30"]]', """
    "'starpruner.skewed.own-files' = 'true'"
)
PAIRS = X_30.replace('["x"]', '["a", "b"]').replace('[["30"]]', '[["1", "x"], ["2", "y"]]')


def said(text: str) -> SkewStatement | None:
    return skew_statement(text, first_word(text), CHARS_MAX)


def sent(text: str) -> str:
    found = said(text)
    assert found is not None, text
    assert not found.refusal, text
    return found.text


# `<>` stands for the clause, `{}` for the place of the properties where they are sent.
CREATED = [
    ("CREATE TABLE t (x INT) <>", "CREATE TABLE t (x INT) TBLPROPERTIES ({})"),
    ("create table if not exists db.t(x int)<>", "create table if not exists db.t(x int)TBLPROPERTIES ({})"),
    ("-- a tool\n/* b */ CREATE EXTERNAL TABLE `a b`.`t``1` (x INT)\n<>\n;", None),
    (
        "CREATE TABLE t USING parquet <> LOCATION '/x'",
        "CREATE TABLE t USING parquet TBLPROPERTIES ({}) LOCATION '/x'",
    ),
    (
        "CREATE TABLE t (x INT) USING org.apache.spark.sql.parquet OPTIONS (compression 'zstd') <> COMMENT 'x'",
        None,
    ),
    ("CREATE TABLE t (x INT, ds STRING) USING parquet PARTITIONED BY (ds) <>", None),
    ("CREATE TABLE t (x INT, ds STRING) USING parquet <> PARTITIONED BY (ds, days(at), bucket(4, x))", None),
    ("CREATE TABLE t (x INT) PARTITIONED BY (ds STRING COMMENT 'day') <> STORED AS PARQUET", None),
    ("CREATE TABLE t (x INT) PARTITIONED   \n BY (ds STRING) <> STORED AS ORC LOCATION '/x' 'y'", None),
    ("CREATE TABLE t (x INT) CLUSTERED BY (x) SORTED BY (x ASC) INTO 4 BUCKETS <> STORED AS ORC", None),
    (
        (
            "CREATE TABLE t (x INT) <> ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\001' ESCAPED BY '\\\\' "
            "LINES TERMINATED BY '\\n' NULL DEFINED AS '\\'' STORED AS TEXTFILE"
        ),
        None,
    ),
    (
        (
            "CREATE TABLE t (x INT) <> ROW FORMAT SERDE 'a.B' WITH SERDEPROPERTIES ('a' = 'b') STORED AS "
            "INPUTFORMAT 'i' OUTPUTFORMAT 'o'"
        ),
        None,
    ),
    (
        "CREATE TABLE t (m MAP<STRING,ARRAY<INT>>, s STRUCT<a:INT,b:MAP<INT,INT>>, x INT COMMENT 'it''s, x') <>",
        None,
    ),
    ('CREATE TABLE t (`x` INT NOT NULL DEFAULT 1, y DECIMAL(10, 2) COMMENT "a, b") <>', None),
    ("CREATE TABLE t (X BIGINT) <>", None),
    (
        "CREATE TABLE t (x INT) <> TBLPROPERTIES ('a' = 'b')",
        "CREATE TABLE t (x INT)   TBLPROPERTIES ('a' = 'b', {})",
    ),
    (
        "CREATE TABLE t (x INT) tblproperties ( a.b = 1 -- one\n) <>;",
        "CREATE TABLE t (x INT) tblproperties ( a.b = 1 -- one\n, {})  ;",
    ),
]

CLAUSES = [
    "SKEWED BY (x) ON (30)",
    "skewed by (x) on (30) stored as directories",
    "Skewed  By(`x`)On((30))Stored\n  As Directories",
    "SKEWED /* by x */ BY ( -- hot\n x ) ON ( '30' , 30L, 30S, \"30\" ) STORED AS /* ? */ DIRECTORIES",
]


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize(("text", "expected"), CREATED)
def test_the_clause_becomes_properties_and_nothing_else_changes(
    text: str, expected: str | None, clause: str
) -> None:
    properties = "TBLPROPERTIES ({})"
    expected = (text.replace("<>", properties) if expected is None else expected).replace("{}", X_30)
    assert sent(text.replace("<>", clause)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER TABLE t SKEWED BY (x) ON (30)", f"ALTER TABLE t SET TBLPROPERTIES ({X_30})"),
        (
            "alter table a.b.t\nskewed by (x) on (30) stored as directories -- x\n;",
            f"alter table a.b.t\nSET TBLPROPERTIES ({X_30}) -- x\n;",
        ),
        ("ALTER TABLE t SKEWED BY (a, b) ON ((1,'x'),(2,'y'))", f"ALTER TABLE t SET TBLPROPERTIES ({PAIRS})"),
        (
            "ALTER TABLE t NOT SKEWED",
            (
                "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('starpruner.skewed.by', 'starpruner.skewed.on', "
                "'starpruner.skewed.own-files')"
            ),
        ),
        (
            "/* a */ alter table `t` not stored as directories",
            "/* a */ alter table `t` SET TBLPROPERTIES ('starpruner.skewed.own-files' = 'false')",
        ),
    ],
)
def test_an_alteration_sets_properties(text: str, expected: str) -> None:
    assert sent(text) == expected


@pytest.mark.parametrize(
    ("type_name", "written", "kept"),
    [
        ("STRING", "1, '2', 03, 'a b', ''", ["1", "2", "03", "a b", ""]),
        ("BIGINT", "-5, '7', 9L", ["-5", "7", "9"]),
        ("BOOLEAN", "TRUE, false, 'true'", ["true", "false"]),
        ("DATE", "DATE '2026-11-20', '2026-11-21'", ["2026-11-20", "2026-11-21"]),
        ("DECIMAL(4, 1)", "1.5, 2, -3BD, 1.50BD", None),
        ("NUMERIC", "1, 2.0", None),
        ("INTEGER", "1, 1, 1", ["1"]),
    ],
)
def test_values_are_kept_as_texts(type_name: str, written: str, kept: list[str] | None) -> None:
    found = said(f"CREATE TABLE t (x {type_name}) SKEWED BY (x) ON ({written})")
    assert found is not None
    if kept is None:
        assert "cannot be read as a value of x decimal" in found.refusal
    else:
        values = ", ".join(f'["{value}"]' for value in kept)
        assert f"'starpruner.skewed.on' = '[{values}]'" in found.text


def test_decimals_are_kept_as_they_are_written() -> None:
    text = sent("CREATE TABLE t (x DECIMAL(4, 1)) SKEWED BY (x) ON (1.5, 2, -3BD)")
    assert """'[["1.5"], ["2"], ["-3"]]'""" in text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "CREATE TABLE t (x INT) SKEWED BY (y) ON (1)",
            r"SKEWED BY \(y\): the table has no such column; it has x",
        ),
        ("CREATE TABLE t (x INT) PARTITIONED BY (ds STRING) SKEWED BY (DS) ON ('a')", "a partition column"),
        ("CREATE TABLE t (x INT, ds INT) SKEWED BY (ds) ON (1) PARTITIONED BY (ds)", "a partition column"),
        ("CREATE TABLE t (x INT) SKEWED BY (x, X) ON ((1, 2))", "names the column x more than once"),
        ("ALTER TABLE t SKEWED BY (x, x) ON ((1, 2))", "names the column x more than once"),
        ("CREATE TABLE t (x DOUBLE) SKEWED BY (x) ON (1.5)", "its type, double, has no equality"),
        ("CREATE TABLE t (x varchar(3)) SKEWED BY (x) ON ('a')", "its type, varchar, has no equality"),
        ("CREATE TABLE t (x MAP<INT,INT>) SKEWED BY (x) ON (1)", "its type, map, has no equality"),
        ("CREATE TABLE t (x INT) SKEWED BY (x) ON ('ten')", "'ten' cannot be read as a value of x int"),
        ("CREATE TABLE t (x TINYINT) SKEWED BY (x) ON (200)", "'200' cannot be read as a value of x tinyint"),
        (
            "CREATE TABLE t (x INT, y INT) SKEWED BY (x, y) ON ((NULL, 1))",
            "NULL can have files of its own where one",
        ),
        ("CREATE TABLE t (x INT, y INT) SKEWED BY (x, y) ON (1, 2)", "value of 1 parts; expected 2"),
        ("ALTER TABLE t SKEWED BY (x) ON ((1, 2))", "value of 2 parts; expected 1"),
        ("CREATE TABLE t (x STRING) SKEWED BY (x) ON ('it\\'s')", "cannot be kept in a table property"),
        ("CREATE TABLE t (x STRING) SKEWED BY (x) ON ('$a')", "cannot be kept in a table property"),
        ("CREATE TABLE t SKEWED BY (x) ON (1) AS SELECT 1 AS x", "a query makes"),
        (
            "CREATE TABLE t USING parquet SKEWED BY (x) ON (1) TBLPROPERTIES ('a'='b') (SELECT 1 AS x)",
            "a query makes",
        ),
        ("CREATE TABLE t SKEWED BY (x) ON (1) WITH c AS (SELECT 1 x) SELECT x FROM c", "a query makes"),
        ("ALTER TABLE t SET SKEWED LOCATION (30 = '/x')", "SET SKEWED LOCATION cannot be kept"),
        (
            "ALTER TABLE t PARTITION (ds = 'a') SET SKEWED LOCATION (30 = '/x')",
            "SET SKEWED LOCATION cannot be kept",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    found = said(text)
    assert found is not None
    assert not found.text
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(found.refusal)


NOT_OURS = [
    "SELECT skewed FROM directories",
    "CREATE TABLE skewed (x INT)",
    "CREATE TABLE t (skewed INT, `by` INT)",
    "CREATE TABLE t (x INT COMMENT 'SKEWED BY (x) ON (30)')",
    "CREATE TABLE t (x INT) COMMENT 'SKEWED BY (x) ON (30) STORED AS DIRECTORIES'",
    "CREATE TABLE t (x INT) -- SKEWED BY (x) ON (30)",
    "CREATE TABLE t (x INT) /* SKEWED BY (x) ON (30) /* */ */",
    "CREATE TABLE t (x INT) OPTIONS (skewed by)",
    "CREATE TABLE t AS SELECT 1 AS skewed",
    "CREATE TABLE t AS SELECT * FROM a skewed JOIN b directories ON (a.x = b.x)",
    "CREATE VIEW skewed AS SELECT 1",
    "CREATE VIEW v AS SELECT * FROM t skewed",
    "ALTER TABLE skewed SET TBLPROPERTIES ('a' = 'skewed')",
    "ALTER TABLE t RENAME TO skewed",
    "ALTER TABLE t ADD COLUMNS (skewed INT)",
    "ALTER TABLE t ADD COLUMN skewed INT",
    "DROP TABLE skewed",
    "EXPLAIN CREATE TABLE t (x INT) SKEWED BY (x) ON (30)",
    "DESCRIBE skewed",
    # Of which Spark has the last word.
    "CREATE TABLE t (x INT) SKEWED BY (x) ON ()",
    "CREATE TABLE t (x INT) SKEWED BY x ON (30)",
    "CREATE TABLE t (x INT) SKEWED BY () ON (30)",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (30, (40))",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (1 + 2)",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (abs(1))",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (1e5)",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (x'1F')",
    # One quote or none, as a setting decides.
    "CREATE TABLE t (x STRING) SKEWED BY (x) ON ('a''b')",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (30) SKEWED BY (x) ON (40)",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (30) TBLPROPERTIES ('a' = 'b') TBLPROPERTIES ('c' = 'd')",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (30) WHATEVER",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (30); DROP TABLE t",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (30",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON (30))",
    "CREATE TABLE t LIKE s SKEWED BY (x) ON (30)",
    "CREATE TABLE IDENTIFIER('t') (x INT) SKEWED BY (x) ON (30)",
    "CREATE TABLE t (x INT) SKEWED BY (${x}) ON (30)",
    "CREATE TABLE t (x INT) -- \\\n SKEWED BY (x) ON (30)",
    "CREATE TABLE t (x INT) /* /*+ */ SKEWED BY (x) ON (30)",
    "CREATE TEMPORARY TABLE t (x INT) SKEWED BY (x) ON (30)",
    "ALTER TABLE t PARTITION (ds = 'a') SKEWED BY (x) ON (30)",
    "ALTER TABLE t NOT SKEWED BY (x)",
    "ALTER VIEW v SKEWED BY (x) ON (30)",
    "ALTER TABLE t STORED AS DIRECTORIES",
    "CREATE TABLE t (x INT) SKEWED BY (x) ON ('30",
    "CREATE skewed",
    "skewed",
    "",
]


@pytest.mark.parametrize("text", NOT_OURS)
def test_any_other_text_is_left_alone(text: str) -> None:
    assert said(text) is None


def test_a_longer_text_than_is_read_is_left_alone() -> None:
    text = "CREATE TABLE t (x INT) SKEWED BY (x) ON (30)"
    assert skew_statement(text, "create", len(text)) is not None
    assert skew_statement(text, "create", len(text) - 1) is None


PIECES = st.sampled_from(
    """
    CREATE ALTER TABLE VIEW IF NOT EXISTS t db . ( ) , x INT STRING SKEWED BY ON 30 'a' STORED AS DIRECTORIES
    PARQUET USING PARTITIONED TBLPROPERTIES = COMMENT LOCATION SET SELECT ; -- /* */ ` " \\ - NULL DATE < > (x)
    """.split()
)


BEGINNINGS = ("", "CREATE TABLE t (x INT) ", "CREATE TABLE t (x INT) SKEWED BY (x) ON (30) ", "ALTER TABLE t ")


@given(st.lists(PIECES, max_size=25))
def test_no_text_makes_it_fail_and_all_but_the_clause_stays(pieces: list[str]) -> None:
    text = " ".join(pieces)
    for leading in (
        "",
        "CREATE TABLE t (x INT) ",
        "CREATE TABLE t (x INT) SKEWED BY (x) ON (30) ",
        "ALTER TABLE t ",
    ):
        found = said(leading + text)
        if found is not None and found.text:
            assert "SKEWED" in (leading + text).upper() or "DIRECTORIES" in (leading + text)
            assert found.text.startswith(leading.partition("SKEWED")[0])
            # Made once, it is done.
            assert said(found.text) is None or "SKEWED" in found.text.replace("starpruner.skewed", "")


@given(st.text(max_size=40))
def test_comments_around_the_clause_stay(comment: str) -> None:
    if "*/" in comment or "/*" in comment or "${" in comment or "\\" in comment:
        return
    before, after = f"CREATE TABLE t (x INT) /* {comment} */ ", f" /* {comment} */ STORED AS ORC"
    assert sent(f"{before}SKEWED BY (x) ON (30){after}") == f"{before}TBLPROPERTIES ({X_30}){after}"


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE TABLE t ({'x INT, ' * 20_000}x INT) SKEWED BY (x) ON (30)",
        f"CREATE TABLE t (x INT) {'COMMENT ' * 20_000} SKEWED BY (x) ON (30)",
        f"CREATE TABLE {'a.' * 20_000} SKEWED BY (x) ON (30)",
        f"CREATE TABLE t (x INT) SKEWED BY (x) ON ({'30, ' * 20_000}30)",
        f"CREATE TABLE t {'(' * 50_000} SKEWED",
        f"ALTER TABLE t SKEWED BY {'()' * 50_000}",
    ],
    ids=["columns", "comments", "name", "values", "open", "groups"],
)
def test_a_long_text_takes_no_long_time(text: str) -> None:
    began = time.process_time()
    _ = said(text)
    assert time.process_time() - began < PATIENCE_S


def test_the_statement_that_is_sent_writes_its_table_alone() -> None:
    written = tables_written(sent("CREATE TABLE db.t (x INT) USING parquet SKEWED BY (x) ON (30)"))
    assert isinstance(written, WriteTargets)
    assert written.hold(TableName(("db", "t")))
    assert written.may_change_columns
    altered = tables_written(sent("ALTER TABLE db.t SKEWED BY (x) ON (30)"))
    assert altered is not None
    assert altered.hold(TableName(("db", "t")))
    assert not altered.hold(TableName(("db", "other")))
    assert altered.may_change_columns


def test_parentheses_within_one_another_take_no_memory_for_each_pair() -> None:
    # Each pair has the text inside it: a quarter of the square of the length, in all.
    depth = 100_000
    assert ddl_items(f"CREATE TABLE t {'(' * depth}{')' * depth} SKEWED") is None
    assert ddl_items(f"CREATE TABLE t {'(' * 20}{')' * 20}") is not None
