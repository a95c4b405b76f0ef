"""Tables without statistics: the session asks for their sizes where these tell whether they need a filter."""

from typing import Any

import pytest
from support.iceberg_answers import FILES_SQL, a_file
from support.iceberg_answers import described as of_iceberg
from support.played_sessions import DESCRIBE, failed, of, played, rows, sent
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection, RewriteSection
from proxy.operations.query import FailureKind, QueryResult
from proxy.session import decision_context, plan_memory
from proxy.session.catalog.table_sizes import read_size
from rewriter import Plan
from rewriter import plan as plan_of
from rewriter.scopes.steps import Steps

SQL = "SELECT f.id FROM f JOIN d ON f.ds = d.ds"
SIZE = "EXPLAIN COST SELECT * FROM `d`"
KEYS = ("SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM d LIMIT 5001", rows(("b", "string")))
NARROWED = SQL.replace("FROM f", "FROM (SELECT * FROM f WHERE (`ds` IN ('b') OR typeof(`ds`) <> 'string')) AS f")


def session(*, asks_sizes: bool = True) -> TextSession:
    return of(Config(catalog=CatalogSection(asks_sizes=asks_sizes)))


def plan(size: str) -> QueryResult:
    tree = f"Relation spark_catalog.default.d[ds#1,g#2] parquet, Statistics(sizeInBytes={size})"
    return rows((f"== Optimized Logical Plan ==\n{tree}\n\n== Physical Plan ==\nFileScan parquet",))


def test_a_table_without_statistics_is_asked_for_its_size_once() -> None:
    one = session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, (SIZE, plan("812.0 B")), KEYS]) == NARROWED
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED


@pytest.mark.parametrize("answer", [plan("8.0 EiB"), plan("17.8 KiB"), failed(FailureKind.REJECTED), rows()])
def test_a_table_that_is_not_tiny_for_certain_is_not_asked_for_keys(answer: QueryResult) -> None:
    one = session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, (SIZE, answer)]) == SQL
    assert sent(one.rewrite(SQL), []) == SQL


def test_no_size_is_asked_for_where_that_is_switched_off() -> None:
    assert sent(session(asks_sizes=False).rewrite(SQL), DESCRIBE) == SQL


@pytest.mark.parametrize(
    ("size", "size_bytes"),
    [("812.0 B", 812), ("1.5 KiB", 1536), ("2.0 MiB, rowCount=3", 2 * 1024**2), ("1.0 EiB", None), ("1.5", None)],
)
def test_sizes_are_read_with_their_units(size: str, size_bytes: int | None) -> None:
    assert read_size(plan(size)) == size_bytes


def test_the_size_is_that_of_the_optimized_plan() -> None:
    optimized = "== Optimized Logical Plan ==\nRelation, sizeInBytes=2.0 B"
    assert read_size(rows((f"== Parsed Logical Plan ==\nsizeInBytes=1.0 B\n\n{optimized}",))) == 2
    assert read_size(failed(FailureKind.DEADLINE)) is None


def test_a_size_is_asked_for_without_a_filter_and_expires_with_the_description_of_its_table() -> None:
    stage = Stage()
    one, keys = (
        stage.stranger(),
        (KEYS[0].replace("FROM d", "FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1)"), KEYS[1]),
    )
    # No size is asked for beside a filter.
    assert sent(one.rewrite(f"{SQL} WHERE d.g = 1"), [*DESCRIBE, keys]) == f"{NARROWED} WHERE d.g = 1"
    stage.now = 50.0
    assert sent(one.rewrite(SQL), [(SIZE, plan("812.0 B")), KEYS]) == NARROWED
    stage.now = 61.0
    assert sent(one.rewrite(SQL), [*DESCRIBE, (SIZE, plan("17.8 KiB"))]) == SQL


def test_all_plans_of_a_decision_share_one_budget_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def counted(*args: Any) -> Plan:
        made = plan_of(*args)
        taken.append(made.steps)
        return made

    def of_budget(steps_max: int) -> TextSession:
        monkeypatch.setattr(decision_context, "Steps", lambda: Steps(steps_max))
        return session()

    monkeypatch.setattr(plan_memory, "plan", counted)
    size = (SIZE, plan("812.0 B"))
    assert sent(session().rewrite(SQL), [*DESCRIBE, size, KEYS]) == NARROWED
    needed = sum(taken)
    assert needed > max(taken)

    assert sent(of_budget(needed).rewrite(SQL), [*DESCRIBE, size, KEYS]) == NARROWED
    # The plan by sizes is done without.
    assert sent(of_budget(needed - 1).rewrite(SQL), [*DESCRIBE, size]) == SQL


# --- the sizes of partitions that a statement chooses


def _by_day(name: str) -> tuple[str, QueryResult]:
    columns = ("id", "int", ""), ("k", "string", ""), ("dt", "string", "")
    parts = ("# Partition Information", "", ""), ("# col_name", "data_type", "comment"), ("dt", "string", "")
    details = ("# Detailed Table Information", "", ""), ("Provider", "parquet", ""), ("Type", "MANAGED", "")
    return f"DESCRIBE TABLE EXTENDED `{name}`", rows(*columns, *parts, *details)


