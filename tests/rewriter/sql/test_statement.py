"""Reading statements: nothing that a client can send raises, hangs or is misread."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter import (
    Column,
    KeySet,
    RewriteLimits,
    SkipReason,
    Statement,
    TableFacts,
    TableName,
    apply,
    may_have_a_join,
    parse,
    plan,
)
from rewriter.sql.deterministic_functions import TABLE_FUNCTIONS
from rewriter.sql.task_dependence import _OF_SPARK, calls_own_functions

FACT = TableFacts((Column("id", "int"), Column("ds", "string")), ("ds",))
DIMENSION = TableFacts((Column("ds", "string"), Column("g", "int")))
CATALOG = {TableName(("f",)): FACT, TableName(("d",)): DIMENSION}
LIMITS = RewriteLimits()

# Far above the microseconds that a look at a text takes.
PATIENCE_S = 5.0

JOIN = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1"


def rewritten(sql: str, chars_max: int = 6_000_000) -> str:
    statement = parse(sql, chars_max=chars_max)
    if isinstance(statement, SkipReason):
        return sql
    planned = plan(statement, CATALOG, LIMITS)
    return apply(planned, {q: KeySet.of(("string",), [("x",)]) for q in planned.key_queries}, LIMITS).text


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", False),
        ("select a from b", False),
        ("-- join\nselect a, b from c", True),
        ("/* x */ (with q as (select 1) select * from q join r)", True),
        ("insert into t select * from a join b", True),
        ("insert into t values (1)", False),
        ("merge into t using a on t.k = a.k when matched then delete", True),
        ("show tables", False),
        ("", False),
    ],
)
def test_most_statements_are_left_alone_without_being_parsed(sql: str, *, expected: bool) -> None:
    assert may_have_a_join(sql) is expected


def test_comments_without_a_statement_are_passed_in_one_go() -> None:
    started = time.process_time()
    assert not may_have_a_join("/**/ --\n" * 500 + "1 join")
    # Each way to pair what opens with what ends comments would take longer than the universe has been there.
    assert time.process_time() - started < PATIENCE_S


def test_a_statement_longer_than_the_limit_is_left_alone() -> None:
    assert parse(JOIN, chars_max=len(JOIN) - 1) is SkipReason.TOO_LARGE
    assert isinstance(parse(JOIN, chars_max=len(JOIN)), Statement)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT OVERWRITE DIRECTORY 'p' USING join", SkipReason.NOT_A_QUERY),
        # If it were parsed, the call of a user's function would be taken for a clause of MERGE.
        ("SELECT CASE WHEN f.a THEN insert(f.b) END FROM f JOIN d ON f.k = d.k", SkipReason.DOES_NOT_PARSE),
        ("INSERT OVERWRITE DIRECTORY 'p' USING join.", SkipReason.NOT_A_QUERY),
        (
            "INSERT OVERWRITE DIRECTORY 'p' USING a.b OPTIONS ('c' 'd' SELECT f.id FROM f NATURAL JOIN d",
            SkipReason.DOES_NOT_PARSE,
        ),
    ],
)
def test_a_text_that_is_broken_off_is_refused(sql: str, expected: SkipReason) -> None:
    assert parse(sql, chars_max=1_000, has_views=True) is expected


def names_read(sql: str) -> list[str]:
    statement = parse(sql, chars_max=10_000, has_views=True)
    assert isinstance(statement, Statement)
    return sorted(table.sql("spark") for table in statement.tables_read)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (f"{JOIN} AND 1 = (SELECT max(g) FROM d)", "f d d"),
        (f"WITH f AS (SELECT * FROM f) {JOIN}", "f d"),
        (f"WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) {JOIN.replace('d', 'b')}", "b f"),
        (f"WITH F AS (SELECT 1) {JOIN}", "f d"),
        (f"WITH d AS (SELECT 1) {JOIN} AND 1 IN (SELECT 1 FROM d JOIN x.d)", "f x.d"),
        (f"SELECT * FROM (WITH d AS (SELECT 1) SELECT * FROM d) JOIN ({JOIN})", "f d"),
        ("SELECT /*+ BROADCAST(d) */ * FROM f JOIN d", "f d"),
        (f"INSERT INTO t {JOIN}", "f d"),
        (f"INSERT INTO t (id) WITH d AS (SELECT 1) {JOIN}", "f"),
        ("SELECT * FROM (f JOIN d ON f.k = d.k) JOIN range(3)", "f JOIN d ON f.k = d.k d RANGE(3)"),
    ],
)
def test_the_tables_that_a_statement_reads(sql: str, names: str) -> None:
    assert sorted(" ".join(names_read(sql)).split()) == sorted(names.split())


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("WITH c(a, b) AS (SELECT 1, 2) SELECT `Seen`(c.a) FROM c JOIN d", "seen"),
        (
            "INSERT INTO t PARTITION (ds = 'x') (a, b) SELECT db.seen(f.id), 1 FROM f JOIN d ON seen/**/(f.k)",
            "seen seen",
        ),
        # A name in a hint has its offset within the hint: 7, as the call has in the text.
        ("SELECT rand(1) r, q.* FROM (SELECT /*+ MERGE(d) */ f.v FROM f JOIN d ON f.k = d.k) q", "rand"),
        ("SELECT db.comment(f.v), _(1), `+`(2), `in`(3), (f.v) + (1) FROM f JOIN d", "comment _ + in"),
        ("SELECT * FROM f JOIN d, LATERAL describe(f.v) t", "describe"),
        ("SELECT CAST(f.v AS numeric(3, 2)), f.v::varchar(3), dec(f.v) FROM f JOIN d", "cast dec"),
        ("SELECT * FROM f AS f(a, b) JOIN (SELECT 1) d(k) JOIN unnest(f.a) WHERE d(1)", "unnest d"),
        ("SELECT * FROM f JOIN d PIVOT (sum(k) FOR k IN (1)) TABLESAMPLE (1 PERCENT) ORDER BY (f.k)", "sum"),
        ("SELECT by(f.v), sets(f.v), union(1), all(1) FROM f JOIN d ON order(f.k)", "by sets union all order"),
        ("SELECT as(f.v) FROM f JOIN d ON having(f.v) = 1", "as having"),
        ("SELECT DISTINCT on(f.v) FROM f JOIN d GROUP BY where(f.v)", "on where"),
        ("SELECT f.v FROM d JOIN select(f) AS x", "select"),
        ("SELECT all() FROM f JOIN d", "all"),
        ("SELECT distinct() FROM f JOIN d", "distinct"),
        ("SELECT f.v FROM f JOIN d LATERAL VIEW explode(distinct(f.v)) x AS y", "explode distinct"),
        ("SELECT 1 FROM f JOIN d ON f.v IN (select(5), 6)", "select"),
        ("SELECT struct(select(f.v) AS c) FROM f JOIN d", "struct select"),
        ("SELECT coalesce(values(f.v), 1) FROM f JOIN d", "coalesce values"),
        ("SELECT 1 FROM f JOIN d ON f.v IN (values(5), 6)", "values"),
        ("SELECT 1 FROM f JOIN d ON f.v BETWEEN limit(f.k) AND 2", "limit"),
        ("SELECT ALL as(f.v) FROM f JOIN d UNION ALL SELECT tablesample(1)", "as tablesample"),
        ("SELECT coalesce(n => from(f.k)) FROM f JOIN d", "coalesce from"),
        ("SELECT 1 FROM f PIVOT (partition(v) FOR k IN (1, 2)) JOIN d", "partition"),
        ("SELECT 1 FROM f JOIN VALUES (1), (2) AS v(k) JOIN (VALUES (3)) AS w(k) ON 1 IN (SELECT (v) FROM d)", ""),
        ("SELECT * FROM (f) JOIN d ON f.v IS NOT DISTINCT FROM (d.v) AND d.limit IN (1) CROSS JOIN (d)", ""),
        ("INSERT INTO t PARTITION (ds) SELECT (f.v) FROM f JOIN d UNION ALL SELECT (1) FROM d", ""),
        (
            "SELECT sum(DISTINCT (f.v)) OVER (), (SELECT (1) FROM d) FROM f JOIN d GROUP BY GROUPING SETS ((f.v))",
            "sum",
        ),
        (
            "SELECT (f.v) AS a FROM (f) JOIN (d) USING (k) WHERE (f.v) IN (1) AND f.v LIKE (d.w) LIMIT (1)",
            "",
        ),
        (
            "SELECT 1 FROM f JOIN d WHERE f.v LIKE ANY ('a') AND NOT EXISTS (FROM d) UNION (SELECT (2) FROM d)",
            "",
        ),
    ],
)
def test_the_functions_that_a_statement_calls(sql: str, names: str) -> None:
    statement = parse(sql, chars_max=10_000, has_views=True)
    assert isinstance(statement, Statement)
    assert " ".join(call.name for call in statement.calls.values()) == names


@pytest.mark.parametrize("name", sorted(_OF_SPARK))
def test_a_function_in_a_from_is_one_of_tables(name: str) -> None:
    statement = parse(f"SELECT x.k FROM d JOIN g, LATERAL {name}(g.v, ',', 1) x", chars_max=1_000, has_views=True)
    if isinstance(statement, Statement):
        assert [call.makes_table for call in statement.calls.values()] == [True]
        assert calls_own_functions(statement) is (name not in TABLE_FUNCTIONS)


@pytest.mark.parametrize("item", ["mart.session(user)", "rows(user)", "cube(k)", "d UNION SELECT into(k) FROM d"])
def test_a_call_that_is_read_as_a_table_with_columns_is_refused(item: str) -> None:
    """Else it would be taken for a table, or for a CTE of the name."""
    sql = f"WITH rows AS (SELECT 1 AS k) SELECT f.id FROM f JOIN d ON f.k = d.k, {item}"
    assert parse(sql, chars_max=1_000) is SkipReason.UNUSUAL_TEXT


@pytest.mark.parametrize(
    ("target", "read", "is_one"),
    [
        ("D", "d", True),
        ("mart.d", "d", True),
        (".d", "d", True),
        ("..d", "d", True),
        ("delta.`/lake/d`", "d", True),
        ("e", "delta./lake/e", True),
        ("mart.d", "sales.d", False),
        ("delta.e", "d", False),
    ],
)
def test_a_table_that_is_written_may_be_one_that_is_read(target: str, read: str, *, is_one: bool) -> None:
    found = parse(f"INSERT OVERWRITE {target} {JOIN}", chars_max=1_000)
    assert isinstance(found, Statement)
    assert found.may_write(read.split(".")) is is_one
    assert (parse(f"CREATE TABLE {target} AS {JOIN}", chars_max=1_000) is SkipReason.WRITES_WHAT_IT_READS) is (
        found.may_write(["d"])
    )


@pytest.mark.parametrize("call", ["map(1)", "date_trunc()"])
def test_a_function_without_the_arguments_that_it_needs_does_not_parse(call: str) -> None:
    assert parse(f"{JOIN} AND {call} = 1", chars_max=1_000) is SkipReason.DOES_NOT_PARSE


@given(st.text())
def test_no_text_makes_the_reader_raise(text: str) -> None:
    rewritten("SELECT " + text + " JOIN d")


@given(
    st.lists(st.sampled_from([*"()';,.`\"\\-*/ \n", *JOIN.split(), "OR", "AND", "LEFT", "BETWEEN", "CASE", "--"]))
)
def test_no_soup_of_tokens_makes_the_rewriter_raise(words: list[str]) -> None:
    rewritten(" ".join(words))
    rewritten(JOIN + " AND " + " ".join(words))


@pytest.mark.parametrize(
    "sql",
    [
        JOIN + " AND " + "(" * 5_000 + "d.g" + ")" * 5_000 + " = 1",
        "SELECT " * 5_000 + JOIN + ", d",
        JOIN + " AND " + " + ".join(["d.g"] * 20_000) + " = 1",
    ],
    ids=["nested parentheses", "nested selects", "a long sum"],
)
def test_what_nests_too_deep_is_left_alone_or_rewritten_but_never_fails(sql: str) -> None:
    assert len(rewritten(sql)) >= len(sql)


def test_ten_thousand_ored_terms_are_one_filter() -> None:
    terms = " OR ".join(f"d.g = {number}" for number in range(10_000))
    text = rewritten(f"SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE ({terms})")
    assert text.startswith("SELECT f.id FROM (SELECT * FROM f WHERE (`ds` IN ('x')")


def test_a_thousand_joins_are_planned() -> None:
    joins = " ".join(f"JOIN d d{number} ON f.ds = d{number}.ds AND d{number}.g = 1" for number in range(1_000))
    assert rewritten(f"SELECT f.id FROM f {joins}").startswith("SELECT f.id FROM (SELECT * FROM f WHERE ")


@pytest.mark.parametrize(
    "condition",
    [
        "f.ds = d.ds < 'a'",
        "f.ds = d.ds IN ('a')",
        "f.ds = d.ds NOT IN ('a')",
        "f.ds = d.ds BETWEEN 'a' AND 'b'",
        "f.ds = d.ds LIKE 'a' ESCAPE '!'",
        "f.ds = d.ds RLIKE 'a'",
        "d.g BETWEEN 1 AND 2 = f.ds",
        "f.ds = d.ds = TRUE",
    ],
)
def test_a_comparison_of_a_comparison_is_read_with_parentheses_alone(condition: str) -> None:
    """Spark reads it from the left: `(f.ds = d.ds) IN ('a')`."""
    assert parse(f"SELECT f.id FROM f, d WHERE {condition}", chars_max=1_000) is SkipReason.UNUSUAL_TEXT
    assert isinstance(parse(JOIN.replace("d.g = 1", "(d.g = 1) = TRUE"), chars_max=1_000), Statement)


def test_natural_compares_columns_that_are_spelled_alike_alone() -> None:
    """With spark.sql.caseSensitive, `f NATURAL JOIN d` over columns `DS` and `ds` pairs all rows with all rows."""
    sql = "SELECT f.id FROM f NATURAL JOIN d WHERE d.g = 1"
    statement = parse(sql, chars_max=1_000)
    assert isinstance(statement, Statement)
    small = TableFacts((Column("DS", "string"), Column("g", "int")))
    assert plan(statement, CATALOG, LIMITS).key_queries
    assert not plan(statement, {**CATALOG, TableName(("d",)): small}, LIMITS).key_queries


def test_a_cte_is_also_read_by_a_name_that_is_its_own_in_upper_case() -> None:
    """Spark takes a long s for an s, so the CTE has two readers, and what is in it is narrowed for neither."""
    once = "WITH dayss AS (SELECT ds, id FROM f) SELECT x.id FROM dayss x JOIN d ON x.ds = d.ds WHERE d.g = 1"
    assert rewritten(once) != once
    twice = f"{once} UNION ALL SELECT id FROM `days\u017f`"
    assert "FROM f)" in rewritten(twice)


@pytest.mark.parametrize(
    "reader",
    [
        "UNION ALL SELECT id FROM IDENTIFIER('x')",
        "UNION ALL SELECT id FROM identifier ('x')",
        "JOIN f(1, TABLE(x))",
        "JOIN f(1, TABLE x)",
        "JOIN f(rows => TABLE(x))",
    ],
)
def test_a_cte_may_be_read_where_the_tree_does_not_name_it(reader: str) -> None:
    """What the CTE reads would else be narrowed for its one reader that is seen."""
    cte = "WITH x AS (SELECT id, ds FROM f) SELECT x.id FROM x JOIN d ON x.ds = d.ds AND d.g = 1"
    assert parse(f"{cte} {reader}", chars_max=1_000) is SkipReason.UNUSUAL_TEXT
    assert "FROM f WHERE" in rewritten(f"{cte} CROSS JOIN d AS `table`")


@pytest.mark.parametrize("operation", ["UNION", "UNION ALL", "EXCEPT DISTINCT", "MINUS", "INTERSECT ALL"])
def test_what_a_query_ends_in_that_begins_with_from_is_its_own(operation: str) -> None:
    """To Spark the second query is limited, to sqlglot what both come to."""
    assert parse(f"{JOIN} {operation} FROM f SELECT id LIMIT 1", chars_max=1_000) is SkipReason.UNUSUAL_TEXT
    assert isinstance(parse(f"{JOIN} {operation} SELECT id FROM f LIMIT 1", chars_max=1_000), Statement)
    assert isinstance(parse(f"{JOIN} AND f.id IS NOT DISTINCT FROM d.g", chars_max=1_000), Statement)


@pytest.mark.parametrize("before", ["", "INSERT INTO t ", "CREATE TABLE t USING parquet AS "])
def test_a_cte_may_be_read_by_table_right_behind_the_with(before: str) -> None:
    """To sqlglot `TABLE x` is a column by the name of TABLE there, with an alias."""
    cte = "WITH x AS (SELECT f.id, d.g FROM f JOIN d ON f.ds = d.ds)"
    assert parse(f"{before}{cte} TABLE x UNION ALL SELECT * FROM x WHERE g = 1", chars_max=1_000) is (
        SkipReason.UNUSUAL_TEXT
    )


@pytest.mark.parametrize(
    "before", ["INSERT INTO TABLE t", "INSERT OVERWRITE TABLE t", "CREATE OR REPLACE TABLE t AS"]
)
def test_table_is_a_usual_word_where_it_says_what_is_written(before: str) -> None:
    assert isinstance(parse(f"{before} {JOIN}", chars_max=1_000), Statement)


def test_a_hint_within_a_comment_does_not_nest() -> None:
    """To Spark the comment ends behind the first `*/`, so that the condition is true for all rows."""
    assert parse(f"{JOIN} /* /*+ */ OR true -- */", chars_max=1_000) is SkipReason.UNUSUAL_TEXT
    assert isinstance(parse(f"{JOIN} /* /* */ OR true */", chars_max=1_000), Statement)
    assert isinstance(parse(JOIN.replace("SELECT", "SELECT /*+ BROADCAST(d) */"), chars_max=1_000), Statement)
