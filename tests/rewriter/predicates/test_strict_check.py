"""The check beside a predicate, without a server: what it says, and what is left alone."""

from dataclasses import replace

import pytest

from rewriter import (
    Catalog,
    Column,
    IcebergFacts,
    KeyRanges,
    Keys,
    KeySet,
    Plan,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.predicates.splice import Narrowing, rewritten_text
from rewriter.predicates.strict_check import KEYS_CHANGED, check
from rewriter.semijoins.key_query import KeyColumn, key_set_query

STRICT = RewriteLimits(strict=True)
FACT = TableFacts((Column("id", "int"), Column("ds", "string")), ("ds",))
SMALL = TableFacts((Column("ds", "string"), Column("g", "int")))
CATALOG: Catalog = {
    TableName(("f",)): FACT,
    TableName(("d",)): SMALL,
    TableName(("h",)): TableFacts(FACT.columns, ("ds",), provider="hive"),
    TableName(("m",)): TableFacts((Column("_metadata", "int"), Column("ds", "string")), ("ds",)),
    TableName(("v",)): TableFacts(
        FACT.columns,
        kind=TableKind.VIEW,
        view=ViewText("SELECT id, ds FROM f", ("spark_catalog", "default"), ("id", "ds")),
    ),
    TableName(("spark_catalog", "default", "f")): FACT,
    TableName(("hive_d",)): replace(SMALL, provider="hive"),
    TableName(("spark_catalog", "default", "hive_d")): replace(SMALL, provider="hive"),
    TableName(("hive_v",)): TableFacts(
        SMALL.columns,
        kind=TableKind.VIEW,
        view=ViewText("SELECT ds, g FROM hive_d", ("spark_catalog", "default"), ("ds", "g")),
    ),
    TableName(("delta_d",)): replace(SMALL, provider="delta", delta=DeltaFacts()),
    TableName(("iceberg_d",)): replace(SMALL, provider="iceberg", iceberg=IcebergFacts(1)),
    TableName(("orc_d",)): replace(SMALL, provider="hive", converted_format="orc"),
    TableName(("e",)): TableFacts((Column("id", "int"),)),
}
SQL = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1"


def planned(sql: str, limits: RewriteLimits = STRICT) -> Plan:
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    return plan(statement, CATALOG, limits)


def test_beside_the_predicate_stands_a_check_that_spark_cannot_drop() -> None:
    found = planned(SQL)
    (question,) = found.key_queries
    outcome = apply(found, {question: KeySet(("string",), (("a",),))}, STRICT)
    assert outcome.text == (
        "SELECT f.id FROM (SELECT * FROM f WHERE"
        " ((`ds` IN ('a') OR typeof(`ds`) <> 'string')"
        " OR (forall(array(TRUE), held -> FALSE) AND _metadata.file_size < 0)) AND"
        " (array_contains(array(TRUE), (SELECT if(count(*) = 0, TRUE, raise_error(concat('starpruner: ',"
        " 'the keys have changed since they were read'))) FROM (SELECT d.`ds` AS key1 FROM d WHERE (d.g = 1))"
        " AS keys_now WHERE typeof(key1) NOT IN ('string') OR"
        " (key1 IS NOT NULL AND (`key1` IN ('a')) IS NOT TRUE))))) AS f"
        " JOIN d ON f.ds = d.ds WHERE d.g = 1"
    )
    assert KEYS_CHANGED not in outcome.text


def test_the_message_of_a_check_has_its_word() -> None:
    found = planned(SQL)
    answers = {question: KeySet(("string",), (("a",),)) for question in found.key_queries}
    outcome = apply(found, answers, replace(STRICT, check_word="0fb3"))
    assert outcome.check_failure == f"{KEYS_CHANGED} (0fb3)"
    assert "'the keys have changed since they were read (0fb3)'" in outcome.text
    assert outcome.check_failure not in outcome.text


@pytest.mark.parametrize(
    ("column", "keys", "condition"),
    [
        (KeyColumn("date"), KeySet(("date",), ()), "key1 IS NOT NULL AND (FALSE) IS NOT TRUE"),
        (
            KeyColumn("string", null_safe=True),
            KeySet(("string",), ((None,), ("a",))),
            "((`key1` IN ('a') OR `key1` IS NULL)) IS NOT TRUE",
        ),
        (
            KeyColumn("tinyint"),
            KeySet(("tinyint",), ((1,),)),
            "key1 BETWEEN -128Y AND 127Y AND (`key1` IN (1Y)) IS NOT TRUE",
        ),
        (
            KeyColumn("int", null_safe=True),
            KeyRanges("int", ((1, 5),), nullable=True),
            (
                "(key1 IS NULL OR key1 BETWEEN -2147483648 AND 2147483647)"
                " AND ((`key1` BETWEEN 1 AND 5 OR `key1` IS NULL)) IS NOT TRUE"
            ),
        ),
        (KeyColumn("bigint"), KeyRanges("bigint", ()), "key1 IS NOT NULL AND (FALSE) IS NOT TRUE"),
        (
            KeyColumn("boolean", null_safe=True),
            KeySet(("boolean",), ((None,), (False,), (True,))),
            "(TRUE) IS NOT TRUE",
        ),
    ],
)
def test_what_counts_as_a_new_key_is_what_could_match(column: KeyColumn, keys: Keys, condition: str) -> None:
    question = key_set_query(source="d", keys=["d.k"], columns=[column], rows_max=10)
    assert f" OR ({condition}))" in check(question, keys)


def test_pairs_are_looked_for_as_pairs() -> None:
    columns = [KeyColumn("int"), KeyColumn("string", null_safe=True)]
    question = key_set_query(source="d", keys=["d.a", "d.b"], columns=columns, rows_max=10)
    text = check(question, KeySet(("int", "string"), ((1, "x"), (2, None))))
    assert "(`key1` IN (1) AND `key2` IN ('x')) OR (`key1` IN (2) AND `key2` IS NULL)" in text


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"CREATE TABLE x AS {SQL}", SkipReason.STRICT_WRITES),
        (f"INSERT OVERWRITE DIRECTORY '/x' {SQL}", SkipReason.STRICT_WRITES),
        (f"INSERT INTO e {SQL.replace('FROM f JOIN', 'FROM h AS f JOIN')}", SkipReason.STRICT_TABLE),
        (SQL.replace("FROM f JOIN", "FROM h AS f JOIN"), SkipReason.STRICT_TABLE),
        (SQL.replace("f.id FROM f JOIN", "1 FROM m AS f JOIN"), SkipReason.STRICT_TABLE),
        (SQL.replace("FROM f JOIN", "FROM v AS f JOIN"), SkipReason.STRICT_TABLE),
        # Its files or its version are looked up for each scan: the check may see others than the join.
        (SQL.replace("JOIN d", "JOIN delta_d AS d"), SkipReason.STRICT_TABLE),
        (SQL.replace("JOIN d", "JOIN iceberg_d AS d"), SkipReason.STRICT_TABLE),
        (SQL.replace("JOIN d", "JOIN hive_d AS d"), SkipReason.STRICT_TABLE),
        (SQL.replace("JOIN d", "JOIN hive_v AS d"), SkipReason.STRICT_TABLE),
        (f"{SQL} AND d.ds IN (SELECT ds FROM hive_d)", SkipReason.STRICT_TABLE),
    ],
)
def test_what_cannot_be_checked_or_run_again_is_left_alone(sql: str, reason: SkipReason) -> None:
    assert planned(sql, RewriteLimits()).key_queries, "without strict consistency it is narrowed"
    found = planned(sql)
    assert found.key_queries == ()
    assert found.scans[0].skip is reason


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO e {SQL}",
        f"INSERT INTO e (id) {SQL}",
        f"INSERT OVERWRITE TABLE e PARTITION (p) {SQL}",
        f"INSERT INTO e REPLACE WHERE id = 1 {SQL}",
        f"WITH c AS ({SQL}) INSERT INTO e SELECT * FROM c",
    ],
)
def test_an_insert_into_a_table_has_the_check_of_its_query(sql: str) -> None:
    found = planned(sql)
    answers = {question: KeySet(("string",), (("a",),)) for question in found.key_queries}
    outcome = apply(found, answers, STRICT)
    assert outcome.text == sql.replace(SQL, apply(planned(SQL), answers, STRICT).text)
    assert outcome.check_failure == KEYS_CHANGED
    assert not outcome.is_checked_merge
    assert not apply(planned(sql, RewriteLimits()), answers, RewriteLimits()).check_failure


