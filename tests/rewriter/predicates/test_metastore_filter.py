"""No filter of Hive's metastore is sent a name or value that it cannot hold, nor one that Spark infers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from py4j.java_gateway import get_field
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from rewriter import (
    Catalog,
    Column,
    KeyRanges,
    Keys,
    KeySet,
    Plan,
    Rewrite,
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
from rewriter.catalog.table_facts import IcebergFacts
from rewriter.domains.consumers import ACCEPTS_NOTHING
from rewriter.domains.literals import Key
from rewriter.domains.widen import Consumer
from rewriter.predicates.metastore_filter import can_compare, can_name
from rewriter.predicates.predicate import Restriction, metastore_can_compare_all

NAMES = {
    "ds": True,
    "Ds": True,
    "a_": True,
    "1a": True,
    "2026_01": True,
    "date": True,
    "timestamp": True,
    "null": True,
    "inn": True,
    "_x": False,
    "_dt": False,
    "a-b": False,
    "p q.r": False,
    "é": False,
    "Größe": False,
    "12": False,
    "$x": False,
    "a`b": False,
    "and": False,
    "OR": False,
    "Not": False,
    "like": False,
    "between": False,
    "in": False,
    "const": False,
    "struct": False,
}


@pytest.mark.parametrize(("name", "named"), NAMES.items())
def test_a_filter_can_name_what_the_grammar_takes_for_a_name(name: str, named: bool) -> None:  # noqa: FBT001
    assert can_name(name) is named


VALUES: Mapping[tuple[str, Key], bool] = {
    ("int", -5): True,
    ("boolean", True): True,
    ("string", "it's"): True,
    ("string", 'six "'): True,
    ("string", "it's 6\""): False,
    ("string", "x\\"): False,
    ("string", "a\\b"): False,
    ("string", "\x00"): False,
    ("string", "日本\n"): True,
    ("string", "1582-10-10"): True,
    ("date", "0000-12-31"): False,
    ("date", "0001-01-01"): True,
    ("date", "9999-12-31"): True,
}


@pytest.mark.parametrize(("type_name", "value"), VALUES)
def test_a_filter_can_say_what_the_metastore_reads_as_spark_does(type_name: str, value: Key) -> None:
    assert can_compare(type_name, value) is VALUES[type_name, value]


RANGES: Mapping[tuple[str, str], bool] = {
    ("0001-01-01", "1582-10-04"): True,
    ("0001-01-01", "9999-12-31"): False,
    ("1582-10-04", "1582-10-25"): False,
    ("1582-10-25", "9999-12-31"): True,
}


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_no_range_is_sent_that_may_hold_days_that_derby_takes_for_others(low: str, high: str) -> None:
    can_be_sent = RANGES[low, high]
    restriction = Restriction((Column("day", "date"),), KeyRanges("date", ((low, high),)))
    assert metastore_can_compare_all([restriction]) is can_be_sent
    texts = Restriction((Column("day", "string"),), KeyRanges("string", ((low, high),)))
    assert metastore_can_compare_all([texts])


class _Grammar:
    """The parser of the Hive that Spark embeds, in the tests' own JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no other way to it

    def name_in(self, text: str) -> str | None:
        """The column that a filter of one comparison names; None where it does not parse."""
        hive, antlr = self._jvm.org.apache.hadoop.hive.metastore.parser, self._jvm.org.antlr.runtime
        lexer = hive.FilterLexer(getattr(hive, "ExpressionTree$ANTLRNoCaseStringStream")(text))
        parser = hive.FilterParser(antlr.CommonTokenStream(lexer))
        try:
            parser.filter()
        except Py4JJavaError:
            return None
        root = get_field(parser, "tree").getRoot()
        is_leaf = root.getClass().getSimpleName() == "LeafNode"
        return str(get_field(root, "keyName")) if is_leaf and get_field(lexer, "errorMsg") is None else None