def test_partitions_of_two_tables_are_asked_for_their_sizes_one_after_the_other() -> None:
    both = " UNION ALL ".join(f"SELECT k FROM {name} WHERE dt = '1'" for name in "ab")
    sql = f"SELECT f.id FROM f JOIN ({both}) u ON f.dt = u.k"
    asked = [(f"EXPLAIN COST SELECT * FROM `{name}` WHERE `dt` IN ('1')", plan("1.0 KiB")) for name in "ab"]
    key = f"SELECT `u`.`k` AS key, typeof(`u`.`k`) AS type FROM ({both}) AS `u` LIMIT 5001"
    keys = (key, rows(("7", "string")))
    answers = [*map(_by_day, "abf"), *asked, keys]
    assert "FROM (SELECT * FROM f WHERE (`dt` IN ('7')" in sent(session().rewrite(sql), answers)


# --- the size of a table that is narrowed

_DELTA = ("Type", "MANAGED", ""), ("Provider", "delta", "")
_PROPERTIES = ("Table Properties", "[delta.minReaderVersion=1,delta.minWriterVersion=2]", "")
JOIN = "SELECT f.id FROM f JOIN d ON f.k = d.k WHERE d.g = 1"
SIZE_OF_F = SIZE.replace("`d`", "`f`")


def _described(name: str, *columns: str) -> tuple[str, QueryResult]:
    details = ("# Detailed Table Information", "", ""), ("Name", f"spark_catalog.default.{name}", ""), *_DELTA
    return f"DESCRIBE TABLE EXTENDED `{name}`", rows(*((c, "int", "") for c in columns), *details, _PROPERTIES)


DELTA_D, DELTA_F = _described("d", "k", "g"), _described("f", "id", "k")
DELTA_KEYS = (
    "SELECT d.`k` AS key, typeof(d.`k`) AS type FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001",
    rows((7, "int")),
)
DELTA_NARROWED = JOIN.replace("FROM f", "FROM (SELECT * FROM f WHERE (`k` IN (7) OR typeof(`k`) <> 'int')) AS f")


def _written(one: TextSession, table: str) -> None:
    played(one.rewrite(f"INSERT INTO {table} VALUES (1, 7)"), []).on_outcome(FINISHED)


def test_the_size_of_a_table_that_is_narrowed_outlasts_writes_to_it() -> None:
    stage = Stage(rewrite=RewriteSection(cost_gate=False))
    one, sizes = stage.session(), [(SIZE, plan("1.0 KiB")), (SIZE_OF_F, plan("1.0 GiB"))]
    assert sent(one.rewrite(JOIN), [DELTA_D, DELTA_F, *sizes, DELTA_KEYS]) == DELTA_NARROWED
    _written(one, "f")
    assert sent(one.rewrite(JOIN), [DELTA_F, DELTA_KEYS]) == DELTA_NARROWED
    # A small side may have grown beyond what is worth asking.
    _written(one, "d")
    assert sent(one.rewrite(JOIN), [DELTA_D, sizes[0], DELTA_KEYS]) == DELTA_NARROWED
    stage.now += 3601.0
    assert sent(one.rewrite(JOIN), [DELTA_D, DELTA_F, *sizes, DELTA_KEYS]) == DELTA_NARROWED


def test_a_size_by_which_a_table_is_not_narrowed_is_asked_for_again_after_a_write() -> None:
    one, small = Stage(rewrite=RewriteSection(cost_gate=False)).session(), (SIZE, plan("1.0 KiB"))
    assert sent(one.rewrite(JOIN), [DELTA_D, DELTA_F, small, (SIZE_OF_F, plan("1.0 KiB"))]) == JOIN
    _written(one, "f")
    assert sent(one.rewrite(JOIN), [DELTA_F, (SIZE_OF_F, plan("1.0 GiB")), DELTA_KEYS]) == DELTA_NARROWED


def test_tables_of_iceberg_whose_descriptions_tell_no_size_are_asked_for_it() -> None:
    """As on Spark 3.5. Without sizes the small side may be as large as the table, and nothing is narrowed."""
    one = Stage(rewrite=RewriteSection(cost_gate=False)).session()
    columns = (("id", "int"), ("k", "int"), ("g", "int"))
    described = [
        (f"DESCRIBE TABLE EXTENDED `{name}`", of_iceberg(f"ice.db.{name}", *columns, size_bytes=None))
        for name in ("d", "f")
    ]
    sizes = [(SIZE, plan("56.0 B, rowCount=2")), (SIZE_OF_F, plan("1.0 GiB, rowCount=1.00E+7"))]
    unpinned = ("EXPLAIN SELECT 1 FROM `d`", rows())
    files = (FILES_SQL, rows(*(a_file(f"/f/{at}", at, at) for at in range(20))))
    assert sent(one.rewrite(JOIN), [*described, *sizes, unpinned, DELTA_KEYS, files]) == DELTA_NARROWED
