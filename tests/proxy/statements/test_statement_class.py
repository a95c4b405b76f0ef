import pytest

from proxy.statements.statement_class import StatementClass
from rewriter import SkipReason


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT 1", "/* a dashboard */ (SELECT 1)", "WITH x AS (SELECT 1) SELECT * FROM x", "FROM t SELECT a"),
        *("VALUES (1)", "SHOW TABLES", "DESCRIBE t", "EXPLAIN SELECT 1"),
    ],
)
def test_a_statement_that_reads_keeps_the_meanings_of_names_and_settings(sql: str) -> None:
    assert StatementClass(sql).keeps_meanings


@pytest.mark.parametrize(
    "sql",
    [
        *("", "SET a = 1", "USE db", "CREATE TABLE t (a INT)", "EXPLAIN EXECUTE IMMEDIATE 'DROP TABLE t'"),
        *("/* a /* nested */ comment */ SELECT 1", "/* ${text} */ SELECT 1", "BEGIN DROP TABLE t; END"),
    ],
)
def test_any_other_statement_may_change_them(sql: str) -> None:
    assert not StatementClass(sql).keeps_meanings


@pytest.mark.parametrize(
    ("sql", "is_unchanged"),
    [
        *(("SELECT 1", True), ("INSERT INTO t VALUES (1)", True), ("CREATE TABLE t (a INT)", True)),
        *(("DROP VIEW v", True), ("CREATE TEMPORARY VIEW v AS SELECT 1", False)),
        *(("CREATE TABLE ${name} (a INT)", False), ("SET a = 1", False), ("CACHE TABLE t", False)),
        ("EXECUTE IMMEDIATE 'SELECT 1'", False),
    ],
)
def test_statements_about_tables_leave_the_session_unchanged(sql: str, is_unchanged: bool) -> None:  # noqa: FBT001
    assert StatementClass(sql).leaves_session_unchanged is is_unchanged


@pytest.mark.parametrize(
    ("sql", "is_known"),
    [
        *(("SET a = 1", True), ("USE db", True), ("RESET", True), ("SET VAR x = 1", False)),
        *(("SET a = ${b}", False), ("CREATE TEMPORARY VIEW v AS SELECT 1", False), ("ADD JAR '/a.jar'", False)),
    ],
)
def test_the_effect_of_a_session_command_is_known_by_its_text(sql: str, is_known: bool) -> None:  # noqa: FBT001
    assert StatementClass(sql).has_known_effect is is_known


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE OR REPLACE TEMPORARY FUNCTION unix_date AS 'a.Class'",
        "create temp\nfunction current_user() returns string return 'second'",
        "CREATE ${what} typeof AS 'a.Class'",
        "CREATE /* TEMPORARY */ TEMPORARY /* */ FUNCTION length AS 'a.Class'",
        *("SET spark.sql.${v}.sessionOrder=first", "RESET ${v}", "EXECUTE IMMEDIATE made"),
        *("EXPLAIN EXECUTE IMMEDIATE made", "BEGIN SELECT 1; END", "/*${text}*/ SELECT 1", "-- ${text}\nUSE db"),
        *("/* /* */ SELECT */ USE db", "${text}", "AN EXTENSION OF SPARK", ""),
    ],
)
def test_a_session_may_have_functions_of_its_own_after_a_statement_that_may_make_them(sql: str) -> None:
    assert StatementClass(sql).hidden_names is SkipReason.OWN_FUNCTIONS
    assert not StatementClass(sql).leaves_session_unchanged, "else nobody asks"


@pytest.mark.parametrize(
    "sql",
    [
        *("USE ${db}", "SET spark.sql.ansi.enabled=true", "RESET"),
        *("CREATE TEMPORARY VIEW v AS SELECT typeof(a) FROM t", "CREATE OR REPLACE TEMP VIEW v AS SELECT 1"),
        *("DECLARE VARIABLE x INT", "ADD JAR '/a.jar'", "CACHE TABLE t", "CALL system.rewrite_data_files('db.t')"),
        "OPTIMIZE t",
    ],
)
def test_what_certainly_makes_no_function_keeps_names_as_they_are(sql: str) -> None:
    assert StatementClass(sql).hidden_names is None


def test_search_paths_and_variables_are_seen_in_the_statements_that_may_make_them() -> None:
    assert StatementClass("SET PATH = db").hidden_names is SkipReason.SEARCH_PATH
    assert StatementClass("SET spark.sql.defaultPath=db").hidden_names is SkipReason.SEARCH_PATH
    assert StatementClass("USE path").hidden_names is None
    assert StatementClass("DECLARE VARIABLE x INT").may_declare_variables
    assert not StatementClass("SET a = 1").may_declare_variables


def test_drops_may_take_a_temporary_view_away() -> None:
    assert StatementClass("DROP VIEW v").may_drop_views
    assert not StatementClass("INSERT INTO t VALUES (1)").may_drop_views


def test_a_text_too_long_to_be_searched_counts_as_one_that_names_everything() -> None:
    long = StatementClass("SET a = '" + "x" * 250_001 + "'")
    assert not long.has_known_effect
    assert long.hidden_names is SkipReason.SEARCH_PATH


def test_a_filter_alone_may_be_narrowed_where_files_are_indexed() -> None:
    filtered = StatementClass("SELECT a FROM t WHERE b = 1")
    assert not filtered.may_have_a_join
    assert filtered.may_be_rewritten(has_file_index=True)
    assert not filtered.may_be_rewritten(has_file_index=False)
    assert StatementClass("SELECT a FROM t JOIN d USING (k)").may_be_rewritten(has_file_index=False)


def test_quotes_and_backslashes_depend_on_settings() -> None:
    assert StatementClass('SELECT "a"').depends_on_quoting
    assert StatementClass(r"SELECT '\n'").depends_on_quoting
    assert not StatementClass("SELECT 'a'").depends_on_quoting


def test_the_text_stands_in_no_representation() -> None:
    assert "secret" not in repr(StatementClass("SELECT 'secret'"))