def test_a_small_side_that_no_check_can_read_is_named() -> None:
    cause = "no check can read spark_catalog.default.hive_d as Spark joins it"
    assert planned(SQL.replace("JOIN d", "JOIN hive_v AS d")).scans[0].cause == cause
    assert planned(SQL.replace("FROM f JOIN", "FROM h AS f JOIN")).scans[0].cause is None


@pytest.mark.parametrize("small", ["d", "orc_d"])
def test_a_small_side_that_spark_lists_once_for_a_statement_can_be_checked(small: str) -> None:
    assert planned(SQL.replace("JOIN d", f"JOIN {small} AS d")).key_queries


def test_a_check_counts_in_the_length_of_what_is_inserted() -> None:
    found = planned(SQL)
    answers = {question: KeySet(("string",), (("a",),)) for question in found.key_queries}
    assert apply(found, answers, RewriteLimits(strict=True, predicate_chars_max=500)).text != SQL
    short = apply(found, answers, RewriteLimits(strict=True, predicate_chars_max=300))
    assert short.text == SQL
    assert short.scans[0].skip is SkipReason.PREDICATE_TOO_LARGE


@pytest.mark.parametrize(
    "text", ["(SELECT 1) OR (TRUE)", "(SELECT 1", "SELECT 1", "(SELECT 1; SELECT 2)", "(1))", "(')"]
)
def test_a_check_that_could_break_up_what_is_around_it_is_not_taken(text: str) -> None:
    statement = parse(SQL, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    start = SQL.index("f JOIN")
    assert rewritten_text(statement, [Narrowing(start, start + 1, "f", "TRUE", ("(SELECT 1)",))]) is not None
    assert rewritten_text(statement, [Narrowing(start, start + 1, "f", "TRUE", (text,))]) is None