def _random_names() -> Iterator[str]:
    """Names of a few signs that may mean something to a grammar, the same in every run."""
    chosen = Random(20)  # noqa: S311 - not secrets
    parts = ["a", "Z", "7", "_", "-", " ", ".", "in", "and", "const", "date", "é", "(", '"', "`", "=", "2026"]
    for _ in range(150):
        yield "".join(chosen.choices(parts, k=chosen.randint(1, 3)))


def test_the_grammar_of_the_hive_that_spark_embeds_takes_these_names(local_spark: SparkSession) -> None:
    grammar = _Grammar(local_spark)
    for name in (*NAMES, *_random_names()):
        texts = f"({name}) in (1)", f'{name} = "v"'
        taken = all(grammar.name_in(text) == name for text in texts)
        assert taken == can_name(name), name


def test_the_grammar_takes_what_stands_behind_a_backslash_for_the_same_text(local_spark: SparkSession) -> None:
    grammar = _Grammar(local_spark)
    assert grammar.name_in('s = "x" and b = "y"') is None, "the root is an AND"
    assert grammar.name_in('s = "x\\" and b = "y"') == "s"


FACT, ODD, SMALL, BUCKETED, ICEBERG = (TableName((name,)) for name in ("f", "o", "d", "b", "i"))
FULL = {name: TableName(("spark_catalog", "default", *name.parts)) for name in (FACT, ODD, BUCKETED, ICEBERG)}
COLUMNS = (Column("id", "int"), Column("k", "int"), Column("s", "string"))
CATALOG: Catalog = {
    FACT: TableFacts(COLUMNS, ("k", "s"), full_name=FULL[FACT]),
    ODD: TableFacts((Column("v", "int"), Column("_k", "int")), ("_k",), full_name=FULL[ODD]),
    SMALL: TableFacts((Column("k", "int"), Column("s", "string"), Column("g", "int"))),
    BUCKETED: TableFacts(COLUMNS, full_name=FULL[BUCKETED], bucket_columns=("k",), bucket_count=64),
    ICEBERG: TableFacts(
        COLUMNS, provider="iceberg", full_name=FULL[ICEBERG], indexed_columns=("k",), iceberg=IcebergFacts(1)
    ),
}
ON_K = "SELECT count(*) FROM f JOIN d ON f.k = d.k WHERE d.g = 1"
ON_S = ON_K.replace("f.k = d.k", "f.s = d.s")
ON_ODD = ON_K.replace("FROM f JOIN d ON f.k = d.k", "FROM o JOIN d ON o._k = d.k")


def planned(sql: str, catalog: Catalog = CATALOG, limits: RewriteLimits | None = None) -> Plan:
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    return plan(statement, catalog, limits or RewriteLimits())


def rewritten(sql: str, keys: Keys, limits: RewriteLimits | None = None, catalog: Catalog = CATALOG) -> Rewrite:
    limits = limits or RewriteLimits()
    found = planned(sql, catalog, limits)
    return apply(found, dict.fromkeys(found.key_queries, keys), limits)


def ints(*values: int) -> KeySet:
    return KeySet.of(("int",), [(value,) for value in values])


def test_a_column_that_no_filter_can_name_is_pruned_by_spark_alone() -> None:
    found = rewritten(ON_ODD, ints(1, 7))
    assert "WHERE (array_contains(array(1, 7), `_k`) OR typeof(`_k`) <> 'int')" in found.text
    assert found.scans[0].exact
    assert found.tables_sent_to_metastore == frozenset()


