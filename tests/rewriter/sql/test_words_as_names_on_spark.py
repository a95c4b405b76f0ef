"""Spark's parser reads names where `rewriter.sql.words_as_names` does: all of its words, and two in each text."""

from itertools import product
from typing import Any

from pyspark.sql import SparkSession
from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from support.readings import our_facts, spark_facts

from rewriter import Statement
from rewriter.sql.bounded_parser import tokenize
from rewriter.sql.statement import parse
from rewriter.sql.words_as_names import _WORDS, name_words

WORDS = sorted(
    word.lower() for word, kind in Spark.tokenizer_class.KEYWORDS.items() if kind in _WORDS and word.isalpha()
)
OTHERS = ("and", "as", "from", "join", "left", "values", "x")
JOINED = "FROM f JOIN d ON f.k = d.k"
# {0} is each word, and {1} each of the others.
PLACES = (
    *(f"SELECT {{0}}, {{1}} {JOINED}", f"SELECT f.x, {{0}} {JOINED}", f"SELECT f.x, {{0}} AS {{1}} {JOINED}"),
    *(
        f"SELECT f.x {{0}}, {{1}}.y {JOINED}",
        f"SELECT max({{0}}), {{1}}[{{0}}] {JOINED}",
        f"SELECT {{0}} AS y {JOINED}",
    ),
    *(f"SELECT 1 {JOINED} WHERE {{0}} = {{1}}", f"SELECT 1 {JOINED} WHERE {{0}} IS NULL AND {{1}} < 2"),
    *(f"SELECT 1 {JOINED} ORDER BY {{0}}, {{1}}", f"SELECT f.{{0}}, {{0}}.{{1}}, {{0}}.* {JOINED}"),
    *(
        "SELECT 1 FROM f, {0} {1} WHERE f.k = 1",
        "SELECT 1 FROM f JOIN {0} {1} ON f.k = 1",
        "SELECT 1 FROM {0}, {1}",
    ),
    *("SELECT 1 FROM f {0} JOIN {1} ON f.k = 1", "SELECT 1 FROM f {0} {1} JOIN d ON f.k = 1"),
    *("SELECT 1 FROM db.{0} JOIN {1}.t ON {0}.k = t.k", "SELECT 1 FROM f JOIN d USING ({0}, {1})"),
    *("WITH {0} AS (SELECT 1), {1} AS (SELECT 2) SELECT 1 FROM f JOIN {0}", "SELECT DISTINCT {0}, {1} FROM f, d"),
    *("SELECT 1 FROM f AS {0} JOIN d ON {1}.k = 1", "SELECT 1 FROM f AS {0} {1} JOIN d ON f.k = d.k"),
    *("INSERT INTO t ({0}, {1}) SELECT 1 FROM f JOIN d", "INSERT INTO {0} VALUES ({1})"),
    *(
        "SELECT f.x FROM {0} {1} WHERE k = 1",
        "SELECT f.x FROM f {1} {0} JOIN group by",
        "SELECT 1 FROM {0} JOIN {1}",
    ),
    *("SELECT 1 AS {0} FROM (SELECT {1}) f JOIN d", "SELECT 1 AS {0}, 2 AS {1} FROM (f JOIN d)"),
    *("SELECT f.x {1} {0} GROUP BY {1}", "SELECT f.x FROM {0} GROUP BY {1}", "SELECT DISTINCT {1} {0} JOIN d {1}"),
    *("SELECT 1 FROM f, LATERAL {0} {1}", f"SELECT {{0}} + .5, {{1}} {JOINED}", "SELECT 1 FROM f {0} {1} JOIN d"),
)


def with_quotes(sql: str) -> str:
    """The text with quotes around the words that are taken for names."""
    tokens = tokenize(sql)
    before = [token.token_type for token in tokens]
    name_words(tokens)
    for kind, token in reversed(list(zip(before, tokens, strict=True))):
        if kind is not token.token_type:
            assert token.token_type is TokenType.IDENTIFIER
            sql = f"{sql[: token.start]}`{token.text}`{sql[token.end + 1 :]}"
    return sql


def test_words_are_names_to_spark_where_they_are_taken_for_such(local_spark: SparkSession) -> None:
    parser: Any = local_spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - it has no other name

    def plan(sql: str) -> str:
        try:
            return str(parser.parsePlan(sql).canonicalized()).lower()
        except Exception:  # noqa: BLE001 - whatever class it has, the parser threw it
            return ""

    compared, differing = 0, []
    for place, word, other in product(PLACES, WORDS, OTHERS):
        sql = place.format(word, other)
        quoted, statement = with_quotes(sql), parse(sql, chars_max=1_000, has_views=True)
        if quoted == sql or not isinstance(statement, Statement) or not (read := plan(sql)):
            continue
        compared += 1
        if read != plan(quoted) or not our_facts(statement) <= (spark_facts(local_spark, sql) or set()):
            differing.append(sql)
    assert differing == []
    assert compared > 2_000
