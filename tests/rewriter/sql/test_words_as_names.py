"""Words of SQL that name columns, tables and CTEs are read as such where Spark reads nothing else."""

import pytest
from sqlglot import exp

from rewriter import (
    Column,
    KeySet,
    RewriteLimits,
    SkipReason,
    Statement,
    TableFacts,
    TableName,
    apply,
    parse,
    plan,
)

FACT = TableFacts((Column("id", "int"), Column("ds", "string"), Column("v", "variant")), ("ds",))
DIMENSION = TableFacts((Column("ds", "string"), Column("g", "int"), Column("from", "int")))
CATALOG = {TableName(("f",)): FACT, TableName(("d",)): DIMENSION}
LIMITS = RewriteLimits()

JOINED = "FROM f JOIN d ON f.ds = d.ds"
CTE = "WITH x AS (SELECT id, ds FROM f)"


def tree(sql: str) -> exp.Expr:
    """The tree of a text, with all names unquoted."""
    statement = parse(sql, chars_max=1_000, has_views=True)
    assert isinstance(statement, Statement), sql
    for identifier in statement.tree.find_all(exp.Identifier):
        identifier.set("quoted", False)  # noqa: FBT003 - sqlglot's own way
    return statement.tree


@pytest.mark.parametrize("word", "as cross drop fetch for from in join not on select union using values".split())
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT f.id, {{}}, d.g {JOINED}",
        f"SELECT max({{}}), {{}}[0], {{}}::int {JOINED}",
        f"SELECT f.id {{}}, d.g {JOINED} WHERE {{}} = 1",
        f"SELECT d.{{}}, {{}}.a, {{}}.* {JOINED} GROUP BY f.id, {{}}",
        "SELECT 1 FROM f JOIN d USING ({}) WHERE f.id IN (SELECT id FROM {})",
        "SELECT 1 FROM f JOIN db.{} ON f.ds = {}.ds, {}",
        "INSERT INTO t (a, {}) SELECT f.id, d.g FROM f JOIN d ON f.ds = d.ds",
    ],
)
def test_a_word_is_a_name_where_no_clause_goes_on(word: str, sql: str) -> None:
    assert tree(sql.format(*[word] * 4)) == tree(sql.format(*[f"`{word}`"] * 4))


@pytest.mark.parametrize(
    ("sql", "quoted"),
    [
        (f"WITH join AS (SELECT 1), values AS (SELECT 2) SELECT 1 {JOINED}", "join values"),
        (f"SELECT f.id AS x, from AS y, values AS z {JOINED} WHERE values IS NULL", "from values values"),
        ("SELECT values FROM values JOIN d ON values.k = d.k", "values values values"),
        ("SELECT f.id FROM f, join j WHERE f.ds = j.ds", "join"),
        ("SELECT 1 FROM join GROUP BY k UNION SELECT 2 FROM join j JOIN d ON j.k = d.k", "join join"),
        (f"SELECT f.id grant {JOINED} ORDER BY drop DESC", "grant drop"),
    ],
)
def test_a_word_is_a_name_where_it_begins_no_item(sql: str, quoted: str) -> None:
    expected, start = sql, 0
    for word in quoted.split():
        start = expected.lower().index(word, start)
        expected = f"{expected[:start]}`{word}`{expected[start + len(word) :]}"
        start += len(word) + 2
    assert tree(sql) == tree(expected)


def test_a_statement_with_such_names_is_narrowed() -> None:
    sql = "SELECT f.id, from, d.from AS values FROM f JOIN d ON f.ds = d.ds WHERE d.from = 1"
    statement = parse(sql, chars_max=1_000)
    assert isinstance(statement, Statement)
    planned = plan(statement, CATALOG, LIMITS)
    (asked,) = planned.key_queries
    assert "d.from = 1" in asked.sql
    text = apply(planned, {asked: KeySet.of(("string",), [("x",)])}, LIMITS).text
    assert text == sql.replace(
        "FROM f ", "FROM (SELECT * FROM f WHERE (`ds` IN ('x') OR typeof(`ds`) <> 'string')) AS f "
    )