def test_ranges_and_nulls_of_such_a_column_are_said_in_a_form_that_spark_keeps_to_itself() -> None:
    found = rewritten(ON_ODD, KeyRanges("int", ((1, 4), (7, 7))))
    assert "(array_contains(array(TRUE), (`_k` IN (7) OR `_k` BETWEEN 1 AND 4)) OR" in found.text
    assert not found.scans[0].exact
    assert found.scans[0].cover == KeyRanges("int", ((1, 4), (7, 7))).cover(["_k"])
    nulls = KeySet.of(("int",), [(None,), (1,)], null_safe=(True,))
    found = rewritten(ON_ODD.replace("o._k = d.k", "o._k <=> d.k"), nulls)
    assert "(array_contains(array(TRUE), (`_k` IN (1) OR `_k` IS NULL)) OR" in found.text
    assert found.scans[0].exact


def test_what_would_be_too_long_in_that_form_is_not_said() -> None:
    found = rewritten(ON_ODD, KeyRanges("int", ((1, 4), (7, 7))), RewriteLimits(predicate_chars_max=60))
    assert found.scans[0].skip is SkipReason.PREDICATE_TOO_LARGE


@pytest.mark.parametrize(
    "join", ["JOIN o ON o._k = f.k", "LEFT JOIN o ON o._k = f.k", "CROSS JOIN o", "JOIN (SELECT * FROM o) x"]
)
def test_no_column_is_sent_where_the_statement_reads_a_table_with_such_a_column(join: str) -> None:
    assert "`k` IN (1, 7)" in rewritten(ON_K, ints(1, 7)).text
    found = rewritten(ON_K.replace(" WHERE", f" {join} WHERE"), ints(1, 7))
    assert "array_contains(array(1, 7), `k`)" in found.text
    assert "`k` IN" not in found.text


DAYED = TableName(("dayed",))
BY_DAY = TableFacts(
    (Column("id", "int"), Column("day", "date")),
    ("day",),
    full_name=TableName(("spark_catalog", "default", "dayed")),
)
ON_DAY = "SELECT count(*) FROM dayed f JOIN d ON f.day = d.day WHERE d.g = 1"
BESIDE = {
    "itself": "",
    "another table": " JOIN f o ON o.k = d.k",
    "one behind a view": " JOIN v ON v.k = d.k",
}


@pytest.mark.parametrize("beside", BESIDE)
def test_no_day_or_number_is_sent_where_the_metastore_may_read_a_partition_in_another_way(beside: str) -> None:
    view = ViewText("SELECT * FROM f", ("spark_catalog", "default"), ("id", "k", "s"))
    tables: Catalog = {
        **CATALOG,
        FULL[FACT]: CATALOG[FACT],
        DAYED: BY_DAY,
        SMALL: TableFacts((Column("k", "int"), Column("day", "date"), Column("s", "string"), Column("g", "int"))),
        TableName(("v",)): TableFacts(COLUMNS, provider="", kind=TableKind.VIEW, view=view),
    }
    sql = ON_DAY.replace(" WHERE", f"{BESIDE[beside]} WHERE")
    days = KeySet.of(("date",), [("2024-01-01",)])
    found = planned(sql, tables)
    answers = {query: days if query.columns[0].type_name == "date" else ints(1) for query in found.key_queries}
    listed = {"itself": {DAYED}, "another table": {DAYED, FACT}, "one behind a view": {DAYED, FULL[FACT]}}[beside]
    assert found.cast_tables == found.wants_values(answers) == listed
    for table in listed:
        text = apply(found, answers, RewriteLimits(misread_tables=frozenset({table}))).text
        assert "array_contains(array(DATE'2024-01-01'), `day`)" in text
    assert "`day` IN (DATE'2024-01-01')" in apply(found, answers, RewriteLimits()).text


