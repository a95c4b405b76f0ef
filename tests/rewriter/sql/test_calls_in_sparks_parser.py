"""The calls that `rewriter` sees in a text, beside those that Spark's own parser sees: none may be missing."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from sqlglot.dialects.spark import Spark
from support.maven import require_compiler

from demo.java import Java, spark_home
from rewriter import Statement, parse
from rewriter.sql.calls import _BEFORE_OPERAND, _BUILT_IN, _CLAUSE_WORDS
from rewriter.sql.deterministic_functions import TABLE_FUNCTIONS
from rewriter.sql.task_dependence import _OF_SPARK

PROGRAM = Path(__file__).with_name("Calls.java")
WORDS = sorted(
    {word.lower() for word in Spark.tokenizer_class.KEYWORDS if word.isidentifier()}
    | _BEFORE_OPERAND
    | TABLE_FUNCTIONS
    | {"cast", "if", "mod", "element_at", "split", "seen", "window", "range_of"}
)
# Operators that may be called as functions of Spark's own.
OPERATORS = _BUILT_IN.union("and between div ilike in like or regexp rlike when".split())
# Functions of both kinds, all Spark's.
_BOTH = TABLE_FUNCTIONS & _OF_SPARK
JOINED = "FROM a JOIN b ON a.k = b.k"
PLACES = (
    *(f"SELECT {{}} {JOINED}", f"SELECT a.x, {{}} {JOINED}", f"SELECT DISTINCT {{}} {JOINED}"),
    *(f"SELECT ALL {{}} {JOINED}", f"SELECT a.x * {{}} {JOINED}", f"SELECT - {{}} {JOINED}"),
    *(f"SELECT ({{}}) {JOINED}", f"SELECT coalesce({{}}, 1) {JOINED}", f"SELECT struct({{}} AS c) {JOINED}"),
    *(f"SELECT q(n => {{}}) {JOINED}", f"SELECT q(a.x, z -> {{}}) {JOINED}", f"SELECT a.m[{{}}] {JOINED}"),
    *(f"SELECT {{}}.g {JOINED}", f"SELECT db.{{}} {JOINED}", f"SELECT {{}}::int {JOINED}"),
    *(f"SELECT sum(DISTINCT {{}}) {JOINED}", f"SELECT {{}} OVER (ORDER BY a.x) {JOINED}"),
    f"SELECT sum(a.x) OVER (PARTITION BY {{}} ORDER BY {{}}) {JOINED}",
    f"SELECT sum(a.x) FILTER (WHERE {{}}) {JOINED}",
    f"SELECT CASE {{}} WHEN {{}} THEN {{}} ELSE {{}} END {JOINED}",
    *(f"SELECT EXTRACT(year FROM {{}}) {JOINED}", f"SELECT CAST({{}} AS int) {JOINED}"),
    *(f"SELECT 1 {JOINED} AND {{}}", f"SELECT 1 {JOINED} WHERE {{}} = {{}}", f"SELECT 1 {JOINED} WHERE NOT {{}}"),
    *(f"SELECT 1 {JOINED} WHERE a.x IN ({{}}, 6)", f"SELECT 1 {JOINED} WHERE a.x BETWEEN {{}} AND {{}}"),
    *(f"SELECT 1 {JOINED} WHERE a.x LIKE ANY ({{}}, 'b')", f"SELECT 1 {JOINED} WHERE a.x RLIKE {{}}"),
    *(f"SELECT 1 {JOINED} WHERE a.x IS DISTINCT FROM {{}}", f"SELECT 1 {JOINED} WHERE a.x IS NOT {{}}"),
    *(f"SELECT 1 {JOINED} GROUP BY {{}} HAVING {{}}", f"SELECT 1 {JOINED} GROUP BY a.x, {{}}"),
    *(f"SELECT 1 {JOINED} GROUP BY GROUPING SETS (({{}}))", f"SELECT 1 {JOINED} ORDER BY {{}} LIMIT {{}}"),
    *("SELECT 1 FROM {} JOIN b", "SELECT 1 FROM a JOIN {} ON 1 = 1", "SELECT 1 FROM a JOIN b, {} AS z"),
    *("SELECT 1 FROM a JOIN b, LATERAL {} z", "SELECT 1 FROM a NATURAL JOIN {}", "SELECT 1 FROM ({}) JOIN b"),
    *(f"SELECT 1 {JOINED} LATERAL VIEW {{}} z AS c", f"SELECT 1 {JOINED} LATERAL VIEW explode({{}}) z AS c"),
    f"SELECT 1 {JOINED} WHERE a.x IN (SELECT k FROM {{}} WHERE k = {{}})",
    f"SELECT 1 {JOINED} UNION ALL SELECT {{}}",
    "SELECT 1 FROM a JOIN VALUES ({}), (2) AS v(k)",
    *("SELECT 1 FROM a PIVOT ({} FOR k IN (1)) JOIN b", "SELECT 1 FROM a PIVOT (sum(x) FOR k IN ({})) JOIN b"),
    "SELECT 1 FROM a TIMESTAMP AS OF {} JOIN b",
    *(f"INSERT INTO t PARTITION (p = {{}}) SELECT {{}} {JOINED}", "FROM a JOIN b SELECT {}"),
    *("WITH c AS (SELECT {} FROM a) SELECT 1 FROM c JOIN b", f"SELECT /*+ MERGE(b) */ {{}} {JOINED}"),
)
ARGUMENTS = ("{}(a.x)", "{}()", "{}(5)", "{}(DISTINCT a.x)", "{}((SELECT 1), 2)", "{}/**/ (x, y)", "`{}`(x)")


def texts() -> Iterator[str]:
    for place in PLACES:
        for word in WORDS:
            shown = ARGUMENTS if word in _CLAUSE_WORDS | _BUILT_IN | _BEFORE_OPERAND else ARGUMENTS[:2]
            yield from (place.replace("{}", call.format(word)) for call in shown)


def calls_in_spark(java: Java, statements: list[str]) -> list[str]:
    done = subprocess.run(
        [str(java.path), "-XX:TieredStopAtLevel=1", "-cp", f"{spark_home() / 'jars'}/*", str(PROGRAM)],
        input="\0".join(statements),
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_no_call_of_sparks_parser_is_missed(java: Java) -> None:
    require_compiler(java)
    read = [(sql, parse(sql, chars_max=1_000, has_views=True)) for sql in dict.fromkeys(texts())]
    statements = [statement for _, statement in read if isinstance(statement, Statement)]
    told = calls_in_spark(java, [statement.text for statement in statements])
    missed, seen_by_both = [], 0
    for statement, line in zip(statements, told, strict=True):
        for place in line.split()[1:]:
            is_of_tables, start = place.startswith("T"), int(place[1:])
            call = statement.calls.get(start)
            if call is None:
                # Spark looks up its own functions first.
                name = statement.text[start:].lower().partition("(")[0].partition("/")[0]
                is_missed = is_of_tables or name not in OPERATORS
            else:
                of_spark = TABLE_FUNCTIONS if call.makes_table else _OF_SPARK
                is_missed = call.makes_table != is_of_tables and call.name in of_spark - _BOTH
                seen_by_both += 1
            if is_missed:
                missed.append((statement.text, start))
    assert missed[:20] == []
    assert seen_by_both > 10_000
