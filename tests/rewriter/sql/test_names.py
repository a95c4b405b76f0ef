"""What names denote where Spark could take them for something else: structs, and names that differ in case."""

from rewriter import (
    Catalog,
    Column,
    Plan,
    RewriteLimits,
    SkipReason,
    Statement,
    TableFacts,
    TableName,
    parse,
    plan,
)

FACT = TableFacts((Column("id", "int"), Column("ds", "string")), ("ds",))
DIMENSION = TableFacts((Column("ds", "string"), Column("g", "int")))
NESTED = TableFacts((Column("k", "string"), Column("f", "struct<ds:string>"), Column("g", "int")))
PATTERNS = TableFacts((Column("k+", "string"), Column("kk", "string"), Column("g", "int")))
CATALOG = {
    TableName(("f",)): FACT,
    TableName(("d",)): DIMENSION,
    TableName(("nested",)): NESTED,
    TableName(("patterns",)): PATTERNS,
}
LIMITS = RewriteLimits()


def planned(sql: str, limits: RewriteLimits = LIMITS, catalog: Catalog = CATALOG) -> Plan:
    statement = parse(sql, chars_max=1_000)
    assert isinstance(statement, Statement)
    return plan(statement, catalog, limits)


def reasons(sql: str, limits: RewriteLimits = LIMITS, catalog: Catalog = CATALOG) -> list[SkipReason | None]:
    """Why each reference to the fact is left alone; None for one that is not."""
    return [scan.skip for scan in planned(sql, limits, catalog).scans if scan.reference.name == TableName(("f",))]


def test_a_field_of_a_column_in_a_subquery_comes_before_a_table_of_the_same_name_outside() -> None:
    exists = "SELECT f.id FROM f WHERE EXISTS (SELECT 1 FROM {} r WHERE r.{} = f.ds AND r.g = 1)"
    assert reasons(exists.format("nested", "k")) == [SkipReason.NO_EQUALITY]
    assert reasons(exists.format("d", "ds")) == [None]


def test_a_name_in_another_case_may_be_an_outer_querys_that_is_spelled_so() -> None:
    """With spark.sql.caseSensitive, `f.ds = d.ds` compares the outer table."""
    outer = "SELECT f.id FROM f JOIN d ON f.ds = d.ds AND d.g = 1 WHERE EXISTS (SELECT 1 FROM {})"
    assert reasons(outer.format("f F JOIN d q ON f.ds = q.ds AND q.g = 2")) == [None, SkipReason.NO_EQUALITY]
    assert reasons(outer.format("f F JOIN d q ON F.ds = q.ds AND q.g = 2")) == [None, None]
    assert reasons(outer.format("f x JOIN d q ON X.DS = Q.Ds AND q.g = 2")) == [None, None]


def test_a_column_in_another_case_may_be_an_outer_querys_that_is_spelled_so() -> None:
    sql = "SELECT {0} FROM {1} o WHERE EXISTS (SELECT 1 FROM f JOIN nested r ON DS = r.k AND r.g = 1)"
    assert reasons(sql.format("id", "(SELECT g AS id, g AS DS FROM d)")) == [SkipReason.NO_EQUALITY]
    assert reasons(sql.format("id", "(SELECT g AS id FROM d)")) == [None]
    assert reasons("SELECT DS FROM (SELECT DS FROM f JOIN nested r ON DS = R.K AND r.g = 1) x") == [None]


def test_a_name_in_another_case_may_be_a_variable_of_the_session() -> None:
    """With spark.sql.caseSensitive, a variable K is meant by `K`, and the column k is not."""
    sql = "SELECT f.id FROM f JOIN nested r ON f.ds = {} WHERE {} = 1"
    variables = RewriteLimits(has_variables=True)
    for names in (("K", "r.g"), ("k", "G"), ("R.k", "r.g")):
        assert reasons(sql.format(*names)) == [None]
        assert reasons(sql.format(*names), variables) != [None]
    assert reasons(sql.format("k", "g"), variables) == [None]


def test_a_name_in_the_on_of_a_subquery_that_only_a_later_table_has_is_an_outer_one() -> None:
    """Asked by itself, the subquery would read a session variable of that name."""
    joined = "d o JOIN d q ON {} = q.ds JOIN nested r ON r.k = q.ds WHERE r.g = 1"
    sql = f"SELECT f.id FROM f WHERE f.ds IN (SELECT o.ds FROM {joined})"
    assert reasons(sql.format("k")) == [SkipReason.REDUCER_NOT_UNDERSTOOD]
    assert reasons(sql.format("o.ds")) == [None]


def test_a_quoted_name_may_be_a_pattern_for_several_columns() -> None:
    """With spark.sql.parser.quotedRegexColumnNames, `(a|b)` in a SELECT shows all columns that it matches."""
    union = "SELECT x.a FROM (SELECT id AS a, ds AS b, ds, 'y' AS c FROM f UNION ALL SELECT {}, 'x', ds FROM f) x"
    join = "JOIN d ON x.ds = d.ds AND d.g = 1"
    assert reasons(f"{union.format('`(id|ds)`')} {join}") == [SkipReason.NO_EQUALITY] * 2
    assert reasons(f"{union.format('`id`')} {join}") == [None, None]


def test_a_column_whose_name_is_a_pattern_may_be_shown_as_others() -> None:
    """`k+` is no pattern for itself, and may stand for several: what is behind it is then further on."""
    wide = TableFacts((*FACT.columns, Column("k+", "int"), Column("a b", "int")), ("ds",))
    catalog = CATALOG | {TableName(("f",)): wide}
    union = "SELECT 1 AS a, ds FROM f UNION ALL SELECT {}, ds FROM f"
    sql = f"SELECT x.a FROM ({union}) x JOIN d ON x.ds = d.ds AND d.g = 1"
    assert reasons(sql.format("`k+`"), catalog=catalog) == [SkipReason.NO_EQUALITY] * 2
    assert reasons(sql.format("`a b`"), catalog=catalog) == [None, None]


def test_a_name_in_an_expression_that_is_asked_for_may_be_a_pattern_for_other_columns() -> None:
    """The key query would show by `k+` what the column kk holds, and the statement's own ON compares `k+`.

    In a condition it is a name, so that the partitions could be asked about.
    """
    sql = "SELECT f.id FROM f JOIN patterns p ON f.ds = {} WHERE p.g = 1"
    assert reasons(sql.format("lower(p.`k+`)")) == [SkipReason.PARTITIONS_NOT_LISTED]
    assert reasons(sql.format("lower(p.`kk`)")) == [None]
    assert reasons(sql.format("p.`k+`")) == [None]


def test_a_name_in_a_query_that_a_select_shows_may_be_a_pattern() -> None:
    """There it is one in a WHERE too, and in the key query it would not be."""
    sql = "SELECT (SELECT max(f.id) FROM f JOIN patterns p ON f.ds = p.kk WHERE lower(p.`{}`) = 'a') AS m"
    assert parse(sql.format("k+"), chars_max=1_000) is SkipReason.UNUSUAL_TEXT
    assert reasons(sql.format("kk")) == [None]