@pytest.mark.parametrize(("type_name", "value"), [("decimal(10,0)", "1"), ("bigint", 1)])
def test_a_comparison_may_be_inferred_through_a_cast(type_name: str, value: Key) -> None:
    wide = TableFacts((Column("id", "int"), Column("day", type_name)), ("day",))
    small = TableFacts((Column("day", type_name), Column("g", "int")))
    tables: Catalog = {DAYED: wide, SMALL: small, FACT: CATALOG[FACT]}
    found = planned(ON_DAY.replace(" WHERE", " JOIN f o ON o.k = f.day WHERE"), tables)
    keys = KeySet.of((type_name,), [(value,)])
    asked = {query for query in found.key_queries if query.columns[0].type_name == type_name}
    assert FACT in found.wants_values(dict.fromkeys(asked, keys))
    assert found.wants_values({}) == frozenset()
    text = apply(found, dict.fromkeys(asked, keys), RewriteLimits(misread_tables=frozenset({FACT}))).text
    assert "`day` IN" not in text


def test_without_a_key_nothing_is_read_however_the_metastore_reads_numbers() -> None:
    limits = RewriteLimits(misread_tables=frozenset({FACT}))
    iceberg = of_iceberg(ON_K).replace(" WHERE", " CROSS JOIN f WHERE")
    assert "WHERE FALSE)" in rewritten(iceberg, ints(), limits).text


def test_texts_are_sent_however_the_metastore_reads_numbers() -> None:
    texts = KeySet.of(("string",), [("a",)])
    text = rewritten(ON_S, texts, RewriteLimits(misread_tables=frozenset({FACT}))).text
    assert "`s` IN ('a')" in text
    found = planned(ON_S)
    assert found.wants_values(dict.fromkeys(found.key_queries, texts)) == frozenset()


@pytest.mark.parametrize("value", ["x\\", "it's 6\""])
def test_a_text_that_a_filter_cannot_hold_is_not_sent(value: str) -> None:
    found = rewritten(ON_S, KeySet.of(("string",), [("a",), (value,)]))
    assert "`s` IN" not in found.text
    assert "array_contains(array('a', CAST(X'" in found.text
    assert "`s` IN ('a')" in rewritten(ON_S, KeySet.of(("string",), [("a",)])).text


NAMED = {"d": "d", "x": "x", "v": "spark_catalog.default.x"}
OTHERS = {"d": "", "x": " JOIN x ON x.s = d.s", "v": " JOIN v ON v.s = d.s"}
JDBC = TableFacts((Column("s", "string"), Column("k", "int"), Column("g", "int")), provider="jdbc")


@pytest.mark.parametrize("foreign", OTHERS)
def test_nothing_is_inferred_for_a_table_of_another_system(foreign: str) -> None:
    """PostgreSQL has 'Z' not BETWEEN 'A' AND 'a' in most languages, and Oracle lists at most 1,000 values."""
    view = ViewText("SELECT * FROM x", ("spark_catalog", "default"), ("s", "k", "g"))
    tables = {
        **CATALOG,
        TableName(("x",)): replace(JDBC, provider="parquet"),
        TableName(("spark_catalog", "default", "x")): replace(JDBC, provider="parquet"),
        TableName(("v",)): TableFacts(JDBC.columns, provider="", kind=TableKind.VIEW, view=view),
    }
    elsewhere = tables | {name: JDBC for name in tables if name.parts[-1] == foreign.replace("v", "x")}
    for sql, keys in ((ON_S, KeySet.of(("string",), [("a",)])), (ON_K, ints(1, 7))):
        joined = sql.replace(" WHERE", f"{OTHERS[foreign]} WHERE")
        for catalog in (tables, elsewhere):
            text = rewritten(joined, keys, catalog=catalog).text
            is_hidden = "array_contains(array('a'), `s`)" in text or "array_contains(array(1, 7), `k`)" in text
            assert is_hidden == (catalog is elsewhere)
        left = rewritten(of_iceberg(joined), keys, catalog=elsewhere)
        assert (left.text, left.scans[0].reducers) == (of_iceberg(joined), ()), "nor is it asked for keys in vain"
        is_by_k = sql == ON_K
        assert (left.scans[0].cause == f"of another system: {NAMED[foreign]}") is is_by_k


