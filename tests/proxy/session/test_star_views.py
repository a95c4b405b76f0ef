"""A session's decisions about views that join: what it asks of them, and what it does where they have changed."""

from dataclasses import replace

import pytest
from support.played_sessions import DETAILS, PARTITION_INFORMATION, SETTINGS, Script, played, rows, sent
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.rewriting import RewriteSection
from proxy.operations.query import FailureKind, QueryFailed, QueryResult, Rows

SQL = "SELECT max(id) FROM v WHERE g = 1"
NARROWED = (
    "SELECT max(id) FROM (SELECT * FROM v WHERE (`ds` IN ('a') OR typeof(`ds`) <> 'string')) AS v WHERE g = 1"
)


def described_view(text: str) -> tuple[str, Rows]:
    details = {
        "Type": "VIEW",
        "View Text": text,
        "View Catalog and Namespace": "c.s",
        "View Query Output Columns": "[`id`, `ds`, `g`]",
    }
    columns = ("id", "int", ""), ("ds", "string", ""), ("g", "int", "")
    return "DESCRIBE TABLE EXTENDED `v`", rows(*columns, DETAILS[0], *((k, v, "") for k, v in details.items()))


JOIN = "SELECT f.id, f.ds, d.g FROM f JOIN d ON f.ds = d.ds"
V = described_view(JOIN)
D = ("DESCRIBE TABLE EXTENDED `c`.`s`.`d`", rows(("ds", "string", ""), ("g", "int", ""), *DETAILS))
F = (
    "DESCRIBE TABLE EXTENDED `c`.`s`.`f`",
    rows(("id", "int", ""), ("ds", "string", ""), *PARTITION_INFORMATION, *DETAILS),
)
KEY_QUERY = (
    "SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT `d`.`ds` AS reduced_key, `d`.`g` AS `g`"
    " FROM `c`.`s`.`d` AS `d`) AS `v` WHERE 'starpruner' IS NOT NULL AND (g = 1) LIMIT 5001"
)
KEYS = KEY_QUERY, rows(("a", "string"))
PLAN = "EXPLAIN SELECT * FROM `v` WHERE `ds` = 'a'", rows(("== Physical Plan ==\n*(1) FileScan parquet",))


@pytest.fixture
def stage() -> Stage:
    return Stage(rewrite=RewriteSection(cost_gate=False))


def finished(one: TextSession, sql: str, script: Script) -> str:
    dispatch = played(one.rewrite(sql), script)
    dispatch.on_outcome(FINISHED)
    return dispatch.text


def test_a_statement_without_a_join_has_its_name_described_and_the_view_narrowed(stage: Stage) -> None:
    assert not stage.stranger().is_quick(SQL)
    assert sent(stage.stranger().rewrite(SQL), [V, D, F, KEYS, PLAN]) == NARROWED


def test_a_view_that_was_described_earlier_is_described_again_with_the_tables_behind_it(stage: Stage) -> None:
    one = stage.stranger()
    assert finished(one, SQL, [V, D, F, KEYS, PLAN]) == NARROWED
    stage.now = 1.0
    assert finished(one, SQL, [D, F, V, KEYS, PLAN]) == NARROWED


def test_a_view_that_was_replaced_past_the_proxy_is_left_alone_once(stage: Stage) -> None:
    one = stage.stranger()
    assert finished(one, SQL, [V, D, F, KEYS, PLAN]) == NARROWED
    stage.now = 1.0
    replaced = described_view(JOIN.replace("d.g", "d.g + 1 AS g"))
    assert finished(one, SQL, [D, F, replaced]) == SQL
    stage.now = 2.0
    # By now it is known, and its filter reads a column that the view computes.
    size = ("EXPLAIN COST SELECT * FROM `c`.`s`.`d`", rows(("",)))
    assert finished(one, SQL, [size]) == SQL


def test_a_view_about_which_another_session_had_asked_before_is_described_again(stage: Stage) -> None:
    """It may have been replaced in between."""
    before = V[0], replace(V[1], asked_before_s=1.0)
    replaced = described_view(JOIN.replace("d.g", "d.g + 1 AS g"))
    assert finished(stage.session(), SQL, [before, D, F, before, replaced]) == SQL
    assert finished(stage.session("bob"), SQL, [before, D, F, V, KEYS, PLAN]) == NARROWED
    assert finished(stage.session("eve"), SQL, [V, D, F, KEYS, PLAN]) == NARROWED


def test_a_small_side_that_is_a_view_is_described_again_before_its_keys_are_used(stage: Stage) -> None:
    """Its text may have become one that gives other rows each time it is read."""
    stage.now, one = 0.0, stage.stranger()
    sql = "SELECT f.id FROM c.s.f JOIN v ON f.ds = v.ds WHERE v.g = 1"
    of_days = described_view("SELECT d.g AS id, d.ds, d.g FROM d")
    asked = "SELECT v.`ds` AS key, typeof(v.`ds`) AS type FROM v WHERE 'starpruner' IS NOT NULL AND (v.g = 1)"
    keys = f"{asked} LIMIT 5001", KEYS[1]
    assert "IN ('a')" in finished(one, sql, [F, of_days, D, keys])
    stage.now = 30.0
    assert "IN ('a')" in finished(one, sql, [of_days, keys])
    stage.now = 31.0
    chance = described_view("SELECT d.g AS id, d.ds, d.g FROM d WHERE rand() < 0.5")
    assert finished(one, sql, [chance]) == sql


def test_a_table_behind_a_view_that_has_other_types_by_now_is_not_asked_for_keys(stage: Stage) -> None:
    one = stage.stranger()
    assert finished(one, SQL, [V, D, F, KEYS, PLAN]) == NARROWED
    stage.now = 1.0
    retyped = (D[0], rows(("ds", "string", ""), ("g", "string", ""), *DETAILS))
    assert finished(one, SQL, [retyped, F, V]) == SQL


def test_with_an_unknown_extension_a_view_is_left_alone(stage: Stage) -> None:
    settings = (SETTINGS[0], rows(("spark.sql.extensions", "org.example.RowFilters")))
    assert sent(stage.stranger().rewrite(SQL), [settings, V, D, F]) == SQL


@pytest.mark.parametrize(
    "plan",
    [
        rows(
            ("== Physical Plan ==\nInMemoryTableScan [id#1, ds#2, g#3]\n   +- InMemoryRelation [id#1, ds#2, g#3]",)
        ),
        rows(("Error occurred during query planning: \n[TABLE_OR_VIEW_NOT_FOUND] ..",)),
        QueryFailed(FailureKind.DEADLINE, "", 1.0),
    ],
)
def test_a_view_that_spark_may_read_from_memory_is_left_alone(stage: Stage, plan: QueryResult) -> None:
    """It shows old rows of the small side in its text, and the key query would read those of now."""
    assert finished(stage.stranger(), SQL, [V, D, F, KEYS, (PLAN[0], plan)]) == SQL


def test_a_name_that_is_known_to_be_a_tables_is_asked_about_no_more(stage: Stage) -> None:
    one = stage.stranger()
    table = ("DESCRIBE TABLE EXTENDED `v`", D[1])
    assert finished(one, SQL, [table]) == SQL
    stage.now = 1_000.0
    assert one.is_quick(SQL)
    assert finished(one, SQL, []) == SQL
    assert finished(one, "SELECT g, max(ds) FROM v WHERE g = 1 GROUP BY g", []).startswith("SELECT g")
