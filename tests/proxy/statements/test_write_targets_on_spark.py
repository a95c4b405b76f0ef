"""Whatever Spark's own parser says that a statement writes is among the tables that it is taken to write.

STARPRUNER_DEEP=1 tries many; STARPRUNER_SEED=7 tries those of one seed.
"""

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from seeding import seeded, seeds

from proxy.statements.written_tables import WriteTargets, tables_written
from rewriter import TableName

STATEMENTS_PER_SEED = 300
# Most texts that are put together by chance are none. So many of a seed are to be statements, and of a known form.
WRITES_MIN, TOLD_MIN = 60, 15

NAMES = """
    d e db.d `d` `db`.`d` `a b`.d d.e.f `d``e` table if values select into identifier directory local view temp
    with exists not replace set using as from where partition `select`.d values.d session.d D options merge insert
""".split()
PLAIN_NAMES = 9
QUERIES = [
    *("SELECT 1", "SELECT * FROM e", "(SELECT * FROM e)", "VALUES (1)", "TABLE e", "FROM e SELECT a"),
    *("WITH c AS (SELECT 1) SELECT * FROM c", "SELECT a then FROM e", "SELECT `insert`, 'insert into f' FROM e"),
]
# # stands for a name, ? for a query. What is in brackets may be left out.
FORMS = [
    "INSERT [WITH SCHEMA EVOLUTION] INTO [TABLE] # ?",
    "INSERT OVERWRITE [TABLE] # [PARTITION (p = 1)] [IF NOT EXISTS] [(a, b)] ?",
    "INSERT INTO [TABLE] # [WITH ('a' = 'b')] [BY NAME] ?",
    "INSERT INTO # REPLACE WHERE a = 1 ?",
    "INSERT INTO # AS t REPLACE ON t.a = s.a ? AS s",
    "INSERT OVERWRITE [LOCAL] DIRECTORY ['/x'] [USING parquet] ?",
    "CREATE [OR REPLACE] [EXTERNAL] TABLE [IF NOT EXISTS] # [USING parquet] [LOCATION '/x'] [AS] ?",
    "CREATE TABLE # [LIKE e]",
    "REPLACE TABLE # [USING parquet] AS ?",
    "CREATE [OR REPLACE] [GLOBAL] [TEMPORARY] [TEMP] VIEW [IF NOT EXISTS] # [(a)] [COMMENT 'c'] AS ?",
    "ALTER VIEW # [AS] ?",
    "MERGE [WITH SCHEMA EVOLUTION] INTO # [AS] [t] USING # ON a = b WHEN MATCHED THEN DELETE",
    "MERGE INTO # USING (?) s ON a = b WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN UPDATE SET *",
    "UPDATE # [AS] [t] SET a = 1 [WHERE a IN (?)]",
    "DELETE FROM # [AS] [t] [WHERE a IN (?)]",
    "WITH c AS (?) INSERT INTO # ?",
    "WITH c AS (?) DELETE FROM # [WHERE a = 1]",
    "WITH c AS (?) MERGE INTO # USING c ON a = b WHEN MATCHED THEN DELETE",
    "FROM e INSERT INTO # SELECT a [then] INSERT OVERWRITE [TABLE] # SELECT b",
    "FROM e [then] INSERT INTO # SELECT a [INSERT OVERWRITE DIRECTORY '/x' SELECT b]",
    "?",
]
KEPT = 0.5
NOISE = [
    *(
        "/* # */",
        "-- #\n",
        "/* INSERT INTO f */",
        "-- then\n",
        "\n",
        "\t",
        ".d",
        "TABLE",
        "IF",
        "VIEW",
        "`d`",
        "e",
    ),
    *("IDENTIFIER('d')", "INSERT INTO", "(", ")", ";", "then", "a.", "AS", "/* a /* b */ */"),
]
WRITERS = {
    **dict.fromkeys(("InsertIntoStatement", "UpdateTable", "DeleteFromTable"), "table"),
    "MergeIntoTable": "targetTable",
    **dict.fromkeys(
        ("CreateTable", "CreateTableAsSelect", "CreateTableLike", "ReplaceTable", "ReplaceTableAsSelect"), "name"
    ),
    **dict.fromkeys(("CreateView", "AlterViewAs"), "child"),
}
COMMANDS = {"CreateViewCommand": "name"}
PARTS = ("multipartIdentifier", "nameParts")


def written(rng: Random) -> str:
    """A statement of one of the forms, with a little noise now and then."""
    kept = re.sub(r"\[([^]]*)\]", lambda found: found[1] if rng.random() < KEPT else "", rng.choice(FORMS)).split()
    for _ in range(rng.choice((0, 0, 1, 2))):
        kept.insert(rng.randrange(len(kept) + 1), rng.choice(NOISE))
    text = " ".join(kept)
    while "#" in text or "?" in text:
        text = text.replace("#", rng.choice(rng.choice((NAMES[:PLAIN_NAMES], NAMES))), 1)
        text = text.replace("?", rng.choice(QUERIES), 1)
    return text


def targets(plan: Any) -> Iterator[TableName | None]:
    """The tables that Spark's plan of a statement writes; None for one that has no table's name."""
    kind = str(plan.getClass().getSimpleName())
    if kind in COMMANDS:
        if plan.viewType().toString() == "LocalTempView":
            # No other session sees it.
            return
        yield TableName(tuple(str(getattr(plan, COMMANDS[kind])().unquotedString()).split(".")))
    elif kind in WRITERS:
        yield _name(getattr(plan, WRITERS[kind])())
    elif kind in {"UnresolvedWith", "Union"}:
        children = plan.children()
        for index in range(children.size()):
            yield from targets(children.apply(index))
    elif "Insert" in kind or "Create" in kind or "Replace" in kind or "CompoundBody" in kind:
        yield None


def _name(relation: Any) -> TableName | None:
    kind = str(relation.getClass().getSimpleName())
    if kind == "SubqueryAlias":
        return _name(relation.child())
    accessor = next((name for name in PARTS if kind.startswith("Unresolved") and _has(relation, name)), None)
    if accessor is None:
        return None
    return TableName(tuple(str(getattr(relation, accessor)().mkString("\x00")).split("\x00")))


def _has(relation: Any, name: str) -> bool:
    return any(method.getName() == name for method in relation.getClass().getMethods())


@pytest.mark.parametrize("seed", seeds(quick=1, deep=100))
def test_what_spark_writes_is_among_what_a_statement_is_taken_to_write(
    local_spark: SparkSession, seed: int
) -> None:
    session: Any = local_spark
    parser = session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - PySpark hands out no parser
    rng, writes, told = seeded(seed), 0, 0
    for _ in range(STATEMENTS_PER_SEED):
        sql = written(rng)
        try:
            found = list(targets(parser.parsePlan(sql)))
        except ParseException:
            continue
        tables = tables_written(sql)
        for name in found:
            assert tables is not None, sql
            assert tables.words is None if name is None else tables.hold(name), (sql, name)
        writes += bool(found)
        told += isinstance(tables, WriteTargets)
    assert writes >= WRITES_MIN
    assert told >= TOLD_MIN