def of_iceberg(sql: str) -> str:
    """The statement with the Iceberg table in the place of f."""
    return sql.replace(" f ", " i ").replace("f.", "i.")


@pytest.mark.parametrize("known", [True, False])
def test_no_day_is_sent_beside_what_may_be_a_table_partitioned_by_days(*, known: bool) -> None:
    days = TableFacts((Column("day", "date"), Column("g", "int")))
    unknown = TableName(("unknown",))
    catalog: Catalog = {SMALL: days, DAYED: BY_DAY, unknown: days if known else None}
    sql = ON_DAY.replace(" WHERE", " JOIN unknown u ON u.day = d.day WHERE")
    text = rewritten(sql, KeySet.of(("date",), [("2024-01-01",)]), catalog=catalog).text
    assert ("`day` IN (DATE'2024-01-01')" in text) is known


@pytest.mark.parametrize(("sql", "is_left"), [(ON_S, True), (ON_K, False)])
def test_texts_are_not_ranged_beside_what_may_be_a_table_of_another_system(sql: str, *, is_left: bool) -> None:
    keys = KeySet.of(("string",), [("a",)]) if sql == ON_S else ints(1, 7)
    iceberg = replace(CATALOG[ICEBERG] or JDBC, indexed_columns=("k", "s"))
    catalog = {**CATALOG, ICEBERG: iceberg, TableName(("unknown",)): None}
    for further, left in (("", False), (" JOIN unknown u ON u.k = d.k", is_left)):
        joined = of_iceberg(sql).replace(" WHERE", f"{further} WHERE")
        assert (rewritten(joined, keys, catalog=catalog).text == joined) == left


ALONE = ["SELECT count(*) FROM b JOIN d ON b.k = d.k WHERE d.g = 1", ON_K.replace(" f ", " i f ")]


@pytest.mark.parametrize("sql", ALONE, ids=["buckets", "Iceberg"])
def test_of_a_data_column_nothing_is_said_that_spark_could_infer_for_such_a_column(sql: str) -> None:
    assert "`k` IN (1, 7)" in rewritten(sql, ints(1, 7)).text
    found = rewritten(sql.replace(" WHERE", " CROSS JOIN o WHERE"), ints(1, 7))
    assert {outcome.skip for outcome in found.scans if outcome.reducers} == {SkipReason.METASTORE_FILTER}


def test_a_table_whose_filter_was_refused_is_sent_less_and_the_others_are_not() -> None:
    sql = "SELECT count(*) FROM f JOIN f g ON f.id = g.id JOIN d ON f.k = d.k WHERE d.g = 1"
    keys = ints(*range(0, 40, 2))
    halved = {FULL[FACT]: Consumer(4, 2)}
    text = rewritten(sql, keys, RewriteLimits(metastore_for=halved)).text
    assert text.count("BETWEEN") == 2
    assert (
        rewritten(sql, keys, RewriteLimits(metastore_for={FULL[ODD]: ACCEPTS_NOTHING})).text
        == rewritten(sql, keys).text
    )
    found = rewritten(sql, keys, RewriteLimits(metastore_for={FULL[FACT]: ACCEPTS_NOTHING}))
    assert "WHERE (array_contains(array(0, 2, " in found.text


@pytest.mark.parametrize(
    ("keys", "limits", "sent"),
    [
        (ints(1), RewriteLimits(), [FACT]),
        (ints(), RewriteLimits(), []),
        (ints(1), RewriteLimits(metastore_for={FULL[FACT]: ACCEPTS_NOTHING}), []),
    ],
)
def test_it_is_known_of_which_tables_the_metastore_is_sent_a_filter(
    keys: Keys, limits: RewriteLimits, sent: Sequence[TableName]
) -> None:
    found = rewritten(ON_K, keys, limits)
    assert found.tables == {FULL[FACT]}
    assert found.tables_sent_to_metastore == {FULL[name] for name in sent}