def test_a_narrowed_table_has_an_alias_that_spark_takes() -> None:
    """In `(SELECT ..) AS left JOIN d` the alias would be AS, and the join an outer one."""
    statement = parse("SELECT id FROM db.left JOIN d ON left.ds = d.ds WHERE d.g = 1", chars_max=1_000)
    assert isinstance(statement, Statement)
    planned = plan(statement, {TableName(("db", "left")): FACT, TableName(("d",)): DIMENSION}, LIMITS)
    (asked,) = planned.key_queries
    assert ")) AS `left` JOIN d" in apply(planned, {asked: KeySet.of(("string",), [("x",)])}, LIMITS).text


@pytest.mark.parametrize(
    "sql",
    [
        # The alias of f is AS, WHERE or OFFSET, and the join an outer one.
        "SELECT g FROM f AS left JOIN d ON ds = k",
        "SELECT g FROM f AS left OUTER JOIN d ON ds = k",
        "SELECT g FROM f where LEFT JOIN d ON ds = k",
        "SELECT g FROM f offset FULL JOIN d ON ds = k",
        "SELECT g FROM f AS join(d), h",
        # It is read twice.
        f"{CTE} SELECT x.id FROM x JOIN d ON x.ds = d.ds AND d.g = 1 CROSS JOIN LATERAL x",
        f"{CTE} SELECT x.id FROM x JOIN d ON x.ds = d.ds AND d.g = 1 CROSS JOIN LATERAL `x`",
        # Names of tables and columns.
        f"SELECT from {JOINED}",
        "SELECT f.id FROM f JOIN d ON f.ds IN (SELECT all FROM d)",
        "SELECT f.id FROM f JOIN d ON f.ds IN (SELECT FROM d)",
        "SELECT 1 FROM select z JOIN d ON z.k = d.k",
        "SELECT 1 FROM f JOIN values z ON z.k = d.k",
        f"SELECT as + 1 {JOINED}",
    ],
)
def test_what_sqlglot_would_read_as_a_clause_is_refused(sql: str) -> None:
    assert parse(sql, chars_max=1_000, has_views=True) is SkipReason.UNUSUAL_TEXT


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM f AS `left` JOIN d ON f.ds = d.ds",
        "SELECT f.id AS from FROM f CROSS JOIN (d) JOIN LATERAL (SELECT 1) z JOIN LATERAL explode(f.v) w",
        f"SELECT f.id AS left, CASE WHEN .5 > f.id THEN .5 ELSE .5 END {JOINED}",
        f"SELECT DISTINCT f.id, count(DISTINCT f.ds) {JOINED} GROUP BY ALL LIMIT ALL",
    ],
)
def test_clauses_are_still_read(sql: str) -> None:
    assert isinstance(parse(sql, chars_max=1_000), Statement)


def test_a_field_of_a_variant_is_read_with_a_colon() -> None:
    sql = "SELECT f.v:a.b[0]::INT, parse_json('{}'):a FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1 AND f.v:c = 2"
    statement = parse(sql, chars_max=1_000)
    assert isinstance(statement, Statement)
    assert len(plan(statement, CATALOG, LIMITS).key_queries) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x.id FROM (SELECT id, v:ds FROM f) x JOIN d ON x.ds = d.ds",
        f"SELECT f.id, CAST(f.v:g AS int) {JOINED} ORDER BY g",
    ],
)
def test_a_field_of_a_variant_gives_its_name_to_the_output(sql: str) -> None:
    assert parse(sql, chars_max=1_000) is SkipReason.UNUSUAL_TEXT
    assert isinstance(
        parse(sql.replace(":ds", ":ds AS ds").replace("int)", "int) AS g"), chars_max=1_000), Statement
    )


@pytest.mark.parametrize(
    "comment",
    ["/* job /* of */ a day */", "/* a /* b /* c */ */ /**/ */ -- /*\n", "/* a /* -- */ ' */", "/*/ a */"],
)
def test_comments_nest(comment: str) -> None:
    sql = f"SELECT f.id {JOINED}"
    assert isinstance(parse(f"{comment} {sql} {comment}", chars_max=1_000), Statement)
    assert parse(f"/* a /* b */ {sql}", chars_max=1_000) is SkipReason.NOT_A_QUERY
    # A hint within a comment begins no other, but sqlglot takes the rest of the text for the comment.
    assert parse(f"/* a /*+ b */ {sql}", chars_max=1_000) is SkipReason.DOES_NOT_PARSE
    assert parse(f"/* a /*+ b */ */ {sql}", chars_max=1_000) is SkipReason.NOT_A_QUERY
